"""Submission of what was accomplished, and the verdict "not yet"; "accepted" is
`outcomes.complete`.

A mandate, or an outcome that was delegated, is judged by its delegator, or else by its owner's
present boss. Until the verdict, its owner waits and is not started for it.
"""

import json
from typing import Annotated

from remit.authority import Action
from remit.errors import Conflict
from remit.ids import AgentId, SubmissionId
from remit.model.messaging.mail import LONGEST_SUBJECT
from remit.model.organisation.agent import Agent
from remit.model.text import plural
from remit.model.work.outcome import Outcome, OutcomeStatus
from remit.model.work.wait import RETURNS_TOLD, Submission, SubmissionStatus, WaitKind
from remit.services import lookup, shapes, views
from remit.services.command import Context, command
from remit.services.execution import waking
from remit.services.fields import Evidence, Help, OutcomeRef, Reason, Remark
from remit.services.governance import approval_engine
from remit.services.subjects import OUTCOME, require_named_outcome, require_outcome
from remit.services.surfaces import AsCommand, AsRoute, AsTool
from remit.services.work import cycles, return_letter, submissions, waits
from remit.store.work import waits as statements


@command(
    "outcomes.submit",
    AsTool(
        "outcome_submit",
        "Hand in your mandate, or an outcome delegated to you; the verdict comes as mail. Your "
        "other outcomes: outcome_complete.",
        id="outcome",
    ),
    AsRoute("POST /outcomes/{id}/submit", "submit_outcome"),
    AsCommand(
        "outcome submit",
        "Submit a delegated outcome; its owner waits for the verdict.",
        said="{title}: submitted; it waits for the verdict.",
    ),
)
def submit(
    ctx: Context,
    *,
    outcome: OutcomeRef,
    evidence: Evidence = (),
    note: Annotated[Remark, Help("Result, in words", model=True)] = "",
) -> shapes.SubmittedOutcomeShape:
    """Hand in a mandate, or an outcome that was delegated to the caller; it waits for a verdict."""
    row = require_named_outcome(ctx, Action.OUTCOME_SUBMIT, outcome)
    _check_can_be_judged(ctx, row)
    shown = submissions.evidence(ctx, evidence)
    decision = require_outcome(ctx, Action.OUTCOME_SUBMIT, row)
    owner = lookup.known_agent(ctx, row.owner_id)
    judge, person = submissions.judge_of(row, owner)
    submission = Submission(
        id=SubmissionId(ctx.ids.new()),
        company_id=row.company_id,
        outcome_id=row.id,
        agent_id=owner.id,
        note=note,
        evidence=json.dumps(shown),
        status=SubmissionStatus.OPEN,
        verdict_note=None,
        judged_by=None,
        created_at=ctx.now,
        ended_at=None,
    )
    ctx.tx.add(submission)
    wait = waits.begin(
        ctx,
        WaitKind.SUBMISSION,
        submission.id,
        owner.id,
        to_agent=judge,
        to_user=person,
        about=[row],
    )
    waking.moved(ctx, row)
    ctx.record(
        "outcome.submit",
        f"outcome:{row.id}",
        {"submission": submission.id, "evidence": shown, "to": judge or person},
        decision,
    )
    if judge is not None:
        _ask_for_verdict(ctx, row, owner, submission, judge)
    return {**_view(ctx, row), **cycles.told(ctx, wait)}


@command(
    "outcomes.return",
    AsTool(
        "outcome_return",
        "Not yet: send back what a report handed in, and say what is missing.",
        id="outcome",
        offer="reports",
    ),
    AsRoute("POST /outcomes/{id}/return", "return_outcome"),
    AsCommand(
        "outcome return",
        "Send back what was submitted, and say what is missing.",
        said="{title}: sent back.",
        examples=('remit outcome return writer "The second half is missing."',),
    ),
)
def send_back(
    ctx: Context,
    *,
    outcome: OutcomeRef,
    note: Annotated[Reason, Help("Missing parts", model=True)],
) -> shapes.JudgedOutcomeShape:
    """Not yet: what was handed in goes back to its owner, with what is missing."""
    row = lookup.find(ctx, OUTCOME, outcome)
    decision = require_outcome(ctx, Action.OUTCOME_FINISH, row)
    handed_in = submissions.close(ctx, row, SubmissionStatus.RETURNED, note)
    if handed_in is None:
        raise Conflict(
            "Nobody has handed it in.",
            "Write to its owner (mail_send), or change the outcome (outcome_update).",
            code="not_submitted",
        )
    count = ctx.tx.one(statements.COUNT_RETURNS, outcome=row.id) or 0
    ctx.record(
        "outcome.return",
        f"outcome:{row.id}",
        {"submission": handed_in.id, "note": note, "returns": count},
        decision,
    )
    approval_engine.tell(
        ctx,
        f"agent:{row.owner_id}",
        f"Not yet: {row.title}"[:LONGEST_SUBJECT],
        return_letter.text(ctx, row, handed_in, note),
        outcome=row.id,
    )
    if count == RETURNS_TOLD:
        _tell_above_judge(ctx, row, count)
    return _view(ctx, row)


def _check_can_be_judged(ctx: Context, outcome: Outcome) -> None:
    if outcome.status is not OutcomeStatus.OPEN:
        raise Conflict(f"The outcome is {outcome.status.value}.", "Hand in open outcomes.")
    if outcome.perpetual:
        raise Conflict(
            "A perpetual outcome is never completed.", "Hand in what was delegated below it."
        )
    if not outcome.delegated:
        raise Conflict(
            "Nobody else judges it: it was not delegated.", "Complete it when it is accomplished."
        )
    if outcome.open_prereqs:
        raise Conflict(
            f"It still waits for {plural(outcome.open_prereqs, 'open outcome')}.",
            "Complete or close what is below it first.",
        )
    if submissions.handed_in(ctx, outcome) is not None:
        raise Conflict(
            "It is handed in already and awaits the verdict.",
            "Go on with something else, or end your run; the verdict comes as mail.",
            code="submitted",
        )


def _ask_for_verdict(
    ctx: Context, outcome: Outcome, owner: Agent, submission: Submission, judge: AgentId
) -> None:
    files = "".join(f"\n- kb://{file['id']}" for file in json.loads(submission.evidence))
    lines = [f"{owner.name} hands in {outcome.title!r} (outcome:{outcome.id})."]
    if submission.note:
        lines += ["", submission.note]
    lines += ["", f"Evidence:{files}" if files else "Without evidence.", ""]
    lines.append(
        "Look at it, then accept it with outcome_complete, or send it back with outcome_return and "
        "what is missing."
    )
    approval_engine.tell(
        ctx,
        f"agent:{judge}",
        f"To judge: {outcome.title}"[:LONGEST_SUBJECT],
        "\n".join(lines),
        attachments=[file["id"] for file in json.loads(submission.evidence)],
        about=waits.matter(WaitKind.SUBMISSION, submission.id),
        outcome=outcome.id,
    )


def _tell_above_judge(ctx: Context, outcome: Outcome, count: int) -> None:
    """Tell the judge's boss, or the board, that judge and owner do not agree."""
    owner = lookup.known_agent(ctx, outcome.owner_id)
    judge, _ = submissions.judge_of(outcome, owner)
    above = lookup.agent_row(ctx, judge) if judge is not None else None
    to = "board" if above is None else approval_engine.boss_address(above)
    approval_engine.tell(
        ctx,
        to,
        f"Sent back {count} times: {outcome.title}"[:LONGEST_SUBJECT],
        f"The work of {owner.name} on {outcome.title!r} (outcome:{outcome.id}) was sent back "
        f"{count} times. Look at what the two do not agree about.",
        outcome=outcome.id,
    )


def _view(ctx: Context, outcome: Outcome) -> shapes.JudgedOutcomeShape:
    now = lookup.known_outcome(ctx, outcome.id)
    return {**views.outcome(now, ctx.now), "submissions": submissions.shown(ctx, now)}
