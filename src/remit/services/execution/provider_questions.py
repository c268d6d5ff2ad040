"""Free questions to the providers of closed accounts.

An account that is closed because its provider is overloaded or cannot be reached is not probed by a
run at first. While an agent or a job waits for it, a worker asks the provider each minute for its
list of models, which costs nothing; once that is answered, a run probes the account. If such a run
fails all the same, the next question is asked after the growing pause of a failed probe. A provider
that has answered no question for ten minutes is reported to the board, once.
"""

import json
from dataclasses import replace
from typing import Any, NamedTuple

from remit.clock import HOUR, Micros
from remit.errors import Conflict, NotFound
from remit.ids import CompanyId
from remit.model.execution.account import ASKED_EVERY, Account, AccountId, is_worth_telling
from remit.model.organisation.decision import BY_REMIT
from remit.services import shapes
from remit.services.command import FOR_REMIT, Context, command, logged, query
from remit.services.execution import account_faults, accounts
from remit.store.execution import accounts as statements
from remit.store.execution import jobs, leases
from remit.store.organisation import agents as agent_statements

#: After so long, errors in answer to the question are no reason to start no run.
LONG: Micros = HOUR
#: The most providers that one worker asks at once.
MOST_AT_ONCE = 20


class Question(NamedTuple):
    """A provider to ask, with a configuration that uses it."""

    account: AccountId
    company_id: CompanyId
    adapter_type: str
    config: dict[str, Any]
    #: Whether it has not answered for long.
    for_long: bool
    #: Whether the board is to be told if it does not answer now, either.
    to_be_told: bool


@query("accounts.to_ask", FOR_REMIT)
def to_ask(ctx: Context) -> list[Question]:
    """Return the providers that are to be asked now, because somebody waits for them."""
    questions = []
    for account in ctx.tx.all(statements.TO_ASK, limit=accounts.MOST):
        config = _config_of_waiting(ctx, account)
        if config is not None:
            whose = (account.id, account.company_id, account.adapter_type)
            for_long = ctx.now - (account.since or ctx.now) >= LONG
            to_be_told = is_worth_telling(account, ctx.now)
            questions.append(Question(*whose, json.loads(config), for_long, to_be_told))
    return questions[:MOST_AT_ONCE]


def _config_of_waiting(ctx: Context, account: Account) -> str | None:
    for ready in ctx.tx.all(leases.FIRST_HELD_BY, account=account.id, limit=1):
        agent = ctx.tx.one(agent_statements.AGENT_ANYWHERE, agent=ready.agent_id)
        return None if agent is None else agent.adapter_config
    for job in ctx.tx.all(jobs.HELD_BY, account=account.id, limit=1):
        return job.adapter_config
    return None


@logged("accounts.begin_asking", FOR_REMIT)
def begin(ctx: Context, *, account: str) -> bool:
    """Make the caller the one that asks; returns whether it is. If it does not report, another one
    asks after the usual time."""
    ctx.enter(_known(ctx, account).company_id)
    return bool(ctx.tx.run(statements.ASK, account=AccountId(account), again=ctx.now + ASKED_EVERY))


@command("accounts.asked", FOR_REMIT)
def asked(
    ctx: Context, *, account: str, answered: bool, cause: str = ""
) -> shapes.AccountStateShape:
    """Report of a worker whose question was answered, or cannot be asked: a run may probe."""
    ctx.enter(_known(ctx, account).company_id)
    ctx.allow_by_rule(BY_REMIT)
    now = _known(ctx, account)
    if not now.is_held or now.ask_at is None:
        raise Conflict("It is not asked about any more.")
    accounts.change(ctx, replace(now, ask_at=None, probe_at=ctx.now))
    ctx.record(
        "account.ask",
        f"account:{now.id}",
        {**accounts.names(now), "answered": answered, "cause": cause[:500]},
    )
    return {"id": now.id, "state": now.state.value}


@command("accounts.unanswered", FOR_REMIT)
def unanswered(ctx: Context, *, account: str, cause: str = "") -> shapes.AccountStateShape:
    """Report of a worker whose questions have not been answered for long: the board is told."""
    ctx.enter(_known(ctx, account).company_id)
    ctx.allow_by_rule(BY_REMIT)
    now = _known(ctx, account)
    if not now.is_held or now.ask_at is None or not is_worth_telling(now, ctx.now):
        raise Conflict("It is open, or somebody was told already.")
    account_faults.tell_once(ctx, now, now)
    ctx.record(
        "account.ask",
        f"account:{now.id}",
        {**accounts.names(now), "answered": False, "cause": cause[:500]},
    )
    return {"id": now.id, "state": now.state.value}


def _known(ctx: Context, account: str) -> Account:
    known = ctx.tx.one(statements.ACCOUNT, account=AccountId(account))
    if known is None:
        raise NotFound("There is no such account.")
    return known
