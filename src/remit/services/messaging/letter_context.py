"""Context of a letter for its reader: what it answers, and the outcome that it is about.

By default an agent's runs share no conversation, so a letter has to make sense by itself. A
reader is shown only what it may see.
"""

import json
from collections.abc import Iterator

from remit.authority import Action
from remit.ids import OutcomeId, RunId
from remit.model.messaging.mail import Message, heading
from remit.model.work.outcome import Outcome
from remit.services import shapes
from remit.services.command import Context
from remit.services.messaging import letters
from remit.services.subjects import decide_outcome
from remit.store.execution import runs as run_statements
from remit.store.messaging import mail as statements
from remit.store.work import outcomes as outcome_statements

#: Most bytes that are quoted of the letter that was answered, and of the one before it; together at
#: most 300 tokens.
MOST_QUOTED = (600, 300)


def outcome_about(
    ctx: Context, answered: Message | None, named: str | None = None
) -> OutcomeId | None:
    """Return the outcome to store with a new letter: the named one, or that of the letter that it
    answers, or the only one that its run works on."""
    if named is not None:
        return OutcomeId(named)
    if answered is not None and answered.outcome_id is not None:
        return answered.outcome_id
    return outcome_of_run(ctx, ctx.actor.run_id)


def outcome_of_run(ctx: Context, run_id: RunId | None) -> OutcomeId | None:
    """Return the outcome that a run works on, if it was started for one alone and read no mail."""
    run = ctx.tx.one(run_statements.RUN, run=run_id) if run_id is not None else None
    if run is None or run.message_ids != "[]":
        return None
    outcomes = json.loads(run.outcome_ids)
    return OutcomeId(outcomes[0]) if len(outcomes) == 1 else None


def of_letter(ctx: Context, message: Message) -> shapes.LetterContextShape:
    """Return the letters that one answers, oldest first, and its outcome, as its reader may see."""
    chain = list(_answered(ctx, message))
    quotes = [
        _quote(ctx, answered, most) for answered, most in zip(chain, MOST_QUOTED, strict=False)
    ]
    return {
        "in_reply_to": _named(quotes[0]) if quotes else None,
        "quotes": quotes[::-1],
        "about": _about(ctx, message),
    }


def _answered(ctx: Context, message: Message) -> Iterator[Message]:
    """The letter that one answers, the letter that this one answers, and so on."""
    while message.reply_to is not None:
        before = ctx.tx.one(statements.MESSAGE_ANYWHERE, message=message.reply_to)
        if before is None or not letters.sees(ctx, before):
            return
        yield before
        message = before


def _quote(ctx: Context, message: Message, most: int) -> shapes.QuoteShape:
    shown = letters.shown(ctx, message)
    text = shown["body"].strip()
    cut = _without_middle(text, most)
    return {
        "id": message.id,
        "title": message.subject or heading("", text).removeprefix(": "),
        "sender": shown["sender"],
        "sender_name": shown["sender_name"],
        "created_at": shown["created_at"],
        "body": cut,
        "body_cut": shown["body_cut"] or cut != text,
    }


def _named(quote: shapes.QuoteShape) -> shapes.TitledIdShape:
    return {"id": quote["id"], "title": quote["title"]}


def _about(ctx: Context, message: Message) -> shapes.TitledIdShape | None:
    if message.outcome_id is None:
        return None
    outcome = ctx.tx.one(outcome_statements.OUTCOME, outcome=message.outcome_id)
    if outcome is None or not _may_read(ctx, outcome):
        return None
    return {"id": outcome.id, "title": outcome.title}


def _may_read(ctx: Context, outcome: Outcome) -> bool:
    return decide_outcome(ctx, Action.OUTCOME_READ, outcome).allowed


def _without_middle(text: str, most: int) -> str:
    """Return a text within a limit of bytes. A question tends to end a letter, so most of what is
    kept is its end."""
    raw = text.encode(errors="replace")
    if len(raw) <= most:
        return text
    head, tail = raw[: most // 3], raw[-(most - most // 3) :]
    return f"{head.decode(errors='ignore')} […] {tail.decode(errors='ignore')}"
