"""Questions to the boss or the board. An answer is information; it never changes rights."""

import json
from collections.abc import Iterable, Sequence
from typing import Annotated

from remit.authority import Action
from remit.errors import BadInput
from remit.ids import QuestionId
from remit.model.messaging.mail import heading
from remit.model.messaging.question import LONGEST_QUESTION, MOST_OPTIONS, Question, QuestionStatus
from remit.model.work.wait import WaitKind
from remit.services import lookup, shapes, views
from remit.services.command import Context, command, query
from remit.services.fields import AboutOutcome, CompanyRef, Help, Most, QuestionRef, Text, Words
from remit.services.messaging import answering, letters, mail, visible_pages
from remit.services.new_rows import new_row
from remit.services.subjects import OUTCOME
from remit.services.surfaces import AsCommand, AsRoute, AsTool
from remit.services.verbs import Added
from remit.services.work import cycles, waits
from remit.store.messaging import mail as statements

QuestionText = Annotated[str, Text(LONGEST_QUESTION)]
Option = Annotated[str, Text(200, one_line=True)]


@command(
    "questions.ask",
    Added("outcome", None),
    AsTool("ask", without=("company",), spelled={"outcome": "outcome_id"}),
    AsRoute("POST /companies/{companyId}/questions", "ask_question", 201, without=("outcome",)),
)
def ask(
    ctx: Context,
    *,
    question: QuestionText,
    options: Annotated[Sequence[Option], Most(MOST_OPTIONS)] = (),
    to: Annotated[str, Words(("boss", "board"))] | None = None,
    company: CompanyRef | None = None,
    outcome: AboutOutcome | None = None,
) -> shapes.QuestionWithCycleShape:
    """Ask your boss or the board; your outcome waits, and the answer comes as mail."""
    if len(options) > MOST_OPTIONS:
        raise BadInput(f"At most {MOST_OPTIONS} options.", "Ask more openly.")
    if len({option.casefold() for option in options}) < len(options):
        raise BadInput("Two options are the same.", "Give each option once.")
    lookup.company_of_caller(ctx, company)
    me = lookup.myself(ctx, BadInput("Agents ask.", "Write a message instead."))
    boss = me.boss_id if to != "board" else None
    ctx.require(Action.QUESTION_ASK, on=f"agent:{me.id}", place=(me.id,))
    question_row = Question(
        **new_row(ctx),
        agent_id=me.id,
        to_agent_id=boss,
        text=question,
        options=json.dumps(list(options)),
    )
    about = waits.own(lookup.find(ctx, OUTCOME, outcome), me.id) if outcome else None
    ctx.tx.add(question_row)
    wait = waits.begin(ctx, WaitKind.QUESTION, question_row.id, me.id, to_agent=boss, about=about)
    ctx.record(
        "question.ask", f"question:{question_row.id}", {"agent": me.id, "to": boss or "board"}
    )
    mail.post(
        ctx,
        to=f"agent:{boss}" if boss else "board",
        text=answering.as_letter(question_row, "Answer by replying to this message."),
        subject=heading("Question", question),
        question=question_row.id,
        outcome=about[0].id if about else None,
    )
    return {**views.question(question_row), **cycles.told(ctx, wait)}


@command(
    "questions.answer",
    Added("other", False),
    AsRoute("POST /companies/{companyId}/questions/{id}/answer", "answer_question_in_company"),
    AsRoute("POST /questions/{id}/answer", "answer_question", without=("company",)),
    AsCommand(
        "question answer",
        said="Answered; {agentId:name} gets it as mail.",
        examples=('remit question answer writer "Blue."',),
    ),
)
def answer(
    ctx: Context,
    *,
    question: QuestionRef,
    answer: QuestionText,
    other: Annotated[bool, Help("The answer is none of the options.")] = False,
    company: CompanyRef | None = None,
) -> shapes.QuestionShape:
    """Answer a question; the agent gets it as mail."""
    if company is not None:
        lookup.company_of_caller(ctx, company)
    question_row = lookup.find(ctx, visible_pages.QUESTION, question)
    who = answering.who_answers(ctx, question_row)
    ctx.require(Action.QUESTION_ANSWER, on=f"question:{question_row.id}", **who)
    ended = answering.end(ctx, question_row, answer, other=other)
    mail.post(
        ctx,
        to=f"agent:{question_row.agent_id}",
        text=f"You asked: {question_row.text}\n\nAnswer: {ended.answer}\n",
        subject=heading("Answer", question_row.text),
        reply_to=answering.letter_of(ctx, question_row),
        answers=True,
    )
    return views.question(ended)


listing = visible_pages.lists(
    "question",
    statements.QUESTIONS,
    views.question,
    shapes.QuestionShape,
    "open questions",
    "Questions of agents that nobody answered yet; an agent sees its own.",
)


@query("questions.letters")
def letters_of(ctx: Context, *, company: CompanyRef, questions: Iterable[str]) -> dict[str, str]:
    """By question, the newest letter that asks it, as far as the caller may read that."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.COMPANY_READ, on="questions")
    ids = list(questions)
    ctx.tx.look_ahead(statements.LETTERS_OF_QUESTION, ids)
    sent = [
        letter
        for question in ids
        for letter in ctx.tx.all(statements.LETTERS_OF_QUESTION, question=QuestionId(question))
        if letter.company_id == ctx.company
    ]
    ctx.tx.look_ahead(statements.DELIVERIES_OF, [letter.id for letter in sent])
    newest: dict[str, str] = {}
    for letter in sent:
        if letter.question_id is not None and letters.sees(ctx, letter):
            newest[letter.question_id] = max(letter.id, newest.get(letter.question_id, ""))
    return newest


def cancel(ctx: Context, question: Question) -> shapes.EndedShape:
    """Cancel a question, as its asker or somebody above."""
    ctx.require(Action.THREAD_CANCEL, on=f"question:{question.id}", over=question.agent_id)
    answering.close(ctx, question, QuestionStatus.CANCELLED, None)
    return {"id": question.id, "status": "cancelled"}
