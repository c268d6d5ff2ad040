"""Hiring: describe an agent, preview its instructions and rights, and take it on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from starlette.routing import Route

from remit import threads
from remit.adapters import registry
from remit.entrypoints import setup_warnings
from remit.entrypoints.web.forms import Form
from remit.entrypoints.web.pages.agent_forms import as_json, read_json
from remit.entrypoints.web.site import Done, Page, Site, Visit
from remit.entrypoints.web.text import common_queries, pickers, settings_form
from remit.errors import BadInput, NotFound, RemitError
from remit.model.organisation.agent_spec import FORM, AgentRole, Holds
from remit.runtime.runs.prompt import instructions
from remit.services.hiring import configuration, hire_preview, hiring
from remit.services.organisation import agents
from remit.services.people import companies
from remit.services.redaction import REMOVED
from remit.services.screens import agent_page

#: Most agents shown with a similar configuration.
RELATED: Final = 5
DEFAULT_ADAPTER: Final = "claude"
_TEXTS: Final = (
    *("name", "reportsTo", "purpose", "outcome", "reason", *(one.key for one in FORM)),
)
#: Placeholder of the id in a preview.
_NO_ID: Final = "(its id, once it is hired)"


def routes(site: Site) -> list[Route]:
    return site.form("/hire", show, act)


async def act(visit: Visit) -> Done | Page:
    """Hire, or redraw the form with everything typed; a hire needs a preview of the same values."""
    step = visit.form.text("step")
    if step not in ("preview", "now", "ask"):
        return await show(visit)
    asked = _asked(visit.form)
    if step == "preview" or _digest(asked) != visit.form.text("seen"):
        found = await visit.do(hire_preview.preview, company=visit.company_id, asked=asked)
        missing = await setup_warnings.of(
            visit.site.app, asked["adapter_type"], asked["adapter_config"]
        )
        more = {"digest": _digest(asked), "again": step != "preview", "missing": missing}
        return await show(visit, {**found, **more})
    if step == "ask":
        reason = visit.form.maybe("reason")
        hired = await visit.do(hiring.hire, company=visit.company_id, reason=reason, **asked)
        return Done(visit.link("/hire", hired=hired["agent"]["id"]))
    if asked["outcome"] is None:
        described = {key: value for key, value in asked.items() if key != "outcome"}
        made = await visit.do(agents.create, company=visit.company_id, **described)
        return await _hired(visit, made["id"], asked)
    company = await visit.do(companies.show, company=visit.company_id)
    if company["require_board_approval_for_new_agents"]:
        raise BadInput("A hire for an outcome needs an approval here.", "Ask for approval.")
    hired = await visit.do(hiring.hire, company=visit.company_id, **asked)
    return await _hired(visit, hired["agent"]["id"], asked)


async def _hired(visit: Visit, agent: str, asked: Mapping[str, Any]) -> Done:
    lacks = await setup_warnings.of(visit.site.app, asked["adapter_type"], asked["adapter_config"])
    return Done(visit.link("/hire", hired=agent, lacks="1" if lacks else ""))


async def show(visit: Visit, preview: Mapping[str, Any] | None = None) -> Page:
    page = await visit.look(lambda visit: _show(visit, preview))
    if "typed" in page.values:
        adapter = page.values["typed"]["adapter"]
        page.values["about"] = await threads.CHECKS.run(_about, adapter)
    return page


def _show(visit: Visit, preview: Mapping[str, Any] | None) -> Page:
    company = visit.ask(companies.show, company=visit.company_id)
    hired, lacks = visit.argument("hired"), bool(visit.argument("lacks"))
    if hired:
        one = visit.ask(agent_page.show, agent=hired)
        return visit.show("hired.html", one=one, lacks=lacks)
    if not visit.decides:
        return visit.show("hire_not.html")
    typed = _typed(visit)
    problem = visit.problem
    wrong = settings_form.problems(problem.details) if problem is not None else {}
    given = [] if preview is None else preview["rights"]
    return visit.show(
        "hire.html",
        typed=typed,
        described=FORM,
        roles=[role.value for role in AgentRole],
        roster=visit.ask(agent_page.roster, company=visit.company_id),
        related=visit.ask(
            configuration.related,
            company=visit.company_id,
            role=typed["role"],
            adapter_type=typed["adapter"],
            limit=RELATED,
        ),
        wrong=wrong,
        picks=pickers.of(visit),
        grantable=common_queries.grantable(visit, visit.company_id),
        at_field=_at_field(problem),
        asks=company["require_board_approval_for_new_agents"],
        preview=preview,
        told=_told(preview) if preview is not None else "",
        named=visit.ask(
            agent_page.resources,
            company=visit.company_id,
            named={right["resource"] for right in given},
        )
        if given
        else {},
    )


def _about(adapter: str) -> dict[str, Any]:
    """The chosen adapter, its settings and documentation, and the other adapters."""
    found = registry.get(adapter)
    return {
        "type": found.type,
        "summary": found.summary,
        "text": found.agent_configuration_doc(),
        "safety": list(found.safety),
        "settings": settings_form.settings(adapter),
        "known": [(one.type, one.summary) for one in registry.all()],
        "problems": sorted(registry.problems().items()),
    }


def _told(preview: Mapping[str, Any]) -> str:
    """The exact instructions with which each of its conversations begins."""
    text = instructions(
        agent=preview["agent"],
        boss=preview["boss"],
        company=preview["company"],
        mandate=preview["mandate"],
        can=preview["can"],
    )
    for one in ("id", "state_file_id"):
        text = text.replace(preview["agent"][one], _NO_ID)
    return text


def _typed(visit: Visit) -> dict[str, Any]:
    """Values of the form: as typed or from the query, changed by the requested step."""
    form, step = visit.form, visit.form.text("step")
    found: dict[str, Any] = {name: form.text(name) or _given(visit, name) for name in _TEXTS}
    role = form.text("role") or _given(visit, "role")
    found["role"] = role if role in {one.value for one in AgentRole} else AgentRole.GENERAL.value
    chosen = form.text("adapter") or _given(visit, "adapter")
    found["adapter"] = chosen if chosen in registry.types() else DEFAULT_ADAPTER
    found["grants"] = form.text("grants")
    found["can_create"] = form.ticked("can_create")
    found["once"] = form.ticked("once")
    found["as_json"] = form.ticked("as_json")
    found["adapterConfig"] = form.text("adapterConfig")
    found["settings"] = {
        name: form.text(name) for name in form.fields if name.startswith(settings_form.PREFIX)
    }
    if visit.problem is not None:
        return found  # as it was, so that it can be corrected
    copied = step.removeprefix("copy:") if step.startswith("copy:") else _given(visit, "copy")
    if copied:
        _copy(visit, copied, found)
    elif step == "json":
        found["as_json"] = True
        found["adapterConfig"] = as_json(_fields(found["adapter"], form))
    elif step == "fields":
        _to_fields(found, form)
    return found


def _given(visit: Visit, name: str) -> str:
    return visit.request.query_params.get(name, "")[:1000] if not visit.form.fields else ""


def _fields(adapter: str, form: Form) -> dict[str, Any]:
    try:
        return settings_form.read(adapter, form)
    except RemitError:
        return {}  # an invalid value cannot be converted


def _to_fields(found: dict[str, Any], form: Form) -> None:
    config = read_json(form.text("adapterConfig") or "{}", "adapterConfig")
    fields = settings_form.written(found["adapter"], config) if isinstance(config, dict) else None
    if fields is None:
        raise BadInput(
            "adapterConfig: has something that the fields cannot show.", "Go on with JSON."
        )
    found["as_json"], found["settings"] = False, fields


def _copy(visit: Visit, agent: str, found: dict[str, Any]) -> None:
    """Copy another agent's configuration into the form, without its secrets."""
    other = visit.ask(configuration.show, agent=agent)
    config = _without_marks(other["adapter_config"])
    fields = settings_form.written(other["adapter_type"], config)
    found |= {
        "adapter": other["adapter_type"],
        "role": other["role"],
        **{one.key: _unmarked(other[one.name]) for one in FORM if one.holds is Holds.TEXT},
        **{one.key: found[one.key] or other[one.name] for one in FORM if one.holds is Holds.LINE},
        "as_json": fields is None,
        "settings": fields or {},
        "adapterConfig": as_json(config),
    }


def _without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: _without_marks(one) for key, one in value.items() if REMOVED not in key}
        return {key: one for key, one in kept.items() if one is not None}
    if isinstance(value, list):
        return [one for one in map(_without_marks, value) if one is not None]
    return None if isinstance(value, str) and REMOVED in value else value


def _unmarked(text: str) -> str:
    return (text or "").replace(REMOVED, "")


def _asked(form: Form) -> dict[str, Any]:
    """Return the form as arguments of the service."""
    adapter = form.text("adapter")
    if adapter not in registry.types():
        raise NotFound("There is no such adapter here.", "Choose one of the list.")
    if form.ticked("as_json"):
        config = read_json(form.text("adapterConfig") or "{}", "adapterConfig")
    else:
        config = settings_form.read(adapter, form)
    return {
        "name": form.text("name"),
        "role": form.text("role") or AgentRole.GENERAL.value,
        **{one.name: form.text(one.key) for one in FORM},
        "reports_to": form.maybe("reportsTo"),
        "purpose": form.maybe("purpose"),
        "perpetual": False if form.ticked("once") else None,
        "outcome": form.maybe("outcome"),
        "adapter_type": adapter,
        "adapter_config": config,
        "permissions": {"canCreateAgents": True} if form.ticked("can_create") else None,
        "given": wishes(form.text("grants")),
    }


def wishes(text: str) -> list[dict[str, Any]]:
    """Parse one right a line: resource, level, and optionally a mode."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        words = line.split()
        if not words:
            continue
        if not 2 <= len(words) <= 3:
            raise BadInput(
                f"grants: line {number} is not a right.",
                "Write it like: kb_file:ID read, or full_access use ask.",
                details={"path": "grants"},
            )
        mode = words[2] if len(words) == 3 else "allow"
        found.append({"resource": words[0], "level": words[1], "mode": mode})
    return found


def _digest(asked: Mapping[str, Any]) -> str:
    """Digest of the previewed values, so that nothing else is hired."""
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def _at_field(problem: RemitError | None) -> str:
    """Name of the field that an error is about, if it can be told."""
    if problem is None:
        return ""
    path = str(problem.details.get("path") or problem.sentence)
    head = path.replace(":", " ").replace(".", " ").split(" ")[0]
    if "agent named" in problem.sentence:
        return "name" if problem.code == "already_exists" else "reportsTo"
    if "The name" in problem.sentence:
        return "name"
    return head if head in (*_TEXTS, "role", "grants", "adapterConfig") else ""
