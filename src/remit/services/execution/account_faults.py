"""Circuit breaker of accounts and set-ups; a closed one is not used. A fault of a run or background
job that others would meet, too, closes it, and the first good answer opens it. A broken set-up is
checked by its worker."""

import json
from dataclasses import dataclass, replace

from remit.adapters import registry
from remit.authority import Action
from remit.clock import Micros
from remit.errors import Conflict, NotFound
from remit.model.execution.account import (
    ASKABLE,
    PROBES,
    Account,
    AccountId,
    closed,
    is_worth_telling,
    opened,
    setup_for,
)
from remit.model.execution.fault import CONSEQUENCES, NEEDS_PROOF, UNMENDABLE, Fault, Holds
from remit.model.execution.job import Job
from remit.model.execution.run import Run, RunStatus
from remit.model.organisation.agent import Agent
from remit.model.organisation.decision import BY_REMIT
from remit.services import lookup, shapes, views
from remit.services.command import FOR_REMIT, Context, command, query
from remit.services.execution import accounts
from remit.services.execution.error_recovery import Broken
from remit.services.execution.running import entered
from remit.services.governance import approval_engine
from remit.services.messaging import inbox
from remit.store.execution import accounts as statements
from remit.store.execution import jobs, leases, runs
from remit.store.messaging import mail as mail_statements

#: Most good runs that are looked at for an agent with the same set-up.
_OTHERS = 50


def run_ended(
    ctx: Context, run: Run, agent: Agent, ended: RunStatus, fault: Fault | None
) -> Account | None:
    """Update the account and set-up of an ended run; returns the one that its fault closes, if
    any."""
    used = _Used(
        run.worker, run.account_id, run.started_at, run.exit_reason, run.error, run.fault_until
    )
    ok = ended is RunStatus.COMPLETED
    return _used(ctx, agent, used, _probed_by(ctx, run), fault, ok=ok)


def job_ended(
    ctx: Context,
    job: Job,
    fault: Fault | None,
    *,
    ok: bool,
    reason: str = "",
    error: str = "",
    until: Micros | None = None,
) -> Account | None:
    """Update the account and set-up of an ended background job, like `run_ended`."""
    assert job.worker is not None, "it was begun by somebody"
    assert job.started_at is not None
    account, _ = accounts.of(ctx, job, job.worker)
    used = _Used(job.worker, account.id, job.started_at, reason, error, until)
    probed = accounts.closed_one(ctx, job.held_by)
    return _used(ctx, job, used, probed, fault, ok=ok)


@dataclass(frozen=True)
class _Used:
    """Account, set-up and result of a run or job that has ended."""

    worker: str | None
    account_id: str | None
    started_at: Micros
    reason: str | None
    error: str | None
    until: Micros | None


def _used(
    ctx: Context,
    user: Agent | Job,
    used: _Used,
    probed: Account | None,
    fault: Fault | None,
    *,
    ok: bool,
) -> Account | None:
    if fault is not None and CONSEQUENCES[fault].holds is not None:
        return _found_closed(ctx, used, user, fault, probed)
    if probed is not None:
        if ok:
            _open(ctx, probed)
        else:
            # The failed probe says nothing about the account; another run probes it.
            pause = 0 if fault in (None, Fault.STOPPED) else _pause(probed)
            accounts.change(ctx, replace(probed, probe_run_id=None, probe_at=ctx.now + pause))
    elif ok and used.account_id is not None:
        ctx.tx.run(statements.ANSWERED, account=used.account_id)
    return None


def _probed_by(ctx: Context, run: Run) -> Account | None:
    if run.account_id is None:
        return None
    known = ctx.tx.one(statements.ACCOUNT, account=run.account_id)
    return known if known is not None and known.probe_run_id == run.id else None


def _pause(account: Account) -> int:
    return PROBES[min(max(account.failures - 1, 0), len(PROBES) - 1)]


def _found_closed(
    ctx: Context, used: _Used, user: Agent | Job, fault: Fault, probed: Account | None
) -> Account | None:
    if used.worker is None or used.reason in UNMENDABLE:
        return None  # a run by hand, or a fault of the agent's own settings
    of_account, of_setup = accounts.of(ctx, user, used.worker)
    if CONSEQUENCES[fault].holds is Holds.SETUP:
        meant, named = of_setup, of_setup.id
        if probed is not None:
            accounts.change(ctx, replace(probed, probe_run_id=None, probe_at=ctx.now))
    else:
        meant, named = of_account, AccountId(used.account_id or "")
    before = ctx.tx.one(statements.ACCOUNT, account=named)
    if before is None:
        if meant.id != named:
            return None  # the agent was given another account meanwhile
        before = meant
        ctx.tx.add(before)
    if fault in NEEDS_PROOF and not before.is_held and (before.answered_at or 0) > used.started_at:
        return None  # others were answered while this one ran
    if before.kind is Holds.SETUP and not before.is_held and _is_of_its_settings(ctx, before, user):
        return None  # its check passed, and others worked with it
    cause = (used.error or fault.value).removesuffix(".")
    # A finding counts if this was the probe, or if the account was not closed yet.
    after = closed(before, fault, used.until, cause, ctx.now, probed=probed is not None)
    if after != before:
        is_asked = fault in ASKABLE and registry.has_question(after.adapter_type)
        after = replace(after, ask_at=after.probe_at if is_asked else None)
    tell_once(ctx, before, after)
    return after


def _is_of_its_settings(ctx: Context, setup: Account, user: Agent | Job) -> bool:
    """Return whether a set-up, open when a run failed because of it, worked for another agent since
    the one before failed in the same way. Then it is the agent's settings that do not work."""
    if not isinstance(user, Agent):
        return False
    assert setup.worker is not None
    newest = ctx.tx.all(runs.NEWEST_OF_AGENT, agent=user.id, limit=2)
    if len(newest) < 2 or newest[1].fault != Fault.SETUP:
        return False
    others = ctx.tx.all(
        runs.GOOD_ON_WORKER,
        company=user.company_id,
        worker=setup.worker,
        adapter=setup.adapter_type,
        since=newest[1].id,
        limit=_OTHERS,
    )
    agents = (lookup.agent_row(ctx, agent) for agent in {run.agent_id for run in others})
    return any(
        agent is not None and accounts.of(ctx, agent, setup.worker)[1].id == setup.id
        for agent in agents
        if agent is None or agent.id != user.id
    )


def tell_once(ctx: Context, before: Account, after: Account) -> None:
    """Store an account, and tell the board of its closure if that is worth telling."""
    telling = is_worth_telling(after, ctx.now)
    if telling:
        after = replace(after, told_at=ctx.now, told_fault=after.fault)
    if after != before:
        accounts.change(ctx, after)
    if after.is_held and not before.is_held:
        ctx.record(
            "account.close",
            f"account:{after.id}",
            {
                **accounts.names(after),
                "kind": after.kind.value,
                "fault": after.fault,
                "cause": after.cause,
                "until": views.time(after.until),
            },
        )
    if telling:
        tried = (
            "its provider is asked each minute"
            if after.ask_at is not None
            else "that is tried at growing intervals"
        )
        approval_engine.tell(
            ctx,
            "board",
            f"{after.title} cannot be used: {after.fault}",
            f"{accounts.sentence(after)} Nobody who needs it is started until it works again; "
            f"{tried}, and whoever waits goes on by itself. "
            f"{accounts.step(after)}",
            about=f"account:{after.id}",
        )


def _open(ctx: Context, account: Account, *, proved: bool = True) -> None:
    """Open an account or set-up again: agents and jobs that waited for it may start."""
    accounts.change(ctx, opened(account, ctx.now, proved=proved))
    ctx.tx.run(leases.STOP_WAITING_FOR, account=account.id)
    ctx.tx.run(jobs.STOP_WAITING_FOR, account=account.id)
    if account.is_held:
        ctx.record(
            "account.open",
            f"account:{account.id}",
            {
                **accounts.names(account),
                "kind": account.kind.value,
                "fault": account.fault,
            },
        )
    if account.told_at is not None and account.is_held:
        _take_letters_back(ctx, account, proved=proved)


def _take_letters_back(ctx: Context, account: Account, *, proved: bool) -> None:
    """Take the unread letters about a closed account back; if it is proved to work, and somebody
    has read one, say so."""
    about = f"account:{account.id}"
    was_read = ctx.tx.one(mail_statements.WAS_READ_ABOUT, about=about, since=account.told_at)
    inbox.settle_about(ctx, about, "it works again")
    if was_read and proved:
        sentence = f"{account.title} works again; whoever waited for it goes on."
        approval_engine.tell(ctx, "board", f"{account.title} works again", sentence)


@command("accounts.answered", FOR_REMIT)
def answered(ctx: Context, *, run: str) -> shapes.AccountStateShape:
    """Open an account because its provider answered the probing run; for its worker."""
    probing = entered(ctx, run)
    ctx.require(Action.RUN_CHANGE, on=f"run:{run}", home=probing.agent_id)
    account = _probed_by(ctx, probing)
    if probing.status is not RunStatus.RUNNING or account is None or not account.is_held:
        raise Conflict("The account is open already, or another run tries it.")
    _open(ctx, account)
    return {"id": account.id, "state": "open"}


@query("accounts.to_check", FOR_REMIT)
def to_check(ctx: Context, *, worker: str) -> list[Broken]:
    """Return the broken set-ups that a worker should check now, each with a configuration that uses
    it."""
    return [
        Broken(setup.id, setup.adapter_type, _example(ctx, setup))
        for setup in ctx.tx.all(statements.TO_CHECK, worker=worker, limit=accounts.MOST)
    ]


def _example(ctx: Context, setup: Account) -> dict[str, object] | None:
    """A configuration that depends on the set-up; None if no agent or job does any more."""
    assert setup.worker is not None
    for text in ctx.tx.all(
        statements.WITH_ADAPTER,
        company=setup.company_id,
        adapter=setup.adapter_type,
        limit=accounts.MOST,
    ):
        config: dict[str, object] = json.loads(text)
        candidate = setup_for(setup.company_id, setup.adapter_type, config, setup.worker, ctx.now)
        if candidate.id == setup.id:
            return config
    return None


@command("accounts.checked", FOR_REMIT)
def checked(
    ctx: Context, *, account: str, usable: bool, cause: str = ""
) -> shapes.AccountStateShape:
    """Report of a worker's check of a broken set-up."""
    setup = ctx.tx.one(statements.ACCOUNT, account=AccountId(account))
    if setup is None:
        raise NotFound("There is no such account.")
    ctx.enter(setup.company_id)
    ctx.allow_by_rule(BY_REMIT)
    setup = ctx.tx.existing(statements.ACCOUNT, account=AccountId(account))
    if not setup.is_held or setup.kind is not Holds.SETUP:
        raise Conflict("It is no broken set-up any more.")
    if usable:
        _open(ctx, setup, proved=False)
        return {"id": setup.id, "state": "open"}
    after = closed(setup, Fault.SETUP, None, cause or setup.cause or "", ctx.now, probed=True)
    tell_once(ctx, setup, after)
    ctx.record(
        "account.check",
        f"account:{setup.id}",
        {**accounts.names(after), "usable": False, "cause": after.cause},
    )
    return {"id": setup.id, "state": after.state.value}
