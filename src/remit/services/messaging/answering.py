"""End of a question: by an answer, by a reply to its letter, or by cancellation."""

import json

from remit.authority import Action
from remit.errors import BadInput, Conflict
from remit.ids import AgentId, QuestionId
from remit.model.messaging.mail import Message
from remit.model.messaging.question import LONGEST_QUESTION, Question, QuestionStatus, chosen
from remit.model.work.wait import WaitKind
from remit.services import lookup
from remit.services.command import Context
from remit.services.context import Matter
from remit.services.messaging import inbox, letters
from remit.services.work import waits
from remit.store.messaging import mail as statements


def answered_by_mail(ctx: Context, reply: Message, question: QuestionId) -> None:
    """Answer a question by a reply to its letter, if the sender may answer it.

    A reply that names none of the question's options is an ordinary message.
    """
    found = ctx.tx.one(statements.QUESTION_ANYWHERE, question=question)
    if (
        found is None
        or found.status is not QuestionStatus.OPEN
        or reply.address != f"agent:{found.agent_id}"
        or not ctx.decide(Action.QUESTION_ANSWER, **who_answers(ctx, found)).allowed
    ):
        return
    text = letters.body_of(ctx, reply)[0].strip()[:LONGEST_QUESTION]
    options = json.loads(found.options)
    if text and (not options or chosen(text, options) is not None):
        end(ctx, found, text)


def who_answers(ctx: Context, found: Question) -> Matter:
    """The facts for the decision who may answer: the asker's present boss, the agent that it was
    passed on to, or the board."""
    asker = lookup.agent_row(ctx, found.agent_id)
    to_boss = asker is not None and found.to_agent_id is not None
    return {
        "over": found.agent_id,
        "target_boss": asker.boss_id if to_boss and asker else None,
        "asked": found.to_agent_id,
    }


def is_awaited(ctx: Context, answered: Message | None, asker: AgentId) -> bool:
    """Return whether a reply to this letter may answer an open question of the agent."""
    if answered is None or answered.question_id is None:
        return False
    found = ctx.tx.one(statements.QUESTION_ANYWHERE, question=answered.question_id)
    return (
        found is not None
        and found.agent_id == asker
        and found.status is QuestionStatus.OPEN
        and ctx.decide(Action.QUESTION_ANSWER, **who_answers(ctx, found)).allowed
    )


def end(ctx: Context, found: Question, text: str) -> Question:
    options = json.loads(found.options)
    answer = chosen(text, options) if options else text
    if answer is None:
        raise BadInput(f"The answer must be one of {', '.join(options)}.", "Choose one of these.")
    return close(ctx, found, QuestionStatus.ANSWERED, answer)


def close(
    ctx: Context, found: Question, status: QuestionStatus, answer: str | None, *, tells: bool = True
) -> Question:
    """Close a question and settle its letters. With `tells`, the asker is told that somebody else
    cancelled it."""
    if not ctx.tx.run(
        statements.END_QUESTION,
        question=found.id,
        new_status=status.value,
        new_answer=answer,
        by=ctx.actor.address,
    ):
        raise Conflict(f"The question is {found.status.value} already.")
    told = ""
    if tells and status is QuestionStatus.CANCELLED and ctx.actor.agent_id != found.agent_id:
        who = ctx.actor.name or "Remit"
        told = f"{who} cancelled your question, so nobody answers it:\n\n{found.text}"
    waits.end(ctx, WaitKind.QUESTION, found.id, told)
    verb = "answer" if status is QuestionStatus.ANSWERED else "cancel"
    ctx.record(
        f"question.{verb}", f"question:{found.id}", {"agent": found.agent_id, "answer": answer}
    )
    settle_letters(ctx, found, f"the question was {status.value}")
    return ctx.tx.existing(statements.QUESTION_ANYWHERE, question=found.id)


def settle_letters(ctx: Context, found: Question, why: str) -> None:
    """Settle the unread letters of a question."""
    for letter in ctx.tx.all(statements.LETTERS_OF_QUESTION, question=found.id):
        inbox.settle(ctx, letter, why)


def letter_of(ctx: Context, found: Question) -> Message | None:
    return ctx.tx.one(statements.LETTER_OF_QUESTION, question=found.id)
