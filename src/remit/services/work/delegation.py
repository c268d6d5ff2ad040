"""Delegation of outcomes, and their reclaiming.

Delegating moves responsibility for an outcome and everything below it that is the delegator's own.
Reclaiming takes it back by force: agents stop, grants end, owners change, histories stay. Each is
one transaction.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from remit.authority import Action
from remit.errors import BadInput, Conflict
from remit.model.organisation.agent import Agent, AgentStatus
from remit.model.organisation.decision import deny
from remit.model.organisation.grant import Level
from remit.model.work.file import FileKind
from remit.model.work.outcome import Outcome, OutcomeStatus
from remit.services import lookup, shapes, views
from remit.services.command import Context, command
from remit.services.execution import waking
from remit.services.fields import OutcomeRef, Reason
from remit.services.hiring import hiring
from remit.services.knowledge import documents, files
from remit.services.organisation import tree
from remit.services.rights import grants
from remit.services.spending import reservations
from remit.services.subjects import OUTCOME, require_outcome
from remit.services.surfaces import AsRoute, AsTool
from remit.services.work import outcome_ending, responsibility, waits
from remit.store.organisation import grants as grant_statements
from remit.store.work import outcomes as statements

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
) -> shapes.DelegatedShape:
    """Hand an outcome to a report, or to a new agent that is hired for it.

    `budget` is set aside for it out of the owner's share: money_cents, tokens, or both.
    """
    if (to is None) == (hire is None):
        raise BadInput("Name a report, or describe a new agent.", "Give either to or hire.")
    if len(given) > MOST_GRANTS:
        raise BadInput(f"At most {MOST_GRANTS} grants at once.", "Grant the rest afterwards.")
    amounts = reservations.wanted(budget)
    row = lookup.find(ctx, OUTCOME, outcome)
    decision = responsibility.require_delegable(ctx, row)
    boss = lookup.known_agent(ctx, row.owner_id)
    if to is None:
        assert hire is not None
        hired = hiring.hire_for(ctx, row, boss, hire, given, amounts=amounts)
        return {
            "outcome": views.outcome(lookup.known_outcome(ctx, hired.mandate.id), ctx.now),
            "moved": hired.moved,
            **hiring.answer(ctx, hired),
        }
    responsibility.check_not_hired_for(ctx, row)
    receiver = _report(ctx, boss, to)
    count = responsibility.hand_to(ctx, row, receiver, hired=False, decision=decision)
    for wish in given:
        grants.give_to(ctx, receiver, {**wish, "scope": row.id})
    reservations.set_aside(ctx, boss, receiver, row.id, amounts)
    return {
        "outcome": views.outcome(lookup.known_outcome(ctx, row.id), ctx.now),
        "agent": views.agent(receiver),
        "approval": None,
        "moved": count,
    }


@command(
    "delegation.reclaim",
    AsTool(
        "reclaim",
        "Take a delegated outcome back by force; its agents stop.",
        spelled={"outcome": "outcome_id"},
    ),
    AsRoute("POST /outcomes/{id}/reclaim", "reclaim_outcome"),
)
def reclaim(ctx: Context, *, outcome: OutcomeRef, reason: Reason) -> shapes.ReclaimedShape:
    """Take a delegated outcome back, with everything below it."""
    row = lookup.find(ctx, OUTCOME, outcome)
    decision = require_outcome(ctx, Action.OUTCOME_RECLAIM, row)
    if not row.delegated:
        raise Conflict("It is not delegated.", "There is nothing to reclaim.")
    if row.status is not OutcomeStatus.OPEN:
        raise Conflict(f"The outcome is {row.status.value}.", "Reopen it if need be.")
    if row.delegator_id is None:
        raise Conflict(
            "A person gave this mandate, so no agent can take it back.", "Terminate the agent."
        )
    boss = lookup.known_agent(ctx, row.delegator_id)
    worker = lookup.known_agent(ctx, row.owner_id)
    parts = outcome_ending.handed_on(ctx, row)
    handed_over = [part for part in parts if part.delegated]
    # An agent that was hired for a part ends; a report that was only given a part stays.
    gone = outcome_ending.shut_down(ctx, (part.id for part in handed_over))
    outcome_ending.let_go_of_hires(ctx, parts)
    for agent in gone:
        ctx.tx.run(statements.REOWN_ALL, owner=agent.id, **waking.new_owner(ctx, boss.id))
    for owner in {part.owner_id for part in parts}:
        heir = waking.new_owner(ctx, boss.id)
        ctx.tx.run(statements.REOWN_WITHIN, outcome=row.id, owner=owner, **heir)
        waits.forget_moved(ctx, owner)
    revoked = []
    for part in handed_over:
        tree.hand_over(ctx, part.id, boss.id, delegated=False, delegator=None)
        revoked += ctx.tx.all(
            grant_statements.REVOKE_SCOPED_TO_OF, outcome=part.id, holder=part.owner_id
        )
        reservations.close_for(ctx, part.id)
        outcome_ending.stop(ctx, lookup.known_agent(ctx, part.owner_id))
        waking.wake(ctx, part.owner_id, "something else is left to do")
    handover = _handover(ctx, row, boss, worker, gone, parts, reason)
    ctx.record(
        "outcome.reclaim",
        f"outcome:{row.id}",
        {
            "reason": reason,
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
        "outcome": views.outcome(lookup.known_outcome(ctx, row.id), ctx.now),
        "agents": [agent.id for agent in gone],
        "handover_file_id": handover,
    }


def _report(ctx: Context, boss: Agent, text: str) -> Agent:
    receiver = lookup.agent(ctx, text)
    if receiver.boss_id != boss.id:
        sentence = f"{receiver.name} is not a report of {boss.name}."
        step = "Delegate to a direct report, or hire one."
        if receiver.id == boss.id:
            sentence = f"{receiver.name} owns it already; nobody delegates to themselves."
            step = "Work on it, or delegate it to a direct report."
        refusal = deny("not_your_report", sentence)
        ctx.accept(Action.OUTCOME_DELEGATE, f"agent:{receiver.id}", refusal, step=step)
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
    """Write the file with which the boss goes on."""
    lines = [f"# Handover: {outcome.title}", "", f"Reclaimed from {worker.name}. {why}", ""]
    lines += ["## Memory and logs", ""]
    for agent in gone or [worker]:
        lines.append(
            f"- {agent.name}: state kb://{agent.state_file_id}, log kb://{agent.log_file_id}"
        )
    lines += ["", "## Outcomes", ""]
    lines += [f"- kb://{part.id} {part.title} ({part.status.value})" for part in parts[:1000]]
    file = documents.create(
        ctx, FileKind.FILE, f"Handover: {outcome.title}", "\n".join(lines) + "\n", home=boss.id
    )
    files.index(ctx, file.id, file.description)
    grants.give_by_rule(ctx, boss.id, file.id, Level.WRITE)
    return file.id
