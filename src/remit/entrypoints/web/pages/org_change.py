"""Changing the organisation: a preview shows whose authority changes, and a change can be
undone."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from remit.adapters import registry
from remit.entrypoints.web.forms import Form
from remit.entrypoints.web.site import Done, Page, Routes, Site, Visit, alone
from remit.entrypoints.web.text import common_queries, org_lines, settings_form
from remit.errors import BadInput, NotFound
from remit.model.organisation.agent_spec import AgentRole
from remit.model.text import closest
from remit.services.command import Answer
from remit.services.organisation import agents, reorganise

#: Most names suggested; in a larger company the name is typed.
MOST_OFFERED: Final = 500
MOST_NAMED: Final = 12
_ALL: Final = 1_000_000
_ID: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-([0-9a-f]{4})([0-9a-f]{8})"
)
#: Words for each right that is gained or lost.
_RIGHTS: Final = {
    "is boss of": "manages",
    "supervises": "can see and control",
    "judges": "decides when done:",
    "owns": "owns",
    "acts as": "acts as",
    "holds": "may",
}
_LAYER: Final = ("name", "role", "title", "adapter_type", "purpose")


def routes(site: Site) -> Routes:
    return [
        site.page("/org/change", show),
        *site.answered("/org/preview", preview, show, "/org"),
        site.action("/org/carry-out", carry_out, show),
        *site.answered("/org/undo", undo, alone, "/org"),
    ]


def show(visit: Visit) -> Page:
    """Show one agent, its place, and the operations on it."""
    everybody = visit.ask(agents.listing, company=visit.company_id, limit=_ALL)
    wanted = visit.form.text("agent") or visit.argument("agent")
    agent = _named(everybody, wanted)
    tops = org_lines.plant(everybody)
    node = org_lines.part_of(tops, agent["id"])
    assert node is not None
    below = org_lines.everybody_below(node)
    chosen = visit.form.text("adapter_type") or agent["adapter_type"]
    adapter = chosen if chosen in registry.types() else registry.types()[0]
    bosses = [other for other in everybody if other["id"] not in below and _works(other)]
    return visit.show(
        "org_change.html",
        one=agent,
        works=_works(agent),
        reports=[report.agent for report in node.reports if _works(report.agent)],
        below=node.below,
        offered=bosses if len(bosses) <= MOST_OFFERED else [],
        roles=[(role.value, role.value) for role in AgentRole],
        adapter=adapter,
        adapters=registry.types(),
        settings=settings_form.settings(adapter),
        picks=common_queries.picks(visit, "secret", "repo"),
        typed_settings=settings_form.typed(visit.form),
        wrong=settings_form.problems(visit.problem),
        names=common_queries.names(visit, [agent["reports_to"] or agent["boss_user_id"]]),
        typed=visit.form,
    )


async def preview(visit: Visit) -> Page:
    if visit.form.text("step") == "adapter":  # another adapter has other settings
        return await visit.look(show)
    operation = _operation(visit.form)
    moves = operation["op"] == "move"
    answer = await visit.do(reorganise.preview, company=visit.company_id, operations=[operation])
    return _confirm(
        visit,
        answer,
        heading=await _said(visit, operation, "Move {agent} below {to}?"),
        action="/org/carry-out",
        yes=await _said(visit, operation, "Move {agent}") if moves else "Apply change",
        fields={name: values[0] for name, values in visit.form.fields.items() if name != "agents"},
        chosen=visit.form.every("agents"),
        cancel=visit.link("/org/change", agent=visit.form.text("agent")),
    )


async def carry_out(visit: Visit) -> Done:
    operation = _operation(visit.form)
    done = await visit.do(reorganise.reorganise, company=visit.company_id, operations=[operation])
    message = await _said(visit, operation, "{agent} now reports to {to}.")
    return Done(visit.link("/org", done=done["event_id"]), message)


async def undo(visit: Visit) -> Done | Page:
    event = visit.form.text("event")
    if visit.form.text("step") == "look":
        answer = await visit.do(reorganise.preview_undo, company=visit.company_id, event=event)
        return _confirm(
            visit,
            answer,
            heading="Undo this change?",
            action="/org/undo",
            yes="Undo",
            fields={"event": event},
            chosen=[],
            cancel=visit.link("/org"),
        )
    done = await visit.do(reorganise.undo, company=visit.company_id, event=event)
    return Done(visit.link("/org", done=done["event_id"]), "Undone.")


def _confirm(visit: Visit, answer: Answer, *, heading: str, action: str, **more: Any) -> Page:
    return visit.show(
        "org_confirm.html",
        heading=heading,
        action=visit.link(action),
        people=grouped(answer["changes"]),
        **more,
    )


def _operation(form: Form) -> dict[str, Any]:
    """Return the form's operation as the verb's argument."""
    agent = form.text("agent")
    match form.text("op"):
        case "move":
            to = "board" if form.text("to_board") else form.text("to")
            if not to:
                raise BadInput("The new boss is missing.", "Give a name.")
            return {"op": "move", "agent": agent, "to": to}
        case "insert_layer":
            chosen = form.every("agents")
            if not chosen:
                raise BadInput("Nobody is chosen.", "Tick the reports of the new agent.")
            operation: dict[str, Any] = {"op": "insert_layer", "agents": chosen}
            operation |= {name: form.text(name) for name in _LAYER if form.text(name)}
            if operation.get("adapter_type") in registry.types():
                operation["adapter_config"] = settings_form.read(operation["adapter_type"], form)
            return operation
        case "remove_layer":
            return {"op": "remove_layer", "agent": agent}
        case _:
            raise NotFound("That cannot be done with the organisation.", "Use the buttons.")


async def _said(visit: Visit, operation: Mapping[str, Any], moved: str) -> str:
    """Describe an operation in words, with names."""
    asking_first = moved.endswith("?")
    concerned = [operation.get("agent"), operation.get("to"), *operation.get("agents", ())]
    names = await visit.look(lambda visit: common_queries.names(visit, concerned))

    def name(agent: str) -> str:
        return names.get(agent, agent)

    match operation["op"]:
        case "move":
            to = "the board" if operation["to"] == "board" else name(operation["to"])
            return moved.format(agent=name(operation["agent"]), to=to)
        case "insert_layer":
            new, number = operation.get("name", "somebody"), len(operation["agents"])
            those = name(operation["agents"][0]) if number == 1 else f"{number} agents"
            return f"Insert {new} above {those}?" if asking_first else f"{new} manages {those}."
        case _:
            gone = name(operation["agent"])
            return f"Remove {gone}?" if asking_first else f"{gone} is removed."


def grouped(changes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Group changes of authority by the agent or person, in lines for people."""
    people: dict[str, dict[str, Any]] = {}
    for change in changes:
        who = people.setdefault(
            change["who"],
            {"name": change["who_name"], "person": change["who"].startswith("user:"), "lines": {}},
        )
        line = who["lines"].setdefault((change["change"], change["right"]), [])
        line.append(_ID.sub(r"…\2", change["over_name"]))
    return [
        {
            **who,
            "lines": [
                (
                    change,
                    _RIGHTS.get(right, right),
                    sorted(over, key=str.casefold)[:MOST_NAMED],
                    max(0, len(over) - MOST_NAMED),
                )
                for (change, right), over in sorted(who["lines"].items())
            ],
        }
        for who in sorted(people.values(), key=lambda who: str(who["name"]).casefold())
    ]


def _named(everybody: Sequence[dict[str, Any]], wanted: str) -> dict[str, Any]:
    key = wanted.casefold()
    for agent in everybody:
        if agent["id"] == wanted or agent["name"].casefold() == key:
            return agent
    likely = closest(wanted, [agent["name"] for agent in everybody])
    step = f"Did you mean {' or '.join(likely)}?" if likely else "Look at the organisation."
    raise NotFound(f"There is no agent named {wanted[:64]!r} here.", step)


def _works(agent: Mapping[str, Any]) -> bool:
    return agent["status"] not in ("terminated", "pending_approval")
