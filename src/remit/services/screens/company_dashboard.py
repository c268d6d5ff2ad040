"""Dashboard queries for people: root agents and newest runs, limited to the viewer's part of the
company."""

import json
from collections.abc import Callable
from functools import cache
from itertools import islice
from typing import Any

from remit.authority import Action
from remit.errors import BadInput
from remit.ids import END_OF_IDS
from remit.model.execution.run import Run
from remit.model.organisation.agent import Agent
from remit.model.organisation.principal import ActorKind
from remit.services import lookup, shapes, views
from remit.services.command import Context, query
from remit.services.messaging import letters
from remit.store.engine.statement import Statement
from remit.store.execution import runs as run_statements
from remit.store.messaging import mail as mail_statements
from remit.store.organisation import agents as agent_statements
from remit.store.paging import each

MOST_ROOTS = 50
MOST_SUBJECTS = 3
#: How many runs are searched for those of the viewer's part.
MOST_SEARCHED = 500


@query("glance.roots")
def roots(ctx: Context, *, company: str | None) -> list[shapes.AgentShape]:
    """The agents at the top of the caller's part of the company."""
    require_looking(ctx, company)
    return [views.agent(agent) for agent in tops(ctx)]


def tops(ctx: Context) -> list[Agent]:
    scope = ctx.membership.scope_agent_id if ctx.membership else None
    if scope is not None:
        top = lookup.agent_row(ctx, scope)
        return [] if top is None else [top]
    return ctx.tx.all(agent_statements.ROOTS, limit=MOST_ROOTS)


@query("glance.newest_runs")
def newest_runs(
    ctx: Context, *, company: str | None, failed: bool = False, limit: int = 10
) -> list[shapes.RunShape]:
    """The newest runs, or the newest of those that ended badly."""
    require_looking(ctx, company)
    statement: Statement[Run] = run_statements.ENDED_BADLY if failed else run_statements.RUNS
    filters: Any = {} if failed else {"agent": None, "any_agent": True, "ended_too": True}
    newest = each(ctx.tx, statement, page=50, before=END_OF_IDS, **filters)
    in_reach = _reach(ctx)
    runs = (run for run in islice(newest, MOST_SEARCHED) if in_reach(run.agent_id))
    return [views.run(run) for run in islice(runs, limit)]


def subjects_of(ctx: Context, run: Run) -> list[str]:
    """Subjects of the mail that a run took up, limited to mail that the caller may read."""
    subjects: list[str] = []
    for message_id in json.loads(run.message_ids)[:MOST_SUBJECTS]:
        message = ctx.tx.one(mail_statements.MESSAGE_ANYWHERE, message=message_id)
        if message is not None and message.subject and letters.sees(ctx, message):
            subjects.append(message.subject)
    return subjects


def require_looking(ctx: Context, company: str | None) -> None:
    if ctx.actor.kind is not ActorKind.USER:
        raise BadInput("This is for people.", "List the runs, or the agents.")
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.COMPANY_READ, on=f"company:{ctx.company}")


def _reach(ctx: Context) -> Callable[[str], bool]:
    """Return a cached predicate: whether the caller may see an agent's runs."""
    return cache(lambda agent: ctx.decide(Action.OUTCOME_READ, home=agent).allowed)
