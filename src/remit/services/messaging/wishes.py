"""Wishes: each letter from a person to an agent is answered, and the answer comes once.

If a run handled a letter, did not write to its sender and left nothing of it under way, its final
text is sent back. Once the last outcome of a letter has ended and nobody wrote about it, Remit
sends the result. A wish that cannot be answered like that stays open, where its sender sees it.
"""

import json
from collections.abc import Sequence
from typing import Any

from remit.clock import Micros, moment
from remit.errors import RemitError
from remit.ids import MessageId, RunId
from remit.model.execution.run import Run, RunStatus
from remit.model.messaging.mail import (
    MOST_ATTACHMENTS,
    DeliveryStatus,
    Mark,
    Message,
    answer_subject,
    heading,
)
from remit.model.messaging.question import QuestionStatus
from remit.model.organisation.agent import Agent
from remit.model.organisation.principal import SYSTEM, Principal
from remit.model.work.outcome import Outcome, OutcomeStatus
from remit.model.work.wish import GRACE, LOOK_AGAIN, NOTHING_DONE, Wish, WishStatus
from remit.services import lookup, shapes
from remit.services.command import FOR_REMIT, Context, logged
from remit.services.messaging import letters, mail, origins
from remit.services.queues import MOST_AT_ONCE, companies_due, due_here
from remit.store.execution import runs as run_statements
from remit.store.messaging import mail as mail_statements
from remit.store.organisation import people
from remit.store.work import files as file_statements
from remit.store.work import wishes as statements

#: Why a wish ended that only an agent without a model has read.
NO_MODEL = "no model"
#: The longest wait for a run that ended the last outcome and may still write about it.
_LONGEST_GRACE = 3 * GRACE


companies = companies_due("wishes.companies", statements.DUE)


@logged("wishes.look", FOR_REMIT)
def look(ctx: Context, *, company: str) -> int:
    """Answer the wishes of a company that are due and unanswered, and postpone those under way;
    returns how many were due."""
    ctx.enter(company)
    ctx.lock_company()
    due = due_here(ctx, statements.DUE)
    for wish in due:
        _settle(ctx, wish)
    return len(due)


def after_run(ctx: Context, run: Run) -> None:
    """Settle the wishes behind a run that ended well."""
    ended = ctx.tx.existing(run_statements.RUN, run=run.id)
    _share(ctx, ended)
    for letter in origins.of_letters(ctx, ended):
        wish = ctx.tx.one(statements.WISH, message=letter)
        if wish is None or wish.status is not WishStatus.OPEN:
            continue
        if wish.agent_id == run.agent_id:
            for shared_wish in (wish, *ctx.tx.all(statements.SHARING, message=letter)):
                _settle(ctx, shared_wish)
        else:
            # The receiver of the letter may report it first.
            origins.look_soon(ctx, letter)


def _share(ctx: Context, run: Run) -> None:
    """Attribute what a run made to each of the letters that it read."""
    letters = origins.from_people(ctx, run)
    if ctx.tx.one(run_statements.EFFECTS_OF, run=run.id, agent=run.agent_id):
        for letter in letters[1:]:
            ctx.tx.run(statements.SHARE, message=letter, new_with=letters[0])


def end(ctx: Context, letter: str, why: str) -> None:
    ctx.tx.run(statements.END_WISH, message=MessageId(letter), why=why)


def is_under_way(ctx: Context, letter: str) -> bool:
    """Return whether anything of a letter is unread, unfinished or unanswered."""
    questions = ctx.tx.all(statements.QUESTIONS_OF, message=letter)
    return bool(
        ctx.tx.all(statements.UNREAD_OF, message=letter)
        or any(map(can_end, _made(ctx, letter)))
        or any(question.status is QuestionStatus.OPEN for question in questions)
        or ctx.tx.all(statements.UNDECIDED_OF, message=letter, limit=1)
        or ctx.tx.all(statements.UNFINISHED_JOBS_OF, message=letter)
    )


def can_end(outcome: Outcome) -> bool:
    """Return whether an outcome is open and will end. The lasting mandate of an agent that was
    hired for a wish stays open when the wish is long fulfilled."""
    return outcome.status is OutcomeStatus.OPEN and not outcome.perpetual


def answers(
    ctx: Context, message: Message, user: str, *, after: str | None = None, since: Micros = 0
) -> list[Message]:
    """Return the replies to the sender of a letter."""
    reader = last_run(ctx, message.id)
    return ctx.tx.all(
        statements.ANSWERS_TO,
        message=message.id,
        after=after or message.id,
        thread=message.thread_id,
        run=reader.id if reader else "",
        company=message.company_id,
        user=user,
        place=message.channel or "",
        since=since,
        limit=MOST_AT_ONCE,
    )


def _settle(ctx: Context, wish: Wish) -> None:
    """End a wish if it is answered, answer it if no agent will, or check it again later."""
    # The message of a wish is its letter.
    letter = ctx.tx.existing(mail_statements.MESSAGE_ANYWHERE, message=wish.message_id)
    if any(is_under_way(ctx, message_id) for message_id in behind(wish)):
        return _later(ctx, wish, LOOK_AGAIN)
    reached = ctx.tx.all(mail_statements.DELIVERIES_OF, message=letter.id)
    if any(delivery.status is DeliveryStatus.DEAD for delivery in reached):
        return _later(ctx, wish, LOOK_AGAIN)
    if all(delivery.status is DeliveryStatus.CANCELLED for delivery in reached):
        return end(ctx, letter.id, "taken back")
    outcomes = _ended_parts(ctx, wish)
    last = max(outcomes, key=_finished_at, default=None)
    last_letter = ctx.tx.one(statements.LAST_SAID, message=letter.id)
    replies = answers(ctx, letter, wish.user_id, after=last_letter, since=_since(ctx, last))
    if replies:
        return end(ctx, letter.id, _how_answered(ctx, replies[-1]))
    if last is None:
        return _last_words(ctx, wish, letter)
    verdict = _verdict(last)
    if verdict is not None and verdict["by"] == f"user:{wish.user_id}":
        return end(ctx, letter.id, "judged")
    if _may_still_write(ctx, last):
        return _later(ctx, wish, GRACE)
    _send_result(ctx, wish, letter, outcomes)
    return None


def _ended_parts(ctx: Context, wish: Wish) -> list[Outcome]:
    return [
        outcome
        for message_id in behind(wish)
        for outcome in _made(ctx, message_id)
        if outcome.status is not OutcomeStatus.OPEN
        and not ctx.tx.one(statements.OF_NOBODY, outcome=outcome.id)
    ]


def _finished_at(outcome: Outcome) -> Micros:
    return outcome.finished_at or 0


def result_by(ctx: Context, wish: Wish) -> Micros | None:
    """Return until when the result is written about at the latest, by whoever ended the work or by
    Remit; None if no work has just ended."""
    last = max(map(_finished_at, _ended_parts(ctx, wish)), default=0)
    by = last + _LONGEST_GRACE
    return by if wish.status is WishStatus.OPEN and ctx.now < by else None


def _how_answered(ctx: Context, reply: Message) -> str:
    """Return why a wish with this last reply is over."""
    has_no_model = letters.body_of(ctx, reply)[0].startswith(NOTHING_DONE)
    return NO_MODEL if has_no_model else "answered"


def asks_back(ctx: Context, reply: Message) -> bool:
    """Return whether a reply ends with a question, so that its reader is asked to go on."""
    words = letters.body_of(ctx, reply)[0].rstrip().rstrip("*_`\"')")
    return words.endswith(("?", "\uff1f", "\u061f"))


def _later(ctx: Context, wish: Wish, pause: Micros) -> None:
    ctx.tx.run(statements.LOOK_AT, message=wish.message_id, at=ctx.now + pause)


def behind(wish: Wish) -> list[MessageId]:
    """Return the letter of a wish, and the letter that its outcomes are stored with if they are
    shared."""
    return [wish.message_id, *([wish.shared_with] if wish.shared_with else [])]


def _made(ctx: Context, letter: str) -> list[Outcome]:
    return ctx.tx.all(statements.OUTCOMES_OF, message=letter)


def _since(ctx: Context, last: Outcome | None) -> Micros:
    """Return the time from which a message may be about the end of the last outcome: the run that
    ended it may have written just before."""
    if last is None:
        return 0
    run = _ended_by(ctx, last)
    return run.started_at if run is not None else last.finished_at or 0


def _may_still_write(ctx: Context, last: Outcome) -> bool:
    """Return whether the outcome ended only just now, or the run that ended it is still live."""
    ago = ctx.now - (last.finished_at or 0)
    run = _ended_by(ctx, last)
    going_on = run is not None and run.status is RunStatus.RUNNING
    return ago < (_LONGEST_GRACE if going_on else GRACE)


def _verdict(outcome: Outcome) -> shapes.VerdictShape | None:
    return json.loads(outcome.verdict) if outcome.verdict else None


def _ended_by(ctx: Context, outcome: Outcome) -> Run | None:
    verdict = _verdict(outcome)
    run = None if verdict is None else verdict.get("run_id")
    return None if run is None else ctx.tx.one(run_statements.RUN, run=RunId(run))


def last_run(ctx: Context, letter: str) -> Run | None:
    """Return the last run that took up a letter, or something that came of it."""
    return next(reversed(ctx.tx.all(statements.RUNS_OF, message=letter)), None)


def _last_words(ctx: Context, wish: Wish, letter: Message) -> None:
    """Answer a wish that no outcome came of with the final text of its run."""
    agent = lookup.known_agent(ctx, wish.agent_id)
    run = last_run(ctx, letter.id)
    if run is not None and run.status is not RunStatus.COMPLETED:
        return _later(ctx, wish, LOOK_AGAIN)  # failed or ended; its sender sees that
    text = (run.final_response or "").strip() if run is not None else ""
    if run is not None and run.agent_id != agent.id:
        agent = lookup.agent_row(ctx, run.agent_id) or agent
        _say(ctx, wish, letter, _of_another(agent, text), Mark.REPORT)
        return end(ctx, letter.id, "answered")
    idle = run is None or not (
        run.acted or ctx.tx.one(run_statements.EFFECTS_OF, run=run.id, agent=agent.id)
    )
    mark = Mark.LAST_WORDS if idle else Mark.REPORT
    if run is None or not text or not _say_as(ctx, agent, run, wish, letter, text, mark):
        _say(ctx, wish, letter, _for_agent(agent, run, text, idle=idle), mark)
    return end(ctx, letter.id, "answered")


def _of_another(agent: Agent, text: str) -> str:
    """Answer to a letter that was handed on to another agent, which did not write back."""
    words = f"and ended with:\n\n{text}" if text else "and said nothing."
    return f"Nobody wrote to you about your letter. {agent.name} was the last to look at it {words}"


def _for_agent(agent: Agent, run: Run | None, text: str, *, idle: bool) -> str:
    """Remit's own answer, if the agent gave none, or may not write to the person."""
    if text:
        return f"{agent.name} may not write to you. The last words of its run:\n\n{text}"
    if idle or run is None:
        return f"{agent.name} read your letter, did nothing and said nothing."
    return (
        f"{agent.name} dealt with your letter and said nothing. Its work: `remit run show "
        f"{run.id}`."
    )


def _say_as(
    ctx: Context, agent: Agent, run: Run, wish: Wish, letter: Message, text: str, mark: Mark
) -> bool:
    """Send an answer in the agent's name; returns whether that was allowed."""
    with ctx.acting_as(Principal.of(agent, run.id)):
        try:
            _post(ctx, letter, letter.channel or f"user:{wish.user_id}", text, mark)
        except RemitError:
            return False
    return True


def _say(
    ctx: Context,
    wish: Wish,
    letter: Message,
    text: str,
    mark: Mark,
    attachments: Sequence[str] = (),
) -> None:
    if ctx.tx.one(people.MEMBERSHIP, user=wish.user_id) is None:
        return  # the person is no member of the company any more
    with ctx.acting_as(SYSTEM):
        _post(ctx, letter, f"user:{wish.user_id}", text, mark, attachments)


def _post(
    ctx: Context, letter: Message, to: str, text: str, mark: Mark, attachments: Sequence[str] = ()
) -> None:
    content: Any = {
        "subject": answer_subject(letter.subject),
        "text": text,
        "attachments": attachments,
        "mark": mark,
    }
    mail.post(ctx, to=to, reply_to=letter, origin=letter.id, **content)


def _send_result(ctx: Context, wish: Wish, letter: Message, outcomes: list[Outcome]) -> None:
    """Report the outcomes made of a letter: how each ended, and on what evidence."""
    evidence: list[str] = []
    lines = [
        f"Everything that was made of your letter {_called(ctx, letter)} has ended.",
        "Nobody wrote to you about it.",
        "",
    ]
    if ctx.tx.one(statements.IS_SHARED, message=letter.id):
        lines.insert(
            2, "Another letter was read along with it, and some of this may be about that."
        )
    for outcome in outcomes:
        verdict = _verdict(outcome)
        note = f": {verdict['note']}" if verdict and verdict["note"] else "."
        at = moment(outcome.finished_at or ctx.now)
        lines.append(
            f"- {outcome.status.value} at {at}: {outcome.title} (outcome:{outcome.id}){note}"
        )
        shown = verdict["evidence"] if verdict else []
        lines += [f"  evidence: kb://{file['id']}" for file in shown] or ["  without evidence"]
        evidence += [file["id"] for file in shown]
    attached = [
        file
        for file in dict.fromkeys(evidence)
        if ctx.tx.one(file_statements.FILE, file=file) is not None
    ][:MOST_ATTACHMENTS]
    _say(ctx, wish, letter, "\n".join(lines), Mark.RESULT, attached)
    end(ctx, letter.id, "result")


def _called(ctx: Context, letter: Message) -> str:
    words = letter.subject or first_words(ctx, letter)
    return f"{words!r} of {moment(letter.created_at)}"


def first_words(ctx: Context, letter: Message) -> str:
    """Return the first words of a letter without a subject, as its title."""
    text = heading("", letters.body_of(ctx, letter)[0]).removeprefix(": ").strip()
    return f"{text[:80].rstrip()}…" if len(text) > 80 else text or "(no text)"
