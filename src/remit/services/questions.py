"""Questions to the boss or the board. An answer is information; it never changes rights."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from remit.authority import Action
from remit.errors import BadInput
from remit.ids import QuestionId
from remit.model.decision import Decision
from remit.model.mail import heading
from remit.model.question import LONGEST_QUESTION, MOST_OPTIONS, Question, QuestionStatus
from remit.model.text import clean_line, clean_text
from remit.model.wait import WaitKind
from remit.services import answering, cycles, lookup, loose, mail, views, waits
from remit.services.command import Answer, Context, command, query
from remit.services.verbs import Added
from remit.store import mail as statements
from remit.store.statement import row


@command("questions.ask", Added("outcome", None))
def ask(
    ctx: Context,
    *,
    question: object,
    options: Sequence[object] = (),
    to: str | None = None,
    company: str | None = None,
    outcome: str | None = None,
) -> Answer:
    """Ask one's boss, or the board; nobody waits, the answer comes by mail."""
    text = clean_text(question, "question", longest=LONGEST_QUESTION)
    if len(options) > MOST_OPTIONS:
        raise BadInput(f"At most {MOST_OPTIONS} options.", "Ask more openly.")
    choices = [clean_line(option, "option", longest=200) for option in options]
    if len({choice.casefold() for choice in choices}) < len(choices):
        raise BadInput("Two options are the same.", "Give each option once.")
    lookup.company_of_caller(ctx, company)
    if ctx.actor.agent_id is None:
        raise BadInput("Agents ask.", "Write a message instead.")
    me = lookup.agent_row(ctx, ctx.actor.agent_id)
    assert me is not None
    if to not in (None, "boss", "board"):
        raise BadInput("to must be boss or board.", "Choose one of the two.")
    boss = me.boss_id if to != "board" else None
    ctx.require(Action.QUESTION_ASK, on=f"agent:{me.id}", place=(me.id,))
    asked = Question(
        id=QuestionId(ctx.ids.new()),
        company_id=me.company_id,
        agent_id=me.id,
        to_agent_id=boss,
        text=text,
        options=json.dumps(choices),
        status=QuestionStatus.OPEN,
        answer=None,
        answered_by=None,
        created_at=ctx.now,
        ended_at=None,
    )
    about = waits.own(lookup.outcome_anywhere(ctx, outcome), me.id) if outcome else None
    ctx.tx.run(statements.INSERT_QUESTION, **row(asked))
    wait = waits.begin(ctx, WaitKind.QUESTION, asked.id, me.id, to_agent=boss, about=about)
    ctx.record("question.ask", f"question:{asked.id}", {"agent": me.id, "to": boss or "board"})
    mail.post(
        ctx,
        to=f"agent:{boss}" if boss else "board",
        text=_as_letter(asked, choices),
        subject=heading("Question", text),
        question=asked.id,
    )
    return {**views.question(asked), **cycles.told(ctx, wait)}


@command("questions.answer")
def answer(ctx: Context, *, question: str, answer: object, company: str | None = None) -> Answer:
    """Answer a question; the asker gets it as mail, which wakes it."""
    text = clean_text(answer, "answer", longest=LONGEST_QUESTION)
    if company is not None:
        lookup.company_of_caller(ctx, company)
    found = lookup.question(ctx, question, lambda one: _may_answer(ctx, one).allowed)
    ctx.accept(Action.QUESTION_ANSWER, f"question:{found.id}", _may_answer(ctx, found))
    ended = answering.end(ctx, found, text)
    mail.post(
        ctx,
        to=f"agent:{found.agent_id}",
        text=f"You asked: {found.text}\n\nAnswer: {ended.answer}\n",
        subject=heading("Answer", found.text),
        reply_to=answering.letter_of(ctx, found),
        answers=True,
    )
    return views.question(ended)


@query("questions.listing")
def listing(
    ctx: Context,
    *,
    company: str | None = None,
    agent: str | None = None,
    ended_too: bool = False,
    after: str = "",
    limit: int = 100,
) -> list[dict[str, Any]]:
    lookup.company_of_caller(ctx, company)
    found = loose.listed(
        ctx, statements.QUESTIONS, agent=agent, ended_too=ended_too, after=after, limit=limit
    )
    return [views.question(one) for one in found]


def cancel(ctx: Context, found: Question) -> Answer:
    """By its owner, or by somebody above."""
    ctx.require(
        Action.THREAD_CANCEL,
        on=f"question:{found.id}",
        home=found.agent_id,
        place=ctx.place(found.agent_id),
    )
    answering.close(ctx, found, QuestionStatus.CANCELLED, None)
    return {"id": found.id, "status": "cancelled"}


def _may_answer(ctx: Context, found: Question) -> Decision:
    return ctx.decide(Action.QUESTION_ANSWER, **answering.who_answers(ctx, found))


def _as_letter(question: Question, options: Sequence[str]) -> str:
    lines = [question.text, ""]
    if options:
        lines += ["Choose one of:", *(f"- {option}" for option in options), ""]
    lines.append("Answer by replying to this message.")
    return "\n".join(lines)
