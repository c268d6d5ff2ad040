"""Queue of runs: who is ready, the lease of an agent that runs, take-over from silent workers.

One live run per agent is a rule of the database; a worker that is not heard of any more loses its
claim, and whatever its run still tries is refused.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from remit.authority import Action, holding
from remit.clock import SECOND, Micros
from remit.errors import Conflict
from remit.ids import RunId
from remit.model.execution.run import Run, RunStatus, longest_pause
from remit.model.organisation.agent import Agent, AgentStatus
from remit.model.organisation.grant import FULL_ACCESS, Level, Resource, ResourceKind
from remit.services import lookup, shapes
from remit.services.command import FOR_REMIT, Context, command, logged, query
from remit.services.execution import admission, tool_changes, waking
from remit.services.execution.run_endings import STOPPED, finish, release
from remit.services.execution.running import begin, entered
from remit.services.organisation import halts
from remit.services.queues import Held, Leases
from remit.services.spending import budgets, ledger, limits
from remit.services.verbs import Added
from remit.store.engine.statement import row
from remit.store.execution import accounts as account_statements
from remit.store.execution import due, leases
from remit.store.execution import runs as statements
from remit.store.execution.leases import Ready
from remit.store.organisation import people

#: How long a worker may be silent before others take over.
LEASE_TIME: Micros = 10 * SECOND
MOST_AT_ONCE = 200
#: Why a claim is refused when there is nothing left to spend.
NOTHING_LEFT = budgets.OVER
#: Why a claim is refused when whatever it was for is done.
NOTHING_TO_DO = "nothing_to_do"
_LEASES = Leases(leases.QUEUE)


@query("claiming.ready", FOR_REMIT, Added("worker", ""))
def ready(
    ctx: Context, *, each: int = MOST_AT_ONCE, limit: int = MOST_AT_ONCE, worker: str = ""
) -> list[Ready]:
    """The agents that have something to do and may do it now, so many of each company.

    Of those who wait for a closed account the ones that are to find out whether it works again.
    """
    found = ctx.tx.all(leases.READY, each=each, limit=limit)
    return [*admission.candidates(ctx, worker), *found]


class Following(NamedTuple):
    """The next times at which there may be something to do."""

    #: Somebody is to be started.
    ready: Micros | None
    #: The clock brings something back.
    deferred: Micros | None
    #: A closed account or set-up is tried again.
    tried: Micros | None


@query("claiming.next_ready", FOR_REMIT)
def next_ready(ctx: Context) -> Following:
    """The next times to look."""
    return Following(
        ctx.tx.one(leases.NEXT_READY),
        ctx.tx.one(due.NEXT_LOOK),
        ctx.tx.one(account_statements.NEXT_PROBE),
    )


@command("claiming.claim", FOR_REMIT)
def claim(
    ctx: Context, *, agent: str, run: str, workspace: str, worker: str, lease: Micros = LEASE_TIME
) -> shapes.ClaimedRunShape:
    """Begin a run of an agent that has something to do; for one worker, the others are refused."""
    found = lookup.agent_anywhere(ctx, agent)
    ctx.require(Action.RUN_CHANGE, on=f"agent:{found.id}", home=found.id)
    halts.refuse_stopped(ctx, found)
    if ctx.tx.one(leases.HAS_WORK, agent=found.id) is None:
        raise Conflict(
            f"{found.name} has nothing to do any more.", "Let it sleep.", code=NOTHING_TO_DO
        )
    over = ledger.used_up(ctx, found.id)
    if over is not None:
        raise Conflict(
            budgets.sentence(ctx, over),
            "It goes on with the next month, or when the budget is raised.",
            code=NOTHING_LEFT,
        )
    reached = limits.keeping(ctx, found)
    if reached is not None:
        raise Conflict(
            limits.sentence(ctx, reached), limits.next_step(ctx, reached), code=limits.REACHED
        )
    admitted = admission.admit(ctx, found, worker)
    if _cannot_start(found) or not _LEASES.claim(ctx, found.id, worker, lease):
        raise Conflict(f"{found.name} has nothing to do, or is being seen to.")
    budgets.release(ctx, found.id)
    held = ctx.tx.existing(leases.LEASE, agent=found.id)
    begun = begin(
        ctx,
        found,
        run,
        workspace,
        epoch=held.epoch,
        worker=worker,
        why=held.why,
        account=admitted.account.id,
    )
    admission.begun(ctx, admitted, run)
    return {
        **begun,
        "probe": admitted.probe,
        "agent_id": found.id,
        "company_id": found.company_id,
        "epoch": held.epoch,
        "seen": held.wake_seq,
        "why": held.why,
    }


def _cannot_start(agent: Agent) -> bool:
    return agent.status is not AgentStatus.IDLE or agent.adapter_type == "human"


@logged("claiming.settle", FOR_REMIT)
def settle(ctx: Context, *, agent: str) -> None:
    """Let an agent sleep that was woken and has nothing to do after all; for Remit itself."""
    found = lookup.agent_anywhere(ctx, agent)
    ctx.lock_company()  # what gives it something to do locks it, too
    if ctx.tx.one(leases.HAS_WORK, agent=found.id) is None:
        ctx.tx.run(leases.SETTLE, agent=found.id)


@logged("claiming.renew", FOR_REMIT)
def renew(ctx: Context, *, held: Sequence[Held], lease: Micros = LEASE_TIME) -> list[Held]:
    """Go on holding these agents; answers those that were lost to somebody else."""
    return _LEASES.renew(ctx, held, lease)


@query("claiming.held", FOR_REMIT)
def held(ctx: Context) -> dict[str, Micros]:
    """The runs of all workers, and until when each is held; for Remit itself."""
    return {one.run_id: one.lease_until for one in ctx.tx.all(leases.HELD_BY_WORKERS)}


@command("claiming.take_over", FOR_REMIT)
def take_over(ctx: Context, *, run: str, until: Micros) -> shapes.EndedShape:
    """Give up a run whose worker is silent: it is lost, and its agent can be started again.

    `until` is what its lease said when the worker was last heard of.
    """
    found = entered(ctx, run)
    ctx.require(Action.RUN_CHANGE, on=f"run:{run}", home=found.agent_id)
    _LEASES.seize(ctx, (found.agent_id, found.epoch), until)
    known: shapes.RunEndShape = {
        "exit_reason": "lost",
        "error": f"its worker {found.worker} was not heard of any more",
    }
    finish(ctx, found, RunStatus.LOST, known)
    release(ctx, found, RunStatus.LOST, None, known)
    return {"id": run, "status": RunStatus.LOST.value}


@command("claiming.sweep", FOR_REMIT)
def sweep(ctx: Context, *, company: str) -> shapes.WokenShape:
    """Wake those in a company who have something to do and were not woken for it."""
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
    """Companies in which somebody should have been woken; for Remit itself."""
    return ctx.tx.all(leases.FORGOTTEN, limit=MOST_AT_ONCE)


@query("claiming.misdated", FOR_REMIT)
def misdated(ctx: Context) -> list[str]:
    """Agents that wait longer than any pause of theirs lasts: the clock was set back meanwhile."""
    return [
        lease.agent_id
        for lease in ctx.tx.all(leases.WAITING)
        if lease.due_at > ctx.now + longest_pause(lease)
    ]


@logged("claiming.redate", FOR_REMIT)
def redate(ctx: Context, *, agent: str) -> None:
    """Let the pause of an agent begin now, if it would end later otherwise; for Remit itself."""
    lookup.agent_anywhere(ctx, agent)
    ctx.lock_company()
    lease = ctx.tx.one(leases.LEASE, agent=agent)
    if lease is not None and not lease.held:
        at_last = ctx.now + longest_pause(lease)
        ctx.tx.run(leases.REDATE, agent=agent, due=min(at_last, lease.due_at))


@query("claiming.over", FOR_REMIT)
def over(ctx: Context, *, runs: Sequence[str]) -> list[str]:
    """Which of these runs are known and over; for their worker."""
    found = [ctx.tx.one(statements.RUN, run=run) for run in runs]
    return [run.id for run in found if run is not None and run.status is not RunStatus.RUNNING]


@query("claiming.bound", FOR_REMIT)
def bound(ctx: Context, *, digest: str) -> Run | None:
    """The run of a token, if a worker carries it out; for Remit itself."""
    token = ctx.tx.one(people.IDENTITY, digest=digest)
    if token is None or token.run_id is None or token.run_status != RunStatus.RUNNING:
        return None
    run = ctx.tx.one(statements.RUN, run=token.run_id)
    return run if run is not None and run.worker is not None else None


@query("claiming.live", FOR_REMIT)
def live(ctx: Context) -> list[Run]:
    """All runs that are thought to be alive; for Remit itself after a restart."""
    return ctx.tx.all(statements.LIVE_RUNS)


@logged("claiming.append_log", FOR_REMIT, Added("denied", None))
def append_log(
    ctx: Context,
    *,
    run: str,
    pieces: Sequence[Mapping[str, Any]],
    denied: Mapping[str, int] | None = None,
) -> None:
    """Keep what a run printed, and what it was denied so far; for its worker, unless the run was
    lost to another."""
    found = ctx.tx.one(statements.RUN, run=RunId(run))
    if found is None or (found.status is RunStatus.LOST and found.exit_reason != STOPPED):
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


@logged("claiming.keep_session", FOR_REMIT)
def keep_session(
    ctx: Context,
    *,
    run: str,
    adapter_type: str,
    session_id: str | None,
    begun_at: Micros,
    context_tokens: int,
) -> None:
    """Remember the conversation that a run leaves to go on with, or that there is none."""
    found = entered(ctx, run)
    if found.status is not RunStatus.RUNNING:
        return  # another run may be at it by now
    before = ctx.tx.one(statements.SESSION, agent=found.agent_id)
    afresh = before is not None and before.session_id == statements.FRESH
    # Somebody asked for a new one while this run was at it.
    afresh = afresh and before is not None and before.begun_at >= found.started_at
    if session_id is None or afresh or tool_changes.is_outdated(ctx, found):
        ctx.tx.run(statements.FORGET_SESSION, agent=found.agent_id)
        return
    whose = (found.agent_id, found.company_id, adapter_type)
    session = statements.Session(*whose, session_id, begun_at, ctx.now, context_tokens)
    ctx.tx.run(statements.KEEP_SESSION, **row(session))


def has_full_access(ctx: Context, agent: Agent) -> bool:
    held = ctx.held(agent.id, Resource(ResourceKind.ACTION, FULL_ACCESS))
    return holding(held, Level.USE, ctx.now).allowed
