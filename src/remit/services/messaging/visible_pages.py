"""Lists of questions and schedules, limited to those that the caller may see."""

from collections.abc import Callable, Mapping
from functools import cache
from itertools import islice
from types import GenericAlias
from typing import Any, TypeVar

from remit.authority import Action
from remit.model.messaging.question import Question
from remit.model.messaging.schedule import Schedule
from remit.model.organisation.principal import ActorKind
from remit.services import lookup
from remit.services.command import Answer, Context, query
from remit.services.fields import CompanyRef, EndedToo, OnlyAgent
from remit.services.surfaces import AsCommand, AsRoute
from remit.services.verbs import Verb
from remit.store.engine.statement import Statement
from remit.store.messaging import mail as statements
from remit.store.paging import each

T = TypeVar("T", Question, Schedule)
S = TypeVar("S", bound=Mapping[str, object])


def lists(
    noun: str,
    statement: Statement[T],
    shown: Callable[[T], S],
    shape: type[S],
    which: str,
    about: str,
) -> Verb[..., list[Answer]]:
    """Declare the verb that lists questions or schedules of one agent; for a person, of every agent
    in their part of the company."""

    def listing(
        ctx: Context,
        *,
        company: CompanyRef | None = None,
        agent: OnlyAgent | None = None,
        ended_too: EndedToo = False,
        after: str = "",
        limit: int = 100,
    ) -> list[S]:
        lookup.company_of_caller(ctx, company)
        whose = lookup.agent(ctx, agent).id if agent else ctx.actor.agent_id
        if whose is not None:
            require_look(ctx, whose)
        sees = _reader(ctx)
        filters: Any = {"agent": whose, "ended_too": ended_too, "after": after}
        every = each(ctx.tx, statement, page=limit, **filters)
        seen = (row for row in every if whose is not None or sees(row))
        return [shown(row) for row in islice(seen, limit)]

    listing.__doc__ = about
    listing.__annotations__["return"] = GenericAlias(list, (shape,))
    everything = {"ended_too": "all"}
    path = f"GET /companies/{{companyId}}/{noun}s"
    return query(
        f"{noun}s.listing",
        AsRoute(path, f"list_{noun}s", page="id", spelled=everything),
        AsCommand(
            f"{noun} list",
            f"List {which}: the company's, or your own if you are an agent.",
            spelled=everything,
        ),
    )(listing)


def require_look(ctx: Context, agent: str) -> None:
    """Refuse the call unless the caller may see the agent's open items."""
    ctx.require(_looking(ctx), over=agent)


def _reader(ctx: Context) -> Callable[[Question | Schedule], bool]:
    in_reach = cache(lambda agent: ctx.decide(_looking(ctx), over=agent).allowed)
    return lambda row: in_reach(row.agent_id)


def _looking(ctx: Context) -> Action:
    """Agents see what they could cancel; people may see without control."""
    agent = ctx.actor.kind is ActorKind.AGENT
    return Action.THREAD_CANCEL if agent else Action.MESSAGE_READ


QUESTION = lookup.Noun(
    "question", statements.QUESTION_ANYWHERE, statements.QUESTIONS_BY_PREFIX, _reader
)
SCHEDULE = lookup.Noun(
    "schedule", statements.SCHEDULE_ANYWHERE, statements.SCHEDULES_BY_PREFIX, _reader
)
