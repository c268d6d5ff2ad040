"""Admission: whether the account and set-up of an agent or a background job let it start.

Agents that wait for a closed account are left out of the query of ready ones, so they cost it
nothing. One run at a time probes a closed account; once it works again, agents are started in
growing numbers, all of them after ten seconds.
"""

import json
from dataclasses import dataclass

from remit.adapters import registry
from remit.errors import Conflict
from remit.ids import JobId
from remit.model.execution.account import (
    Account,
    AccountId,
    account_for,
    may_start,
    ramping,
    setup_for,
)
from remit.model.execution.fault import Holds
from remit.model.execution.job import Job, JobStatus
from remit.model.organisation.agent import Agent
from remit.services import lookup, views
from remit.services.command import FOR_REMIT, Context, logged
from remit.services.execution import accounts
from remit.store.execution import accounts as statements
from remit.store.execution import jobs, leases

#: Why a claim is refused: the account or set-up is closed, or was opened just now.
HELD = "held"
OPENING = "opening"
#: How many agents that wait for the broken set-up of another worker are tried on this one at once.
MOST_ELSEWHERE = 20


@dataclass(frozen=True)
class Admission:
    """The account of a run that may begin."""

    account: Account
    #: Whether the run probes a closed account.
    probe: bool
    #: Accounts that were opened just now, whose starts are counted.
    opening: tuple[AccountId, ...]


def admit(ctx: Context, user: Agent | Job, worker: str) -> Admission:
    """Admit an agent or a background job if its account and set-up let it start; raises Conflict if
    not."""
    account, setup = of(ctx, user, worker)
    known = [ctx.tx.one(statements.ACCOUNT, account=need.id) for need in (account, setup)]
    probe = False
    opening = []
    for row in known:
        if row is None:
            continue
        if row.is_held:
            probe = row.kind is Holds.ACCOUNT and _is_to_be_probed(ctx, row)
            # A job probes only if no agent waits that could.
            if not probe or (isinstance(user, Job) and _has_agent_to_probe(ctx, row)):
                raise Conflict(accounts.sentence(row), accounts.step(row), code=HELD)
        elif not may_start(row, ctx.now):
            raise Conflict(
                f"{row.name} works again since {views.moment(row.opened_at or ctx.now)}; "
                "agents are started one after the other.",
                code=OPENING,
            )
        elif ramping(row, ctx.now):
            opening.append(row.id)
    if known[0] is None and _is_shown(user):
        ctx.tx.add(account)
    return Admission(account, probe, tuple(opening))


def begun(ctx: Context, admitted: Admission, run: str) -> None:
    """Count a run that was admitted, and note it as the probe if it is one."""
    count(ctx, admitted)
    if admitted.probe and not ctx.tx.run(statements.PROBE, account=admitted.account.id, run=run):
        raise Conflict(
            accounts.sentence(admitted.account), accounts.step(admitted.account), code=HELD
        )


def count(ctx: Context, admitted: Admission) -> None:
    """Count one more start on the accounts that were opened just now."""
    for account in admitted.opening:
        ctx.tx.run(statements.START, account=account)


def of(ctx: Context, user: Agent | Job, worker: str) -> tuple[Account, Account]:
    config = json.loads(user.adapter_config)
    return (
        account_for(user.company_id, user.adapter_type, config, ctx.now),
        setup_for(user.company_id, user.adapter_type, config, worker, ctx.now),
    )


def closed_for(ctx: Context, user: Agent | Job, worker: str) -> Account | None:
    """Return the closed account or set-up that keeps an agent or a job from being started by a
    worker, if any; the set-up first."""
    for account in reversed(of(ctx, user, worker)):
        known = ctx.tx.one(statements.ACCOUNT, account=account.id)
        if known is not None and known.is_held:
            return known
    return None


def holding(ctx: Context, agent: Agent, held_by: str | None) -> Account | None:
    """The closed account or set-up that keeps an agent from being started."""
    config = json.loads(agent.adapter_config)
    account = account_for(agent.company_id, agent.adapter_type, config, ctx.now)
    for account_id in (held_by, account.id):
        known = (
            ctx.tx.one(statements.ACCOUNT, account=AccountId(account_id)) if account_id else None
        )
        if known is not None and known.is_held:
            return known
    return None


def holding_job(ctx: Context, job: Job) -> Account | None:
    """The closed account or set-up that a background job waits for."""
    if job.status is not JobStatus.QUEUED or job.held_by is None:
        return None
    known = ctx.tx.one(statements.ACCOUNT, account=AccountId(job.held_by))
    return known if known is not None and known.is_held else None


def candidates(ctx: Context, worker: str) -> list[leases.Ready]:
    """Return the waiting agents that may start after all: one as a probe for each account that is
    due for one, and those whose set-up is broken on another worker only."""
    agents: list[leases.Ready] = []
    for account in ctx.tx.all(statements.TO_PROBE, limit=accounts.MOST):
        agents += ctx.tx.all(leases.FIRST_HELD_BY, account=account.id, limit=1)
    for setup in ctx.tx.all(statements.BROKEN_ELSEWHERE, worker=worker, limit=accounts.MOST):
        agents += ctx.tx.all(leases.FIRST_HELD_BY, account=setup.id, limit=MOST_ELSEWHERE)
    return agents


def job_candidates(ctx: Context, worker: str) -> list[JobId]:
    """Return the waiting background jobs that may start after all, like `candidates`."""
    waiting_jobs: list[Job] = []
    for account in ctx.tx.all(statements.TO_PROBE, limit=accounts.MOST):
        if not _has_agent_to_probe(ctx, account):
            waiting_jobs += ctx.tx.all(jobs.HELD_BY, account=account.id, limit=1)
    for setup in ctx.tx.all(statements.BROKEN_ELSEWHERE, worker=worker, limit=accounts.MOST):
        waiting_jobs += ctx.tx.all(jobs.HELD_BY, account=setup.id, limit=MOST_ELSEWHERE)
    return [job.id for job in waiting_jobs]


def _has_agent_to_probe(ctx: Context, account: Account) -> bool:
    return bool(ctx.tx.all(leases.FIRST_HELD_BY, account=account.id, limit=1))


def _is_to_be_probed(ctx: Context, account: Account) -> bool:
    return ctx.tx.one(statements.IS_TO_BE_PROBED, account=account.id) is not None


def _is_shown(user: Agent | Job) -> bool:
    """Return whether an agent or job uses a provider: its account gets a row before any fault."""
    known = user.adapter_type in registry.types()
    return known and bool(registry.get(user.adapter_type).lends)


@logged("accounts.wait", FOR_REMIT)
def wait(ctx: Context, *, agent: str, worker: str) -> None:
    """Mark an agent as waiting for its closed account or set-up; for its worker."""
    agent_row = lookup.agent_anywhere(ctx, agent)
    ctx.lock_company()  # opening the account takes this lock, too
    if (closed_now := closed_for(ctx, agent_row, worker)) is not None:
        ctx.tx.run(leases.WAIT_FOR, agent=agent_row.id, account=closed_now.id)
