"""End of a run, and what follows for its agent.

The token is revoked, the mail is marked as handled or returned to the inbox, and the lease is
released: the agent is due again at once, later, or when a person says so. An agent that makes no
progress is slowed down (backoff), and its boss is told once; so is whoever asked for the work.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from remit.clock import MINUTE, next_month
from remit.errors import Conflict
from remit.model.execution.account import Account
from remit.model.execution.fault import CONSEQUENCES, CUT_SHORT, UNMENDABLE, Fault, Tells, fault_of
from remit.model.execution.limit import Reached
from remit.model.execution.run import (
    ENDED_WELL,
    FAILING_TOO_LONG,
    FAILURES_TOLD,
    HELD,
    LONGEST_BACKOFF,
    NUDGES,
    Lease,
    Run,
    RunStatus,
    pause_after,
)
from remit.model.messaging.turn import quoted
from remit.model.organisation.agent import Agent, AgentStatus
from remit.services import lookup, shapes
from remit.services.command import Context
from remit.services.execution import account_faults, fruitless, tool_changes, waking
from remit.services.governance import approval_engine
from remit.services.messaging import inbox
from remit.services.organisation import tree
from remit.services.spending import budgets, ledger, limits
from remit.services.work import after_run
from remit.store.execution import leases
from remit.store.execution import runs as statements
from remit.store.messaging import mail as mail_statements
from remit.store.organisation import people

#: Cap on each number that a program reports about itself.
MOST_COUNTED = 1 << 53
LONGEST_REPORT = 100_000
#: Exit reason of a run that was cut off because Remit shut down, or its agent was stopped.
STOPPED = "stopped"
#: Exit reason of a run whose conversation was full.
CONTEXT_FULL = "context_full"
#: Least time between two checks of an agent in `error`.
_LOOK_AGAIN = MINUTE
#: Longest quotation of a run's own error, in characters.
_QUOTED = 500
#: The varying parts of one and the same error: counts of calls, ids of requests, waiting times.
_PASSING = re.compile(
    r"\bIts calls: .*|\b(?=\w*\d)[\w-]{8,}|\b\d+(?:\.\d+)? ?(?:ms|s|m|h|seconds?|minutes?)\b"
)


def finish(ctx: Context, run: Run, ended: RunStatus, report: shapes.RunEndShape) -> None:
    """End a run: store its report, revoke its token, and settle the mail that it took up."""
    if not ctx.tx.run(statements.END_RUN, run=run.id, new_status=ended.value):
        raise Conflict("The run has ended already.")
    # Its usage so far stays counted, even if it was cut off before it could report.
    whole = ledger.took(ctx, run, report, ended=True)
    over = _over_budget(ctx, run, report) is not None or _over_limit(ctx, report) is not None
    fault = _fault(ctx, run, ended, report, over)
    told = {name: report.get(name) for name in statements.REPORT}
    told |= {"fault": fault, "acted": bool(report.get("acted"))}
    if fault is None:
        told["fault_until"] = None
    new = {f"new_{name}": value for name, value in told.items()}
    ctx.tx.run(statements.REPORT_RUN, run=run.id, **new)
    ctx.tx.run(people.REVOKE_RUN_TOKEN, run=run.id)
    agent = lookup.known_agent(ctx, run.agent_id)
    inbox.run_ended(ctx, run.id, run.agent_id, fault=fault)
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
            "fault": fault,
            "tokens": [whole.tokens_in, whole.tokens_out],
            "cost_micros": whole.cost_micros,
        },
    )


def _fault(
    ctx: Context, run: Run, ended: RunStatus, report: shapes.RunEndShape, over_budget: bool
) -> Fault | None:
    """Return the fault of a run; None if it ended well. An agent that blames a letter without
    holding one is at fault itself."""
    if ended in ENDED_WELL:
        return None
    if over_budget:
        return Fault.STOPPED  # the budget is used up: no fault
    reason = report.get("exit_reason")
    if ended is RunStatus.LOST and reason != STOPPED:
        return Fault.LOST
    fault = fault_of(report.get("fault"), reason)
    if fault is Fault.MESSAGE and not ctx.tx.all(mail_statements.LEASED_TO, run=run.id):
        return Fault.AGENT
    return fault


def got_on(ctx: Context, run: Run, ended: RunStatus, changed_files: str | None = None) -> bool:
    """Return whether a run made progress: it had an effect that others could notice, changed files
    anew, or ended well and so handled its mail. Mail that returns to the inbox is no progress."""
    now = ctx.tx.existing(statements.RUN, run=run.id)
    if ended is RunStatus.COMPLETED and now.message_ids != "[]":
        return True
    return fruitless.has_effect(ctx, run) or fruitless.got_on_with_files(ctx, run, changed_files)


def release(
    ctx: Context,
    run: Run,
    ended: RunStatus,
    seen: int | None,
    report: shapes.RunEndShape,
    progress: bool = True,
) -> None:
    """Release the agent's lease, and set when it is due again."""
    agent = lookup.known_agent(ctx, run.agent_id)
    lease = ctx.tx.one(leases.LEASE, agent=run.agent_id)
    # The row again: by now it has what the run was shown, and whether it wants to go on.
    run = ctx.tx.one(statements.RUN, run=run.id) or run
    if ended is RunStatus.COMPLETED:
        tool_changes.go_on(ctx, run)
        lease = ctx.tx.one(leases.LEASE, agent=run.agent_id)
    fault = None if run.fault is None else Fault(run.fault)
    closed = account_faults.run_ended(ctx, run, agent, ended, fault)
    if lease is None or lease.epoch != run.epoch:
        # A run by hand has no lease; what it left undone is planned as after any other.
        if ended is RunStatus.COMPLETED:
            after_run.plan(ctx, run, nudges=0, progress=progress, at_once=run.goes_on and progress)
        elif ended is not RunStatus.CANCELLED:
            after_run.keep_what_failed(ctx, run)
        if ended is not RunStatus.CANCELLED:
            waking.wake(ctx, agent.id, "something is left to do")
        return
    over = _over_budget(ctx, run, report)
    too_much = _over_limit(ctx, report)
    after = _after(ctx, lease, ended, fault, run, progress, closed)
    nudges = lease.idle_runs
    if ended is RunStatus.COMPLETED or after.was_cut:
        at_once = (run.goes_on or after.was_cut) and progress
        nudges = after_run.plan(ctx, run, nudges=nudges, progress=progress, at_once=at_once)
    elif ended is not RunStatus.CANCELLED:
        after_run.keep_what_failed(ctx, run)
    again = after.again and ctx.tx.one(leases.HAS_WORK, agent=agent.id) is not None
    pause = pause_after(after.failures)
    if again and ended is RunStatus.COMPLETED and not progress and not _is_newer(lease, seen):
        # It left its mail unread; the pause keeps it from being restarted in a loop.
        pause = NUDGES[min(nudges, len(NUDGES) - 1)]
        nudges += 1
    due = ctx.now + pause
    if over is not None and again:
        due = next_month(ctx.now)
    ctx.tx.run(
        leases.RELEASE,
        agent=agent.id,
        epoch=lease.epoch,
        seen=lease.wake_seq,
        due=HELD if ended is RunStatus.CANCELLED else due,
        new_idle_runs=nudges,
        new_failures=after.failures,
        new_told=after.told,
        new_failing_since=_failing_since(ctx, lease, after),
        new_held_by=None if closed is None else closed.id,
    )
    if again:
        why = lease.why if _is_newer(lease, seen) else "something is left to do"
        ctx.tx.run(leases.WAKE_AGAIN, agent=agent.id, due=due, new_why=why)
    gives_up = bool(after.failures) and _is_for_a_person(ctx, lease, run, after.failures)
    if too_much is not None:
        limits.note(ctx, too_much)
    if over is not None:
        budgets.put_on_hold(ctx, agent, over)
    elif too_much is None:
        retried = not gives_up and not inbox.given_up_by(ctx, run.id)
        _say_what_follows(ctx, agent, run, lease, ended, after, retried=retried)
    if gives_up:
        give_up(ctx, agent)


def _failing_since(ctx: Context, lease: Lease, after: _After) -> int | None:
    if after.failures == 0:
        return None
    if after.failures > lease.failures:
        return lease.failing_since or ctx.now
    return lease.failing_since


def _is_for_a_person(ctx: Context, lease: Lease, run: Run, failures: int) -> bool:
    """Return whether an agent needs a person: no run can end well before something is mended.

    Failures far apart, with idle days between them, are not a whole day of failures.
    """
    if run.exit_reason in UNMENDABLE:
        return True
    if failures < FAILURES_TOLD:
        return False
    return lease.failing_since is not None and ctx.now - lease.failing_since >= FAILING_TOO_LONG


def give_up(ctx: Context, agent: Agent) -> None:
    """Put an agent in `error`, and plan the next check of its adapter."""
    now = lookup.known_agent(ctx, agent.id)
    lease = ctx.tx.existing(leases.LEASE, agent=agent.id)
    if now.status is AgentStatus.IDLE:
        tree.set_status(ctx, now, AgentStatus.ERROR)
    so_far = ctx.now - (lease.failing_since or ctx.now)
    pause = min(max(so_far // 2, _LOOK_AGAIN), LONGEST_BACKOFF)
    ctx.tx.run(leases.LOOK_AT, agent=agent.id, due=ctx.now + pause)


def _is_newer(lease: Lease, seen: int | None) -> bool:
    """Return whether the agent was woken again while it ran."""
    return seen is not None and lease.wake_seq > seen


def _over_budget(ctx: Context, run: Run, report: shapes.RunEndShape) -> ledger.Means | None:
    """Return the used-up budget that ended a run; None if another reason did, such as the limits of
    its own settings."""
    if report.get("exit_reason") != budgets.OVER:
        return None
    return ledger.used_up(ctx, run.agent_id)


def _over_limit(ctx: Context, report: shapes.RunEndShape) -> Reached | None:
    """Return the company's limit of money that ended a run, if one did."""
    return limits.money_reached(ctx) if report.get("exit_reason") == budgets.OVER else None


@dataclass(frozen=True)
class _After:
    """The consequences of an ended run for its agent."""

    #: Whether it is started again if something is due.
    again: bool
    failures: int
    #: Why the run failed, if it did.
    cause: str | None
    told: str | None
    #: Whether it was cut off while it made progress.
    was_cut: bool = False
    #: How many runs in a row were ended by a limit and had no effect.
    fruitless: int = 0


def _after(
    ctx: Context,
    lease: Lease,
    ended: RunStatus,
    fault: Fault | None,
    run: Run,
    progress: bool,
    closed: Account | None,
) -> _After:
    if ended is RunStatus.CANCELLED:
        # A cancelled run is not restarted until there is news.
        return _After(False, lease.failures, None, lease.told)
    if fault is None:
        # One good run among bad ones does not make the next failure worth telling again.
        return _After(True, 0, None, lease.told if lease.failures else None)
    if fault in CUT_SHORT and progress:
        # It used up what one run may take; the next continues from its notes.
        return _After(True, 0, None, lease.told, was_cut=True)
    cause = (run.error or ended.value).removesuffix(".")
    if fruitless.was_cut(run) and not progress:
        in_a_row = fruitless.in_a_row(ctx, run.agent_id)
        failures = fruitless.as_failures(in_a_row, lease.failures)
        return _After(True, failures, cause, cause, fruitless=in_a_row)
    consequence = CONSEQUENCES[fault]
    # A fault that could close an account but did not is the agent's own.
    backs_off = consequence.backs_off or (consequence.holds is not None and closed is None)
    if backs_off:
        return _After(True, lease.failures + 1, cause, cause)
    if consequence.tells is Tells.BOSS:
        return _After(True, lease.failures, cause, cause)
    return _After(True, lease.failures, None, lease.told)


def _say_what_follows(
    ctx: Context,
    agent: Agent,
    run: Run,
    before: Lease,
    ended: RunStatus,
    after: _After,
    *,
    retried: bool,
) -> None:
    """Tell the boss of an agent that fails, once for each cause, and whoever asked for the work if
    nothing comes of it. The boss has something to act on if the agent fails again and again, or
    what the run left is not tried again."""
    boss = approval_engine.boss_address(agent)
    if after.failures >= FAILURES_TOLD > before.failures:
        fruitless.tell_wishers(ctx, agent, run, boss)
    if after.fruitless:
        if after.failures >= FAILURES_TOLD > before.failures:
            fruitless.tell_boss(ctx, agent, run, after.fruitless, boss)
    elif after.failures == FAILURES_TOLD > before.failures:
        approval_engine.tell(
            ctx,
            boss,
            f"{agent.name} does not get on",
            f"{after.failures} runs in a row of {agent.name} failed, the last one with "
            f"{_in_its_words(after.cause)} It is tried again at growing intervals of up to an "
            "hour, and when something new comes.",
        )
    elif (
        after.cause is not None
        and not _is_same(after.cause, before.told)
        and not (agent.boss_id is None and ended is RunStatus.LOST)
    ):
        words = _in_its_words(after.cause)
        failed = f"A run of {agent.name} failed"
        approval_engine.tell(ctx, boss, failed, f"{failed} with {words}", to_know=retried)


def _in_its_words(cause: str | None) -> str:
    """Quote a run's own error, marked as its program's words: the program may have chosen all of
    them, and they must not read as Remit's."""
    return f"these words, which are its program's and not Remit's: {quoted(cause or '', _QUOTED)}."


def _is_same(cause: str, told: str | None) -> bool:
    """Return whether the boss was told of this cause, ignoring ids of requests and waiting
    times."""
    return told is not None and _PASSING.sub("#", cause) == _PASSING.sub("#", told)


def clean(report: Mapping[str, object]) -> shapes.RunEndShape:
    """A program's report about itself, made storable: cut, capped, valid text."""
    cleaned: dict[str, object] = {}
    for name, value in report.items():
        if isinstance(value, str):
            whole = value[:LONGEST_REPORT].replace("\0", "\ufffd")
            cleaned[name] = whole.encode(errors="replace").decode()
        elif isinstance(value, int):
            cleaned[name] = min(max(int(value), 0), MOST_COUNTED)
    return cast(shapes.RunEndShape, cleaned)
