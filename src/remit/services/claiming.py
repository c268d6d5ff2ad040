"""What workers do: find who is ready, hold an agent while it runs, take over from the silent ones.

One live run per agent is a rule of the database; a worker that is not heard of any more loses its
claim, and whatever its run still tries is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from remit.authority import Action, holding
from remit.clock import SECOND, Micros
from remit.errors import Conflict, NotFound
from remit.ids import RunId
from remit.model.agent import Agent, AgentStatus
from remit.model.decision import Decision, Effect
from remit.model.grant import FULL_ACCESS, Level, Resource, ResourceKind
from remit.model.limit import stored
from remit.model.run import RunStatus, longest_pause
from remit.services import (
    accounts,
    budgets,
    halts,
    ledger,
    limits,
    lookup,
    situation,
    toolset,
    views,
    waking,
)
from remit.services.command import Answer, Context, command, logged, query
from remit.services.run_endings import STOPPED, finish, release
from remit.services.running import begin, entered, system_only
from remit.services.verbs import Added
from remit.store import accounts as account_statements
from remit.store import due, leases, people
from remit.store import runs as statements

#: How long a worker may be silent before others take over.
LEASE_TIME: Micros = 10 * SECOND
MOST_AT_ONCE = 200
#: Why a claim is refused when there is nothing left to spend.
NOTHING_LEFT = budgets.OVER
#: Why a claim is refused when whatever it was for is done.
NOTHING_TO_DO = "nothing_to_do"
_SYSTEM = Decision(Effect.ALLOW, "system", "Remit does this by itself.", "rule:system")


@query("claiming.ready", Added("worker", ""))
def ready(
    ctx: Context, *, each: int = MOST_AT_ONCE, limit: int = MOST_AT_ONCE, worker: str = ""
) -> list[dict[str, Any]]:
    """Who has something to do and may do it now, so many of each company; for Remit itself.

    Of those who wait for a closed account the ones that are to find out whether it works again.
    """
    system_only(ctx)
    found = ctx.tx.all(leases.READY, now=ctx.now, each=each, limit=limit)
    return [
        {"agent_id": one.agent_id, "company_id": one.company_id, "adapter_type": one.adapter_type}
        for one in (*accounts.candidates(ctx, worker), *found)
    ]


@query("claiming.next_ready")
def next_ready(ctx: Context) -> dict[str, Micros | None]:
    """When somebody is to be started next, when the clock brings something back, and when what is
    closed is tried again."""
    system_only(ctx)
    return {
        "ready": ctx.tx.one(leases.NEXT_READY, now=ctx.now),
        "deferred": ctx.tx.one(due.NEXT_LOOK, now=ctx.now),
        "tried": ctx.tx.one(account_statements.NEXT_PROBE, now=ctx.now),
    }


@command("claiming.claim")
def claim(
    ctx: Context, *, agent: str, run: str, workspace: str, worker: str, lease: Micros = LEASE_TIME
) -> Answer:
    """Begin a run of an agent that has something to do; for one worker, the others are refused."""
    system_only(ctx)
    found = lookup.agent_anywhere(ctx, agent)
    ctx.require(Action.RUN_CHANGE, on=f"agent:{found.id}", home=found.id)
    halts.refuse_stopped(ctx, found)
    if ctx.tx.one(leases.HAS_WORK, agent=found.id, now=ctx.now) is None:
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
    admission = accounts.admit(ctx, found, worker)
    if _cannot_start(found) or not ctx.tx.run(
        leases.CLAIM,
        agent=found.id,
        now=ctx.now,
        until=ctx.now + lease,
        new_worker=worker,
    ):
        raise Conflict(f"{found.name} has nothing to do, or is being seen to.")
    budgets.release(ctx, found.id)
    held = ctx.tx.one(leases.LEASE, agent=found.id)
    assert held is not None
    begun = begin(
        ctx,
        found,
        run,
        workspace,
        epoch=held.epoch,
        worker=worker,
        why=held.why,
        account=admission.account.id,
    )
    accounts.begun(ctx, admission, run)
    return {
        **begun,
        "probe": admission.probe,
        "agent_id": found.id,
        "company_id": found.company_id,
        "epoch": held.epoch,
        "seen": held.wake_seq,
        "why": held.why,
    }


def _cannot_start(agent: Agent) -> bool:
    return agent.status is not AgentStatus.IDLE or agent.adapter_type == "human"


@logged("claiming.settle")
def settle(ctx: Context, *, agent: str) -> None:
    """Let an agent sleep that was woken and has nothing to do after all; for Remit itself."""
    system_only(ctx)
    found = lookup.agent_anywhere(ctx, agent)
    ctx.take_turn()  # what gives it something to do takes a turn, too
    if ctx.tx.one(leases.HAS_WORK, agent=found.id, now=ctx.now) is None:
        ctx.tx.run(leases.SETTLE, agent=found.id, now=ctx.now)


@logged("claiming.renew")
def renew(
    ctx: Context, *, held: Sequence[tuple[str, int]], lease: Micros = LEASE_TIME
) -> list[str]:
    """Go on holding these agents; answers those that were lost to somebody else."""
    system_only(ctx)
    return [
        agent
        for agent, epoch in held
        if not ctx.tx.run(leases.RENEW, agent=agent, epoch=epoch, until=ctx.now + lease)
    ]


@query("claiming.held")
def held(ctx: Context) -> dict[str, Micros]:
    """The runs of all workers, and until when each is held; for Remit itself."""
    system_only(ctx)
    return {one.run_id: one.lease_until for one in ctx.tx.all(leases.HELD_BY_WORKERS)}


@command("claiming.take_over")
def take_over(ctx: Context, *, run: str, until: Micros) -> Answer:
    """Give up a run whose worker is silent: it is lost, and its agent can be started again.

    `until` is what its lease said when the worker was last heard of.
    """
    system_only(ctx)
    found = entered(ctx, run)
    ctx.require(Action.RUN_CHANGE, on=f"run:{run}", home=found.agent_id)
    # Workers renew without waiting for their turn, so that looking first would not be enough.
    if not ctx.tx.run(leases.STILL_SILENT, agent=found.agent_id, epoch=found.epoch, until=until):
        raise Conflict("Its worker was heard of again.")
    known = {
        "exit_reason": "lost",
        "error": f"its worker {found.worker} was not heard of any more",
    }
    finish(ctx, found, RunStatus.LOST, known)
    release(ctx, found, RunStatus.LOST, None, known)
    return {"id": run, "status": RunStatus.LOST.value}


@command("claiming.sweep")
def sweep(ctx: Context, *, company: str) -> Answer:
    """Wake those in a company who have something to do and were not woken for it."""
    system_only(ctx)
    ctx.enter(company)
    ctx.accept_rule(_SYSTEM)
    woken = [
        agent
        for agent in ctx.tx.all(
            leases.FORGOTTEN_IN, now=ctx.now, company=company, limit=MOST_AT_ONCE
        )
        if waking.wake(ctx, agent, "it is time to look again", by_clock=True)
    ]
    ctx.record("agent.wake", f"company:{company}", {"agents": woken}, _SYSTEM)
    return {"woken": woken}


@query("claiming.forgotten")
def forgotten(ctx: Context) -> list[str]:
    """Companies in which somebody should have been woken; for Remit itself."""
    system_only(ctx)
    return ctx.tx.all(leases.FORGOTTEN, now=ctx.now, limit=MOST_AT_ONCE)


@query("claiming.misdated")
def misdated(ctx: Context) -> list[str]:
    """Agents that wait longer than any pause of theirs lasts: the clock was set back meanwhile."""
    system_only(ctx)
    return [
        lease.agent_id
        for lease in ctx.tx.all(leases.WAITING, now=ctx.now)
        if lease.due_at > ctx.now + longest_pause(lease)
    ]


@logged("claiming.redate")
def redate(ctx: Context, *, agent: str) -> None:
    """Let the pause of an agent begin now, if it would end later otherwise; for Remit itself."""
    system_only(ctx)
    lookup.agent_anywhere(ctx, agent)
    ctx.take_turn()
    lease = ctx.tx.one(leases.LEASE, agent=agent)
    if lease is not None and not lease.held:
        at_last = ctx.now + longest_pause(lease)
        ctx.tx.run(leases.REDATE, agent=agent, due=min(at_last, lease.due_at))


@query("claiming.over")
def over(ctx: Context, *, runs: Sequence[str]) -> list[str]:
    """Which of these runs are known and over; for their worker."""
    system_only(ctx)
    found = [ctx.tx.one(statements.RUN, run=run) for run in runs]
    return [run.id for run in found if run is not None and run.status is not RunStatus.RUNNING]


@query("claiming.bound")
def bound(ctx: Context, *, digest: str) -> dict[str, Any] | None:
    """The run of a token, if a worker carries it out; for Remit itself."""
    system_only(ctx)
    token = ctx.tx.one(people.IDENTITY, digest=digest)
    if token is None or token.run_id is None or token.run_status != RunStatus.RUNNING:
        return None
    run = ctx.tx.one(statements.RUN, run=token.run_id)
    if run is None or run.worker is None:
        return None
    return {"run_id": run.id, "adapter_type": run.adapter_type}


@query("claiming.live")
def live(ctx: Context) -> list[dict[str, Any]]:
    """All runs that are thought to be alive; for Remit itself after a restart."""
    if not ctx.decide(Action.RUN_CHANGE).allowed or ctx.actor.id:
        raise NotFound("There is nothing here with that id.")
    return [
        {
            "id": run.id,
            "agent_id": run.agent_id,
            "workspace": run.workspace,
            "worker": run.worker,
            "epoch": run.epoch,
        }
        for run in ctx.tx.all(statements.LIVE_RUNS)
    ]


@logged("claiming.append_log", Added("denied", None))
def append_log(
    ctx: Context,
    *,
    run: str,
    pieces: Sequence[Mapping[str, Any]],
    denied: Mapping[str, int] | None = None,
) -> None:
    """Keep what a run printed, and what it was denied so far; for its worker, unless the run was
    lost to another."""
    system_only(ctx)
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


@query("claiming.briefing")
def briefing(ctx: Context, *, run: str) -> dict[str, Any]:
    """What a worker has to know to carry a run out; for Remit itself."""
    system_only(ctx)
    found = entered(ctx, run)
    agent = lookup.agent_row(ctx, found.agent_id)
    company = ctx.tx.one(people.COMPANY, company=found.company_id)
    assert agent is not None
    assert company is not None
    session = ctx.tx.one(statements.SESSION, agent=agent.id)
    lease = ctx.tx.one(leases.LEASE, agent=agent.id)
    return {
        "failures": lease.failures if lease else 0,
        "left": limits.capped(
            ctx, {kind.value: one.left for kind, one in ledger.means(ctx, agent.id).items()}
        ),
        "limits": stored(company.limits).view(),
        "agent": {
            **views.agent(agent),
            "prompt": agent.prompt,
            "adapter_config": json.loads(agent.adapter_config),
            "runtime_config": json.loads(agent.runtime_config),
        },
        "company": views.company(company),
        "boss": _boss(ctx, agent),
        "mandate": situation.mandate(ctx, agent),
        "situation": situation.of_run(ctx, found, agent),
        "full_access": has_full_access(ctx, agent),
        "session": None
        if session is None
        else {
            "adapter_type": session.adapter_type,
            "session_id": session.session_id,
            "begun_at": session.begun_at,
            "used_at": session.used_at,
            "context_tokens": session.context_tokens,
        },
        "now": ctx.now,
    }


@logged("claiming.keep_session")
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
    system_only(ctx)
    found = entered(ctx, run)
    if found.status is not RunStatus.RUNNING:
        return  # another run may be at it by now
    if session_id is None or toolset.is_outdated(ctx, found):
        ctx.tx.run(statements.FORGET_SESSION, agent=found.agent_id)
        return
    ctx.tx.run(
        statements.KEEP_SESSION,
        agent_id=found.agent_id,
        company_id=found.company_id,
        adapter_type=adapter_type,
        session_id=session_id,
        begun_at=begun_at,
        used_at=ctx.now,
        context_tokens=context_tokens,
    )


def _boss(ctx: Context, agent: Agent) -> dict[str, Any]:
    if agent.boss_id is not None:
        boss = lookup.agent_row(ctx, agent.boss_id)
        assert boss is not None
        return {"kind": "agent", "name": boss.name, "outcome": boss.id}
    user = ctx.tx.one(people.USER, user=agent.boss_user_id)
    return {"kind": "user", "name": user.name if user else "the board", "outcome": None}


def has_full_access(ctx: Context, agent: Agent) -> bool:
    held = ctx.held(agent.id, Resource(ResourceKind.ACTION, FULL_ACCESS))
    return holding(held, Level.USE, ctx.now).allowed
