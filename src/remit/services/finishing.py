"""Ending outcomes and agents, with everything that ends along.

Finishing a mandate shuts its agent down, and everybody below it. What is left open below a
finished outcome is closed, unless it is also part of something that goes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from remit.errors import Conflict
from remit.ids import OutcomeId
from remit.model.agent import Agent, AgentStatus
from remit.model.outcome import Outcome, OutcomeStatus
from remit.services import inbox, tree
from remit.services.command import Context
from remit.store import agents as agent_statements
from remit.store import grants as grant_statements
from remit.store import outcomes as statements
from remit.store import people

MOST_AT_ONCE = 100_000


def finish_tree(
    ctx: Context,
    root: Outcome,
    status: OutcomeStatus,
    note: str,
    evidence: Sequence[dict[str, Any]] = (),
) -> None:
    """Finish an outcome, close what was only for it, and shut down whose mandate that was."""
    if root.status is not OutcomeStatus.OPEN:
        raise Conflict(f"The outcome is {root.status.value} already.")
    verdict = {
        "note": note,
        "evidence": list(evidence),
        "by": ctx.actor.address,
        "run_id": ctx.actor.run_id,
    }
    closing = _left_over(ctx, root)
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
            "agents": [agent.id for agent in gone],
        },
    )
    along = {**verdict, "note": f"closed with {root.title}", "evidence": []}
    for outcome in closing:
        finish_one(ctx, outcome, OutcomeStatus.CLOSED, along)
        ctx.record("outcome.close", f"outcome:{outcome.id}", {"note": along["note"]})
    _find_new_owners(ctx, gone)


def finish_one(
    ctx: Context, outcome: Outcome, status: OutcomeStatus, verdict: dict[str, Any]
) -> list[str]:
    """End one outcome and every grant that was to last as long; answers their ids."""
    if not ctx.tx.run(
        statements.FINISH_OUTCOME,
        outcome=outcome.id,
        new_status=status.value,
        new_verdict=json.dumps(verdict),
        now=ctx.now,
    ):
        raise Conflict("The outcome is finished already.")
    _count(ctx, outcome, -1)
    return sorted(ctx.tx.all(grant_statements.REVOKE_SCOPED_TO, outcome=outcome.id, now=ctx.now))


def reopen_outcome(ctx: Context, outcome: Outcome, *, keep_owner: bool = False) -> None:
    """Open it again. An agent that was shut down stays so; its mandate goes to who judged it."""
    ctx.tx.run(statements.REOPEN_OUTCOME, outcome=outcome.id, now=ctx.now)
    _count(ctx, outcome, +1)
    owner = ctx.tx.one(agent_statements.AGENT, company=ctx.company, agent=outcome.owner_id)
    if owner is not None and owner.status is AgentStatus.TERMINATED and not keep_owner:
        heir = outcome.delegator_id or tree.living_boss(ctx, owner)
        if heir is None:
            raise Conflict(
                "Its agent was shut down and nobody above it works here.",
                "Create a new agent for it.",
            )
        tree.hand_over(ctx, outcome.id, heir, delegated=False, delegator=None)


def shut_down(ctx: Context, mandates: Iterable[str]) -> list[Agent]:
    """Deactivate the agents of these mandates and everybody below them; keep what they did."""
    gone: dict[str, Agent] = {}
    for mandate in mandates:
        for agent in ctx.tx.all(
            agent_statements.SUBTREE_OF_AGENT, company=ctx.company, agent=mandate
        ):
            if agent.status is not AgentStatus.TERMINATED:
                gone.setdefault(agent.id, agent)
    for agent in gone.values():
        deactivate(ctx, agent)
    return list(gone.values())


def deactivate(ctx: Context, agent: Agent) -> None:
    """Stop an agent for good: its run, its credentials, what it held for its mandate."""
    tree.set_status(ctx, agent, AgentStatus.TERMINATED)
    ctx.tx.run(people.REVOKE_TOKENS_OF, agent=agent.id, user=None, run=None, now=ctx.now)
    live = ctx.tx.one(agent_statements.LIVE_RUN_OF, agent=agent.id)
    if live is not None:
        ctx.tx.run(agent_statements.END_RUN, run=live.id, new_status="cancelled", now=ctx.now)
        inbox.run_ended(ctx, live.id, agent.id, well=True)
    inbox.bury(ctx, agent.id)
    revoked = ctx.tx.all(grant_statements.REVOKE_SCOPED_TO, outcome=agent.id, now=ctx.now)
    revoked += ctx.tx.all(grant_statements.REVOKE_SCOPED_OF, holder=agent.id, now=ctx.now)
    ctx.tx.run(agent_statements.END_PLACE, agent=agent.id, now=ctx.now)
    ctx.record(
        "agent.terminate",
        f"agent:{agent.id}",
        {"name": agent.name, "run": live.id if live else None, "revoked": sorted(revoked)},
    )


def _left_over(ctx: Context, root: Outcome) -> list[Outcome]:
    """Open descendants that are part of nothing which goes on, parents before children."""
    found = ctx.tx.all(
        statements.SUBTREE,
        company=ctx.company,
        outcome=root.id,
        depth=MOST_AT_ONCE,
        limit=MOST_AT_ONCE,
    )
    below = {outcome.id: outcome for outcome in found}
    parents: dict[str, set[str]] = {}
    for edge in ctx.tx.all(
        statements.EDGES_INTO_SUBTREE, company=ctx.company, outcome=root.id, depth=MOST_AT_ONCE
    ):
        parents.setdefault(edge.child_id, set()).add(edge.parent_id)
    # A parent outside the subtree counts only while it is open.
    outside = {parent for above in parents.values() for parent in above} - below.keys()
    going_on = {
        parent
        for parent in outside
        if (other := ctx.tx.one(statements.OUTCOME, company=ctx.company, outcome=parent))
        and other.status is OutcomeStatus.OPEN
    }
    kept: set[str] = set()
    grown = True
    while grown:
        more = {
            child
            for child, above in parents.items()
            if child != root.id and child not in kept and above & (going_on | kept)
        }
        kept |= more
        grown = bool(more)
    return [
        outcome
        for outcome in sorted(below.values(), key=lambda one: one.id)
        if outcome.id != root.id and outcome.id not in kept and outcome.status is OutcomeStatus.OPEN
    ]


def _find_new_owners(ctx: Context, gone: Sequence[Agent]) -> None:
    """What goes on and belonged to an agent that is gone, goes to the boss above."""
    for agent in gone:
        heir = tree.living_boss(ctx, agent)
        if heir is not None:
            ctx.tx.run(statements.REOWN_OPEN, owner=agent.id, new_owner=heir, now=ctx.now)


def _count(ctx: Context, outcome: Outcome, step: int) -> None:
    ctx.tx.run(statements.COUNT_FOR_PARENTS, outcome=OutcomeId(outcome.id), step=step)
    ctx.tx.run(statements.COUNT_FOR_BLOCKED, outcome=OutcomeId(outcome.id), step=step)
