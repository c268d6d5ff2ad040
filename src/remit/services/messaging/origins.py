"""Origins: the letter of a person that an outcome or a message came of.

What a run makes comes of the person's letter that it took up, or of the letter behind the outcome
that started it. If a run took up several, nobody can tell which it was, so they share what it
makes: it is stored with the first, and the others refer to that one. Parts of an outcome inherit
the letter through the tree: nothing is copied, so a moved part changes its letter.
"""

import json
from collections.abc import Iterable, Sequence

from remit.ids import MessageId, RunId
from remit.model.execution.run import Run
from remit.model.messaging.mail import Message
from remit.model.organisation.agent import HUMAN, Agent
from remit.model.organisation.principal import ActorKind
from remit.model.work.outcome import Outcome
from remit.model.work.wish import GRACE, LOOK_AGAIN, Wish, WishStatus
from remit.services import lookup
from remit.services.command import Context
from remit.store.execution import runs as run_statements
from remit.store.work import wishes as statements


def of_message(message: Message) -> MessageId | None:
    """Return the letter behind a message: its origin, or itself if a person wrote it; else None."""
    if message.origin_id is not None:
        return message.origin_id
    return message.id if message.sender_kind is ActorKind.USER else None


def of_outcome(ctx: Context, outcome: str) -> MessageId | None:
    """Return the letter behind an outcome, if there is exactly one."""
    return _only(ctx.tx.all(statements.ORIGINS_BEHIND, outcome=outcome))


def of_run(ctx: Context, run: Run) -> MessageId | None:
    """Return the letter behind what a run makes: the first letter of a person that it took up, or
    else the only one behind its mail, or else behind its outcomes; None if there are several."""
    if letters := from_people(ctx, run):
        return letters[0]
    if behind_mail := of_letters(ctx, run):
        return _only(behind_mail)
    return _only([of_outcome(ctx, outcome) for outcome in json.loads(run.outcome_ids)])


def from_people(ctx: Context, run: Run) -> list[MessageId]:
    """Return the letters of people that a run took up itself."""
    return [
        message.id
        for message in taken_up(ctx, run)
        if message.sender_kind is ActorKind.USER and message.origin_id is None
    ]


def of_letters(ctx: Context, run: Run) -> list[MessageId]:
    """Return the letters of people behind the mail that a run took up."""
    behind = [of_message(message) for message in taken_up(ctx, run)]
    return list(dict.fromkeys(letter for letter in behind if letter is not None))


def taken_up(ctx: Context, run: Run) -> list[Message]:
    """Return the messages that a run took up."""
    rows = [lookup.message_row(ctx, message) for message in json.loads(run.message_ids)]
    return [row for row in rows if row is not None]


def of_caller(ctx: Context) -> MessageId | None:
    """Return the letter behind what the caller makes now."""
    return raised(ctx, ctx.actor.run_id)


def for_part(ctx: Context, parents: Sequence[Outcome]) -> MessageId | None:
    """Return the origin to store with a new part; None if it inherits the same from its parent."""
    run = _run(ctx, ctx.actor.run_id)
    if run is None:
        return None
    made_of = of_run(ctx, run)
    inherited = {of_outcome(ctx, parent.id) for parent in parents} - {None}
    if inherited:
        started_for = set(json.loads(run.outcome_ids))
        # The outcome that started the run has its own letter, whatever else the run read.
        if not of_letters(ctx, run) or any(parent.id in started_for for parent in parents):
            return None
    return None if inherited == {made_of} else made_of


def for_letter(
    ctx: Context, answered: Message | None, origin: MessageId | None = None
) -> MessageId | None:
    """Return the origin to store with a new message. A person's answer to a question belongs to the
    origin of the question; anything else that a person writes is a letter of its own."""
    if origin is not None:
        return origin
    if ctx.actor.kind is ActorKind.USER:
        answers_question = answered is not None and answered.question_id is not None
        return answered.origin_id if answered is not None and answers_question else None
    if ctx.actor.kind is ActorKind.AGENT:
        behind = of_message(answered) if answered is not None else None
        return behind or of_caller(ctx)
    return of_message(answered) if answered is not None else None


def raised(ctx: Context, by_run: RunId | None) -> MessageId | None:
    """Return the letter behind what a run raised, such as an approval."""
    run = _run(ctx, by_run)
    return None if run is None else of_run(ctx, run)


def open_wish(ctx: Context, message: Message, receivers: Iterable[Agent]) -> None:
    """Open a wish for each agent that a person wrote to; people in seats answer as they like."""
    if message.sender_user_id is None or message.origin_id is not None:
        return
    for agent in receivers:
        if agent.adapter_type != HUMAN:
            wish = Wish(
                message_id=message.id,
                company_id=message.company_id,
                user_id=message.sender_user_id,
                agent_id=agent.id,
                status=WishStatus.OPEN,
                look_at=ctx.now + LOOK_AGAIN,
                created_at=ctx.now,
                ended_at=None,
                ended_why=None,
            )
            ctx.tx.add(wish)


def ended(ctx: Context, outcome: Outcome) -> None:
    """Check a wish soon, because an outcome of it ended; the agent that ended it may still write to
    the person first."""
    if outcome.origin_id is not None:
        look_soon(ctx, outcome.origin_id)


def look_soon(ctx: Context, letter: MessageId) -> None:
    ctx.tx.run(statements.LOOK_BY, message=letter, at=ctx.now + GRACE)


def reopened(ctx: Context, outcome: Outcome) -> None:
    """Reopen a wish along with the outcome that was made of it."""
    if outcome.origin_id is not None:
        ctx.tx.run(statements.REOPEN_WISH, message=outcome.origin_id, at=ctx.now + LOOK_AGAIN)


def _run(ctx: Context, run: RunId | None) -> Run | None:
    return None if run is None else ctx.tx.one(run_statements.RUN, run=run)


def _only(message_ids: Sequence[MessageId | None]) -> MessageId | None:
    return message_ids[0] if message_ids and len(set(message_ids)) == 1 else None
