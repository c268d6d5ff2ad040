"""Changing the organisation while it works: move, insert a layer, remove one, change a seat.

All operations of one call are one transaction. What each of them did is kept in the event as plain
steps, so that it can be undone; a preview does the same and takes it back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from remit.authority import Action
from remit.errors import BadInput, Conflict, NotFound
from remit.ids import is_id
from remit.model.agent import Agent, AgentStatus
from remit.model.outcome import OutcomeStatus
from remit.services import agents, authority_map, finishing, lookup, outcomes, tree, users
from remit.services.command import Answer, Context, command, logged
from remit.services.steps import Steps
from remit.store import agents as statements
from remit.store import events as event_log
from remit.store import outcomes as outcome_statements

MOST_OPERATIONS = 100


@command
def reorganise(
    ctx: Context, *, company: str | None, operations: Sequence[Mapping[str, Any]]
) -> Answer:
    """Carry the operations out, all or none."""
    lookup.company_of_caller(ctx, company)
    return _carry_out(ctx, operations)


@logged
def preview(
    ctx: Context, *, company: str | None, operations: Sequence[Mapping[str, Any]]
) -> Answer:
    """Exactly what the operations would change, without changing it."""
    lookup.company_of_caller(ctx, company)
    answer = _carry_out(ctx, operations)
    ctx.tx.restart()
    return {**answer, "event_id": None, "dry_run": True}


@command
def undo(ctx: Context, *, company: str | None, event: str) -> Answer:
    """Take a reorganisation back, provided that nothing it touched was changed since."""
    lookup.company_of_caller(ctx, company)
    found = _event(ctx, event)
    ctx.require(Action.ORG_CHANGE, on="org")
    steps = Steps.from_json(ctx, json.loads(found.details)["steps"])
    before = authority_map.snapshot(ctx, steps.agents())
    undone = steps.undo()
    return _answer(ctx, "org.undo", before, undone, {"undoes": found.id})


def _carry_out(ctx: Context, operations: Sequence[Mapping[str, Any]]) -> Answer:
    if not 1 <= len(operations) <= MOST_OPERATIONS:
        raise BadInput(f"Give 1 to {MOST_OPERATIONS} operations.", "Split them into several calls.")
    steps = Steps(ctx)
    concerned = [agent for operation in operations for agent in _concerned(ctx, operation)]
    ctx.require(Action.ORG_CHANGE, on="org", home=concerned[0].id if concerned else None)
    for agent in concerned:
        # A board member over a part of the company reorganises that part only.
        ctx.require(Action.ORG_CHANGE, on=f"agent:{agent.id}", home=agent.id)
    before = authority_map.snapshot(ctx, {agent.id for agent in concerned})
    for operation in operations:
        _OPERATIONS[str(operation["op"])](ctx, steps, operation)
    return _answer(ctx, "org.change", before, steps, {"operations": [dict(o) for o in operations]})


def _answer(
    ctx: Context, action: str, before: authority_map.Map, steps: Steps, details: dict[str, Any]
) -> Answer:
    after = authority_map.snapshot(ctx, before.agents | steps.agents())
    changes = before.changes(after)
    event = ctx.record(
        action, "org", {**details, "steps": steps.as_json(), "changes": len(changes)}
    )
    return {"event_id": event, "dry_run": False, "changes": changes, "steps": steps.as_json()}


def _concerned(ctx: Context, operation: Mapping[str, Any]) -> list[Agent]:
    """The agents an operation names; wrong operations are found out here, before anything."""
    op = operation.get("op")
    if op not in _OPERATIONS:
        known = ", ".join(_OPERATIONS)
        raise BadInput(f"op must be one of {known}.", "Correct the operation.")
    names = operation.get("agents") if op == "insert_layer" else [operation.get("agent")]
    if not isinstance(names, Sequence) or isinstance(names, str) or not names:
        raise BadInput("agents must be a list of agents.", "Name at least one.")
    found = []
    for name in names:
        if not isinstance(name, str):
            raise BadInput("An agent is named by a text.", "Give its name or id.")
        found.append(lookup.agent(ctx, name))
    for agent in found:
        if agent.status is AgentStatus.TERMINATED:
            raise Conflict(f"{agent.name} is terminated.", "Choose agents that work here.")
    return found


def _move(ctx: Context, steps: Steps, operation: Mapping[str, Any]) -> None:
    agent = lookup.agent(ctx, operation["agent"])
    to = operation.get("to")
    if not isinstance(to, str):
        raise BadInput("to must name the new boss.", "Give an agent, or board for the root.")
    if to == "board":
        steps.move(agent, None)
        return
    boss = lookup.agent(ctx, to)
    ctx.require(Action.ORG_CHANGE, on=f"agent:{boss.id}", home=boss.id)
    below = ctx.tx.all(statements.SUBTREE_OF_AGENT, company=ctx.company, agent=agent.id)
    if boss.id in {other.id for other in below}:
        raise Conflict(
            f"{boss.name} works below {agent.name}.", "Choose a boss elsewhere.", code="cycle"
        )
    height = max(len(ctx.place(other.id)) for other in below) - len(ctx.place(agent.id)) + 1
    tree.check_boss(ctx, boss, height)
    steps.move(agent, boss)


def _insert_layer(ctx: Context, steps: Steps, operation: Mapping[str, Any]) -> None:
    moved = [lookup.agent(ctx, name) for name in operation["agents"]]
    bosses = {(agent.boss_id, agent.boss_user_id) for agent in moved}
    if len(bosses) != 1:
        raise Conflict("They report to different bosses.", "Insert a layer below one boss.")
    boss_id = moved[0].boss_id
    boss = lookup.agent(ctx, boss_id) if boss_id else None
    fields = {
        key: operation[key]
        for key in ("name", "role", "title", "adapter_type", "adapter_config", "prompt")
        if key in operation
    }
    post = agents.new_post(**{"name": None, **fields})
    purpose = operation.get("purpose") or f"Lead {', '.join(agent.name for agent in moved)}"[:200]
    layer = agents.found(ctx, post, boss, purpose=purpose)
    steps.created(layer)
    for agent in moved:
        steps.move(agent, layer)
        steps.add_edge(layer.id, agent.id)


def _remove_layer(ctx: Context, steps: Steps, operation: Mapping[str, Any]) -> None:
    layer = lookup.agent(ctx, operation["agent"])
    boss = lookup.agent(ctx, layer.boss_id) if layer.boss_id else None
    reports = ctx.tx.all(statements.REPORTS, agent=layer.id)
    mandate = outcomes.require(ctx, layer.id)
    mine = [
        outcome
        for outcome in ctx.tx.all(
            outcome_statements.OWNED_BY, owner=layer.id, after="", limit=finishing.MOST_AT_ONCE
        )
        if outcome.id != mandate.id and outcome.status is OutcomeStatus.OPEN
    ]
    if mine and boss is None:
        raise Conflict(
            f"{layer.name} has {len(mine)} open outcomes and no agent above takes them over.",
            "Complete, close or delegate them first.",
        )
    above = ctx.tx.all(outcome_statements.PARENTS, outcome=layer.id)
    for child in ctx.tx.all(
        outcome_statements.CHILDREN, outcome=layer.id, limit=finishing.MOST_AT_ONCE
    ):
        if child.status is OutcomeStatus.OPEN:
            for reason in above:
                steps.add_edge(reason.id, child.id)
            steps.remove_edge(layer.id, child.id)
    for report in reports:
        steps.move(report, boss)
    for outcome in mine:
        assert boss is not None
        steps.change_owner(outcome, boss)
    steps.close(mandate)
    steps.terminate(layer)


def _seat(ctx: Context, steps: Steps, operation: Mapping[str, Any]) -> None:
    """Put a person into an agent's seat, or a program in a person's place."""
    agent = lookup.agent(ctx, operation["agent"])
    user = operation.get("user")
    if user is not None:
        steps.seat(agent, "human", "{}", users.member(ctx, str(user)).id)
        return
    kind = agents.adapter(operation.get("adapter_type"))
    config = agents.adapter_settings(operation.get("adapter_config"))
    steps.seat(agent, kind, config, None)


_OPERATIONS: dict[str, Callable[[Context, Steps, Mapping[str, Any]], None]] = {
    "move": _move,
    "insert_layer": _insert_layer,
    "remove_layer": _remove_layer,
    "seat": _seat,
}


def _event(ctx: Context, text: str) -> Any:
    prefix = text.strip().lower()
    found = [
        event
        for event in ctx.tx.all(
            event_log.EVENTS_ON, company=ctx.company, resource="org", limit=100_000
        )
        if event.id.startswith(prefix) and event.action in ("org.change", "org.undo")
    ]
    if not found or (len(found) > 1 and not is_id(prefix)):
        raise NotFound("There is no such reorganisation.", "List the events of the company.")
    return found[0]
