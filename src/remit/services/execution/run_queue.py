"""Queue of runs: ready agents, the lease of a running agent, take-over from silent workers.

One live run per agent is a constraint of the database. A worker that falls silent loses its lease,
and every later call of its run is refused.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from remit.authority import Action, holding
from remit.clock import SECOND, Micros, next_month
from remit.errors import Conflict
from remit.ids import RunId
from remit.model.execution.run import Lease, Run, RunStatus, longest_pause
from remit.model.organisation.agent import Agent, AgentStatus
from remit.model.organisation.decision import allow
from remit.model.organisation.grant import FULL_ACCESS, Level, Resource, ResourceKind
from remit.services import lookup, shapes
from remit.services.command import FOR_REMIT, Context, command, logged, query
from remit.services.execution import accounts, tool_changes, waking
from remit.services.execution.run_endings import STOPPED, finish, release
from remit.services.execution.running import begin, entered
from remit.services.organisation import halts
from remit.services.queues import Held, Leases
from remit.services.spending import budgets, ledger, limits
from remit.services.verbs import Added
from remit.store.engine.statement import row
from remit.store.execution import accounts as account_statements
from remit.store.execution import budgets as budget_statements
from remit.store.execution import due, leases
from remit.store.execution import runs as statements
from remit.store.execution.leases import Ready
from remit.store.organisation import people

#: How long a worker may be silent before others take over.
LEASE_TIME: Micros = 10 * SECOND
MOST_AT_ONCE = 200
#: Why a claim is refused when the budget is used up.
NOTHING_LEFT = budgets.OVER
#: Why a claim is refused when the agent has nothing to do any more.
NOTHING_TO_DO = "nothing_to_do"
_LEASES = Leases(leases.QUEUE)


@query("claiming.ready", FOR_REMIT, Added("worker", ""))
def ready(
    ctx: Context, *, each: int = MOST_AT_ONCE, limit: int = MOST_AT_ONCE, worker: str = ""
) -> list[Ready]:
    """Return the agents that can start now, at most `each` of one company; before them the waiting
    agents that may start after all, such as probes of closed accounts (`accounts.candidates`)."""
    agents = ctx.tx.all(leases.READY, each=each, limit=limit)
    return [*accounts.candidates(ctx, worker), *agents]


class Following(NamedTuple):
    """The next times at which an agent may have to be started."""

    #: An agent is due.
    ready: Micros | None
    #: Something deferred comes back.
    deferred: Micros | None
    #: A closed account or set-up is probed.
    tried: Micros | None


@query("claiming.next_ready", FOR_REMIT)
def next_ready(ctx: Context) -> Following:
    """Return the next times to poll."""
    return Following(
        ctx.tx.one(leases.NEXT_READY),
        ctx.tx.one(due.NEXT_LOOK),
        ctx.tx.one(account_statements.NEXT_PROBE),
    )


@command("claiming.claim", FOR_REMIT)
def claim(
    ctx: Context, *, agent: str, run: str, workspace: str, worker: str, lease: Micros = LEASE_TIME
) -> shapes.ClaimedRunShape:
    """Lease an agent that has something to do to one worker, and begin its run; other workers are
    refused."""
    agent_row = lookup.agent_anywhere(ctx, agent)
    ctx.require(Action.RUN_CHANGE, on=f"agent:{agent_row.id}", home=agent_row.id)
    halts.refuse_stopped(ctx, agent_row)
    if ctx.tx.one(leases.HAS_WORK, agent=agent_row.id) is None:
        raise Conflict(
            f"{agent_row.name} has nothing to do any more.", "Let it sleep.", code=NOTHING_TO_DO
        )
    over = ledger.used_up(ctx, agent_row.id)
    if over is not None:
        raise Conflict(
            budgets.sentence(ctx, over),
            "It goes on with the next month, or when the budget is raised.",
            code=NOTHING_LEFT,
        )
    reached = limits.keeping(ctx, agent_row)
    if reached is not None:
        raise Conflict(
            limits.sentence(ctx, reached), limits.next_step(ctx, reached), code=limits.REACHED
        )
    admitted = accounts.admit(ctx, agent_row, worker)
    if _cannot_start(agent_row) or not _LEASES.claim(ctx, agent_row.id, worker, lease):
        raise Conflict(f"{agent_row.name} has nothing to do, or is being seen to.")
    budgets.release(ctx, agent_row.id)
    held = ctx.tx.existing(leases.LEASE, agent=agent_row.id)
    begun = begin(
        ctx,
        agent_row,
        run,
        workspace,
        epoch=held.epoch,
        worker=worker,
        why=held.why,
        account=admitted.account.id,
    )
    accounts.begun(ctx, admitted, run)
    return {
        **begun,
        "probe": admitted.probe,
        "agent_id": agent_row.id,
        "company_id": agent_row.company_id,
        "epoch": held.epoch,
        "seen": held.wake_seq,
        "why": held.why,
    }


def _cannot_start(agent: Agent) -> bool:
    return agent.status is not AgentStatus.IDLE or agent.adapter_type == "human"


@logged("claiming.settle", FOR_REMIT)
def settle(ctx: Context, *, agent: str) -> None:
    """Mark a woken agent as having nothing to do."""
    agent_row = lookup.agent_anywhere(ctx, agent)
    ctx.lock_company()  # giving it something to do takes this lock, too
    if ctx.tx.one(leases.HAS_WORK, agent=agent_row.id) is None:
        ctx.tx.run(leases.SETTLE, agent=agent_row.id)


@logged("claiming.renew", FOR_REMIT)
def renew(ctx: Context, *, held: Sequence[Held], lease: Micros = LEASE_TIME) -> list[Held]:
    """Renew these leases; returns those that were lost."""
    return _LEASES.renew(ctx, held, lease)


@query("claiming.held", FOR_REMIT)
def held(ctx: Context) -> dict[str, Micros]:
    """Return the runs of all workers, and when the lease of each expires."""
    return {lease.run_id: lease.lease_until for lease in ctx.tx.all(leases.HELD_BY_WORKERS)}


@command("claiming.take_over", FOR_REMIT)
def take_over(ctx: Context, *, run: str, until: Micros) -> shapes.EndedShape:
    """End the run of a silent worker as lost, and release its agent.

    `until` is the end of the lease when the worker was last heard of.
    """
    run_row = entered(ctx, run)
    ctx.require(Action.RUN_CHANGE, on=f"run:{run}", home=run_row.agent_id)
    _LEASES.seize(ctx, (run_row.agent_id, run_row.epoch), until)
    known: shapes.RunEndShape = {
        "exit_reason": "lost",
        "error": f"its worker {run_row.worker} stopped responding",
    }
    finish(ctx, run_row, RunStatus.LOST, known)
    release(ctx, run_row, RunStatus.LOST, None, known)
    return {"id": run, "status": RunStatus.LOST.value}


@command("claiming.sweep", FOR_REMIT)
def sweep(ctx: Context, *, company: str) -> shapes.WokenShape:
    """Wake the agents of a company that have something to do and were not woken for it."""
    ctx.enter(company)
    ctx.require(Action.RUN_CHANGE, on=f"company:{company}")
    woken = [
        agent
        for agent in ctx.tx.all(leases.FORGOTTEN_IN, company=company, limit=MOST_AT_ONCE)
        if waking.wake(ctx, agent, "it is time to look again", by_clock=True)
    ]
    ctx.record("agent.wake", f"company:{company}", {"agents": woken})
    return {"woken": woken}


@query("claiming.forgotten", FOR_REMIT)
def forgotten(ctx: Context) -> list[str]:
    """Return the companies in which an agent should have been woken."""
    return ctx.tx.all(leases.FORGOTTEN, limit=MOST_AT_ONCE)


@query("claiming.misdated", FOR_REMIT)
def misdated(ctx: Context) -> list[str]:
    """Return the agents whose wait is longer than any pause: the clock was set back meanwhile.
    Those that a budget stops wait for the next month."""
    late = [lease for lease in ctx.tx.all(leases.WAITING) if lease.due_at > _pause_end(ctx, lease)]
    stopped = set(ctx.tx.all(budget_statements.STOPPED)) if late else ()
    return [
        lease.agent_id
        for lease in late
        if lease.agent_id not in stopped or lease.due_at > next_month(ctx.now)
    ]


def _pause_end(ctx: Context, lease: Lease) -> Micros:
    """Return the end of the longest pause that begins now."""
    return ctx.now + longest_pause(lease)


@logged("claiming.redate", FOR_REMIT)
def redate(ctx: Context, *, agent: str) -> None:
    """Let the pause of an agent begin now, if it would end later otherwise."""
    lookup.agent_anywhere(ctx, agent)
    ctx.lock_company()
    lease = ctx.tx.one(leases.LEASE, agent=agent)
    if lease is None or lease.held:
        return
    is_stopped = ctx.tx.one(budget_statements.STOP_OF, agent=agent) is not None
    if not is_stopped or lease.due_at > next_month(ctx.now):
        ctx.tx.run(leases.REDATE, agent=agent, due=min(_pause_end(ctx, lease), lease.due_at))


@query("claiming.over", FOR_REMIT)
def over(ctx: Context, *, runs: Sequence[str]) -> list[str]:
    """Return those of the runs that have ended; for their worker."""
    rows = [ctx.tx.one(statements.RUN, run=run) for run in runs]
    return [run.id for run in rows if run is not None and run.status is not RunStatus.RUNNING]


@query("claiming.bound", FOR_REMIT)
def bound(ctx: Context, *, digest: str) -> Run | None:
    """Return the live run of a token, if it runs on a worker."""
    token = ctx.tx.one(people.IDENTITY, digest=digest)
    if token is None or token.run_id is None or token.run_status != RunStatus.RUNNING:
        return None
    run = ctx.tx.one(statements.RUN, run=token.run_id)
    return run if run is not None and run.worker is not None else None


@query("claiming.live", FOR_REMIT)
def live(ctx: Context) -> list[Run]:
    """Return every run that counts as live; for Remit itself after a restart."""
    return ctx.tx.all(statements.LIVE_RUNS)


@logged("claiming.append_log", FOR_REMIT, Added("denied", None))
def append_log(
    ctx: Context,
    *,
    run: str,
    pieces: Sequence[Mapping[str, Any]],
    denied: Mapping[str, int] | None = None,
) -> None:
    """Store output of a run, and what it was denied so far; for its worker, unless the run was lost
    to another."""
    run_row = ctx.tx.one(statements.RUN, run=RunId(run))
    if run_row is None or (run_row.status is RunStatus.LOST and run_row.exit_reason != STOPPED):
        raise Conflict("The run was given up.", "Stop it.", code="lost")
    for piece in pieces:
        ctx.tx.run(statements.INSERT_LOG, run_id=run, **piece)
    if denied is not None:
        ctx.tx.run(statements.FORGET_DENIALS, run=run)
        ctx.tx.run(
            statements.INSERT_LOG,
            run_id=run,
            number=statements.NUMBER_OF_DENIALS,
            at=ctx.now,
            stream="remit",
            text=json.dumps(dict(denied)),
        )
    size = sum(len(piece["text"]) for piece in pieces)
    ctx.tx.run(statements.COUNT_LOG, run=run, more=size)


_FOUND = allow("system", "Remit compared the files of the conversation.", "rule:system")


@logged("claiming.keep_session", FOR_REMIT, Added("altered", None))
def keep_session(
    ctx: Context,
    *,
    run: str,
    adapter_type: str,
    session_id: str | None,
    begun_at: Micros,
    context_tokens: int,
    altered: str | None = None,
) -> None:
    """Store the session that the next run resumes, or that there is none: `altered` says why its
    conversation is not to be trusted."""
    run_row = entered(ctx, run)
    if run_row.status is not RunStatus.RUNNING:
        return  # another run may use it by now
    before = ctx.tx.one(statements.SESSION, agent=run_row.agent_id)
    afresh = before is not None and before.session_id == statements.FRESH
    # A fresh session was asked for while this run was at work.
    afresh = afresh and before is not None and before.begun_at >= run_row.started_at
    if altered is not None:
        session_id = statements.ALTERED
        resource = f"agent:{run_row.agent_id}"
        ctx.record("agent.lose_conversation", resource, {"run": run, "why": altered}, _FOUND)
    if session_id is None or afresh or tool_changes.is_outdated(ctx, run_row):
        ctx.tx.run(statements.FORGET_SESSION, agent=run_row.agent_id)
        return
    whose = (run_row.agent_id, run_row.company_id, adapter_type)
    session = statements.Session(*whose, session_id, begun_at, ctx.now, context_tokens)
    ctx.tx.run(statements.KEEP_SESSION, **row(session))


def has_full_access(ctx: Context, agent: Agent) -> bool:
    """Return whether people let an agent's programs use the whole machine; a grant that another
    agent passed on counts for nothing."""
    held = ctx.held(agent.id, Resource(ResourceKind.ACTION, FULL_ACCESS))
    by_people = [grant for grant in held if grant.granted_by_agent is None]
    return holding(by_people, Level.USE, ctx.now).allowed
