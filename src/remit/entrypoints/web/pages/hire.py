"""Hiring: describe an agent, preview its instructions and rights, and take it on."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from remit import threads
from remit.adapters import registry
from remit.entrypoints import setup_warnings
from remit.entrypoints.web.forms import Form
from remit.entrypoints.web.pages.agent_forms import field_of, read_json
from remit.entrypoints.web.site import Done, Page, Routes, Site, Visit
from remit.entrypoints.web.text import common_queries, settings_form
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
    *("name", "reportsTo", "purpose", "outcome", "reason", *(field.key for field in FORM)),
)
#: Placeholder of the id in a preview.
_NO_ID: Final = "(its id, once it is hired)"


def routes(site: Site) -> Routes:
    return site.form("/hire", show, act)


async def act(visit: Visit) -> Done | Page:
    """Hire, or redraw the form with everything typed; a hire needs a preview of the same values."""
    step = visit.form.text("step")
    if step not in ("preview", "now", "ask"):
        return await show(visit)
    arguments = _asked(visit.form)
    if step == "preview" or _digest(arguments) != visit.form.text("seen"):
        preview = await visit.do(hire_preview.preview, company=visit.company_id, asked=arguments)
        missing = await setup_warnings.of(
            visit.site.app, arguments["adapter_type"], arguments["adapter_config"]
        )
        more = {"digest": _digest(arguments), "again": step != "preview", "missing": missing}
        return await show(visit, {**preview, **more})
    if step == "ask":
        reason = visit.form.maybe("reason")
        hired = await visit.do(hiring.hire, company=visit.company_id, reason=reason, **arguments)
        return Done(visit.link("/hire", hired=hired["agent"]["id"]))
    if arguments["outcome"] is None:
        described = {key: value for key, value in arguments.items() if key != "outcome"}
        agent = await visit.do(agents.create, company=visit.company_id, **described)
        return await _hired(visit, agent["id"], arguments)
    company = await visit.do(companies.show, company=visit.company_id)
    if company["require_board_approval_for_new_agents"]:
        raise BadInput("A hire for an outcome needs an approval here.", "Ask for approval.")
    hired = await visit.do(hiring.hire, company=visit.company_id, **arguments)
    return await _hired(visit, hired["agent"]["id"], arguments)


async def _hired(visit: Visit, agent: str, arguments: Mapping[str, Any]) -> Done:
    lacks = await setup_warnings.of(
        visit.site.app, arguments["adapter_type"], arguments["adapter_config"]
    )
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
        agent = visit.ask(agent_page.show, agent=hired)
        return visit.show("hired.html", one=agent, lacks=lacks)
    if not visit.decides:
        return visit.show("hire_not.html")
    typed = _typed(visit)
    rights = [] if preview is None else preview["rights"]
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
        wrong=settings_form.problems(visit.problem),
        picks=common_queries.picks(visit),
        grantable=common_queries.grantable(visit, visit.company_id),
        at_field=_at_field(visit.problem),
        asks=company["require_board_approval_for_new_agents"],
        preview=preview,
        told=_told(preview) if preview is not None else "",
        named=visit.ask(
            agent_page.resources,
            company=visit.company_id,
            named={right["resource"] for right in rights},
        )
        if rights
        else {},
    )


def _about(adapter: str) -> dict[str, Any]:
    """The chosen adapter, its settings and documentation, and the other adapters."""
    installed = registry.get(adapter)
    return {
        "type": installed.type,
        "summary": installed.summary,
        "text": installed.agent_configuration_doc(),
        "safety": list(installed.safety),
        "settings": settings_form.settings(adapter),
        "known": [(other.type, other.summary) for other in registry.all()],
        "problems": sorted(registry.problems().items()),
    }


def _told(preview: Mapping[str, Any]) -> str:
    """The exact instructions with which each of its conversations begins."""
    text = instructions(
        **{name: preview[name] for name in ("agent", "boss", "company", "mandate", "can")}
    )
    for key in ("id", "state_file_id"):
        text = text.replace(preview["agent"][key], _NO_ID)
    return text


def _typed(visit: Visit) -> dict[str, Any]:
    """Values of the form: as typed or from the query, changed by the requested step."""
    form, step = visit.form, visit.form.text("step")
    typed: dict[str, Any] = {name: form.text(name) or _given(visit, name) for name in _TEXTS}
    role = form.text("role") or _given(visit, "role")
    chosen = form.text("adapter") or _given(visit, "adapter")
    typed |= {
        "role": role if role in list(AgentRole) else AgentRole.GENERAL.value,
        "adapter": chosen if chosen in registry.types() else DEFAULT_ADAPTER,
        **{name: form.text(name) for name in ("grants", "adapterConfig")},
        **{name: form.ticked(name) for name in ("can_create", "once", "as_json")},
        "settings": settings_form.typed(form),
    }
    if visit.problem is not None:
        return typed  # as it was, so that it can be corrected
    copied = step.removeprefix("copy:") if step.startswith("copy:") else _given(visit, "copy")
    if copied:
        _copy(visit, copied, typed)
    elif step == "json":
        typed["as_json"] = True
        typed["adapterConfig"] = settings_form.as_json(_fields(typed["adapter"], form))
    elif step == "fields":
        _to_fields(typed, form)
    return typed


def _given(visit: Visit, name: str) -> str:
    return visit.request.query_params.get(name, "")[:1000] if not visit.form.fields else ""


def _fields(adapter: str, form: Form) -> dict[str, Any]:
    try:
        return settings_form.read(adapter, form)
    except RemitError:
        return {}  # an invalid value cannot be converted


def _to_fields(typed: dict[str, Any], form: Form) -> None:
    config = read_json(form.text("adapterConfig") or "{}", "adapterConfig")
    fields = settings_form.written(typed["adapter"], config) if isinstance(config, dict) else None
    if fields is None:
        raise BadInput(
            "adapterConfig: has something that the fields cannot show.", "Go on with JSON."
        )
    typed["as_json"], typed["settings"] = False, fields


def _copy(visit: Visit, agent: str, typed: dict[str, Any]) -> None:
    """Copy another agent's configuration into the form, without its secrets."""
    other = visit.ask(configuration.show, agent=agent)
    config = _without_marks(other["adapter_config"])
    fields = settings_form.written(other["adapter_type"], config)
    typed |= {
        "adapter": other["adapter_type"],
        "role": other["role"],
        **{
            field.key: (other[field.name] or "").replace(REMOVED, "")
            for field in FORM
            if field.holds is Holds.TEXT
        },
        **{
            field.key: typed[field.key] or other[field.name]
            for field in FORM
            if field.holds is Holds.LINE
        },
        "as_json": fields is None,
        "settings": fields or {},
        "adapterConfig": settings_form.as_json(config),
    }


def _without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: _without_marks(inner) for key, inner in value.items() if REMOVED not in key}
        return {key: inner for key, inner in kept.items() if inner is not None}
    if isinstance(value, list):
        return [inner for inner in map(_without_marks, value) if inner is not None]
    return None if isinstance(value, str) and REMOVED in value else value


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
        **{field.name: form.text(field.key) for field in FORM},
        "reports_to": form.maybe("reportsTo"),
        **{name: form.maybe(name) for name in ("purpose", "outcome")},
        "perpetual": False if form.ticked("once") else None,
        "adapter_type": adapter,
        "adapter_config": config,
        "permissions": {"canCreateAgents": True} if form.ticked("can_create") else None,
        "given": wishes(form.text("grants")),
    }


def wishes(text: str) -> list[dict[str, Any]]:
    """Parse one right a line: resource, level, and optionally a mode."""
    rights = []
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
        rights.append({"resource": words[0], "level": words[1], "mode": mode})
    return rights


def _digest(arguments: Mapping[str, Any]) -> str:
    """Digest of the previewed values, so that nothing else is hired."""
    return hashlib.sha256(json.dumps(arguments, sort_keys=True).encode()).hexdigest()


def _at_field(problem: RemitError | None) -> str:
    """Name of the field that an error is about, if it can be told."""
    if problem is None:
        return ""
    if "agent named" in problem.sentence:
        return "name" if problem.code == "already_exists" else "reportsTo"
    if "The name" in problem.sentence:
        return "name"
    return field_of(problem, (*_TEXTS, "role", "grants", "adapterConfig"))
