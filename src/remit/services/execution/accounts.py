"""Accounts and set-ups: what several agents depend on, closed for all of them by the fault of one
run (`account_faults`). While one is closed no agent that depends on it is started (`admission`),
except one run at a time as a probe."""

import json
import shlex
from dataclasses import replace
from typing import Annotated

from remit.authority import Action
from remit.errors import Conflict, NotFound
from remit.model.execution.account import Account
from remit.model.execution.fault import Fault, Holds
from remit.model.messaging.turn import quoted
from remit.model.organisation.agent import Agent
from remit.model.organisation.principal import ActorKind
from remit.services import lookup, shapes, views
from remit.services.command import Context, command, query
from remit.services.fields import CompanyRef, Reference
from remit.services.organisation.permissions import HIRING
from remit.services.surfaces import AsCommand, AsRoute
from remit.store.engine.statement import row
from remit.store.execution import accounts as statements
from remit.store.execution import jobs, leases

MOST = 1000
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
    after = replace(account_row, probe_at=ctx.now)
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
        raise Conflict("Several match.", "Give more of its id.")
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
    until = f" until {views.moment(account.until)}" if account.until else ""
    again = (
        ""
        if account.probe_at is None
        else f" It is tried again at {views.moment(account.probe_at)}."
    )
    since = views.moment(account.since or account.created_at)
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
    return f"remit account retry {account.name}"
