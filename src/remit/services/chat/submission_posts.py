"""Submissions as a chat shows them to their judge: what was handed in, and the verdicts."""

from __future__ import annotations

import json
from collections.abc import Sequence

from remit.ids import short
from remit.model.messaging.channel import Binding
from remit.model.messaging.chat import Post
from remit.model.organisation.statement import FENCE
from remit.model.spelling import spelled, spelled_lines
from remit.model.work.outcome import Outcome
from remit.model.work.wait import Submission, SubmissionStatus
from remit.services import lookup
from remit.services.chat import offers, posts
from remit.services.chat.offers import Offer
from remit.services.command import Context
from remit.services.redaction import text_without_secrets
from remit.services.work import submissions
from remit.store.work import files as file_statements
from remit.store.work import waits as statements

_VERDICTS = {SubmissionStatus.ACCEPTED: "Accepted", SubmissionStatus.RETURNED: "Sent back"}


def show(ctx: Context, binding: Binding, conversation: str, outcome_id: str) -> Post:
    """Post what was handed in for somebody who judges it."""
    outcome = lookup.known_outcome(ctx, outcome_id)
    submission = submissions.handed_in(ctx, outcome)
    text = _text(ctx, outcome, submission)
    rows = _offers(outcome, submission)
    place = offers.place(ctx, "outcome", outcome.id)
    written = offers.lines(binding, rows, place)
    if not posts.fits(binding, text + written):
        rows, written = (), ""
    return posts.put_item(
        ctx,
        binding,
        conversation,
        posts.parts_of(
            binding, text + written, f"It is too long to be shown here. Judge it: {place}"
        ),
        subject=f"submission:{outcome.id}",
        buttons=rows,
        mark=state(ctx, outcome),
        shows=submission.id if submission is not None else "",
        title=text.partition("\n")[0][: offers.LONGEST_TITLE],
    )


def _text(ctx: Context, outcome: Outcome, submission: Submission | None) -> str:
    """Return what was handed in: the words with it, and the names of its files."""
    owner = lookup.name_of(ctx, submission.agent_id if submission else outcome.owner_id)
    lines = [f"Handed in by {owner}: {' '.join(spelled(outcome.title).split())}"]
    if submission is not None and submission.note:
        note = text_without_secrets(submission.note)[0]
        lines += ["", *(f"{FENCE}{line}" for line in spelled_lines(note))]
    evidence = json.loads(submission.evidence) if submission is not None else []
    for shown in evidence:
        file = ctx.tx.one(file_statements.FILE_ANYWHERE, file=shown["id"])
        name = file.description.partition("\n")[0] if file is not None else shown["id"]
        about = f"evidence: {spelled(name)}, version {shown['version']} ({short(shown['id'])})"
        lines += [*([""] if shown is evidence[0] else []), about]
    return "\n".join([*lines, *([] if evidence else ["", "Without evidence."])])


def _offers(outcome: Outcome, submission: Submission | None) -> Sequence[Sequence[Offer]]:
    """Verdicts on what was handed in. To send it back takes words, so it has no button."""
    if submission is None or submission.status is not SubmissionStatus.OPEN:
        return ()
    about = {"outcome": outcome.id, "submission": submission.id}
    named = short(outcome.id)
    accept = Offer({"act": "accept", **about}, f"accept {named}", "Accept")
    return ([accept, Offer({"act": "return", **about}, f"return {named} and what is missing")],)


def state(ctx: Context, outcome: Outcome) -> str:
    """The verdict on what was handed in last; empty while it is awaited."""
    newest = ctx.tx.all(statements.SUBMISSIONS_OF, outcome=outcome.id, limit=1)
    if not newest or newest[0].status is SubmissionStatus.OPEN:
        return ""
    state = _VERDICTS.get(newest[0].status, "Nobody judges it any more")
    note = newest[0].verdict_note
    return f"{state}: {note}" if note else f"{state}."
