"""Look-up of a thing that a caller named: by id, by short id, by a prefix of either, or by name.

Look-up enters the company of the thing, and never authorises. A whole id finds its thing; whether
the caller may access it is decided by the verb (`Context.require`), which conceals and records. A
prefix matches only things that the caller sees, so that nothing hidden makes it ambiguous.

The error is the same for hidden things, absent ones, and those of another company.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from remit.errors import BadInput, NotAnId, NotFound, RemitError
from remit.ids import END_OF_IDS, is_id, is_part_of, normalise, several, short_part
from remit.model.messaging.mail import Message
from remit.model.organisation.agent import Agent
from remit.model.organisation.principal import ActorKind
from remit.model.text import closest, name_key
from remit.model.work.file import File
from remit.model.work.outcome import Outcome
from remit.services.command import Context, Kind
from remit.store.engine.statement import Statement
from remit.store.messaging import mail as mail_statements
from remit.store.organisation import agents as agent_statements
from remit.store.organisation import people
from remit.store.record.short_ids import BY_BEGINNING, BY_SHORT_ID
from remit.store.work import files as file_statements
from remit.store.work import outcomes as outcome_statements


class _Row(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def company_id(self) -> str: ...


T = TypeVar("T")
R = TypeVar("R", bound=_Row)
Sees = Callable[[R], bool]

#: For a name that matches no agent: how many names are compared, suggested, and listed.
_MOST_COMPARED, _MOST_LIKELY, _MOST_NAMED = 100, 3, 8
#: How many agents' names are compared for a person.
_MOST_KNOWN = 1000


def everybody(_: Context) -> Callable[[Any], bool]:
    """Visible to everybody in the company."""
    return lambda _: True


def _nothing(_: Context) -> dict[str, object]:
    return {}


@dataclass(frozen=True)
class Noun(Generic[R]):
    """One kind of thing that callers name."""

    #: Its name in errors and in the tables of short ids.
    what: str
    #: By whole id, in any company; its parameter is called `what`.
    by_id: Statement[R]
    #: Rows of one company whose ids lie between `low` and `high`.
    by_prefix: Statement[R]
    #: Predicate for the rows that a prefix may match.
    sees: Callable[[Context], Sees[R]] = everybody
    #: Prefixes that may stand before an id, besides its own name.
    marks: tuple[str, ...] = ()
    #: More parameters of `by_prefix`, where the statement itself leaves out hidden rows.
    parameters: Callable[[Context], dict[str, object]] = _nothing
    #: Finds one by name, in the company that was entered.
    by_name: Callable[[Context, str], R | None] | None = None
    #: The error for a text that is neither a name nor a prefix of an id.
    unknown: Callable[[Context, str], NotFound] | None = None


def find(ctx: Context, noun: Noun[R], text: str) -> R:
    """Return the thing that a text names, in any company of the caller; enters its company."""
    text = _bare(noun, text)
    if noun.by_name is None and not is_id(text):
        text = _part_of_id(text, noun.what)
    if is_id(text):
        return _entered(ctx, noun, text)
    if noun.by_name is None:
        enter_by(ctx, noun.what, text)
    else:
        company_of_caller(ctx, None)
    return find_here(ctx, noun, text)


def find_here(ctx: Context, noun: Noun[R], text: str) -> R:
    """Return the thing that a text names in the company that was entered."""
    text = _bare(noun, text)
    if noun.by_name is not None and not is_id(text):
        named = noun.by_name(ctx, text)
        if named is not None:
            return named
    try:
        part = _part_of_id(text, noun.what)
    except NotAnId:
        if noun.unknown is None:
            raise
        raise noun.unknown(ctx, text) from None
    sees = noun.sees(ctx)
    return only([row for row in matching(ctx, noun, part) if sees(row)], noun.what)


def _bare(noun: Noun[R], text: str) -> str:
    for mark in (f"{noun.what}:", *noun.marks):
        text = text.removeprefix(mark)
    return text


def only(rows: list[T], what: str) -> T:
    if not rows:
        raise NotFound.of(what)
    if len(rows) > 1:
        ids = [str(getattr(row, "id", "")) for row in rows]
        raise several(f"Several match that {what} id", ids)
    return rows[0]


def _part_of_id(text: str, what: str) -> str:
    """Normalise a prefix of an id; the error names the expected kind of thing."""
    try:
        return normalise(text)
    except NotAnId as error:
        error.what = what
        raise


def enter_by(ctx: Context, what: str, text: str) -> None:
    """Enter the only company that the caller can mean; of several, the one that has such an id."""
    if ctx.company is None and ctx.actor.company_id is None and _named_company(ctx) is None:
        mine = ctx.tx.all(people.COMPANIES_OF_USER, user=ctx.actor.id, after="", limit=1000)
        if len(mine) > 1:
            having = [company.id for company in mine if _has(ctx, company.id, what, text)]
            if len(having) < 2:
                ctx.enter(only(having, what))
                return
    company_of_caller(ctx, None)


def _has(ctx: Context, company: str, what: str, text: str) -> bool:
    bounds = {"company": company, "low": text, "high": text + END_OF_IDS}
    return bool(ctx.tx.all(BY_BEGINNING[what], **bounds) or with_short_id(ctx, company, what, text))


def matching(ctx: Context, noun: Noun[R], text: str) -> list[R]:
    """Return the things of the entered company whose id, or else short id, begins with a text."""
    values = {"company": ctx.company, **noun.parameters(ctx)}

    def beginning(part: str) -> list[R]:
        return ctx.tx.all(noun.by_prefix, low=part, high=part + END_OF_IDS, **values)

    if rows := beginning(normalise(text)):
        return rows
    ids = with_short_id(ctx, ctx.company, noun.what, text)
    return [row for id_ in ids for row in beginning(id_)]


def with_short_id(ctx: Context, company: str | None, what: str, text: str) -> list[str]:
    """Return the ids of a company whose short id begins with a text."""
    part = short_part(text)
    if part is None:
        return []
    return ctx.tx.all(BY_SHORT_ID[what], company=company, low=part, high=part + END_OF_IDS)


def company_of_caller(ctx: Context, company: str | None) -> str:
    """Enter the company that was named, or the only one that the caller can mean."""
    if company is not None:
        return ctx.enter(_company_id(ctx, company))
    if ctx.company is not None:
        return ctx.company
    if (named := _named_company(ctx)) is not None:
        return ctx.enter(_company_id(ctx, named))
    if ctx.actor.company_id is not None:
        return ctx.enter(ctx.actor.company_id)
    mine = ctx.tx.all(people.MEMBERSHIPS_OF_USER, user=ctx.actor.id, limit=2)
    if len(mine) > 1:
        raise BadInput(
            "You have a part in several companies.",
            "Say which: with --company, or over HTTP with ?companyId=.",
        )
    membership = only(mine, "company")
    return ctx.enter(membership.company_id, membership)


def _named_company(ctx: Context) -> str | None:
    """Return the company in which names are looked up, if the caller named one."""
    return None if ctx.caller is None else ctx.caller.company


def _company_id(ctx: Context, text: str) -> str:
    if is_id(text):
        return text
    named = ctx.tx.one(people.COMPANY_BY_NAME, name_key=name_key(text))
    if named is not None:
        return named.id
    try:
        prefix = normalise(text)
    except BadInput:
        raise NotFound.of("company") from None
    if ctx.actor.company_id is not None and is_part_of(ctx.actor.company_id, prefix):
        return ctx.actor.company_id
    mine = ctx.tx.all(people.COMPANIES_OF_USER, user=ctx.actor.id, after="", limit=1000)
    return only([company for company in mine if is_part_of(company.id, prefix)], "company").id


def living_agent(ctx: Context, name: str) -> Agent | None:
    """Return the agent of that name; at most one is not terminated."""
    return ctx.tx.one(agent_statements.LIVING_AGENT_BY_NAME, name_key=name_key(name))


def agent(ctx: Context, text: str) -> Agent:
    """Return an agent of the entered company by `agent:<name>`, name, id or a prefix of it."""
    return find_here(ctx, AGENT, text)


def agent_ever(ctx: Context, text: str) -> Agent:
    """Like `agent`, but a name may be that of a terminated agent."""
    try:
        return agent(ctx, text)
    except NotFound:
        name = text.removeprefix("agent:")
        ever = ctx.tx.all(agent_statements.AGENTS_EVER_NAMED, name_key=name_key(name))
        if ever:
            return ever[0]
        raise


def nobody_named(ctx: Context, name: str) -> NotFound:
    """Error that suggests the agents that the caller probably means; an agent is told only of those
    around it."""
    error = NotFound(f"There is no agent named {name[:64]!r} here.")
    me = ctx.actor.agent_id
    mine = agent_row(ctx, me) if me is not None else None
    if mine is None:
        likely = closest(name, _known_to_person(ctx))[:_MOST_LIKELY]
        if likely:
            error.step = f"Did you mean {' or '.join(likely)}?"
        error.what = AGENT.what
        return error
    boss = agent_row(ctx, mine.boss_id) if mine.boss_id else None
    reports = ctx.tx.all(agent_statements.REPORTS, agent=mine.id)
    peers = ctx.tx.all(agent_statements.REPORTS, agent=boss.id) if boss is not None else []
    near = [
        neighbour.name for neighbour in (boss, *reports[:_MOST_COMPARED]) if neighbour is not None
    ]
    beside = [peer.name for peer in peers[:_MOST_COMPARED] if peer.id != mine.id]
    likely = (closest(name, near) or closest(name, beside))[:_MOST_LIKELY]
    if likely:
        error.step = f"Name {' or '.join(f'agent:{suggestion}' for suggestion in likely)}."
        return error
    sentences = [
        f"Your boss is agent:{boss.name}." if boss else "Your boss is a person: write to board."
    ]
    if reports:
        named = ", ".join(f"agent:{report.name}" for report in reports[:_MOST_NAMED])
        sentences.append(f"Your reports: {named}{', …' if len(reports) > _MOST_NAMED else ''}.")
    error.step = " ".join([*sentences, "People are written to as board or user:<name>."])
    return error


def _known_to_person(ctx: Context) -> list[str]:
    """Names of the company's agents, which every member may know."""
    if ctx.company is None or ctx.membership is None:
        return []
    some = {"terminated_too": False, "after": "", "limit": _MOST_KNOWN}
    return [row.name for row in ctx.tx.all(agent_statements.AGENTS, **some)]


def agent_anywhere(ctx: Context, text: str) -> Agent:
    """Return an agent by whole id, entering its company; otherwise in the caller's only company."""
    return find(ctx, AGENT, text)


def myself(ctx: Context, otherwise: RemitError) -> Agent:
    """Return the calling agent; raises the given error for people."""
    if ctx.actor.agent_id is None:
        raise otherwise
    return find(ctx, AGENT, ctx.actor.agent_id)


def file(ctx: Context, text: str) -> File:
    """Return a file by id or a prefix of it, entering its company."""
    return find(ctx, FILE, text)


def known_agent(ctx: Context, agent: str) -> Agent:
    """Return an agent by an id that another row references, so that it exists."""
    return ctx.tx.existing(agent_statements.AGENT, agent=agent)


def known_outcome(ctx: Context, outcome: str) -> Outcome:
    """Return an outcome by an id that another row references, so that it exists."""
    return ctx.tx.existing(outcome_statements.OUTCOME, outcome=outcome)


def agent_row(ctx: Context, agent: str) -> Agent | None:
    return ctx.tx.one(agent_statements.AGENT, agent=agent)


def name_of(ctx: Context, agent: str) -> str:
    """The name of an agent; of one that is not known, its id."""
    row = agent_row(ctx, agent)
    return row.name if row else agent


def user_name(ctx: Context, user: str | None, otherwise: str) -> str:
    """The name of a person; of one that is not known, the other text."""
    row = ctx.tx.one(people.USER, user=user)
    return row.name if row else otherwise


def message_row(ctx: Context, message: str) -> Message | None:
    return ctx.tx.one(mail_statements.MESSAGE_ANYWHERE, message=message)


def document_of(ctx: Context, outcome: Outcome) -> File:
    # An outcome and its document are created together.
    return ctx.tx.existing(file_statements.FILE, file=outcome.id)


def visibility(ctx: Context) -> dict[str, object]:
    """The viewer of a file query, as its parameters. A user over a part sees only listed files."""
    whole = ctx.membership is not None and ctx.membership.scope_agent_id is None
    return {
        "holder": ctx.actor.id if ctx.actor.kind is ActorKind.AGENT else "",
        "sees_unlisted": whole or ctx.actor.kind is ActorKind.SYSTEM,
        "now": ctx.now,
    }


def _entered(ctx: Context, noun: Noun[R], id_: str) -> R:
    """Return the thing with this whole id, after entering its company."""
    row = ctx.tx.one(noun.by_id, **{noun.what: id_})
    try:
        if row is not None:
            if (named := _named_company(ctx)) is not None:
                ctx.enter(_company_id(ctx, named))
            ctx.enter(row.company_id)
            if ctx.kind is Kind.COMMAND and not ctx.tx.one_by_one:
                # Entering may have waited for another command that changed it.
                row = ctx.tx.one(noun.by_id, **{noun.what: id_})
    except NotFound:
        row = None
    if row is None:
        raise NotFound.of(noun.what)
    return row


AGENT = Noun(
    "agent",
    agent_statements.AGENT_ANYWHERE,
    agent_statements.AGENTS_BY_PREFIX,
    by_name=living_agent,
    unknown=nobody_named,
)
FILE = Noun(
    "file",
    file_statements.FILE_ANYWHERE,
    file_statements.FILES_BY_PREFIX,
    marks=("kb://",),
    parameters=visibility,
)
