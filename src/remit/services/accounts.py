"""Accounts and set-ups: what several agents depend on, and what is closed for all of them by the
fault of one run.

While one is closed nobody who depends on it is started, but one run at a time that finds out
whether an account works again; a set-up is looked at by its worker. Who waits is kept apart from
those who are ready, so that looking for these costs nothing for those. The first good answer opens
an account; then agents are started in growing numbers, all of them after ten seconds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from remit.adapters import registry
from remit.authority import Action
from remit.clock import Micros, to_iso
from remit.errors import Conflict, NotFound
from remit.ids import JobId
from remit.model.account import (
    PROBES,
    Account,
    AccountId,
    account_for,
    closed,
    is_worth_telling,
    may_start,
    opened,
    ramping,
    setup_for,
)
from remit.model.agent import Agent
from remit.model.decision import Decision, Effect
from remit.model.fault import CONSEQUENCES, NEEDS_PROOF, UNMENDABLE, Fault, Holds
from remit.model.job import Job, JobStatus
from remit.model.principal import ActorKind
from remit.model.run import Run, RunStatus
from remit.model.turn import quoted
from remit.services import approval_engine, lookup, views
from remit.services.command import Answer, Context, command, logged, query
from remit.services.permissions import HIRING, hiring_facts
from remit.services.running import entered, system_only
from remit.store import accounts as statements
from remit.store import jobs, leases
from remit.store.statement import row

#: Why a claim is refused: what the agent depends on is closed, or has opened just now.
HELD = "held"
OPENING = "opening"
MOST = 1000
#: So much of what a program or a provider said of it is told to others, in quotes.
_QUOTED = 500
#: So many of those who wait for a set-up of another worker are tried on this one at a time.
MOST_ELSEWHERE = 20
_SYSTEM = Decision(Effect.ALLOW, "system", "Remit does this by itself.", "rule:system")
_CHANGING = (
    "state",
    "fault",
    "cause",
    "since",
    "until",
    "probe_at",
    "probe_run_id",
    "failures",
    "opened_at",
    "started",
    "answered_at",
    "told_at",
    "told_fault",
)


# ── at the beginning of a run ───────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Admission:
    """What a run that is about to begin depends on."""

    account: Account
    #: Whether it finds out if the account works again.
    probe: bool
    #: What opened just now, so that those who are started are counted.
    opening: tuple[AccountId, ...]


def admit(ctx: Context, user: Agent | Job, worker: str) -> Admission:
    """What an agent or a background job depends on, if that lets it be started; a Conflict
    otherwise."""
    account, setup = _of(ctx, user, worker)
    known = [ctx.tx.one(statements.ACCOUNT, account=one.id) for one in (account, setup)]
    probe = False
    opening = []
    for one in known:
        if one is None:
            continue
        if one.is_held:
            probe = one.kind is Holds.ACCOUNT and _is_to_be_probed(ctx, one)
            # A job finds out only if no agent is there to do it.
            if not probe or (isinstance(user, Job) and _has_agent_to_probe(ctx, one)):
                raise Conflict(sentence(one), step(one), code=HELD)
        elif not may_start(one, ctx.now):
            raise Conflict(
                f"{one.name} works again since {views.time(one.opened_at)}; agents are started one "
                "after the other.",
                code=OPENING,
            )
        elif ramping(one, ctx.now):
            opening.append(one.id)
    if known[0] is None and _is_shown(user):
        ctx.tx.run(statements.INSERT_ACCOUNT, **row(account))
    return Admission(account, probe, tuple(opening))


def begun(ctx: Context, admission: Admission, run: str) -> None:
    """A run began that was admitted."""
    count(ctx, admission)
    if admission.probe and not ctx.tx.run(
        statements.PROBE, account=admission.account.id, run=run, now=ctx.now
    ):
        raise Conflict(sentence(admission.account), step(admission.account), code=HELD)


def count(ctx: Context, admission: Admission) -> None:
    """One more was started on what opened just now."""
    for account in admission.opening:
        ctx.tx.run(statements.START, account=account)


def _of(ctx: Context, user: Agent | Job, worker: str) -> tuple[Account, Account]:
    config = json.loads(user.adapter_config)
    return (
        account_for(user.company_id, user.adapter_type, config, ctx.now),
        setup_for(user.company_id, user.adapter_type, config, worker, ctx.now),
    )


def closed_for(ctx: Context, user: Agent | Job, worker: str) -> Account | None:
    """What keeps an agent or a job from being started by a worker, if anything does."""
    for one in reversed(_of(ctx, user, worker)):
        known = ctx.tx.one(statements.ACCOUNT, account=one.id)
        if known is not None and known.is_held:
            return known
    return None


def _has_agent_to_probe(ctx: Context, account: Account) -> bool:
    return bool(ctx.tx.all(leases.FIRST_HELD_BY, account=account.id, now=ctx.now, limit=1))


def _is_to_be_probed(ctx: Context, account: Account) -> bool:
    found = ctx.tx.one(statements.IS_TO_BE_PROBED, account=account.id, now=ctx.now)
    return found is not None


def _is_shown(user: Agent | Job) -> bool:
    """Whether it talks to a provider, so that its account is worth a row before anything fails."""
    known = user.adapter_type in registry.types()
    return known and bool(registry.get(user.adapter_type).lends)


def candidates(ctx: Context, worker: str) -> list[leases.Ready]:
    """Who of those that wait can be started after all: one for each account that is to be tried,
    and those whose set-up is broken on another worker."""
    found: list[leases.Ready] = []
    for account in ctx.tx.all(statements.TO_PROBE, now=ctx.now, limit=MOST):
        found += ctx.tx.all(leases.FIRST_HELD_BY, account=account.id, now=ctx.now, limit=1)
    for setup in ctx.tx.all(statements.BROKEN_ELSEWHERE, worker=worker, limit=MOST):
        found += ctx.tx.all(
            leases.FIRST_HELD_BY, account=setup.id, now=ctx.now, limit=MOST_ELSEWHERE
        )
    return found


def job_candidates(ctx: Context, worker: str) -> list[JobId]:
    """The same of the background jobs that wait."""
    found: list[Job] = []
    for account in ctx.tx.all(statements.TO_PROBE, now=ctx.now, limit=MOST):
        if not _has_agent_to_probe(ctx, account):
            found += ctx.tx.all(jobs.HELD_BY, account=account.id, limit=1)
    for setup in ctx.tx.all(statements.BROKEN_ELSEWHERE, worker=worker, limit=MOST):
        found += ctx.tx.all(jobs.HELD_BY, account=setup.id, limit=MOST_ELSEWHERE)
    return [job.id for job in found]


@logged("accounts.wait")
def wait(ctx: Context, *, agent: str, worker: str) -> None:
    """Let an agent wait for what it depends on, if that is closed; for its worker."""
    system_only(ctx)
    found = lookup.agent_anywhere(ctx, agent)
    ctx.take_turn()  # what opens it takes a turn, too
    if (closed_now := closed_for(ctx, found, worker)) is not None:
        ctx.tx.run(leases.WAIT_FOR, agent=found.id, now=ctx.now, account=closed_now.id)


# ── at the end of a run ─────────────────────────────────────────────────────────────────────────


def run_ended(
    ctx: Context, run: Run, agent: Agent, ended: RunStatus, fault: Fault | None
) -> Account | None:
    """What a run says about what it depended on; answers what is closed by its fault."""
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
    """The same for a background job."""
    assert job.worker is not None, "it was begun by somebody"
    assert job.started_at is not None
    account, _ = _of(ctx, job, job.worker)
    used = _Used(job.worker, account.id, job.started_at, reason, error, until)
    probed = ctx.tx.one(statements.ACCOUNT, account=AccountId(job.held_by or ""))
    if probed is not None and not probed.is_held:
        probed = None
    return _used(ctx, job, used, probed, fault, ok=ok)


@dataclass(frozen=True)
class _Used:
    """What a run or a job that is over made use of, and what it says about that."""

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
            # It says nothing about the account; another one tries.
            pause = 0 if fault in (None, Fault.STOPPED) else _pause(probed)
            _change(ctx, replace(probed, probe_run_id=None, probe_at=ctx.now + pause))
    elif ok and used.account_id is not None:
        ctx.tx.run(statements.ANSWERED, account=used.account_id, now=ctx.now)
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
        return None  # it was begun by hand, or only its own settings are to blame
    of_account, of_setup = _of(ctx, user, used.worker)
    if CONSEQUENCES[fault].holds is Holds.SETUP:
        meant, named = of_setup, of_setup.id
        if probed is not None:
            _change(ctx, replace(probed, probe_run_id=None, probe_at=ctx.now))
    else:
        meant, named = of_account, AccountId(used.account_id or "")
    before = ctx.tx.one(statements.ACCOUNT, account=named)
    if before is None:
        if meant.id != named:
            return None  # the agent was given another one meanwhile
        before = meant
        ctx.tx.run(statements.INSERT_ACCOUNT, **row(before))
    if fault in NEEDS_PROOF and not before.is_held and (before.answered_at or 0) > used.started_at:
        return None  # others were answered while it ran
    cause = (used.error or fault.value).removesuffix(".")
    # What it found out about the account counts if it was to find out, or if nobody knew.
    after = closed(before, fault, used.until, cause, ctx.now, probed=probed is not None)
    _tell_once(ctx, before, after)
    return after


def _tell_once(ctx: Context, before: Account, after: Account) -> None:
    telling = is_worth_telling(after, ctx.now)
    if telling:
        after = replace(after, told_at=ctx.now, told_fault=after.fault)
    if after != before:
        _change(ctx, after)
    if after.is_held and not before.is_held:
        ctx.record(
            "account.close",
            f"account:{after.id}",
            {
                "name": after.name,
                "kind": after.kind.value,
                "fault": after.fault,
                "cause": after.cause,
                "until": views.time(after.until),
            },
        )
    if telling:
        approval_engine.tell(
            ctx,
            "board",
            f"{after.name} cannot be used: {after.fault}",
            f"{sentence(after)} Nobody who needs it is started until it works again; that is tried "
            f"at growing intervals, and whoever waits goes on by itself. {step(after)}",
        )


def _change(ctx: Context, account: Account) -> None:
    stored = row(account)
    ctx.tx.run(
        statements.CHANGE,
        account=account.id,
        **{f"new_{name}": stored[name] for name in _CHANGING},
    )


def _open(ctx: Context, account: Account, *, proved: bool = True) -> None:
    """It works again: whoever waited for it can be started."""
    _change(ctx, opened(account, ctx.now, proved=proved))
    ctx.tx.run(leases.STOP_WAITING_FOR, account=account.id)
    ctx.tx.run(jobs.STOP_WAITING_FOR, account=account.id)
    if account.is_held:
        ctx.record(
            "account.open",
            f"account:{account.id}",
            {"name": account.name, "kind": account.kind.value, "fault": account.fault},
        )


@command("accounts.answered")
def answered(ctx: Context, *, run: str) -> Answer:
    """The provider answered a run that was to find out whether it does; for its worker."""
    system_only(ctx)
    found = entered(ctx, run)
    ctx.require(Action.RUN_CHANGE, on=f"run:{run}", home=found.agent_id)
    account = _probed_by(ctx, found)
    if found.status is not RunStatus.RUNNING or account is None or not account.is_held:
        raise Conflict("The account is open already, or another run tries it.")
    _open(ctx, account)
    return {"id": account.id, "state": "open"}


# ── set-ups, looked at by their workers ─────────────────────────────────────────────────────────


@query("accounts.to_check")
def to_check(ctx: Context, *, worker: str) -> list[dict[str, Any]]:
    """The broken set-ups that a worker is to look at now, each with a configuration that uses it;
    for that worker."""
    system_only(ctx)
    return [
        {"id": one.id, "adapter_type": one.adapter_type, "config": _example(ctx, one)}
        for one in ctx.tx.all(statements.TO_CHECK, worker=worker, now=ctx.now, limit=MOST)
    ]


def _example(ctx: Context, setup: Account) -> dict[str, Any] | None:
    """How somebody who depends on it is configured; None when nobody does any more."""
    assert setup.worker is not None
    for text in ctx.tx.all(
        statements.WITH_ADAPTER, company=setup.company_id, adapter=setup.adapter_type, limit=MOST
    ):
        config: dict[str, Any] = json.loads(text)
        made = setup_for(setup.company_id, setup.adapter_type, config, setup.worker, ctx.now)
        if made.id == setup.id:
            return config
    return None


@command("accounts.checked")
def checked(ctx: Context, *, account: str, usable: bool, cause: str = "") -> Answer:
    """What a worker found when it looked at a broken set-up; for that worker."""
    system_only(ctx)
    found = ctx.tx.one(statements.ACCOUNT, account=AccountId(account))
    if found is None:
        raise NotFound("There is no such account.")
    ctx.enter(found.company_id)
    ctx.accept_rule(_SYSTEM)
    found = ctx.tx.one(statements.ACCOUNT, account=AccountId(account))
    assert found is not None
    if not found.is_held or found.kind is not Holds.SETUP:
        raise Conflict("It is no broken set-up any more.")
    if usable:
        _open(ctx, found, proved=False)
        return {"id": found.id, "state": "open"}
    after = closed(found, Fault.SETUP, None, cause or found.cause or "", ctx.now, probed=True)
    _tell_once(ctx, found, after)
    ctx.record("account.check", f"account:{found.id}", {"usable": False, "cause": after.cause})
    return {"id": found.id, "state": after.state.value}


# ── for people ──────────────────────────────────────────────────────────────────────────────────


@query("accounts.listing")
def listing(ctx: Context, *, company: str | None = None) -> list[dict[str, Any]]:
    """The accounts and set-ups of a company, and which of them are closed."""
    _look(ctx, company)
    return [
        view(ctx, one) for one in ctx.tx.all(statements.ACCOUNTS, company=ctx.company, limit=MOST)
    ]


@query("accounts.show")
def show(ctx: Context, *, account: str, company: str | None = None) -> dict[str, Any]:
    """One of them, by its name or the beginning of its id."""
    _look(ctx, company)
    return view(ctx, _named(ctx, account))


@command("accounts.retry")
def retry(ctx: Context, *, account: str, company: str | None = None) -> Answer:
    """Try a closed account or set-up at once, because somebody saw to it."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.CONFIG_CHANGE, on="accounts")
    found = _named(ctx, account)
    if not found.is_held:
        raise Conflict(f"{found.name} is open.", "There is nothing to try.")
    after = replace(found, probe_at=ctx.now)
    _change(ctx, after)
    ctx.record("account.retry", f"account:{found.id}", {"name": found.name})
    return view(ctx, after)


def try_secret(ctx: Context, name: str) -> None:
    """A secret was set anew: whatever uses it is tried at once."""
    ctx.tx.run(
        statements.TRY_CREDENTIAL, company=ctx.company, credential=f"secret:{name}", now=ctx.now
    )


def _look(ctx: Context, company: str | None) -> None:
    """An account names addresses, so that agents see it if they see configurations."""
    lookup.company_of_caller(ctx, company)
    if ctx.actor.kind is ActorKind.AGENT:
        ctx.require(Action.CONFIG_READ, HIRING, on="accounts", **hiring_facts(ctx))
    else:
        ctx.require(Action.COMPANY_READ, on="accounts")


def _named(ctx: Context, text: str) -> Account:
    """By its name, or the beginning of its id; not-found text is the same for all that is not."""
    known = ctx.tx.all(statements.ACCOUNTS, company=ctx.company, limit=MOST)
    found = [one for one in known if one.name == text] or [
        one for one in known if len(text) >= 4 and one.id.startswith(text)
    ]
    if not found:
        raise NotFound("There is no such account.", "`remit account list` names them.")
    if len(found) > 1:
        raise Conflict("Several match.", "Give more of its id.")
    return found[0]


def view(ctx: Context, account: Account) -> dict[str, Any]:
    return {
        "id": account.id,
        "company_id": account.company_id,
        "kind": account.kind.value,
        "name": account.name,
        "adapter_type": account.adapter_type,
        "endpoint": account.endpoint or None,
        "credential": account.credential or None,
        "worker": account.worker,
        "state": account.state.value,
        "fault": account.fault,
        "cause": account.cause,
        "since": views.time(account.since),
        "until": views.time(account.until),
        "tried_at": views.time(account.probe_at),
        "tried_by_run": account.probe_run_id,
        "failures": account.failures,
        "waiting": ctx.tx.one(leases.COUNT_HELD_BY, account=account.id) or 0,
        "jobs_waiting": ctx.tx.one(jobs.COUNT_HELD_BY, account=account.id) or 0,
        "sentence": sentence(account) if account.is_held else f"{account.name} is open.",
        "step": step(account) if account.is_held else None,
    }


def held(ctx: Context) -> list[Account]:
    """What is closed in a company, the oldest first."""
    return ctx.tx.all(statements.HELD_IN, company=ctx.company, limit=MOST)


def holding(ctx: Context, agent: Agent, held_by: str | None) -> Account | None:
    """What keeps an agent from being started: what it was found to wait for, or will be."""
    config = json.loads(agent.adapter_config)
    account = account_for(agent.company_id, agent.adapter_type, config, ctx.now)
    for one in (held_by, account.id):
        known = ctx.tx.one(statements.ACCOUNT, account=AccountId(one)) if one else None
        if known is not None and known.is_held:
            return known
    return None


def holding_job(ctx: Context, job: Job) -> Account | None:
    """What a background job waits for, if that is closed."""
    if job.status is not JobStatus.QUEUED or job.held_by is None:
        return None
    known = ctx.tx.one(statements.ACCOUNT, account=AccountId(job.held_by))
    return known if known is not None and known.is_held else None


def sentence(account: Account) -> str:
    """What is closed, since when, why, and when it is tried again."""
    said = (account.cause or "").rstrip(".")
    cause = f": {quoted(said, _QUOTED)}" if said else ""
    what = "The set-up" if account.kind is Holds.SETUP else "The account"
    until = f" until {_moment(account.until)}" if account.until else ""
    again = (
        "" if account.probe_at is None else f" It is tried again at {_moment(account.probe_at)}."
    )
    since = _moment(account.since or account.created_at)
    return (
        f"{what} {account.name} is {account.state.value} since {since}{until} "
        f"({account.fault}{cause}).{again}"
    )


def _moment(at: Micros) -> str:
    """A time for people, who do not look at less than seconds."""
    return f"{to_iso(at)[:19]}Z"


def step(account: Account) -> str:
    """What a person can do about it."""
    again = f"then `{command_for(account)}`"
    match account.fault:
        case Fault.SETUP:
            test = f"remit adapter test {account.adapter_type}"
            return f"`{test}` says what is missing; mend it, {again}."
        case Fault.AUTH:
            kind, _, name = account.credential.partition(":")
            if kind == "secret":
                return f"`remit secret set {name}` gives it another key, {again}."
            return f"Give {account.adapter_type} a key that is accepted, {again}."
        case Fault.BILLING:
            return f"See to what the provider wants to be paid, {again}."
        case _:
            return f"`{command_for(account)}` tries it at once."


def command_for(account: Account) -> str:
    return f"remit account retry {account.name}"
