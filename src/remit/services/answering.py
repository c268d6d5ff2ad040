"""How a question ends: by an answer to it, or by a reply to the letter that carried it."""

from __future__ import annotations

import json

from remit.errors import BadInput, Conflict
from remit.model.mail import Message
from remit.model.question import LONGEST_QUESTION, Question, QuestionStatus
from remit.services.command import Context
from remit.store import mail as statements


def answered_by_mail(ctx: Context, reply: Message, replied: Message | None, text: str) -> None:
    """A reply to the letter that carried a question answers it."""
    if replied is None or replied.question_id is None:
        return
    found = ctx.tx.one(statements.QUESTION_ANYWHERE, question=replied.question_id)
    if (
        found is not None
        and found.status is QuestionStatus.OPEN
        and reply.address == (f"agent:{found.agent_id}")
    ):
        end(ctx, found, text[:LONGEST_QUESTION])


def end(ctx: Context, found: Question, text: str) -> Question:
    options = json.loads(found.options)
    if options and text not in options:
        raise BadInput(f"The answer must be one of {', '.join(options)}.", "Choose one of these.")
    if not ctx.tx.run(
        statements.END_QUESTION,
        question=found.id,
        new_status=QuestionStatus.ANSWERED.value,
        new_answer=text,
        by=ctx.actor.address,
        now=ctx.now,
    ):
        raise Conflict(f"The question is {found.status.value} already.")
    ctx.record("question.answer", f"question:{found.id}", {"answer": text})
    ended = ctx.tx.one(statements.QUESTION_ANYWHERE, question=found.id)
    assert ended is not None
    return ended
