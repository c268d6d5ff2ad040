"""Runs: an agent at work, with a token that lives exactly as long.

A worker claims an agent that has something to do, renews its claim while the run lasts, and says
how it ended. One live run per agent is a rule of the database; a worker that is not heard of any
more loses its claim, and whatever its run still tries is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from remit.authority import Action, holding
from remit.clock import SECOND, Micros
from remit.errors import BadInput, Conflict, NotFound
from remit.ids import RunId, TokenKind, UserId, is_id
from remit.model.agent import Agent, AgentStatus
from remit.model.decision import Decision, Effect
from remit.model.grant import FULL_ACCESS, Level, Resource, ResourceKind
from remit.model.principal import ActorKind
from remit.model.run import (
    ENDED_WELL,
    HELD,
    MOST_FAILURES,
    MOST_IDLE_RUNS,
    Lease,
    Run,
    RunStatus,
    pause_after,
)
from remit.services import approval_engine, handoff, inbox, lookup, tree, users, views, waking
from remit.services.command import Answer, Context, command, logged, query
from remit.store import people
from remit.store import runs as statements
from remit.store.statement import row

#: How long a worker may be silent before others take over.
LEASE_TIME: Micros = 10 * SECOND
MOST_AT_ONCE = 200
#: Nothing that a program reports about itself counts for more than this.
MOST_COUNTED = 1 << 53
LONGEST_REPORT = 100_000
END_OF_IDS = "g"
#: Why a claim is refused when whatever it was for is done.
NOTHING_TO_DO = "nothing_to_do"
#: How a run ended that was cut off because Remit was shut down.
WORKER_STOPPED = "stopped"
_SYSTEM = Decision(Effect.ALLOW, "system", "Remit does this by itself.", "rule:system")

#: What a run can report about itself when it ends.
REPORT = (
    "session_id",
    "final_response",
    "context_length",
    "tokens_in",
    "tokens_out",
    "tokens_cached",
    "cost_micros",
    "exit_reason",
    "error",
)


@command
def start(ctx: Context, *, agent: str, run: str, workspace: str | None) -> Answer:
    """Begin a run by hand. The database lets an agent have one at a time."""
    found = lookup.agent_anywhere(ctx, agent)
    ctx.require(Action.RUN_CHANGE, on=f"agent:{found.id}", home=found.id)
    if found.status is not AgentStatus.IDLE:
        raise Conflict(
            f"{found.name} is {found.status.value.replace('_', ' ')}.",
            "An agent runs when it is idle, once at a time.",
        )
    return _begin(ctx, found, run, workspace, epoch=0, worker=None, why="by hand")


# ── what workers do ─────────────────────────────────────────────────────────────────────────────


@query
def ready(
    ctx: Context, *, each: int = MOST_AT_ONCE, limit: int = MOST_AT_ONCE
) -> list[dict[str, Any]]:
    """Who has something to do and may do it now, so many of each company; for Remit itself."""
    _system_only(ctx)
    return [
        {"agent_id": one.agent_id, "company_id": one.company_id, "adapter_type": one.adapter_type}
        for one in ctx.tx.all(statements.READY, now=ctx.now, each=each, limit=limit)
    ]


@query
def next_ready(ctx: Context) -> dict[str, Micros | None]:
    """When somebody is to be started next, and when the clock brings something back."""
    _system_only(ctx)
    return {
        "ready": ctx.tx.one(statements.NEXT_READY, now=ctx.now),
        "deferred": ctx.tx.one(statements.NEXT_DEFERRED, now=ctx.now),
    }


@command
def claim(
    ctx: Context, *, agent: str, run: str, workspace: str, worker: str, lease: Micros = LEASE_TIME
) -> Answer:
    """Begin a run of an agent that has something to do; for one worker, the others are refused."""
    _system_only(ctx)
    found = lookup.agent_anywhere(ctx, agent)
    ctx.require(Action.RUN_CHANGE, on=f"agent:{found.id}", home=found.id)
    if ctx.tx.one(statements.HAS_WORK, agent=found.id, now=ctx.now) is None:
        raise Conflict(
            f"{found.name} has nothing to do any more.", "Let it sleep.", code=NOTHING_TO_DO
        )
    if _cannot_start(found) or not ctx.tx.run(
        statements.CLAIM, agent=found.id, now=ctx.now, until=ctx.now + lease, new_worker=worker
    ):
        raise Conflict(f"{found.name} has nothing to do, or is being seen to.")
    held = ctx.tx.one(statements.LEASE, agent=found.id)
    assert held is not None
    begun = _begin(ctx, found, run, workspace, epoch=held.epoch, worker=worker, why=held.why)
    return {
        **begun,
        "agent_id": found.id,
        "company_id": found.company_id,
        "epoch": held.epoch,
        "seen": held.wake_seq,
        "why": held.why,
    }


def _cannot_start(agent: Agent) -> bool:
    return agent.status is not AgentStatus.IDLE or agent.adapter_type == "human"


@logged
def settle(ctx: Context, *, agent: str) -> None:
    """Let an agent sleep that was woken and has nothing to do after all; for Remit itself."""
    _system_only(ctx)
    found = lookup.agent_anywhere(ctx, agent)
    ctx.take_turn()  # what gives it something to do takes a turn, too
    if ctx.tx.one(statements.HAS_WORK, agent=found.id, now=ctx.now) is None:
        ctx.tx.run(statements.SETTLE, agent=found.id, now=ctx.now)


@logged
def renew(
    ctx: Context, *, held: Sequence[tuple[str, int]], lease: Micros = LEASE_TIME
) -> list[str]:
    """Go on holding these agents; answers those that were lost to somebody else."""
    _system_only(ctx)
    return [
        agent
        for agent, epoch in held
        if not ctx.tx.run(statements.RENEW, agent=agent, epoch=epoch, until=ctx.now + lease)
    ]


@command
def end(
    ctx: Context,
    *,
    run: str,
    status: str = "completed",
    seen: int | None = None,
    report: Mapping[str, Any] | None = None,
) -> Answer:
    """End a run; its token dies with it, and what it left undone is seen to again."""
    found = _entered(ctx, run)
    ctx.require(Action.RUN_CHANGE, on=f"run:{run}", home=found.agent_id)
    ended = RunStatus(status)
    known = _clean(report or {})
    # Last words are no progress: who has nothing else to show could go on saying them for ever.
    changed = _changed(ctx, found)
    if ended is RunStatus.COMPLETED and known.get("final_response"):
        agent = lookup.agent_row(ctx, found.agent_id)
        assert agent is not None
        handoff.deliver(ctx, agent, found, known["final_response"])
    _end(ctx, found, ended, known)
    _release(ctx, found, ended, seen, known, changed)
    return {"id": run, "status": ended.value}


@query
def expired(ctx: Context) -> list[str]:
    """Runs of workers that have not been heard of; for Remit itself."""
    _system_only(ctx)
    late = ctx.tx.all(statements.EXPIRED, now=ctx.now, limit=MOST_AT_ONCE)
    live = [ctx.tx.one(statements.LIVE_RUN_OF, agent=lease.agent_id) for lease in late]
    return [run.id for run in live if run is not None and run.worker is not None]


@command
def take_over(ctx: Context, *, run: str) -> Answer:
    """Give up a run whose worker is silent: it is lost, and its agent can be started again."""
    _system_only(ctx)
    found = _entered(ctx, run)
    ctx.require(Action.RUN_CHANGE, on=f"run:{run}", home=found.agent_id)
    lease = ctx.tx.one(statements.LEASE, agent=found.agent_id)
    if lease is None or lease.lease_until is None or lease.lease_until > ctx.now:
        raise Conflict("Its worker was heard of again.")
    known = {
        "exit_reason": "lost",
        "error": f"its worker {found.worker} was not heard of any more",
    }
    _end(ctx, found, RunStatus.LOST, known)
    _release(ctx, found, RunStatus.LOST, None, known)
    return {"id": run, "status": RunStatus.LOST.value}


@command
def sweep(ctx: Context, *, company: str) -> Answer:
    """Wake those in a company who have something to do and were not woken for it."""
    _system_only(ctx)
    ctx.enter(company)
    ctx.accept_rule(_SYSTEM)
    woken = [
        agent
        for agent in ctx.tx.all(
            statements.FORGOTTEN_IN, now=ctx.now, company=company, limit=MOST_AT_ONCE
        )
        if waking.wake(ctx, agent, "there is something to do")
    ]
    ctx.record("agent.wake", f"company:{company}", {"agents": woken}, _SYSTEM)
    return {"woken": woken}


@query
def forgotten(ctx: Context) -> list[str]:
    """Companies in which somebody should have been woken; for Remit itself."""
    _system_only(ctx)
    return ctx.tx.all(statements.FORGOTTEN, now=ctx.now, limit=MOST_AT_ONCE)


@query
def over(ctx: Context, *, runs: Sequence[str]) -> list[str]:
    """Which of these runs are known and over; for their worker."""
    _system_only(ctx)
    found = [ctx.tx.one(statements.RUN, run=run) for run in runs]
    return [run.id for run in found if run is not None and run.status is not RunStatus.RUNNING]


@query
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


@query
def workspace(ctx: Context) -> str | None:
    """The folder of the run that is calling, if it is one."""
    return ctx.actor.workspace


# ── what people and bosses do ───────────────────────────────────────────────────────────────────


@query
def listing(
    ctx: Context,
    *,
    company: str | None,
    agent: str | None = None,
    live: bool = False,
    before: str = END_OF_IDS,
    limit: int = 100,
) -> list[dict[str, Any]]:
    """Runs, newest first."""
    lookup.company_of_caller(ctx, company)
    whose = lookup.agent_ever(ctx, agent).id if agent else ctx.actor.agent_id
    _require_look(ctx, whose, "runs")
    return [
        views.run(one)
        for one in ctx.tx.all(
            statements.RUNS,
            company=ctx.company,
            agent=whose,
            any_agent=whose is None,
            ended_too=not live,
            before=before,
            limit=limit,
        )
    ]


@query
def show(ctx: Context, *, run: str) -> dict[str, Any]:
    found = _entered(ctx, run)
    _require_look(ctx, found.agent_id, f"run:{found.id}")
    return views.run(found)


@query
def log(ctx: Context, *, run: str, after: int = 0, limit: int = 1000) -> dict[str, Any]:
    """What a run printed, from a place on; and whether there may be more to come."""
    found = _entered(ctx, run)
    _require_look(ctx, found.agent_id, f"run:{found.id}")
    pieces = ctx.tx.all(statements.LOG, run=found.id, after=after, limit=limit)
    return {
        "run_id": found.id,
        "status": found.status.value,
        "pieces": [
            {"number": one.number, "at": views.time(one.at), "stream": one.stream, "text": one.text}
            for one in pieces
        ],
        "live": found.status is RunStatus.RUNNING,
    }


@command
def cancel(ctx: Context, *, run: str, reason: object = "") -> Answer:
    """Stop a run. What it took up is not given to another; it ended because somebody said so."""
    found = _entered(ctx, run)
    ctx.require(
        Action.AGENT_CONTROL,
        on=f"run:{found.id}",
        home=found.agent_id,
        place=ctx.place(found.agent_id),
    )
    why = str(reason)[:1000] if reason else f"cancelled by {ctx.actor.name}"
    known = _clean({"exit_reason": "cancelled", "error": why})
    _end(ctx, found, RunStatus.CANCELLED, known)
    _release(ctx, found, RunStatus.CANCELLED, None, known)
    return {"id": found.id, "status": RunStatus.CANCELLED.value}


@logged
def append_log(ctx: Context, *, run: str, pieces: Sequence[Mapping[str, Any]]) -> None:
    """Keep what a run printed; for its worker, unless the run was lost to another."""
    _system_only(ctx)
    found = ctx.tx.one(statements.RUN, run=RunId(run))
    if found is None or found.status is RunStatus.LOST:
        raise Conflict("The run was given up.", "Stop it.", code="lost")
    for piece in pieces:
        ctx.tx.run(statements.INSERT_LOG, run_id=run, **piece)
    size = sum(len(piece["text"]) for piece in pieces)
    ctx.tx.run(statements.COUNT_LOG, run=run, more=size)


@query
def why_idle(ctx: Context, *, agent: str) -> dict[str, Any]:
    """Why an agent is not running, in one word and one sentence."""
    found = lookup.agent_anywhere(ctx, agent)
    _require_look(ctx, found.id, f"agent:{found.id}")
    reason, sentence = _why_idle(ctx, found)
    return {"agent_id": found.id, "name": found.name, "reason": reason, "sentence": sentence}


def _why_idle(ctx: Context, agent: Agent) -> tuple[str, str]:
    lease = ctx.tx.one(statements.LEASE, agent=agent.id)
    if ctx.tx.one(statements.LIVE_RUN_OF, agent=agent.id) is not None:
        return "running", "It is running."
    if agent.status is AgentStatus.PENDING_APPROVAL:
        return "approval", "It waits for its hire to be approved."
    if agent.status is AgentStatus.TERMINATED:
        return "terminated", "It does not work here any more."
    if agent.status is AgentStatus.PAUSED:
        return "paused", "It is paused; somebody has to resume it."
    if agent.status is AgentStatus.ERROR:
        told = lease.told if lease and lease.told else "it failed too often"
        return "stopped", f"It was stopped: {told}. Resume it when that is mended."
    if ctx.tx.one(statements.HAS_WORK, agent=agent.id, now=ctx.now) is None:
        return _nothing_to_do(ctx, agent)
    if agent.adapter_type == "human":
        return "person", "A person holds its seat."
    if lease is not None and lease.held:
        return "cancelled", "Its last run was ended by somebody; it waits for something new."
    if lease is None or not lease.awake:
        return "waking", "It has something to do and will be woken within the minute."
    if lease.due_at > ctx.now:
        return "backoff", f"{_why_backoff(lease)} It is tried again at {views.time(lease.due_at)}."
    return "no_slot", "It waits for a free slot of a worker."


def _why_backoff(lease: Lease) -> str:
    if lease.failures:
        return f"Its last run failed ({lease.told or 'for an unknown reason'})."
    return "Its last run changed nothing."


def _nothing_to_do(ctx: Context, agent: Agent) -> tuple[str, str]:
    from remit.store import governance
    from remit.store import outcomes as outcome_statements

    if ctx.tx.all(governance.UNDECIDED_OF_AGENT, agent=agent.id):
        return "approval", "It waits for an approval that it asked for."
    later = ctx.tx.one(statements.NEXT_DEFERRED_OF, agent=agent.id, now=ctx.now)
    if later is not None:
        return "deferred", f"What it could do was put off until {views.time(later)}."
    for outcome in ctx.tx.all(outcome_statements.OWNED_BY, owner=agent.id, after="", limit=50):
        if outcome.open_prereqs and outcome.status.value == "open":
            return "blocked", f"{outcome.title!r} waits for {outcome.open_prereqs} other outcomes."
    return "no_work", "It has no mail and nothing that can be worked on."


# ── how a run ends ──────────────────────────────────────────────────────────────────────────────


def _begin(
    ctx: Context,
    agent: Agent,
    run: str,
    workspace: str | None,
    *,
    epoch: int,
    worker: str | None,
    why: str,
) -> Answer:
    assert is_id(run)
    made = Run(
        id=RunId(run),
        company_id=agent.company_id,
        agent_id=agent.id,
        status=RunStatus.RUNNING,
        workspace=workspace,
        started_at=ctx.now,
        ended_at=None,
        epoch=epoch,
        worker=worker,
        adapter_type=agent.adapter_type,
        session_id=None,
        why=why,
        message_ids="[]",
        final_response=None,
        context_length=None,
        tokens_in=0,
        tokens_out=0,
        tokens_cached=0,
        cost_micros=0,
        exit_reason=None,
        error=None,
        accountable_user_id=_accountable(ctx, agent),
        log_bytes=0,
    )
    ctx.tx.run(statements.INSERT_RUN, **row(made))
    tree.set_status(ctx, agent, AgentStatus.RUNNING)
    ctx.record("run.start", f"run:{run}", {"agent_id": agent.id, "why": why, "worker": worker})
    return {**users.issue(ctx, TokenKind.RUN, "", None, agent=agent.id, run=run), "run_id": run}


def _accountable(ctx: Context, agent: Agent) -> UserId | None:
    """The person whom the chain of bosses leads to."""
    chain = ctx.place(agent.id)
    top = lookup.agent_row(ctx, chain[-1]) if chain else None
    return top.boss_user_id if top else None


def _end(ctx: Context, run: Run, ended: RunStatus, report: Mapping[str, Any]) -> None:
    if not ctx.tx.run(statements.END_RUN, run=run.id, new_status=ended.value, now=ctx.now):
        raise Conflict("The run has ended already.")
    known = {"tokens_in": 0, "tokens_out": 0, "tokens_cached": 0, "cost_micros": 0}
    told = {name: report.get(name, known.get(name)) for name in REPORT}
    ctx.tx.run(statements.REPORT_RUN, run=run.id, **{f"new_{name}": told[name] for name in REPORT})
    ctx.tx.run(people.REVOKE_TOKENS_OF, run=run.id, agent=None, user=None, now=ctx.now)
    agent = lookup.agent_row(ctx, run.agent_id)
    assert agent is not None
    inbox.run_ended(ctx, run.id, run.agent_id, well=ended in ENDED_WELL)
    if agent.status is AgentStatus.RUNNING:
        tree.set_status(ctx, agent, AgentStatus.IDLE)
    ctx.record(
        "run.end",
        f"run:{run.id}",
        {
            "agent_id": run.agent_id,
            "status": ended.value,
            "reason": told["exit_reason"],
            "error": told["error"],
            "tokens": [told["tokens_in"], told["tokens_out"]],
            "cost_micros": told["cost_micros"],
        },
    )


def _changed(ctx: Context, run: Run) -> bool:
    """Whether a run did something that lasts: dealt with mail, or changed anything."""
    now = ctx.tx.one(statements.RUN, run=run.id)
    assert now is not None
    return now.message_ids != "[]" or bool(ctx.tx.one(statements.CHANGES_BY, run=run.id))


def _release(
    ctx: Context,
    run: Run,
    ended: RunStatus,
    seen: int | None,
    report: Mapping[str, Any],
    changed: bool = True,
) -> None:
    """Let go of the agent, and say when to look at it again."""
    agent = lookup.agent_row(ctx, run.agent_id)
    lease = ctx.tx.one(statements.LEASE, agent=run.agent_id)
    assert agent is not None
    if lease is None or lease.epoch != run.epoch:
        # It was begun by hand; whatever it left is to be seen to as ever.
        if ended is not RunStatus.CANCELLED:
            waking.wake(ctx, agent.id, "something is left to do")
        return
    after = _after(lease, ended, seen, report, changed, _has_work(ctx, agent))
    ctx.tx.run(
        statements.RELEASE,
        agent=agent.id,
        epoch=lease.epoch,
        seen=lease.wake_seq,
        due=HELD if ended is RunStatus.CANCELLED else ctx.now + after.pause,
        new_idle_runs=after.idle_runs,
        new_failures=after.failures,
        new_told=after.told,
    )
    if after.again:
        newer = seen is not None and lease.wake_seq > seen
        ctx.tx.run(
            statements.WAKE_AGAIN,
            agent=agent.id,
            due=ctx.now + after.pause,
            new_why=lease.why if newer else "something is left to do",
        )
    _say_what_follows(ctx, agent, lease, ended, after)


@dataclass(frozen=True)
class _After:
    """What is to become of an agent whose run ended."""

    again: bool
    idle_runs: int
    failures: int
    #: Why the run failed, if it did.
    cause: str | None
    told: str | None

    @property
    def pause(self) -> Micros:
        return pause_after(self.idle_runs, self.failures)


def _after(
    lease: Lease,
    ended: RunStatus,
    seen: int | None,
    report: Mapping[str, Any],
    changed: bool,
    more: bool,
) -> _After:
    if ended is RunStatus.CANCELLED:
        # Whoever stopped it wants it to stand still until something new comes.
        return _After(False, 0, lease.failures, None, lease.told)
    if report.get("exit_reason") == WORKER_STOPPED:
        # Remit was shut down, which is no fault of the agent.
        return _After(more, lease.idle_runs, lease.failures, None, lease.told)
    if ended is RunStatus.COMPLETED:
        newer = seen is not None and lease.wake_seq > seen
        idle_runs = lease.idle_runs + 1 if more and not changed and not newer else 0
        # One good run among bad ones is no reason to tell of the next bad one again.
        return _After(more, idle_runs, 0, None, lease.told if lease.failures else None)
    cause = report.get("error") or ended.value
    return _After(more, 0, lease.failures + 1, cause, cause)


def _say_what_follows(
    ctx: Context, agent: Agent, before: Lease, ended: RunStatus, after: _After
) -> None:
    """Stop what does not get on; its boss is told, once for each cause."""
    root = agent.boss_id is None
    if after.idle_runs >= MOST_IDLE_RUNS:
        _stop(ctx, agent, f"{after.idle_runs} runs in a row changed nothing")
    elif after.failures == MOST_FAILURES and root:
        # Nobody above could start it again, so Remit goes on trying.
        _tell_boss(
            ctx,
            agent,
            f"{agent.name} does not get on",
            f"{after.failures} runs in a row of {agent.name} failed, the last one because "
            f"{after.cause}. It is tried again every few minutes.",
        )
    elif after.failures >= MOST_FAILURES and not root:
        _stop(
            ctx,
            agent,
            f"{after.failures} runs in a row failed, the last one because {after.cause}",
        )
    elif (
        after.cause is not None
        and after.cause != before.told
        and not (root and ended is RunStatus.LOST)
    ):
        _tell_boss(ctx, agent, "A run failed", f"A run of {agent.name} failed: {after.cause}.")


def _has_work(ctx: Context, agent: Agent) -> bool:
    return ctx.tx.one(statements.HAS_WORK, agent=agent.id, now=ctx.now) is not None


def _clean(report: Mapping[str, Any]) -> dict[str, Any]:
    """What a program says about itself, as far as it can be kept."""
    cleaned: dict[str, Any] = {}
    for name, value in report.items():
        if isinstance(value, str):
            whole = value[:LONGEST_REPORT].replace("\0", "\ufffd")
            cleaned[name] = whole.encode(errors="replace").decode()
        elif isinstance(value, int):
            cleaned[name] = min(max(int(value), 0), MOST_COUNTED)
    return cleaned


def _stop(ctx: Context, agent: Agent, why: str) -> None:
    now = lookup.agent_row(ctx, agent.id)
    if now is None or now.status is not AgentStatus.IDLE:
        return
    tree.set_status(ctx, now, AgentStatus.ERROR)
    ctx.tx.run(statements.TOLD, agent=agent.id, new_told=why)
    ctx.record("agent.stop", f"agent:{agent.id}", {"name": agent.name, "reason": why})
    _tell_boss(
        ctx, now, f"{agent.name} was stopped", f"{agent.name} was stopped: {why}. Resume it later."
    )


def _tell_boss(ctx: Context, agent: Agent, subject: str, text: str) -> None:
    to = f"agent:{agent.boss_id}" if agent.boss_id else f"user:{agent.boss_user_id}"
    approval_engine.tell(ctx, to, subject, text)


def _require_look(ctx: Context, agent: str | None, on: str) -> None:
    """One's own, and those of who works below."""
    if agent is not None and agent == ctx.actor.agent_id:
        ctx.require(Action.COMPANY_READ, on=on)
    elif ctx.actor.kind is ActorKind.AGENT:
        ctx.require(Action.AGENT_CONTROL, on=on, place=ctx.place(agent))
    else:
        ctx.require(Action.OUTCOME_READ, on=on, home=agent)


def _system_only(ctx: Context) -> None:
    if ctx.actor.kind is not ActorKind.SYSTEM:
        raise NotFound("There is nothing here with that id.")


def _entered(ctx: Context, run: str) -> Run:
    if not is_id(run):
        raise BadInput(f"{run[:60]!r} is not the id of a run.", "List the runs.")
    found = ctx.tx.one(statements.RUN, run=RunId(run))
    try:
        if found is not None:
            ctx.enter(found.company_id)
            # Entering may have waited for another command that changed it.
            found = ctx.tx.one(statements.RUN, run=RunId(run))
    except NotFound:
        found = None  # of another company: as if there were none
    if found is None:
        raise NotFound("There is no such run.")
    return found


@query
def briefing(ctx: Context, *, run: str) -> dict[str, Any]:
    """What a worker has to know to carry a run out; for Remit itself."""
    _system_only(ctx)
    found = _entered(ctx, run)
    agent = lookup.agent_row(ctx, found.agent_id)
    company = ctx.tx.one(people.COMPANY, company=found.company_id)
    assert agent is not None
    assert company is not None
    session = ctx.tx.one(statements.SESSION, agent=agent.id)
    lease = ctx.tx.one(statements.LEASE, agent=agent.id)
    return {
        "failures": lease.failures if lease else 0,
        "agent": {
            **views.agent(agent),
            "prompt": agent.prompt,
            "adapter_config": json.loads(agent.adapter_config),
            "runtime_config": json.loads(agent.runtime_config),
        },
        "company": views.company(company),
        "boss": _boss(ctx, agent),
        "full_access": _has_full_access(ctx, agent),
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


@logged
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
    _system_only(ctx)
    found = _entered(ctx, run)
    if found.status is not RunStatus.RUNNING:
        return  # another run may be at it by now
    if session_id is None:
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


def _has_full_access(ctx: Context, agent: Agent) -> bool:
    held = ctx.held(agent.id, Resource(ResourceKind.ACTION, FULL_ACCESS))
    return holding(held, Level.USE, ctx.now).allowed
