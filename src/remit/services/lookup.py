"""Finding what a caller named: by id, by short id, by the first digits of either, or by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from remit.authority import Action, Relation
from remit.errors import BadInput, NotAnId, NotFound
from remit.ids import AgentId, is_id, is_part_of, normalise, several, short_part
from remit.model.agent import Agent
from remit.model.approval import Approval
from remit.model.decision import Decision, Effect
from remit.model.file import File, FileKind
from remit.model.grant import Grant, Resource, ResourceKind, kb_file
from remit.model.job import Job
from remit.model.mail import Message
from remit.model.outcome import Outcome, OutcomeKind
from remit.model.principal import ActorKind
from remit.model.question import Question
from remit.model.schedule import Schedule
from remit.model.text import closest, name_key
from remit.services.command import Context, Kind
from remit.store import agents as agent_statements
from remit.store import files as file_statements
from remit.store import governance, people
from remit.store import grants as grant_statements
from remit.store import jobs as job_statements
from remit.store import mail as mail_statements
from remit.store import outcomes as outcome_statements
from remit.store import waits as wait_statements
from remit.store.database import Transaction
from remit.store.short_ids import BY_BEGINNING, BY_SHORT_ID
from remit.store.statement import Statement

T = TypeVar("T")
S = TypeVar("S", Agent, Approval, File, Outcome, Message, Schedule, Question, Job)

#: Sorts after every id that begins with what stands before it.
AFTER = "g"
#: Ids begin with the time, so whatever was asked for within the same minute looks alike.
MOST_WITH_PREFIX = 1000
#: To whoever named no agent: how many are compared with the name, offered, and listed.
_MOST_COMPARED, _MOST_LIKELY, _MOST_NAMED = 100, 3, 8


def only(found: list[T], what: str) -> T:
    if not found:
        raise NotFound.of(what)
    if len(found) > 1:
        ids = [str(getattr(one, "id", "")) for one in found]
        raise several(f"Several match that {what} id", ids)
    return found[0]


def _part_of_id(text: str, what: str) -> str:
    """As `normalise`; whoever gave something else learns what was wanted."""
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
            having = [one.id for one in mine if _has(ctx, one.id, what, text)]
            if len(having) < 2:
                ctx.enter(only(having, what))
                return
    company_of_caller(ctx, None)


def _has(ctx: Context, company: str, what: str, text: str) -> bool:
    asked = {"company": company, "low": text, "high": text + AFTER}
    return bool(ctx.tx.all(BY_BEGINNING[what], **asked) or with_short_id(ctx, company, what, text))


def matching(
    ctx: Context, what: str, statement: Statement[T], text: str, **more: object
) -> list[T]:
    """Those of the entered company whose id begins with a text, or else whose short id does."""
    prefix = normalise(text)
    given = {"company": ctx.company, **more}
    found = ctx.tx.all(statement, low=prefix, high=prefix + AFTER, **given)
    if found:
        return found
    ids = with_short_id(ctx, ctx.company, what, text)
    return [one for id_ in ids for one in ctx.tx.all(statement, low=id_, high=id_ + AFTER, **given)]


def with_short_id(ctx: Context, company: str | None, what: str, text: str) -> list[str]:
    """The ids of a company whose short id begins with a text."""
    part = short_part(text)
    if part is None:
        return []
    return ctx.tx.all(BY_SHORT_ID[what], company=company, low=part, high=part + AFTER)


def company_of_caller(ctx: Context, company: str | None) -> str:
    """Enter the company that was named, or the only one the caller can mean."""
    if company is not None:
        return ctx.enter(_company_id(ctx, company))
    if ctx.company is not None:
        return ctx.company
    if (named := _named_company(ctx)) is not None:
        return ctx.enter(_company_id(ctx, named))
    if ctx.actor.company_id is not None:
        return ctx.enter(ctx.actor.company_id)
    mine = ctx.tx.all(people.COMPANIES_OF_USER, user=ctx.actor.id, after="", limit=2)
    if len(mine) > 1:
        raise BadInput(
            "You have a part in several companies.",
            "Say which: with --company, or over HTTP with ?companyId=.",
        )
    return ctx.enter(only(mine, "company").id)


def _named_company(ctx: Context) -> str | None:
    """Where the caller wants names to be looked up."""
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
        raise NotFound("There is no such company.") from None
    if ctx.actor.company_id is not None and is_part_of(ctx.actor.company_id, prefix):
        return ctx.actor.company_id
    mine = ctx.tx.all(people.COMPANIES_OF_USER, user=ctx.actor.id, after="", limit=1000)
    return only([one for one in mine if is_part_of(one.id, prefix)], "company").id


def agent(ctx: Context, text: str) -> Agent:
    """An agent of the company the caller is in: `agent:<name>`, a name, an id or its beginning."""
    name = text.removeprefix("agent:")
    if not is_id(name):
        named = ctx.tx.one(
            agent_statements.LIVING_AGENT_BY_NAME, company=ctx.company, name_key=name_key(name)
        )
        if named is not None:
            return named
    try:
        prefix = normalise(name)
    except BadInput:
        raise nobody_named(ctx, name) from None
    return only(matching(ctx, "agent", agent_statements.AGENTS_BY_PREFIX, prefix), "agent")


def agent_ever(ctx: Context, text: str) -> Agent:
    """Like `agent`, but a name may be that of somebody who is gone."""
    try:
        return agent(ctx, text)
    except NotFound:
        name = text.removeprefix("agent:")
        ever = ctx.tx.all(
            agent_statements.AGENTS_EVER_NAMED, company=ctx.company, name_key=name_key(name)
        )
        if ever:
            return ever[0]
        raise


def nobody_named(ctx: Context, name: str) -> NotFound:
    """Names the agents around the caller, one of whom it probably means."""
    error = NotFound(f"There is no agent named {name[:64]!r} here.")
    me = ctx.actor.agent_id
    mine = agent_row(ctx, me) if me is not None else None
    if mine is None:
        return error
    boss = agent_row(ctx, mine.boss_id) if mine.boss_id else None
    reports = ctx.tx.all(agent_statements.REPORTS, agent=mine.id)
    peers = ctx.tx.all(agent_statements.REPORTS, agent=boss.id) if boss is not None else []
    near = [one.name for one in (boss, *reports[:_MOST_COMPARED]) if one is not None]
    beside = [one.name for one in peers[:_MOST_COMPARED] if one.id != mine.id]
    likely = (closest(name, near) or closest(name, beside))[:_MOST_LIKELY]
    if likely:
        error.step = f"Name {' or '.join(f'agent:{one}' for one in likely)}."
        return error
    said = [
        f"Your boss is agent:{boss.name}." if boss else "Your boss is a person: write to board."
    ]
    if reports:
        named = ", ".join(f"agent:{one.name}" for one in reports[:_MOST_NAMED])
        said.append(f"Your reports: {named}{', …' if len(reports) > _MOST_NAMED else ''}.")
    error.step = " ".join([*said, "People are written to as board or user:<name>."])
    return error


def agent_anywhere(ctx: Context, text: str) -> Agent:
    """An agent by whole id, entering its company; otherwise in the caller's only company."""
    if is_id(text):
        return _entered(ctx, agent_statements.AGENT_ANYWHERE, "agent", agent=text)
    company_of_caller(ctx, None)
    return agent(ctx, text)


def outcome_anywhere(ctx: Context, text: str) -> Outcome:
    """An outcome by id or its beginning, entering its company. The caller decides about it."""
    prefix = _part_of_id(text.removeprefix("outcome:").removeprefix("kb://"), "outcome")
    if is_id(prefix):
        return _entered(ctx, outcome_statements.OUTCOME_ANYWHERE, "outcome", outcome=prefix)
    enter_by(ctx, "outcome", prefix)
    found = matching(ctx, "outcome", outcome_statements.OUTCOMES_BY_PREFIX, prefix)
    return only([one for one in found if _sees(ctx, one)], "outcome")


def _sees(ctx: Context, outcome: Outcome) -> bool:
    return ctx.decide(
        Action.OUTCOME_READ,
        Resource(ResourceKind.OUTCOME, outcome.id),
        home=outcome.owner_id,
        relation=relation(ctx, outcome),
    ).allowed


def file(ctx: Context, text: str, action: Action, *, asking_too: bool = False) -> File:
    """A file the caller may do `action` to; entering its company, deciding, or ending the call.

    With `asking_too`, also when it takes an approval, for which nobody is asked here.
    """
    text = text.removeprefix("kb://")
    if is_id(text):
        found = _entered(ctx, file_statements.FILE_ANYWHERE, "file", file=text)
    else:
        prefix = _part_of_id(text, "file")
        enter_by(ctx, "file", prefix)
        seen = matching(ctx, "file", file_statements.FILES_BY_PREFIX, prefix, **sight(ctx))
        found = only(seen, "file")
    _require_file(ctx, found, action, asking_too=asking_too)
    return found


def agent_row(ctx: Context, agent: str) -> Agent | None:
    return ctx.tx.one(agent_statements.AGENT, company=ctx.company, agent=agent)


def message(ctx: Context, text: str, sees: Callable[[Message], bool]) -> Message:
    """A message by id or its beginning, entering its company, among those that the caller sees."""
    prefix = _part_of_id(text.removeprefix("message:"), "message")
    if is_id(prefix):
        found = [_entered(ctx, mail_statements.MESSAGE_ANYWHERE, "message", message=prefix)]
    else:
        enter_by(ctx, "message", prefix)
        found = matching(
            ctx,
            "message",
            mail_statements.MESSAGES_BY_PREFIX,
            prefix,
            me=ctx.actor.id,
            any_party=ctx.actor.kind is not ActorKind.AGENT,
        )
    return only([one for one in found if sees(one)], "message")


def message_row(ctx: Context, message: str) -> Message | None:
    return ctx.tx.one(mail_statements.MESSAGE_ANYWHERE, message=message)


def schedule(ctx: Context, text: str, sees: Callable[[Schedule], bool]) -> Schedule:
    prefix = _part_of_id(text.removeprefix("schedule:"), "schedule")
    if is_id(prefix):
        return _entered(ctx, mail_statements.SCHEDULE_ANYWHERE, "schedule", schedule=prefix)
    enter_by(ctx, "schedule", prefix)
    found = matching(ctx, "schedule", mail_statements.SCHEDULES_BY_PREFIX, prefix)
    return only([one for one in found if sees(one)], "schedule")


def question(ctx: Context, text: str, sees: Callable[[Question], bool]) -> Question:
    prefix = _part_of_id(text.removeprefix("question:"), "question")
    if is_id(prefix):
        return _entered(ctx, mail_statements.QUESTION_ANYWHERE, "question", question=prefix)
    enter_by(ctx, "question", prefix)
    found = matching(ctx, "question", mail_statements.QUESTIONS_BY_PREFIX, prefix)
    return only([one for one in found if sees(one)], "question")


def job(ctx: Context, text: str, sees: Callable[[Job], bool] = lambda _: True) -> Job:
    prefix = _part_of_id(text.removeprefix("job:"), "job")
    if is_id(prefix):
        return _entered(ctx, job_statements.JOB_ANYWHERE, "job", job=prefix)
    enter_by(ctx, "job", prefix)
    found = matching(ctx, "job", job_statements.JOBS_BY_PREFIX, prefix)
    return only([one for one in found if sees(one)], "job")


def approval(
    ctx: Context, text: str, sees: Callable[[Approval], bool] = lambda _: True
) -> Approval:
    """An approval by id or its beginning, entering its company. The caller decides about it."""
    prefix = _part_of_id(text.removeprefix("approval:"), "approval")
    if is_id(prefix):
        return _entered(ctx, governance.APPROVAL_ANYWHERE, "approval", approval=prefix)
    enter_by(ctx, "approval", prefix)
    found = matching(
        ctx, "approval", governance.APPROVALS_BY_PREFIX, prefix, limit=MOST_WITH_PREFIX
    )
    # What the caller may not know of does not make a prefix ambiguous.
    return only([one for one in found if sees(one)], "approval")


def document_of(ctx: Context, outcome: Outcome) -> File:
    found = ctx.tx.one(file_statements.FILE, company=ctx.company, file=outcome.id)
    assert found is not None, "an outcome and its document are made together"
    return found


_AS_OUTCOME = {
    Action.FILE_SEE: Action.OUTCOME_READ,
    Action.FILE_READ: Action.OUTCOME_READ,
    Action.FILE_AUDIT: Action.OUTCOME_READ,
    Action.FILE_WRITE: Action.OUTCOME_CHANGE,
}


def _require_file(ctx: Context, file: File, action: Action, *, asking_too: bool) -> None:
    action, resource, facts = about_file(ctx, file, action)
    decision = ctx.decide(action, resource, **facts)
    if decision.effect is not Effect.ASK or not asking_too:
        try:
            ctx.accept(action, str(resource), decision)
        except NotFound:
            # Also of what an outcome says: that there is one is not told by the words, either.
            raise NotFound.of("file") from None


def about_file(ctx: Context, file: File, action: Action) -> tuple[Action, Resource, dict[str, Any]]:
    """What is to be decided about a file, and what the decision has to know."""
    if file.kind is FileKind.OUTCOME:
        outcome = ctx.tx.one(outcome_statements.OUTCOME, company=ctx.company, outcome=file.id)
        assert outcome is not None, "an outcome and its document are made together"
        return _AS_OUTCOME[action], _resource(outcome), _outcome_facts(ctx, outcome)
    facts: dict[str, Any] = {"home": file.home_agent_id, "listed": not file.unlisted}
    if ctx.membership is not None and ctx.membership.scope_agent_id is not None:
        facts["received"] = _received(ctx, file)
    if file.kind in (FileKind.STATE, FileKind.LOG):
        facts |= {
            "about_agent": True,
            "is_memory": file.kind is FileKind.STATE,
            "place": ctx.place(file.home_agent_id),
        }
    return action, kb_file(file.id), facts


def _received(ctx: Context, file: File) -> bool:
    """Whether the file reached the asking person by mail; people hold no grants."""
    return (
        ctx.tx.one(
            mail_statements.RECEIVED,
            company=ctx.company,
            user=ctx.actor.id,
            file=file.id,
            attached=f'%"{file.id}"%',
        )
        is not None
    )


def _resource(outcome: Outcome) -> Resource:
    return Resource(ResourceKind.OUTCOME, outcome.id)


def _outcome_facts(ctx: Context, outcome: Outcome) -> dict[str, Any]:
    return {
        "home": outcome.owner_id,
        "relation": relation(ctx, outcome),
        "delegated": outcome.delegated,
        "kept_by_remit": outcome.kind is OutcomeKind.INBOX,
        "listed": False,
    }


def require_outcome(ctx: Context, action: Action, outcome: Outcome) -> Decision:
    """Decide about an outcome, or end the call."""
    return ctx.require(action, _resource(outcome), **_outcome_facts(ctx, outcome))


def decide_outcome(ctx: Context, action: Action, outcome: Outcome) -> Decision:
    """What would be decided about an outcome."""
    return ctx.decide(action, _resource(outcome), **_outcome_facts(ctx, outcome))


def relation(ctx: Context, outcome: Outcome) -> Relation:
    """How the asking agent stands to an outcome."""
    me = ctx.actor.agent_id

    def is_reason() -> bool:
        return (
            ctx.tx.one(outcome_statements.IS_REASON_FOR, agent=me, outcome=outcome.id) is not None
        )

    def is_judge() -> bool:
        awaited = outcome.open_waits and ctx.tx.one(
            wait_statements.AWAITED_VERDICT, agent=me, outcome=outcome.id
        )
        return bool(awaited)

    return _relation(me, outcome, ctx.place, is_reason, is_judge)


def _relation(
    me: AgentId | None,
    outcome: Outcome,
    place: Callable[[str], tuple[Any, ...]],
    is_reason: Callable[[], bool],
    is_judge: Callable[[], bool] = lambda: False,
) -> Relation:
    if me is None:
        return Relation.NONE
    if outcome.owner_id == me:
        return Relation.OWNER
    if outcome.delegated and outcome.delegator_id == me:
        return Relation.DELEGATOR
    above = place(outcome.owner_id)[1:]
    if me in above:
        if is_judge():
            return Relation.JUDGE
        return Relation.BOSS if above[0] == me else Relation.ABOVE
    return Relation.REASON if is_reason() else Relation.NONE


def reader(ctx: Context) -> Callable[[Outcome], bool]:
    """Whether the caller may read an outcome, for walks that ask it of many."""
    me = ctx.actor.agent_id
    place = cache(ctx.place)
    reasons: frozenset[str] = frozenset()
    held: dict[str, tuple[Grant, ...]] = {}
    if me is not None:
        reasons = frozenset(ctx.tx.all(outcome_statements.REASONS_OF, agent=me))
        for grant in ctx.tx.all(
            grant_statements.HELD_OF_KIND, holder=me, kind=ResourceKind.OUTCOME.value
        ):
            held[grant.resource_id] = (*held.get(grant.resource_id, ()), grant)

    def decided(owner: str, relation: Relation, granted_on: str | None) -> bool:
        return ctx.decide(
            Action.OUTCOME_READ,
            None if granted_on is None else Resource(ResourceKind.OUTCOME, granted_on),
            place=place(owner),
            held=() if granted_on is None else held[granted_on],
            relation=relation,
        ).allowed

    # Which outcome it is matters only through what is held on it; all others with the same
    # owner, in the same relation, are one question.
    decided_once = cache(decided)

    def may_read(outcome: Outcome) -> bool:
        relation = _relation(me, outcome, place, lambda: outcome.id in reasons)
        granted_on = outcome.id if outcome.id in held else None
        return decided_once(outcome.owner_id, relation, granted_on)

    return may_read


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
            if (named := _named_company(ctx)) is not None:
                ctx.enter(_company_id(ctx, named))
            ctx.enter(found.company_id)
            if ctx.kind is Kind.COMMAND and not ctx.tx.one_by_one:
                # Entering may have waited for another command that changed it.
                found = ctx.tx.one(statement, **key)
    except NotFound:
        found = None
    if found is None:
        raise NotFound.of(what)
    return found


def unique_user_name(tx: Transaction, name: str) -> bool:
    return tx.one(people.USER_BY_NAME, name_key=name_key(name)) is None
