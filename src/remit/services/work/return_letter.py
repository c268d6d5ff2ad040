"""Letter about a submission that was sent back: what is missing, what was handed in, the earlier
verdicts, and what people answered meanwhile. Its reader may remember none of it."""

import json

from remit.clock import moment
from remit.ids import AgentId
from remit.model.messaging.mail import Message
from remit.model.messaging.turn import quoted
from remit.model.work.outcome import Outcome
from remit.model.work.wait import Submission, SubmissionStatus
from remit.services import lookup
from remit.services.context import Context
from remit.services.messaging import letters
from remit.store.messaging import mail as mail_statements
from remit.store.work import files as file_statements
from remit.store.work import waits as statements

#: Most earlier verdicts and answers that are repeated, the newest ones.
MOST_REPEATED = 3
#: Most files that are named.
MOST_FILES = 20
#: Longest quotation of a verdict or an answer, in characters.
LONGEST_QUOTE = 300


def text(ctx: Context, outcome: Outcome, handed_in: Submission, note: str) -> str:
    """Return the letter's text."""
    earlier = _earlier(ctx, outcome, handed_in)
    since = (earlier[0].ended_at or 0) if earlier else 0
    of = f"{outcome.title!r} (outcome:{outcome.id})"
    parts = [
        f"{ctx.actor.name} sends back what you handed in for {of}:",
        note,
        _files(ctx, handed_in),
        _listed("Earlier verdicts:", [_verdict(submission) for submission in reversed(earlier)]),
        _listed(
            "Meanwhile people answered you about it:",
            [_answer(ctx, letter) for letter in _answers(ctx, outcome, since)],
        ),
        "Hand it in again with outcome_submit when that is done.",
    ]
    return "\n\n".join(part for part in parts if part)


def _earlier(ctx: Context, outcome: Outcome, handed_in: Submission) -> list[Submission]:
    """Return the submissions that were sent back before, newest first."""
    submissions = ctx.tx.all(
        statements.SUBMISSIONS_OF, outcome=outcome.id, limit=2 * MOST_REPEATED + 1
    )
    return [
        submission
        for submission in submissions
        if submission.status is SubmissionStatus.RETURNED and submission.id < handed_in.id
    ][:MOST_REPEATED]


def _files(ctx: Context, handed_in: Submission) -> str:
    lines = []
    for shown in json.loads(handed_in.evidence)[:MOST_FILES]:
        file = ctx.tx.one(file_statements.FILE, file=shown["id"])
        name = f" {quoted(file.description)}" if file is not None else ", which is gone"
        lines.append(f"kb://{shown['id']}{name}, version {shown['version']}")
    at = moment(handed_in.created_at)
    with_note = f", with the note {quoted(handed_in.note, LONGEST_QUOTE)}" if handed_in.note else ""
    return _listed(f"You handed in at {at}{with_note}:", lines or ["no files"])


def _verdict(submission: Submission) -> str:
    at = moment(submission.ended_at or submission.created_at)
    return f"not yet, at {at}: {quoted(submission.verdict_note or '', LONGEST_QUOTE)}"


def _answers(ctx: Context, outcome: Outcome, since: int) -> list[Message]:
    """Return what people wrote to the owner about an outcome since a time, oldest first."""
    newest = ctx.tx.all(
        mail_statements.FROM_PEOPLE_ABOUT,
        outcome=outcome.id,
        since=since,
        owner=AgentId(outcome.owner_id),
        limit=MOST_REPEATED,
    )
    return newest[::-1]


def _answer(ctx: Context, letter: Message) -> str:
    who = lookup.user_name(ctx, letter.sender_user_id, "a person")
    words = quoted(letters.body_of(ctx, letter)[0].strip(), LONGEST_QUOTE)
    question = lookup.message_row(ctx, letter.reply_to) if letter.reply_to else None
    to = f", to {quoted(letters.title(ctx, question))}" if question is not None else ""
    return f"{who} at {moment(letter.created_at)}{to}: {words}"


def _listed(title: str, lines: list[str]) -> str:
    return "\n".join([title, *(f"- {line}" for line in lines)]) if lines else ""
