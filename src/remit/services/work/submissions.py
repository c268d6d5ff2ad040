"""Submissions for a verdict: their evidence, their judge, and how they end."""

from collections.abc import Sequence

from remit.authority import Action
from remit.ids import AgentId, UserId
from remit.model.organisation.agent import Agent
from remit.model.work.outcome import Outcome
from remit.model.work.wait import Submission, SubmissionStatus, WaitKind
from remit.services import lookup, shapes, views
from remit.services.context import Context
from remit.services.messaging import inbox
from remit.services.subjects import require_file
from remit.services.work import waits
from remit.store.work import waits as statements

MOST_SHOWN = 20


def handed_in(ctx: Context, outcome: Outcome) -> Submission | None:
    """Return the submission that awaits a verdict, if any."""
    return ctx.tx.one(statements.OPEN_SUBMISSION, outcome=outcome.id)


def is_open(ctx: Context, outcome: str, submission: str) -> bool:
    """Return whether a submission of an outcome still awaits its verdict."""
    row = ctx.tx.one(statements.OPEN_SUBMISSION, outcome=outcome)
    return row is not None and row.id == submission


def evidence(ctx: Context, files: Sequence[str]) -> list[shapes.EvidenceShape]:
    """Return the present versions of files, all of which the caller must be allowed to read."""
    seen: dict[str, shapes.EvidenceShape] = {}
    for reference in dict.fromkeys(files):
        file = lookup.file(ctx, reference)
        require_file(ctx, Action.FILE_READ, file)
        seen[file.id] = {"id": file.id, "version": file.version, "hash": file.sha256}
    return list(seen.values())


def close(
    ctx: Context, outcome: Outcome, status: SubmissionStatus, note: str | None = None
) -> Submission | None:
    """End the open submission of an outcome, if there is one, and the wait for its verdict."""
    submission = handed_in(ctx, outcome)
    if submission is not None:
        end(ctx, submission, status, note)
        waits.end(ctx, WaitKind.SUBMISSION, submission.id)
    return submission


def end(
    ctx: Context, submission: Submission, status: SubmissionStatus, note: str | None = None
) -> None:
    ctx.tx.run(
        statements.END_SUBMISSION,
        submission=submission.id,
        new_status=status.value,
        new_note=note,
        by=ctx.actor.address,
    )
    inbox.settle_about(ctx, waits.matter(WaitKind.SUBMISSION, submission.id), "it was judged")


def judge_of(outcome: Outcome, owner: Agent) -> tuple[AgentId | None, UserId | None]:
    """Return the judge: the delegator, or else the owner's boss, an agent or a person."""
    if outcome.delegator_id is not None and outcome.delegator_id != owner.id:
        return outcome.delegator_id, None
    return owner.boss_id, owner.boss_user_id


def shown(ctx: Context, outcome: Outcome) -> list[shapes.SubmissionShape]:
    """The submissions, newest first."""
    submissions = ctx.tx.all(statements.SUBMISSIONS_OF, outcome=outcome.id, limit=MOST_SHOWN)
    return [views.submission(submission) for submission in submissions]
