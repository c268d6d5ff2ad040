"""Accounts and set-ups, which several agents depend on, and whether they let an agent start.

A fault of one run closes an account or set-up for all that depend on it (`account_faults`). While
it is closed none of them is started, except one run at a time as a probe. Waiting agents are left
out of the query of ready ones, so they cost it nothing. Once it works again, agents are started in
growing numbers, all of them after ten seconds.
"""

import json
import shlex
from dataclasses import dataclass, replace
from typing import Annotated

from remit.adapters import registry
from remit.authority import Action
from remit.clock import moment
from remit.errors import Conflict, NotFound
from remit.ids import JobId, several
from remit.model.execution.account import (
    Account,
    AccountId,
    account_for,
    may_start,
    ramping,
    setup_for,
)
from remit.model.execution.fault import Fault, Holds
from remit.model.execution.job import Job, JobStatus
from remit.model.messaging.turn import quoted
from remit.model.organisation.agent import Agent
from remit.model.organisation.principal import ActorKind
from remit.services import lookup, shapes, views
from remit.services.command import FOR_REMIT, Context, command, logged, query
from remit.services.fields import CompanyRef, Reference
from remit.services.organisation.permissions import HIRING
from remit.services.surfaces import AsCommand, AsRoute
from remit.store.engine.statement import row
from remit.store.execution import accounts as statements
from remit.store.execution import jobs, leases

MOST = 1000
#: How many agents that wait for the broken set-up of another worker are tried on this one at once.
MOST_ELSEWHERE = 20
#: Why a claim is refused: the account or set-up is closed, or was opened just now.
HELD = "held"
OPENING = "opening"
#: Longest quotation of a program's or provider's message about it, in characters.
_QUOTED = 500


def change(ctx: Context, account: Account) -> None:
    """Store the changed fields of an account."""
    stored = row(account)
    new = {f"new_{name}": stored[name] for name in statements.CHANGING}
    ctx.tx.run(statements.CHANGE, account=account.id, **new)


# ── for people ──────────────────────────────────────────────────────────────────────────────────


@query(
    "accounts.listing",
    AsRoute("GET /companies/{companyId}/accounts", "list_accounts", page="id"),
    AsCommand("account list", "List accounts and set-ups, and say which are closed."),
)
def listing(ctx: Context, *, company: CompanyRef | None = None) -> list[shapes.AccountShape]:
    """Accounts of providers and set-ups of workers: `open`, `closed` until a time, or `failing`;
    with the cause, when it is tried next, and how many agents wait."""
    _require_look(ctx, company)
    return [view(ctx, account) for account in ctx.tx.all(statements.ACCOUNTS, limit=MOST)]


@command(
    "accounts.retry",
    AsRoute("POST /companies/{companyId}/accounts/{id}/retry", "retry_account"),
    AsCommand("account retry", said="{name} is tried now.", spelled={"account": "name"}),
)
def retry(
    ctx: Context,
    *,
    account: Annotated[str, Reference("account")],
    company: CompanyRef | None = None,
) -> shapes.AccountShape:
    """Try a closed account or set-up at once, after its cause is fixed."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.CONFIG_CHANGE, on="accounts")
    account_row = _named(ctx, account)
    if not account_row.is_held:
        raise Conflict(f"{account_row.title} is open.", "There is nothing to try.")
    after = replace(account_row, probe_at=ctx.now, ask_at=None)
    change(ctx, after)
    ctx.record("account.retry", f"account:{account_row.id}", names(account_row))
    return view(ctx, after)


def try_secret(ctx: Context, name: str) -> None:
    """Probe at once every account that uses this secret, which was set anew."""
    ctx.tx.run(statements.TRY_CREDENTIAL, credential=f"secret:{name}")


def _require_look(ctx: Context, company: str | None) -> None:
    """Check that the caller may see accounts: agents only if they may read configurations, because
    an account shows addresses."""
    lookup.company_of_caller(ctx, company)
    if ctx.actor.kind is ActorKind.AGENT:
        ctx.require(Action.CONFIG_READ, HIRING, on="accounts")
    else:
        ctx.require(Action.COMPANY_READ, on="accounts")


def _named(ctx: Context, text: str) -> Account:
    """Find an account by its name or the beginning of its id; one not-found text for every miss."""
    known = ctx.tx.all(statements.ACCOUNTS, limit=MOST)
    matches = [account for account in known if account.name == text] or [
        account for account in known if len(text) >= 4 and account.id.startswith(text)
    ]
    if not matches:
        raise NotFound("There is no such account.", "`remit account list` names them.")
    if len(matches) > 1:
        ids = [f"{account.id} ({account.endpoint or account.credential})" for account in matches]
        raise several(f"Several match {text[:100]!r}", ids)
    return matches[0]


def view(ctx: Context, account: Account) -> shapes.AccountShape:
    return {
        **_view(account),
        "waiting": ctx.tx.one(leases.COUNT_HELD_BY, account=account.id) or 0,
        "jobs_waiting": ctx.tx.one(jobs.COUNT_HELD_BY, account=account.id) or 0,
    }


_view = views.view_of(
    Account,
    shapes.AccountShape,
    endpoint=lambda it: it.endpoint or None,
    credential=lambda it: it.credential or None,
    tried_at="probe_at",
    tried_by_run="probe_run_id",
    waiting=lambda _: 0,
    jobs_waiting=lambda _: 0,
    sentence=lambda it: sentence(it) if it.is_held else f"{it.title} is open.",
    step=lambda it: step(it) if it.is_held else None,
)


def held(ctx: Context) -> list[Account]:
    """The closed accounts and set-ups of a company, the oldest first."""
    return ctx.tx.all(statements.HELD_IN, limit=MOST)


def sentence(account: Account) -> str:
    """A sentence about a closed account: since when, why, and when it is tried again."""
    reason = (account.cause or "").rstrip(".")
    cause = f": {quoted(reason, _QUOTED)}" if reason else ""
    until = f" until {moment(account.until)}" if account.until else ""
    again = "" if account.probe_at is None else f" It is tried again at {moment(account.probe_at)}."
    since = moment(account.since or account.created_at)
    if account.kind is Holds.SETUP:
        return f"{account.title} has not worked since {since}{cause}.{again}"
    return (
        f"The account {account.name} is {account.state.value} since {since}{until} "
        f"({account.fault}{cause}).{again}"
    )


def names(account: Account) -> dict[str, object]:
    """Return the names of an account for the details of its events."""
    return {"name": account.name, "title": account.title}


def step(account: Account, agent: Agent | None = None) -> str:
    """The next step for a person about a closed account, on which an agent waits."""
    again = f"then `{command_for(account)}`"
    match account.fault:
        case Fault.SETUP:
            test = f"remit adapter test {_tested(account, agent)}"
            return f"`{test}` says what is missing; fix it, {again}."
        case Fault.AUTH:
            kind, _, name = account.credential.partition(":")
            if kind == "secret":
                return f"`remit secret set {name}` gives it another key, {again}."
            return f"Give {account.adapter_type} a key that is accepted, {again}."
        case Fault.BILLING:
            return f"See to what the provider wants to be paid, {again}."
        case _:
            return f"`{command_for(account)}` tries it at once."


def _tested(account: Account, agent: Agent | None) -> str:
    """Arguments that test a set-up with its own program, not with the adapter's default."""
    if agent is not None:
        return f"--agent {agent.name}"
    if not account.endpoint or "#" in account.endpoint:  # with a digest of its arguments
        return account.adapter_type
    config = json.dumps({"command": account.endpoint}, ensure_ascii=False)
    return f"{account.adapter_type} --config {shlex.quote(config)}"


def command_for(account: Account) -> str:
    """The command that tries a closed account at once."""
    return f"remit account retry {shlex.quote(account.name)}"


# ── admission ───────────────────────────────────────────────────────────────────────────────────


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
    for need in filter(None, known):
        if need.is_held:
            probe = need.kind is Holds.ACCOUNT and _is_to_be_probed(ctx, need)
            # A job probes only if no agent waits that could.
            if not probe or (isinstance(user, Job) and _has_agent_to_probe(ctx, need)):
                raise Conflict(sentence(need), step(need), code=HELD)
        elif not may_start(need, ctx.now):
            raise Conflict(
                f"{need.name} works again since {moment(need.opened_at or ctx.now)}; agents "
                "are started one after the other.",
                code=OPENING,
            )
        elif ramping(need, ctx.now):
            opening.append(need.id)
    if known[0] is None and _is_shown(user):
        ctx.tx.add(account)
    return Admission(account, probe, tuple(opening))


def begun(ctx: Context, admitted: Admission, run: str) -> None:
    """Count a run that was admitted, and note it as the probe if it is one."""
    count(ctx, admitted)
    if admitted.probe and not ctx.tx.run(statements.PROBE, account=admitted.account.id, run=run):
        raise Conflict(sentence(admitted.account), step(admitted.account), code=HELD)


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
        if (closed := closed_one(ctx, account.id)) is not None:
            return closed
    return None


def closed_one(ctx: Context, account: str | None) -> Account | None:
    """The account or set-up with this id, if it is closed."""
    if account is None:
        return None
    known = ctx.tx.one(statements.ACCOUNT, account=AccountId(account))
    return known if known is not None and known.is_held else None


def holding(ctx: Context, agent: Agent, held_by: str | None) -> Account | None:
    """The closed account or set-up that keeps an agent from being started."""
    config = json.loads(agent.adapter_config)
    account = account_for(agent.company_id, agent.adapter_type, config, ctx.now)
    return closed_one(ctx, held_by) or closed_one(ctx, account.id)


def holding_job(ctx: Context, job: Job) -> Account | None:
    """The closed account or set-up that a background job waits for."""
    return closed_one(ctx, job.held_by) if job.status is JobStatus.QUEUED else None


def candidates(ctx: Context, worker: str) -> list[leases.Ready]:
    """Return the waiting agents that may start after all: one as a probe for each account that is
    due for one, and those whose set-up is broken on another worker only."""
    agents: list[leases.Ready] = []
    for account in ctx.tx.all(statements.TO_PROBE, limit=MOST):
        agents += ctx.tx.all(leases.FIRST_HELD_BY, account=account.id, limit=1)
    for setup in ctx.tx.all(statements.BROKEN_ELSEWHERE, worker=worker, limit=MOST):
        agents += ctx.tx.all(leases.FIRST_HELD_BY, account=setup.id, limit=MOST_ELSEWHERE)
    return agents


def job_candidates(ctx: Context, worker: str) -> list[JobId]:
    """Return the waiting background jobs that may start after all, like `candidates`."""
    waiting_jobs: list[Job] = []
    for account in ctx.tx.all(statements.TO_PROBE, limit=MOST):
        if not _has_agent_to_probe(ctx, account):
            waiting_jobs += ctx.tx.all(jobs.HELD_BY, account=account.id, limit=1)
    for setup in ctx.tx.all(statements.BROKEN_ELSEWHERE, worker=worker, limit=MOST):
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
