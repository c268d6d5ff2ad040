"""Reorganisation of a working company: move, insert a layer, remove one, change a seat.

All operations of one call are one transaction. Their steps are stored in the event as plain data,
so that it can be undone; a preview does the same and rolls back.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from remit.authority import Action
from remit.errors import BadInput, Conflict, NotFound
from remit.ids import OutcomeId, is_id, is_part_of, normalise
from remit.model.organisation.agent import Agent
from remit.model.organisation.agent_spec import SHORT
from remit.model.organisation.principal import ActorKind
from remit.model.work.outcome import OutcomeKind, OutcomeStatus
from remit.services import lookup, shapes
from remit.services.command import Context, command
from remit.services.execution import tool_changes
from remit.services.hiring import agent_spec
from remit.services.organisation import agents, authority_map, tree
from remit.services.organisation.reorganise_steps import Steps
from remit.services.people import users
from remit.services.spending import budgets, ledger
from remit.services.verbs import preview_of
from remit.services.work import outcome_ending
from remit.store.organisation import agents as statements
from remit.store.record import events as event_log
from remit.store.work import outcomes as outcome_statements

MOST_OPERATIONS = 100


@command("reorganise.reorganise")
def reorganise(
    ctx: Context, *, company: str | None, operations: Sequence[Mapping[str, Any]]
) -> shapes.ReorganisedShape:
    """Carry out the operations, all or none."""
    lookup.company_of_caller(ctx, company)
    if not 1 <= len(operations) <= MOST_OPERATIONS:
        raise BadInput(f"Give 1 to {MOST_OPERATIONS} operations.", "Split them into several calls.")
    steps = Steps(ctx)
    concerned = [agent for operation in operations for agent in _concerned(ctx, operation)]
    ctx.require(Action.ORG_CHANGE, on="org", home=concerned[0].id if concerned else None)
    for agent in concerned:
        # A board member over a part of the company reorganises that part only.
        ctx.require(Action.ORG_CHANGE, on=f"agent:{agent.id}", home=agent.id)
    bosses = {agent.boss_id for agent in concerned if agent.boss_id is not None}
    before = authority_map.snapshot(ctx, {agent.id for agent in concerned}, bosses)
    lefts = ledger.picture(ctx)
    for operation in operations:
        _OPERATIONS[str(operation["op"])](ctx, steps, operation)
    _count_budgets(ctx, lefts)
    return _answer(ctx, "org.change", before, steps, {"operations": [dict(o) for o in operations]})


preview = preview_of("reorganise.preview", reorganise)


@command("reorganise.undo")
def undo(ctx: Context, *, company: str | None, event: str) -> shapes.ReorganisedShape:
    """Undo a reorganisation, provided that nothing it touched was changed since."""
    lookup.company_of_caller(ctx, company)
    event_row = _event(ctx, event)
    ctx.require(Action.ORG_CHANGE, on="org")
    steps = Steps.from_json(ctx, json.loads(event_row.details)["steps"])
    before = authority_map.snapshot(ctx, steps.agents(), steps.bosses())
    lefts = ledger.picture(ctx)
    undone = steps.undo()
    _count_budgets(ctx, lefts)
    return _answer(ctx, "org.undo", before, undone, {"undoes": event_row.id})


preview_undo = preview_of("reorganise.preview_undo", undo)


def _answer(
    ctx: Context, action: str, before: authority_map.Map, steps: Steps, details: dict[str, object]
) -> shapes.ReorganisedShape:
    # Moved agents first: those below them need no query of their own.
    after = authority_map.snapshot(ctx, [*steps.agents(), *before.agents], before.bosses)
    changes = before.changes(after)
    event = ctx.record(
        action, "org", {**details, "steps": steps.as_json(), "changes": len(changes)}
    )
    tool_changes.taken(
        ctx, [grant for step in steps.as_json() for grant in step.get("revoked", ())]
    )
    return {"event_id": event, "dry_run": False, "changes": changes, "steps": steps.as_json()}


def _count_budgets(ctx: Context, before: ledger.Picture | None) -> None:
    """Recount the budgets, which come out of accounts above: at its new place one may not be
    covered, which is refused."""
    ledger.settle(ctx, before)
    budgets.relieve(ctx)


def _concerned(ctx: Context, operation: Mapping[str, Any]) -> list[Agent]:
    """Return the agents that an operation names; invalid operations are refused here, before any
    change."""
    op = operation.get("op")
    if op not in _OPERATIONS:
        known = ", ".join(_OPERATIONS)
        raise BadInput(f"op must be one of {known}.", "Correct the operation.")
    names = operation.get("agents") if op == "insert_layer" else [operation.get("agent")]
    if not isinstance(names, Sequence) or isinstance(names, str) or not names:
        raise BadInput("agents must be a list of agents.", "Name at least one.")
    concerned = []
    for name in names:
        if not isinstance(name, str):
            raise BadInput("An agent is named by a text.", "Give its name or id.")
        concerned.append(lookup.agent(ctx, name))
    for agent in concerned:
        tree.check_movable(agent)
    return concerned


def _living(ctx: Context, name: str) -> Agent:
    """Return an agent that still exists when its operation is carried out."""
    agent = lookup.agent(ctx, name)
    tree.check_movable(agent)
    return agent


def _boss_in_reach(ctx: Context, boss: str | None) -> Agent | None:
    """Return the present or new boss, if it is within the caller's part; None, the root, needs the
    board of the whole company."""
    ctx.require(Action.ORG_CHANGE, on=f"agent:{boss}" if boss else "org", home=boss)
    return lookup.agent(ctx, boss) if boss else None


def _move(ctx: Context, steps: Steps, operation: Mapping[str, Any]) -> None:
    agent = _living(ctx, operation["agent"])
    to = operation.get("to")
    if not isinstance(to, str):
        raise BadInput("to must name the new boss.", "Give an agent, or board for the root.")
    steps.move(agent, _boss_in_reach(ctx, None if to == "board" else lookup.agent(ctx, to).id))


def _insert_layer(ctx: Context, steps: Steps, operation: Mapping[str, Any]) -> None:
    moved = list({a.id: a for a in (_living(ctx, name) for name in operation["agents"])}.values())
    bosses = {(agent.boss_id, agent.boss_user_id) for agent in moved}
    if len(bosses) != 1:
        raise Conflict("They report to different bosses.", "Insert a layer below one boss.")
    boss = _boss_in_reach(ctx, moved[0].boss_id)
    described = {field.name: operation.get(field.name) for field in SHORT}
    spec = agent_spec.new(ctx, described, boss)
    agents.require_appointing(ctx, spec, boss)
    purpose = operation.get("purpose") or f"Lead {', '.join(agent.name for agent in moved)}"[:200]
    layer, _ = tree.create_with_mandate(ctx, spec, boss, purpose=purpose)
    agents.keep_appointment(ctx, layer)
    steps.created(layer)
    for agent in moved:
        steps.move(agent, layer)


def _remove_layer(ctx: Context, steps: Steps, operation: Mapping[str, Any]) -> None:
    layer = _living(ctx, operation["agent"])
    boss = _boss_in_reach(ctx, layer.boss_id)
    reports = ctx.tx.all(statements.REPORTS, agent=layer.id)
    mandate = lookup.known_outcome(ctx, layer.id)
    mine = [
        outcome
        for outcome in ctx.tx.all(
            outcome_statements.OWNED_BY, owner=layer.id, after="", limit=outcome_ending.MOST_AT_ONCE
        )
        if outcome.id != mandate.id
        and outcome.status is OutcomeStatus.OPEN
        and outcome.kind is OutcomeKind.WORK
    ]
    if mine and boss is None:
        raise Conflict(
            f"{layer.name} has {len(mine)} open outcomes and no agent above takes them over.",
            "Complete, close or delegate them first.",
        )
    above = [reason.id for reason in ctx.tx.all(outcome_statements.PARENTS, outcome=layer.id)]
    if boss is not None and not above:
        above = [OutcomeId(boss.id)]
    for child in ctx.tx.all(
        outcome_statements.CHILDREN, outcome=layer.id, limit=outcome_ending.MOST_AT_ONCE
    ):
        if child.status is OutcomeStatus.OPEN:
            for reason in above:
                steps.add_edge(reason, child.id)
            steps.remove_edge(layer.id, child.id)
    for report in reports:
        steps.move(report, boss)
    for outcome in mine:
        assert boss is not None
        steps.take_over(outcome, boss)
    steps.keep_grants(layer)
    steps.close(mandate)
    steps.terminate(layer)


def _seat(ctx: Context, steps: Steps, operation: Mapping[str, Any]) -> None:
    """Put a person into an agent's seat, or a program in a person's place."""
    agent = _living(ctx, operation["agent"])
    if ctx.actor.kind is ActorKind.AGENT:
        ctx.require(Action.USER_CHANGE, on=f"agent:{agent.id}")  # seats are people's
    user = operation.get("user")
    if user is not None:
        steps.seat(agent, "human", "{}", users.member(ctx, str(user)).id)
        return
    kind = agent_spec.adapter(operation.get("adapter_type"))
    config = agent_spec.adapter_settings(kind, operation.get("adapter_config"))
    steps.seat(agent, kind, config, None)


_OPERATIONS: dict[str, Callable[[Context, Steps, Mapping[str, Any]], None]] = {
    "move": _move,
    "insert_layer": _insert_layer,
    "remove_layer": _remove_layer,
    "seat": _seat,
}


def _event(ctx: Context, text: str) -> Any:
    prefix = normalise(text.removeprefix("event:"))
    events = [
        event
        for event in ctx.tx.all(event_log.EVENTS_ON, resource="org", limit=100_000)
        if event.allowed
        and is_part_of(event.id, prefix)
        and event.action in ("org.change", "org.undo")
    ]
    if not events or (len(events) > 1 and not is_id(prefix)):
        raise NotFound("There is no such reorganisation.", "List the events of the company.")
    return events[0]
