"""Finding what a caller named: by id, by the first digits of one, or by name."""

from __future__ import annotations

from typing import TypeVar

from remit.authority import Action
from remit.errors import BadInput, NotFound
from remit.ids import is_id, normalise
from remit.model.agent import Agent
from remit.model.file import File
from remit.model.grant import kb_file
from remit.model.outcome import Outcome
from remit.model.principal import ActorKind
from remit.model.text import name_key
from remit.services.command import Context, Kind
from remit.store import agents as agent_statements
from remit.store import files as file_statements
from remit.store import people
from remit.store.database import Transaction
from remit.store.statement import Statement

T = TypeVar("T")
S = TypeVar("S", Agent, File, Outcome)

#: Sorts after every id that begins with what stands before it.
AFTER = "g"


def only(found: list[T], what: str) -> T:
    if not found:
        raise NotFound(f"There is no such {what}.")
    if len(found) > 1:
        raise BadInput(f"Several match that {what} id.", "Give more of its digits.")
    return found[0]


def company_of_caller(ctx: Context, company: str | None) -> str:
    """Enter the company that was named, or the only one the caller can mean."""
    if company is not None:
        return ctx.enter(_company_id(ctx, company))
    if ctx.actor.company_id is not None:
        return ctx.enter(ctx.actor.company_id)
    mine = ctx.tx.all(people.COMPANIES_OF_USER, user=ctx.actor.id, after="", limit=2)
    if len(mine) > 1:
        raise BadInput("You have a part in several companies.", "Say which with --company.")
    return ctx.enter(only(mine, "company").id)


def _company_id(ctx: Context, text: str) -> str:
    if is_id(text):
        return text
    named = ctx.tx.one(people.COMPANY_BY_NAME, name_key=name_key(text))
    if named is not None:
        return named.id
    try:
        prefix = normalise(text)
    except BadInput:
        raise NotFound("There is no such company.") from None
    if ctx.actor.company_id is not None and ctx.actor.company_id.startswith(prefix):
        return ctx.actor.company_id
    mine = ctx.tx.all(people.COMPANIES_OF_USER, user=ctx.actor.id, after="", limit=1000)
    return only([company for company in mine if company.id.startswith(prefix)], "company").id


def agent(ctx: Context, text: str) -> Agent:
    """An agent of the company the caller is in: `agent:<name>`, a name, an id or its beginning."""
    name = text.removeprefix("agent:")
    named = ctx.tx.one(
        agent_statements.LIVING_AGENT_BY_NAME, company=ctx.company, name_key=name_key(name)
    )
    if named is not None:
        return named
    try:
        prefix = normalise(name)
    except BadInput:
        raise NotFound(f"There is no agent named {name[:64]!r} here.") from None
    return only(
        ctx.tx.all(
            agent_statements.AGENTS_BY_PREFIX, company=ctx.company, low=prefix, high=prefix + AFTER
        ),
        "agent",
    )


def agent_anywhere(ctx: Context, text: str) -> Agent:
    """An agent by whole id, entering its company; otherwise in the caller's only company."""
    if is_id(text):
        return _entered(ctx, agent_statements.AGENT_ANYWHERE, "agent", agent=text)
    company_of_caller(ctx, None)
    return agent(ctx, text)


def outcome_anywhere(ctx: Context, text: str) -> Outcome:
    """An outcome by whole id, entering its company; otherwise in the caller's only company."""
    if is_id(text):
        return _entered(ctx, agent_statements.OUTCOME_ANYWHERE, "outcome", outcome=text)
    prefix = normalise(text)
    company_of_caller(ctx, None)
    return outcome(ctx, prefix)


def outcome(ctx: Context, text: str) -> Outcome:
    """An outcome of the company the caller is in, by its id or the beginning of it."""
    prefix = normalise(text.removeprefix("outcome:"))
    return only(
        ctx.tx.all(
            agent_statements.OUTCOMES_BY_PREFIX,
            company=ctx.company,
            low=prefix,
            high=prefix + AFTER,
        ),
        "outcome",
    )


def file(ctx: Context, text: str, action: Action) -> File:
    """A file the caller may do `action` to; entering its company, deciding, or ending the call."""
    text = text.removeprefix("kb://")
    if is_id(text):
        found = _entered(ctx, file_statements.FILE_ANYWHERE, "file", file=text)
    else:
        prefix = normalise(text)
        company_of_caller(ctx, None)
        found = only(
            ctx.tx.all(
                file_statements.FILES_BY_PREFIX,
                company=ctx.company,
                low=prefix,
                high=prefix + AFTER,
                **sight(ctx),
            ),
            "file",
        )
    ctx.require(action, kb_file(found.id), home=found.home_agent_id, listed=not found.unlisted)
    return found


def sight(ctx: Context) -> dict[str, object]:
    """Whose eyes a file query looks through. A user with a part only sees what is listed."""
    whole = ctx.membership is not None and ctx.membership.scope_agent_id is None
    return {
        "holder": ctx.actor.id if ctx.actor.kind is ActorKind.AGENT else "",
        "sees_unlisted": whole or ctx.actor.kind is ActorKind.SYSTEM,
        "now": ctx.now,
    }


def _entered(ctx: Context, statement: Statement[S], what: str, **key: str) -> S:
    """What has this whole id, once its company is entered."""
    found = ctx.tx.one(statement, **key)
    try:
        if found is not None:
            ctx.enter(found.company_id)
            if ctx.kind is Kind.COMMAND:
                # Entering may have waited for another command that changed it.
                found = ctx.tx.one(statement, **key)
    except NotFound:
        found = None
    if found is None:
        raise NotFound(f"There is no such {what}.")
    return found


def unique_user_name(tx: Transaction, name: str) -> bool:
    return tx.one(people.USER_BY_NAME, name_key=name_key(name)) is None
