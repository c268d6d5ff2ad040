"""What can be done on an agent's page: control it, write to it, change its rights and settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from starlette.routing import Route

from remit.adapters import registry
from remit.entrypoints import setup_warnings
from remit.entrypoints.web.site import Done, Show, Site, Visit
from remit.errors import BadInput, NotFound, RemitError
from remit.services import agents, configuration, grants, overview, permissions
from remit.services.command import Verb
from remit.services.identity import Caller

#: Each verb, and what is said when it was done.
_CONTROLS: Final[dict[str, tuple[Verb[..., Any], str]]] = {
    "pause": (agents.pause, "{} is paused."),
    "resume": (agents.resume, "{} works again."),
    "start": (agents.start, "{} works again."),
    "stop": (agents.stop, "{} is stopped, and stays so until it is resumed."),
    "restart": (agents.restart, "{} begins anew."),
    "abort": (agents.abort, "The run of {} is over."),
    "wake": (agents.wake, "{} was woken."),
    "terminate": (agents.terminate, "{} is terminated; its history stays."),
}
#: Of the configuration, what the form changes: text as it is, and documents as JSON.
_TEXTS: Final = {
    "title": "title",
    "capabilities": "capabilities",
    "prompt": "prompt",
    "adapterType": "adapter_type",
}
_DOCUMENTS: Final = {"adapterConfig": "adapter_config", "runtimeConfig": "runtime_config"}


def routes(site: Site, show: Show) -> list[Route]:
    return [
        site.action("/agents/{agent}/control", control, show),
        site.action("/agents/{agent}/messages", write, show),
        site.action("/agents/{agent}/permissions", permit, show),
        site.action("/agents/{agent}/grants", give, show),
        site.action("/agents/{agent}/grants/{grant}/revoke", revoke, show),
        site.action("/agents/{agent}/configuration", configure, show),
        site.action("/agents/{agent}/configuration/rollback", roll_back, show),
    ]


def _here(visit: Visit, tab: str = "") -> str:
    return visit.link(f"/agents/{visit.argument('agent')}", tab=visit.form.text("tab") or tab)


async def control(visit: Visit) -> Done:
    chosen = _CONTROLS.get(visit.form.text("verb"))
    if chosen is None:
        raise NotFound("That cannot be done to an agent.", "Use the buttons.")
    verb, said = chosen
    done = await visit.do(verb, agent=visit.argument("agent"))
    return Done(_here(visit), said.format(done["name"]))


async def write(visit: Visit) -> Done:
    to = await visit.ask(agents.show, agent=visit.argument("agent"))
    sent = await visit.site.app.library.send(
        Caller(visit.who.token, visit.form.key),
        company=to["company_id"],
        to=f"agent:{to['id']}",
        subject=visit.form.text("subject"),
        body=visit.form.text("body"),
    )
    said = f"Your message to {to['name']} is sent."
    return Done(_here(visit), " ".join(filter(None, (said, sent["not_started"]))))


async def permit(visit: Visit) -> Done:
    given: dict[str, Any] = {}
    if visit.form.text("can_create"):
        given["can_create"] = visit.form.ticked("can_create")
    if visit.form.text("permission_level"):
        given["level"] = visit.form.text("permission_level")
    done = await visit.do(permissions.change, agent=visit.argument("agent"), **given)
    may = "can" if done["permissions"]["canCreateAgents"] else "cannot"
    said = f"{done['name']} {may} create new agents."
    if "level" in given:
        said = f"{done['name']} has the level {done['permission_level']}, and {may} create agents."
    return Done(_here(visit, "rights"), said)


async def give(visit: Visit) -> Done:
    to = await visit.ask(agents.show, agent=visit.argument("agent"))
    done = await visit.do(
        grants.give,
        company=to["company_id"],
        to=f"agent:{to['id']}",
        resource=visit.form.text("resource"),
        level=visit.form.text("level"),
        mode=visit.form.text("mode") or "allow",
        scope=visit.form.maybe("scope"),
        expires_at=visit.form.maybe("expires_at"),
    )
    return Done(_here(visit, "rights"), f"{to['name']} has {done['level']} on {done['resource']}.")


async def revoke(visit: Visit) -> Done:
    done = await visit.do(grants.revoke, grant=visit.argument("grant"))
    others = len(done["revoked"]) - 1
    more = f" With it went {others} that had been passed on from it." if others > 0 else ""
    return Done(_here(visit, "rights"), f"It is taken back.{more}")


async def configure(visit: Visit) -> Done:
    """Change what differs from what was shown; or ask for it."""
    agent = visit.argument("agent")
    now = await visit.ask(configuration.show, agent=agent)
    changes = _changes(visit, now)
    if not changes:
        raise BadInput("Nothing is different from how it is now.", "Change something first.")
    seen = None if visit.form.ticked("anyway") else visit.form.number("revision")
    if visit.form.text("what") != "propose":
        done = await visit.do(
            configuration.change, agent=agent, changes=changes, expected_revision=seen
        )
        said = f"It has revision {done['revision']} now.{await _missing(visit, agent, changes)}"
        return Done(_here(visit, "configuration"), said)
    asked = await visit.do(
        configuration.propose,
        agent=agent,
        changes=changes,
        reason=visit.form.text("reason"),
        expected_revision=seen,
    )
    if asked["approval"] is None:
        return Done(_here(visit, "configuration"), "The change took effect at once.")
    return Done(f"/approvals/{asked['approval']['id']}", "It is proposed, and awaits a decision.")


async def _missing(visit: Visit, agent: str, changes: Mapping[str, Any]) -> str:
    """What an agent lacks to work here with its new settings."""
    if not {"adapterType", "adapterConfig"} & changes.keys():
        return ""
    _, settings = await visit.ask(overview.may_test, company=visit.company_id, agent=agent)
    assert settings is not None
    missing = await setup_warnings.of(
        visit.site.app, settings["adapter_type"], settings["adapter_config"]
    )
    if missing is None:
        return ""
    return f" It cannot work here yet: {missing['sentence']} {missing['next_step']}"


def _changes(visit: Visit, now: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, shown in _TEXTS.items():
        text = visit.form.text(name)
        if name in visit.form.fields and text != (now[shown] or "").strip():
            found[name] = text
    for name, shown in _DOCUMENTS.items():
        if name in visit.form.fields:
            document = read_json(visit.form.text(name) or "{}", name)
            if document != now[shown]:
                found[name] = document
    return found


def read_json(text: str, name: str) -> Any:
    """A document that somebody typed."""
    try:
        return json.loads(text)
    except RecursionError:
        raise BadInput(f"{name}: is nested too deep.", details={"path": name}) from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise BadInput(
            f"{name}: is not JSON ({where}).", "Correct the text.", details={"path": name}
        ) from None
    except ValueError:  # a number with thousands of digits
        raise BadInput(f"{name}: is not JSON.", details={"path": name}) from None


async def roll_back(visit: Visit) -> Done:
    done = await visit.do(
        configuration.rollback,
        agent=visit.argument("agent"),
        revision=visit.form.text("revision"),
    )
    said = f"It is configured as in revision {visit.form.text('revision')} again; that is revision"
    return Done(_here(visit, "configuration"), f"{said} {done['revision']}.")


def typed(visit: Visit, now: Mapping[str, Any]) -> dict[str, str]:
    """What the form shows: what was typed when it could not be done, or how it is."""
    kept = visit.form.fields if visit.problem is not None else {}
    found = {name: now[shown] or "" for name, shown in _TEXTS.items()}
    found |= {name: as_json(now[shown]) for name, shown in _DOCUMENTS.items()}
    found |= {"revision": str(now["revision"]), "reason": ""}
    return {name: visit.form.text(name) if name in kept else value for name, value in found.items()}


def as_json(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False)


def at_field(problem: RemitError | None) -> str:
    """The field that an error is about, if it names one."""
    if problem is None:
        return ""
    path = str(problem.details.get("path") or problem.sentence)
    head = path.replace(":", ".").replace(" ", ".").partition(".")[0]
    return head if head in (*_TEXTS, *_DOCUMENTS, "name", "reportsTo", "purpose", "role") else ""


def adapters(current: str) -> list[str]:
    """What an agent can be run by; also what it is run by when that is not installed any more."""
    known = registry.types()
    return known if current in known else [current, *known]
