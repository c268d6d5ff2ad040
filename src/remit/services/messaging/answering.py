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


def answered_by_mail(ctx: Context, reply: Message, question_id: QuestionId) -> None:
    """Answer a question by a reply to its letter, if the sender may answer it.

    A reply that names none of the question's options is an ordinary message.
    """
    question = _answerable(ctx, question_id, reply.address.removeprefix("agent:"))
    if question is None:
        return
    text = letters.body_of(ctx, reply)[0].strip()[:LONGEST_QUESTION]
    options = json.loads(question.options)
    if text and (not options or chosen(text, options) is not None):
        end(ctx, question, text)


def who_answers(ctx: Context, question: Question) -> Matter:
    """The facts for the decision who may answer: the asker's present boss, the agent that it was
    passed on to, or the board."""
    asker = lookup.agent_row(ctx, question.agent_id)
    to_boss = asker is not None and question.to_agent_id is not None
    return {
        "over": question.agent_id,
        "target_boss": asker.boss_id if to_boss and asker else None,
        "asked": question.to_agent_id,
    }


def is_awaited(ctx: Context, answered: Message | None, asker: AgentId) -> bool:
    """Return whether a reply to this letter may answer an open question of the agent."""
    if answered is None or answered.question_id is None:
        return False
    return _answerable(ctx, answered.question_id, asker) is not None


def _answerable(ctx: Context, question_id: QuestionId, asker: str) -> Question | None:
    """Return a question of this agent if it is open and the caller may answer it."""
    question = ctx.tx.one(statements.QUESTION_ANYWHERE, question=question_id)
    if (
        question is None
        or question.agent_id != asker
        or question.status is not QuestionStatus.OPEN
        or not ctx.decide(Action.QUESTION_ANSWER, **who_answers(ctx, question)).allowed
    ):
        return None
    return question


def end(ctx: Context, question: Question, text: str, *, other: bool = False) -> Question:
    """Answer a question; with `other`, an answer need not be one of its options."""
    options = json.loads(question.options)
    answer = chosen(text, options) or (text if other or not options else None)
    if answer is None:
        raise BadInput(
            f"The answer must be one of {', '.join(options)}.",
            "Choose one of these, or add --other (other: true in a call) for other words.",
        )
    return close(ctx, question, QuestionStatus.ANSWERED, answer)


def close(
    ctx: Context,
    question: Question,
    status: QuestionStatus,
    answer: str | None,
    *,
    tells: bool = True,
) -> Question:
    """Close a question and settle its letters. With `tells`, the asker is told that somebody else
    cancelled it."""
    if not ctx.tx.run(
        statements.END_QUESTION,
        question=question.id,
        new_status=status.value,
        new_answer=answer,
        by=ctx.actor.address,
    ):
        raise Conflict(f"The question is {question.status.value} already.")
    told = ""
    if tells and status is QuestionStatus.CANCELLED and ctx.actor.agent_id != question.agent_id:
        who = ctx.actor.name or "Remit"
        told = f"{who} cancelled your question, so nobody answers it:\n\n{question.text}"
    waits.end(ctx, WaitKind.QUESTION, question.id, told)
    verb = "answer" if status is QuestionStatus.ANSWERED else "cancel"
    ctx.record(
        f"question.{verb}",
        f"question:{question.id}",
        {"agent": question.agent_id, "answer": answer},
    )
    settle_letters(ctx, question, f"the question was {status.value}")
    inbox.settle_about(
        ctx, waits.matter(WaitKind.QUESTION, question.id), f"the question was {status.value}"
    )
    return ctx.tx.existing(statements.QUESTION_ANYWHERE, question=question.id)


def settle_letters(ctx: Context, question: Question, why: str) -> None:
    """Settle the unread letters of a question."""
    for letter in ctx.tx.all(statements.LETTERS_OF_QUESTION, question=question.id):
        inbox.settle(ctx, letter, why)


def as_letter(question: Question, how: str) -> str:
    """The text of a question's letter; `how` says how it is answered."""
    lines = [question.text, ""]
    if options := json.loads(question.options):
        lines += ["Choose one of:", *(f"- {option}" for option in options), ""]
    return "\n".join([*lines, how])


def letter_of(ctx: Context, question: Question) -> Message | None:
    return ctx.tx.one(statements.LETTER_OF_QUESTION, question=question.id)
