"""Handing outcomes over, and taking them back.

Delegating moves responsibility for an outcome and everything below it that is the delegator's own.
Reclaiming takes it back by force: agents stop, grants end, owners change, histories stay. Each is
one transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from remit.authority import Action
from remit.errors import BadInput, Conflict, Refused
from remit.ids import AgentId
from remit.model.agent import Agent, AgentStatus
from remit.model.file import FileKind
from remit.model.grant import Level
from remit.model.outcome import Outcome, OutcomeStatus
from remit.model.text import LONGEST_REASON, clean_text
from remit.services import (
    documents,
    files,
    finishing,
    grants,
    handing_over,
    hiring,
    lookup,
    reservations,
    tree,
    views,
    waits,
    waking,
)
from remit.services.command import Answer, Context, command
from remit.store import agents as agent_statements
from remit.store import grants as grant_statements
from remit.store import outcomes as statements

MOST_GRANTS = 100


@command("delegation.delegate")
def delegate(
    ctx: Context,
    *,
    outcome: str,
    to: str | None = None,
    hire: Mapping[str, Any] | None = None,
    given: Sequence[Mapping[str, Any]] = (),
    budget: object = None,
) -> Answer:
    """Hand an outcome to a report, or to a new agent that is hired for it.

    `budget` is set aside for it out of the owner's share: money_cents, tokens, or both.
    """
    if (to is None) == (hire is None):
        raise BadInput("Name a report, or describe a new agent.", "Give either to or hire.")
    if len(given) > MOST_GRANTS:
        raise BadInput(f"At most {MOST_GRANTS} grants at once.", "Grant the rest afterwards.")
    amounts = reservations.wanted(budget)
    found = lookup.outcome_anywhere(ctx, outcome)
    decision = handing_over.check(ctx, found)
    boss = _agent(ctx, found.owner_id)
    if to is None:
        assert hire is not None
        hired = hiring.hire_for(ctx, found, boss, hire, given, amounts=amounts)
        return {
            "outcome": views.outcome(_outcome(ctx, hired.mandate.id), ctx.now),
            "moved": hired.moved,
            **hiring.answer(hired),
        }
    handing_over.check_not_hired_for(ctx, found)
    receiver = _report(ctx, boss, to)
    count = handing_over.hand_to(ctx, found, receiver, hired=False, decision=decision)
    for wish in given:
        grants.give_to(ctx, receiver, {**wish, "scope": found.id})
    reservations.set_aside(ctx, boss, receiver, found.id, amounts)
    return {
        "outcome": views.outcome(_outcome(ctx, found.id), ctx.now),
        "agent": views.agent(receiver),
        "approval": None,
        "moved": count,
    }


@command("delegation.reclaim")
def reclaim(ctx: Context, *, outcome: str, reason: object) -> Answer:
    """Take a delegated outcome back, with everything below it."""
    why = clean_text(reason, "reason", longest=LONGEST_REASON)
    found = lookup.outcome_anywhere(ctx, outcome)
    decision = lookup.require_outcome(ctx, Action.OUTCOME_RECLAIM, found)
    if not found.delegated:
        raise Conflict("It is not delegated.", "There is nothing to reclaim.")
    if found.status is not OutcomeStatus.OPEN:
        raise Conflict(f"The outcome is {found.status.value}.", "Reopen it if need be.")
    if found.delegator_id is None:
        raise Conflict(
            "A person gave this mandate, so no agent can take it back.", "Terminate the agent."
        )
    boss = _agent(ctx, found.delegator_id)
    worker = _agent(ctx, found.owner_id)
    parts = finishing.handed_on(ctx, found)
    handed_over = [part for part in parts if part.delegated]
    # Whoever was hired for something inside goes; a report that was only given this, stays.
    gone = finishing.shut_down(ctx, (part.id for part in handed_over))
    finishing.let_go_of_hires(ctx, parts)
    for agent in gone:
        ctx.tx.run(
            statements.REOWN_ALL,
            owner=agent.id,
            new_owner=boss.id,
            news=waking.news_place(ctx, boss.id),
            now=ctx.now,
        )
    for owner in {part.owner_id for part in parts}:
        ctx.tx.run(
            statements.REOWN_WITHIN,
            company=ctx.company,
            outcome=found.id,
            owner=owner,
            new_owner=boss.id,
            news=waking.news_place(ctx, boss.id),
            now=ctx.now,
        )
        waits.forget_moved(ctx, owner)
    revoked = []
    for part in handed_over:
        tree.hand_over(ctx, part.id, boss.id, delegated=False, delegator=None)
        revoked += ctx.tx.all(
            grant_statements.REVOKE_SCOPED_TO_OF,
            outcome=part.id,
            holder=part.owner_id,
            now=ctx.now,
        )
        reservations.close_for(ctx, part.id)
        finishing.stop(ctx, _agent(ctx, part.owner_id))
        waking.wake(ctx, part.owner_id, "something else is left to do")
    handover = _handover(ctx, found, boss, worker, gone, parts, why)
    ctx.record(
        "outcome.reclaim",
        f"outcome:{found.id}",
        {
            "reason": why,
            "from": worker.id,
            "to": boss.id,
            "agents": [agent.id for agent in gone],
            "outcomes": len(parts),
            "revoked": sorted(revoked),
            "handover": handover,
        },
        decision,
    )
    return {
        "outcome": views.outcome(_outcome(ctx, found.id), ctx.now),
        "agents": [agent.id for agent in gone],
        "handover_file_id": handover,
    }


def _report(ctx: Context, boss: Agent, text: str) -> Agent:
    receiver = lookup.agent(ctx, text)
    if receiver.id == boss.id:
        raise Refused(
            f"{receiver.name} owns it already; nobody delegates to themselves.",
            "Work on it, or delegate it to a direct report.",
            code="not_your_report",
        )
    if receiver.boss_id != boss.id:
        raise Refused(
            f"{receiver.name} is not a report of {boss.name}.",
            "Delegate to a direct report, or hire one.",
            code="not_your_report",
        )
    if receiver.status is AgentStatus.PENDING_APPROVAL:
        raise Conflict(
            f"{receiver.name} awaits approval.",
            "Delegate to it when its hire is approved, of which you get mail; or choose another.",
        )
    if receiver.status is AgentStatus.TERMINATED:
        raise Conflict(f"{receiver.name} is terminated.", "Choose a report that can act.")
    return receiver


def _handover(
    ctx: Context,
    outcome: Outcome,
    boss: Agent,
    worker: Agent,
    gone: Sequence[Agent],
    parts: Sequence[Outcome],
    why: str,
) -> str:
    """What the boss needs to go on, as a file of its own."""
    lines = [f"# Handover: {outcome.title}", "", f"Reclaimed from {worker.name}. {why}", ""]
    lines += ["## Memory and logs", ""]
    for agent in gone or [worker]:
        lines.append(
            f"- {agent.name}: state kb://{agent.state_file_id}, log kb://{agent.log_file_id}"
        )
    lines += ["", "## Outcomes", ""]
    lines += [f"- kb://{part.id} {part.title} ({part.status.value})" for part in parts[:1000]]
    file = documents.create(
        ctx,
        FileKind.FILE,
        f"Handover: {outcome.title}",
        "\n".join(lines) + "\n",
        home=boss.id,
    )
    files.index(ctx, file.id, file.description)
    grants.give_by_rule(ctx, boss.id, file.id, Level.WRITE)
    return file.id


def _agent(ctx: Context, agent: AgentId) -> Agent:
    found = ctx.tx.one(agent_statements.AGENT, company=ctx.company, agent=agent)
    assert found is not None, "owners and delegators are agents of the company"
    return found


def _outcome(ctx: Context, outcome: str) -> Outcome:
    found = ctx.tx.one(statements.OUTCOME, company=ctx.company, outcome=outcome)
    assert found is not None
    return found
