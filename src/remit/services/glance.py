"""What a person sees at a glance: who is at the top, who is at work and with what, and how the
newest runs ended. A person with a part of the company sees that part, and asks in vain for nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from remit.authority import Action
from remit.errors import BadInput
from remit.model.principal import ActorKind
from remit.model.run import Run
from remit.services import letters, lookup, views
from remit.services.command import Context, query
from remit.store import agents as agent_statements
from remit.store import mail as mail_statements
from remit.store import runs as run_statements
from remit.store.statement import Statement

MOST_ROOTS = 50
MOST_AT_WORK = 1000
MOST_SUBJECTS = 3
#: So many runs are looked through for those of a part of the company.
MOST_SEARCHED = 500
_NEWEST = "g"


@query("glance.roots")
def roots(ctx: Context, *, company: str | None) -> list[dict[str, Any]]:
    """The agents at the top of what the caller has a say in."""
    _enter(ctx, company)
    scope = ctx.membership.scope_agent_id if ctx.membership else None
    if scope is not None:
        found = lookup.agent_row(ctx, scope)
        return [] if found is None else [views.agent(found)]
    tops = ctx.tx.all(agent_statements.ROOTS, company=ctx.company, limit=MOST_ROOTS)
    return [views.agent(one) for one in tops]


@query("glance.at_work")
def at_work(
    ctx: Context, *, company: str | None, subjects: bool = False, limit: int = MOST_AT_WORK
) -> list[dict[str, Any]]:
    """Who is running now, newest first; with `subjects`, about which mail."""
    _enter(ctx, company)
    live = ctx.tx.all(
        run_statements.RUNS,
        company=ctx.company,
        agent=None,
        any_agent=True,
        ended_too=False,
        before=_NEWEST,
        limit=limit,
    )
    in_reach = _reach(ctx)
    return [
        {
            "run_id": run.id,
            "agent_id": run.agent_id,
            "started_at": views.time(run.started_at),
            "why": run.why,
            "subjects": _subjects(ctx, run) if subjects else [],
        }
        for run in live
        if in_reach(run.agent_id)
    ]


@query("glance.newest_runs")
def newest_runs(
    ctx: Context, *, company: str | None, failed: bool = False, limit: int = 10
) -> list[dict[str, Any]]:
    """The newest runs, or those of them that ended badly."""
    _enter(ctx, company)
    in_reach = _reach(ctx)
    found: list[dict[str, Any]] = []
    for run in _newest(ctx, failed):
        if in_reach(run.agent_id):
            found.append(views.run(run))
            if len(found) == limit:
                break
    return found


def _newest(ctx: Context, failed: bool) -> Iterator[Run]:
    statement: Statement[Run] = run_statements.ENDED_BADLY if failed else run_statements.RUNS
    more = {} if failed else {"agent": None, "any_agent": True, "ended_too": True}
    before, page = _NEWEST, 50
    for _ in range(MOST_SEARCHED // page):
        rows = ctx.tx.all(statement, company=ctx.company, before=before, limit=page, **more)
        yield from rows
        if len(rows) < page:
            return
        before = rows[-1].id


def _subjects(ctx: Context, run: Run) -> list[str]:
    """What the mail is about that a run took up, as far as the caller may read it."""
    found: list[str] = []
    for one in json.loads(run.message_ids)[:MOST_SUBJECTS]:
        message = ctx.tx.one(mail_statements.MESSAGE_ANYWHERE, message=one)
        if message is not None and message.subject and letters.sees(ctx, message):
            found.append(message.subject)
    return found


def _enter(ctx: Context, company: str | None) -> None:
    if ctx.actor.kind is not ActorKind.USER:
        raise BadInput("This is for people.", "List the runs, or the agents.")
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.COMPANY_READ, on=f"company:{ctx.company}")


def _reach(ctx: Context) -> Callable[[str], bool]:
    """Whether an agent's runs are the caller's to see; the same rule as for looking at one."""
    return cache(lambda agent: ctx.decide(Action.OUTCOME_READ, home=agent).allowed)
