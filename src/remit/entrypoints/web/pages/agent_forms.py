"""Forms of an agent's page: control it, write to it, change its rights and settings; update or
terminate it, after a preview."""

import json
import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from remit.adapters import registry
from remit.entrypoints import setup_warnings
from remit.entrypoints.binding_trial import asked
from remit.entrypoints.web.site import Done, Page, Routes, Show, Site, Undo, Visit
from remit.entrypoints.web.text import common_queries, settings_form, words
from remit.errors import BadInput, NotFound, RemitError
from remit.ids import is_id
from remit.model.organisation.agent_spec import FORM
from remit.services.command import Verb
from remit.services.connections import bindings, lent_plugins
from remit.services.hiring import agent_update, configuration
from remit.services.messaging import mail
from remit.services.organisation import agents, permissions
from remit.services.rights import grants
from remit.services.screens import agent_page, overview

#: Each verb, and the message after it.
_CONTROLS: Final[dict[str, tuple[Verb[..., Any], str]]] = {
    "pause": (agents.pause, "{} is paused."),
    "resume": (agents.resume, "{} is resumed."),
    "start": (agents.start, "{} is resumed."),
    "stop": (agents.stop, "{} is stopped until it is resumed."),
    "restart": (agents.restart, "{} was restarted."),
    "abort": (agents.abort, "The run of {} was cancelled."),
    "wake": (agents.wake, "{} was woken."),
    "terminate": (agents.terminate, "{} is terminated; its history stays."),
}
#: The verb that undoes another.
_UNDONE_BY: Final = {"pause": "resume", "stop": "resume", "resume": "pause", "start": "pause"}
#: Reasons of idleness that also prevent a start on request.
_KEEPS: Final = frozenset(
    {
        *("halted", "no_person", "budget", "limit", "no_adapter"),
        *("held", "waiting", "no_work", "blocked"),
    }
)
#: Fields of the form: texts as they are, and documents as JSON.
_TEXTS: Final = {**{field.key: field.name for field in FORM}, "adapterType": "adapter_type"}
_DOCUMENTS: Final = {"adapterConfig": "adapter_config", "runtimeConfig": "runtime_config"}


def routes(site: Site, show: Show) -> Routes:
    here = "/agents/{agent}"
    return [
        *site.forms(here, show, control=control, messages=write, channels=channel),
        *site.forms(here, show, permissions=permit, grants=give, configuration=configure),
        site.action(f"{here}/grants/{{grant}}/revoke", revoke, show),
        site.action(f"{here}/configuration/rollback", roll_back, show),
        site.action(f"{here}/lent/{{plugin}}/remove", take_back, show),
        *site.form(f"{here}/update", show_update, update),
        *site.form(f"{here}/terminate", show_ending, end),
    ]


def _here(visit: Visit, tab: str = "") -> str:
    tab = visit.form.text("tab") or tab
    return visit.link(f"/agents/{visit.argument('agent')}", tab=tab, json=visit.form.text("json"))


async def take_back(visit: Visit) -> Done:
    agent, plugin = visit.argument("agent"), visit.argument("plugin")
    await visit.do(lent_plugins.take_back, agent=agent, plugin=plugin)
    return Done(_here(visit, "configuration"), "New runs do not find the plugin.")


async def control(visit: Visit) -> Done:
    chosen = _CONTROLS.get(visit.form.text("verb"))
    if chosen is None:
        raise NotFound("That cannot be done to an agent.", "Use the buttons.")
    verb, message = chosen
    done = await visit.do(verb, agent=visit.argument("agent"))
    back = _UNDONE_BY.get(visit.form.text("verb"))
    undo = Undo(f"/agents/{done['id']}/control", {"verb": back}) if back else None
    return Done(
        _here(visit), await _came_to(visit, done["name"], message.format(done["name"])), undo
    )


async def _came_to(visit: Visit, name: str, message: str) -> str:
    """Message after a control, with the reason if the agent still cannot work."""
    if visit.form.text("verb") not in ("wake", "resume", "start", "restart"):
        return message
    shown = await visit.site.app.gate(visit.who, agent_page.show, agent=visit.argument("agent"))
    idle = shown["idle"]
    if idle is None or idle["reason"] not in _KEEPS:
        return message
    why = words.with_readable_times(idle["sentence"])
    return (
        f"{message} {why}" if visit.form.text("verb") == "resume" else f"{name} cannot start: {why}"
    )


async def write(visit: Visit) -> Done:
    to = await visit.do(agents.show, agent=visit.argument("agent"))
    sent = await visit.site.app.library.send(
        visit.caller,
        company=to["company_id"],
        to=f"agent:{to['id']}",
        **visit.form.arguments(mail.send, ("subject", "body")),
    )
    sentence = f"Your message to {to['name']} is sent."
    return Done(_here(visit), " ".join(filter(None, (sentence, sent["not_started"]))))


async def channel(visit: Visit) -> Done:
    """Test or remove one of the agent's bindings."""
    of = await visit.do(agents.show, agent=visit.argument("agent"))
    about: Any = {"company": of["company_id"], "binding": visit.form.text("id")}
    if visit.form.text("act") == "remove":
        await visit.do(bindings.remove, **about)
        return Done(_here(visit, "mail"), "Channel removed; its token is revoked.")
    trial = await asked(visit.site.app, visit.caller, **about)
    message = " ".join(filter(None, (trial["sentence"], trial["next_step"])))
    return Done(_here(visit, "mail"), message)


async def permit(visit: Visit) -> Done:
    wanted: dict[str, Any] = {}
    if visit.form.text("can_create"):
        wanted["can_create"] = visit.form.ticked("can_create")
    if visit.form.text("permission_level"):
        wanted["level"] = visit.form.text("permission_level")
    done = await visit.do(permissions.change, agent=visit.argument("agent"), **wanted)
    name, level = done["name"], done["permission_level"]
    may = "can" if done["permissions"]["canCreateAgents"] else "cannot"
    message = f"{name} {may} create new agents."
    if "level" in wanted:
        message = f"{name} has the level {level}, and {may} create agents."
    return Done(_here(visit, "rights"), message)


async def give(visit: Visit) -> Done:
    to = await visit.do(agents.show, agent=visit.argument("agent"))
    done = await visit.do(
        grants.give,
        company=to["company_id"],
        to=f"agent:{to['id']}",
        mode=visit.form.text("mode") or "allow",
        **visit.form.arguments(grants.give, ("resource", "level", "scope", "expires_at")),
    )
    return Done(_back(visit), f"{to['name']} was granted {done['level']}.")


def _back(visit: Visit) -> str:
    """Address to return to: the file's page that the form was on, or the agent's rights."""
    file = visit.form.text("file")
    return f"/files/{file}" if is_id(file) else _here(visit, "rights")


async def revoke(visit: Visit) -> Done:
    done = await visit.do(grants.revoke, grant=visit.argument("grant"))
    others = len(done["revoked"]) - 1
    more = f" With it went {others} that had been passed on from it." if others > 0 else ""
    return Done(_back(visit), f"Revoked.{more}")


async def configure(visit: Visit) -> Done:
    """Change the configuration by the fields that differ, or propose that."""
    agent = visit.argument("agent")
    now = await visit.do(configuration.show, agent=agent)
    wanted = changes(visit, now)
    if not wanted:
        raise BadInput("Nothing is different from how it is now.", "Change something first.")
    seen = None if visit.form.ticked("anyway") else visit.form.number("revision")
    if visit.form.text("what") != "propose":
        done = await visit.do(
            configuration.change, agent=agent, changes=wanted, expected_revision=seen
        )
        message = f"Saved as revision {done['revision']}.{await _missing(visit, agent, wanted)}"
        return Done(_here(visit, "configuration"), message)
    proposal = await visit.do(
        configuration.propose,
        agent=agent,
        changes=wanted,
        reason=visit.form.text("reason"),
        expected_revision=seen,
    )
    if proposal["approval"] is None:
        return Done(_here(visit, "configuration"), "The change took effect at once.")
    return Done(f"/approvals/{proposal['approval']['id']}", "Proposed; it awaits a decision.")


async def _missing(visit: Visit, agent: str, changes: Mapping[str, Any]) -> str:
    """Sentence about missing set-up of an agent with its new settings."""
    if not {"adapterType", "adapterConfig"} & changes.keys():
        return ""
    _, settings = await visit.do(overview.may_test, company=visit.company_id, agent=agent)
    assert settings is not None
    missing = await setup_warnings.of(
        visit.site.app, settings["adapter_type"], settings["adapter_config"]
    )
    if missing is None:
        return ""
    return f" It cannot work here yet: {missing['sentence']} {missing['next_step']}"


def changes(visit: Visit, now: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of the form that differ from the configuration."""
    differing: dict[str, Any] = {}
    for name, shown in _TEXTS.items():
        text = visit.form.text(name)
        if name in visit.form.fields and text != (now[shown] or "").strip():
            differing[name] = text
    for name, shown in _DOCUMENTS.items():
        if name in visit.form.fields:
            document = read_json(visit.form.text(name) or "{}", name)
            if document != now[shown]:
                differing[name] = document
    if visit.form.ticked("fields"):
        adapter = _adapter(visit, now)
        document = settings_form.read(adapter, visit.form)
        if adapter != now["adapter_type"] or document != now["adapter_config"]:
            differing["adapterConfig"] = document
    return differing


def read_json(text: str, name: str) -> Any:
    """Parse a JSON document from a form field."""
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
    agent, old = visit.argument("agent"), visit.form.text("revision")
    done = await visit.do(configuration.rollback, agent=agent, revision=old)
    message = f"It is configured as in revision {old} again; that is revision {done['revision']}."
    return Done(_here(visit, "configuration"), message)


def fields(visit: Visit, now: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a configuration besides what is typed; settings of the adapter are JSON if fields
    cannot show them, or on request."""
    adapter = _adapter(visit, now)
    config = now["adapter_config"] if adapter == now["adapter_type"] else {}
    shown = settings_form.written(adapter, config) if adapter in registry.types() else None
    kept = visit.form.fields if visit.problem is not None else {}
    in_fields = (
        shown is not None
        and not (visit.argument("json") or visit.form.text("json"))
        and "adapterConfig" not in kept
    )
    typed = settings_form.typed(visit.form) if visit.problem is not None else {}
    return {
        "described": FORM,
        "at_field": at_field(visit.problem),
        "adapters": adapters(now["adapter_type"]),
        "picks": common_queries.picks(visit, "secret", "repo"),
        "as_json": not in_fields,
        "settings": settings_form.settings(adapter) if in_fields else [],
        "typed_settings": typed or shown or {},
        "wrong": settings_form.problems(visit.problem),
    }


def _adapter(visit: Visit, now: Mapping[str, Any]) -> str:
    """Adapter that the form is for: the agent's, or another one that was chosen."""
    chosen = visit.form.text("adapterType") or visit.argument("adapter")
    return chosen if chosen in adapters(now["adapter_type"]) else str(now["adapter_type"])


def typed(visit: Visit, now: Mapping[str, Any]) -> dict[str, str]:
    """Values of the form: as typed if it failed, else the current ones."""
    texts = {name: now[shown] or "" for name, shown in _TEXTS.items()}
    texts["adapterType"] = _adapter(visit, now)
    texts |= {name: settings_form.as_json(now[shown]) for name, shown in _DOCUMENTS.items()}
    texts |= {"revision": str(now["revision"]), "reason": ""}
    return visit.kept(texts)


def at_field(problem: RemitError | None) -> str:
    """Name of the field that an error is about; empty if it names none."""
    known = (*_TEXTS, *_DOCUMENTS, "name", "reportsTo", "purpose", "role")
    return field_of(problem, known) if problem is not None else ""


def field_of(problem: RemitError, known: Collection[str]) -> str:
    """Return the known field with which an error begins, or empty."""
    path = str(problem.details.get("path") or problem.sentence)
    head = re.split("[:. ]", path, maxsplit=1)[0]
    return head if head in known else ""


def adapters(current: str) -> list[str]:
    """Adapters to choose from, with the agent's own even if it is no longer installed."""
    known = registry.types()
    return known if current in known else [current, *known]


# ── update and termination, with previews ───────────────────────────────────────────────────────


def _preview(visit: Visit, template: str, seen: Mapping[str, Any]) -> Page:
    agent = visit.ask(agents.show, agent=visit.argument("agent"))
    visit.enter(agent["company_id"])
    return visit.show(template, one=agent, seen=seen)


async def show_update(visit: Visit) -> Page:
    seen = await visit.do(agent_update.preview, agent=visit.argument("agent"))
    return await visit.look(lambda visit: _preview(visit, "agent_update.html", seen))


async def update(visit: Visit) -> Done:
    done = await visit.do(agent_update.update, agent=visit.argument("agent"))
    if done["approval"] is not None:
        return Done(f"/approvals/{done['approval']['id']}", "It waits for a decision.")
    message = f"{done['name']} takes over its set-up; it is at revision {done['revision']}."
    return Done(f"/agents/{done['id']}", message)


async def show_ending(visit: Visit) -> Page:
    seen = await visit.do(agents.preview_terminate, agent=visit.argument("agent"), subtree=True)
    return await visit.look(lambda visit: _preview(visit, "agent_ending.html", seen))


async def end(visit: Visit) -> Done:
    done = await visit.do(agents.terminate, agent=visit.argument("agent"), subtree=True)
    count = len(done["agents_ended"])
    whose = f" with {count - 1} below it. Their" if count > 1 else ". Its"
    return Done(f"/agents/{done['id']}", f"{done['name']} is terminated{whose} history stays.")
