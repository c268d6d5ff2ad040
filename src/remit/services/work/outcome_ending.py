"""Ending outcomes and agents, with everything that ends along.

Finishing a mandate terminates its agent and every agent below it. Open parts of a finished outcome
are closed, unless they are also part of something that stays open.
"""

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from remit.errors import Conflict
from remit.ids import OutcomeId
from remit.model.organisation.agent import Agent, AgentStatus
from remit.model.organisation.approval import Approval, ApprovalType
from remit.model.work.outcome import Outcome, OutcomeKind, OutcomeStatus
from remit.model.work.wait import SubmissionStatus
from remit.services import lookup, shapes
from remit.services.command import Context
from remit.services.connections import bindings
from remit.services.execution import jobs, tool_changes, waking
from remit.services.governance import approval_engine
from remit.services.messaging import inbox, origins
from remit.services.organisation import tree
from remit.services.people import token_record
from remit.services.spending import budgets, ledger, reservations
from remit.services.work import submissions, waits
from remit.store.connections import forges as forge_statements
from remit.store.execution import leases
from remit.store.execution import runs as run_statements
from remit.store.organisation import agents as agent_statements
from remit.store.organisation import grants as grant_statements
from remit.store.organisation import people
from remit.store.work import outcomes as statements

MOST_AT_ONCE = 100_000
P = TypeVar("P", Outcome, statements.Part)


def finish_tree(
    ctx: Context,
    root: Outcome,
    status: OutcomeStatus,
    note: str,
    evidence: Sequence[shapes.EvidenceShape] = (),
) -> list[Agent]:
    """Finish an outcome, close the open parts that are part of nothing that stays open, and
    terminate the agents whose mandates ended and those below them; returns these agents."""
    if root.status is not OutcomeStatus.OPEN:
        raise Conflict(f"The outcome is {root.status.value} already.")
    verdict = verdict_of(ctx, note, evidence)
    rows = ctx.tx.all(statements.EDGES_TO_DESCENDANTS, outcome=root.id)
    edges = ((edge.parent_id, edge.child_id) for edge in rows)
    closing = _left_over(ctx, root, handed_on(ctx, root), edges)
    ending = [root, *closing]
    gone = shut_down(ctx, (outcome.id for outcome in ending if outcome.delegated))
    revoked = finish_one(ctx, root, status, verdict)
    verb = "complete" if status is OutcomeStatus.COMPLETED else "close"
    ctx.record(
        f"outcome.{verb}",
        f"outcome:{root.id}",
        {
            "note": note,
            "evidence": list(evidence),
            "revoked": revoked,
            "closed_along": len(closing),
            "closed": [outcome.id for outcome in closing],
            "agents": [agent.id for agent in gone],
            "agents_were": {agent.id: agent.status.value for agent in gone},
        },
    )
    tool_changes.taken(ctx, revoked)
    _tell_of_part(ctx, root, status, note)
    along = verdict_of(ctx, f"closed with {root.title}")
    for outcome in closing:
        gone_with_it = finish_one(ctx, outcome, OutcomeStatus.CLOSED, along)
        ctx.record(
            "outcome.close",
            f"outcome:{outcome.id}",
            {"note": along["note"], "revoked": gone_with_it},
        )
    _find_new_owners(ctx, gone)
    return gone


def _tell_of_part(ctx: Context, part: Outcome, status: OutcomeStatus, note: str) -> None:
    """Mail the owner of a perpetual outcome that a part of it ended, because nobody is started for
    that; not when a mandate below it was closed."""
    if status is OutcomeStatus.CLOSED and part.delegated:
        return
    for whole in ctx.tx.all(statements.PARENTS, outcome=part.id):
        if (
            whole.perpetual
            and whole.status is OutcomeStatus.OPEN
            and whole.owner_id != ctx.actor.agent_id
        ):
            approval_engine.tell(
                ctx,
                f"agent:{whole.owner_id}",
                f"{status.value.capitalize()}: {part.title}",
                f"{ctx.actor.name or 'Remit'} {status.value} {part.title!r} (outcome:{part.id}), "
                f"a part of {whole.title!r}.\n\n{note}".strip(),
                outcome=part.id,
            )


def close_all(ctx: Context, closing: Sequence[Outcome], note: str) -> list[Agent]:
    """Close exactly these outcomes, and terminate the agents whose mandates are among them, and all
    agents below; returns these agents. The caller makes sure that nothing of theirs stays open."""
    verdict = verdict_of(ctx, note)
    gone = shut_down(ctx, (outcome.id for outcome in closing if outcome.delegated))
    for outcome in closing:
        now = ctx.tx.one(statements.OUTCOME, outcome=outcome.id)
        if now is not None and now.status is OutcomeStatus.OPEN:
            tool_changes.taken(ctx, finish_one(ctx, now, OutcomeStatus.CLOSED, verdict))
            ctx.record("outcome.close", f"outcome:{outcome.id}", {"note": note})
    _find_new_owners(ctx, gone)
    return gone


def verdict_of(
    ctx: Context, note: str, evidence: Sequence[shapes.EvidenceShape] = ()
) -> shapes.VerdictShape:
    """The verdict of the caller."""
    by, run = ctx.actor.address, ctx.actor.run_id
    return {"note": note, "evidence": list(evidence), "by": by, "run_id": run}


def finish_one(
    ctx: Context, outcome: Outcome, status: OutcomeStatus, verdict: shapes.VerdictShape
) -> list[str]:
    """End one outcome and every grant that was scoped to it; returns the ids of the grants."""
    if not ctx.tx.run(
        statements.FINISH_OUTCOME,
        outcome=outcome.id,
        new_status=status.value,
        new_verdict=json.dumps(verdict),
    ):
        raise Conflict("The outcome is finished already.")
    _count(ctx, outcome, -1)
    origins.ended(ctx, outcome)
    submissions.close(ctx, outcome, SubmissionStatus.WITHDRAWN)
    waits.forget(ctx, outcome.id)
    waking.news_for_dependents(ctx, outcome.id)
    reservations.close_for(ctx, outcome.id)
    # The forge's issue that it came from is told.
    ctx.tx.run(forge_statements.RING_FOR_OUTCOME, outcome=outcome.id, due=ctx.now)
    if not outcome.delegated:
        _let_go_of_hire(ctx, outcome)
    return sorted(ctx.tx.all(grant_statements.REVOKE_SCOPED_TO, outcome=outcome.id))


def _let_go_of_hire(ctx: Context, outcome: Outcome) -> None:
    """Withdraw the hire for an outcome, if it still awaits approval."""
    hired = lookup.agent_row(ctx, outcome.id)
    if hired is not None and hired.status is AgentStatus.PENDING_APPROVAL:
        deactivate(ctx, hired)


def let_go_of_hires(ctx: Context, outcomes: Iterable[Outcome]) -> None:
    """Withdraw pending hires for outcomes that go to another owner, who may hire for them anew."""
    waiting: dict[str, Agent] = {
        agent.id: agent for agent in ctx.tx.all(agent_statements.AWAITING_APPROVAL)
    }
    for outcome in outcomes if waiting else ():
        if outcome.id in waiting and not outcome.delegated:
            deactivate(ctx, waiting[outcome.id])


def not_hired(ctx: Context, agent: Agent, why: str) -> None:
    """End an agent that was not approved: its name is free again, and an outcome stays with its
    owner."""
    mandate = lookup.known_outcome(ctx, agent.id)  # every agent has a mandate
    if mandate.owner_id == agent.id and mandate.status is OutcomeStatus.OPEN:
        finish_tree(ctx, mandate, OutcomeStatus.CLOSED, why)
    else:
        deactivate(ctx, agent)


def reopen_outcome(ctx: Context, outcome: Outcome, *, keep_owner: bool = False) -> None:
    """Reopen an outcome. If its owner is terminated, it goes to the nearest living boss, unless
    `keep_owner`; refused if there is none."""
    ctx.tx.run(statements.REOPEN_OUTCOME, outcome=outcome.id)
    _count(ctx, outcome, +1)
    origins.reopened(ctx, outcome)
    owner = lookup.agent_row(ctx, outcome.owner_id)
    if owner is not None and owner.status is AgentStatus.TERMINATED and not keep_owner:
        heir = tree.living_boss(ctx, owner)
        if heir is None:
            raise Conflict(
                "Its agent was shut down and nobody above it works here.",
                "Create a new agent for it.",
            )
        tree.hand_over(ctx, outcome.id, heir, delegated=False, delegator=None)
    else:
        waking.acted(ctx, outcome.owner_id)
        waking.news(ctx, outcome, "an outcome was reopened")


def reopen_along(ctx: Context, outcome: Outcome, note: str, *, keep_owner: bool = True) -> None:
    """Reopen an outcome as a consequence of something else, and record why."""
    reopen_outcome(ctx, outcome, keep_owner=keep_owner)
    details = {"note": note, "was": outcome.status.value}
    ctx.record("outcome.reopen", f"outcome:{outcome.id}", details)


def would_end(ctx: Context, root: Outcome) -> list[Agent]:
    """Return the agents that would be terminated if an outcome was finished now."""
    ways = ctx.tx.all(statements.PARTS, outcome=root.id)
    parts = _belonging(root, {part.id: part for part in ways}.values())
    edges = ((way.parent_id, way.id) for way in ways)
    ending = [part.id for part in _left_over(ctx, root, parts, edges) if part.delegated]
    return _working_for(ctx, [root.id, *ending] if root.delegated else ending)


def _working_for(ctx: Context, mandates: Iterable[str]) -> list[Agent]:
    """The agents of these mandates and everybody below them."""
    agents: dict[str, Agent] = {}
    for mandate in mandates:
        if mandate in agents:
            continue  # every agent below it is there, too
        for agent in ctx.tx.all(agent_statements.SUBTREE_OF_AGENT, agent=mandate):
            if agent.status is not AgentStatus.TERMINATED:
                agents.setdefault(agent.id, agent)
    return list(agents.values())


def shut_down(ctx: Context, mandates: Iterable[str]) -> list[Agent]:
    """Deactivate the agents of these mandates and every agent below them; what they made stays."""
    gone = _working_for(ctx, mandates)
    # From the bottom up, so that what they asked of a boss that also ends is not passed on.
    withdrawn = [
        approval for agent in reversed(gone) for approval in _deactivate(ctx, agent).withdrawn
    ]
    _not_hired_elsewhere(ctx, withdrawn)
    for agent in gone:
        tree.check_root_stays(ctx, agent)
    return gone


def deactivate(ctx: Context, agent: Agent) -> list[str]:
    """Terminate an agent: end its run and revoke its credentials and scoped grants; returns the
    grants."""
    ended = _deactivate(ctx, agent)
    _not_hired_elsewhere(ctx, ended.withdrawn)
    tree.check_root_stays(ctx, agent)
    return ended.revoked


class _Ended(NamedTuple):
    """Grants and approvals that ended with an agent."""

    revoked: list[str]
    withdrawn: list[Approval]


def _deactivate(ctx: Context, agent: Agent) -> _Ended:
    run = cancel_run(ctx, agent)
    tree.set_status(ctx, agent, AgentStatus.TERMINATED)
    token_record.end_of(ctx, agent=agent.id)
    # In the event, so that it can be restored with the agent.
    ended = {
        **inbox.bury(ctx, agent.id),
        "waits": waits.forget_agent(ctx, agent.id),
        **bindings.end_all(ctx, agent),
        "jobs": jobs.drop_all(ctx, agent),
    }
    withdrawn = approval_engine.withdraw(ctx, agent)
    revoked = sorted(ctx.tx.all(grant_statements.REVOKE_SCOPED_OF, holder=agent.id))
    ctx.tx.run(agent_statements.END_PLACE, agent=agent.id)
    ctx.record(
        "agent.terminate",
        f"agent:{agent.id}",
        {
            "name": agent.name,
            "run": run,
            "revoked": revoked,
            "ended": {key: some for key, some in ended.items() if some},
            "withdrawn": len(withdrawn),
        },
    )
    budgets.release(ctx, agent.id)
    reservations.close_of(ctx, agent.id)
    ledger.dissolve(ctx, agent)
    budgets.relieve(ctx)
    return _Ended(revoked, withdrawn)


def _not_hired_elsewhere(ctx: Context, withdrawn: Sequence[Approval]) -> None:
    """End pending hires whose request was withdrawn, including those below other agents."""
    for approval in withdrawn:
        asked_for = lookup.agent_row(ctx, approval.agent_id or "")
        if (
            approval.type is ApprovalType.HIRE_AGENT
            and asked_for is not None
            and asked_for.status is AgentStatus.PENDING_APPROVAL
        ):
            not_hired(ctx, asked_for, approval.decision_note or "withdrawn")


def stop(ctx: Context, agent: Agent) -> None:
    """Cancel the run of an agent; the agent stays and can be started again."""
    run = cancel_run(ctx, agent)
    if run is not None:
        if agent.status is AgentStatus.RUNNING:
            tree.set_status(ctx, agent, AgentStatus.IDLE)
        ctx.record("run.end", f"run:{run}", {"agent_id": agent.id, "status": "cancelled"})


def cancel_run(ctx: Context, agent: Agent) -> str | None:
    """Cancel the live run of an agent, and revoke its token; returns the run's id."""
    live = ctx.tx.one(run_statements.LIVE_RUN_OF, agent=agent.id)
    if live is None:
        return None
    ctx.tx.run(run_statements.END_RUN, run=live.id, new_status="cancelled")
    ledger.took(ctx, live, {}, ended=True)
    ctx.tx.run(
        run_statements.EXPLAIN_RUN,
        run=live.id,
        reason="cancelled",
        new_error=f"ended by {ctx.actor.name or ctx.actor.address}",
    )
    ctx.tx.run(people.REVOKE_RUN_TOKEN, run=live.id)
    inbox.run_ended(ctx, live.id, agent.id, fault=None)
    ctx.tx.run(leases.LET_GO, agent=agent.id)
    return live.id


def handed_on(ctx: Context, root: Outcome) -> list[Outcome]:
    """Return an outcome and what belongs to it: the parts of its owner, and of agents working for
    that.

    Parts that somebody else owns or judges are not included, wherever they are in the graph.
    """
    return [root, *_belonging(root, ctx.tx.all(statements.DESCENDANTS, outcome=root.id))]


def _belonging(root: Outcome, parts: Iterable[P]) -> list[P]:
    by_master: dict[str, list[P]] = {}
    for part in parts:
        if part.id != root.id:
            master = (part.delegator_id or "") if part.delegated else part.owner_id
            by_master.setdefault(master, []).append(part)
    members: list[P] = []
    pending: list[str] = [root.owner_id]
    while pending:
        for part in by_master.pop(pending.pop(), ()):
            members.append(part)
            if part.delegated:
                pending.append(part.owner_id)
    return members


def _left_over(
    ctx: Context, root: Outcome, parts: Sequence[P], edges: Iterable[tuple[str, str]]
) -> list[P]:
    """Return the open parts that are part of nothing which stays open."""
    ours = {root.id, *(outcome.id for outcome in parts)}
    children: dict[str, list[str]] = {}
    outside: dict[str, list[str]] = {}
    for parent, child in edges:
        if child in ours and child != root.id:
            of = children if parent in ours else outside
            of.setdefault(parent, []).append(child)
    pending = [
        child
        for parent, its in outside.items()
        # A parent outside counts only while it is open.
        if (other := ctx.tx.one(statements.OUTCOME, outcome=parent))
        and other.status is OutcomeStatus.OPEN
        for child in its
    ]
    kept: set[str] = set()
    while pending:
        goes_on = pending.pop()
        if goes_on not in kept:
            kept.add(goes_on)
            pending += children.get(goes_on, ())
    return [
        outcome
        for outcome in parts
        if outcome.id != root.id and outcome.id not in kept and outcome.status is OutcomeStatus.OPEN
    ]


def _find_new_owners(ctx: Context, gone: Sequence[Agent]) -> None:
    """Hand open outcomes of terminated agents to the nearest living boss, or else close them."""
    for agent in gone:
        heir = tree.living_boss(ctx, agent)
        if heir is not None:
            ctx.tx.run(statements.REOWN_OPEN, owner=agent.id, **waking.new_owner(ctx, heir))
            waits.forget_moved(ctx, agent.id)
            waking.wake(ctx, heir, "it took over from somebody who is gone")
            continue
        owned = ctx.tx.all(statements.OWNED_BY, owner=agent.id, after="", limit=MOST_AT_ONCE)
        nobody = verdict_of(ctx, "nobody is left to work on it")
        for outcome in owned:
            if outcome.status is OutcomeStatus.OPEN and outcome.kind is OutcomeKind.WORK:
                finish_one(ctx, outcome, OutcomeStatus.CLOSED, nobody)
                ctx.record("outcome.close", f"outcome:{outcome.id}", {"note": nobody["note"]})


def _count(ctx: Context, outcome: Outcome, step: int) -> None:
    ctx.tx.run(statements.COUNT_FOR_PARENTS, outcome=OutcomeId(outcome.id), step=step)
    ctx.tx.run(statements.COUNT_FOR_BLOCKED, outcome=OutcomeId(outcome.id), step=step)
