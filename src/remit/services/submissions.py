"""What was handed in for a verdict: its evidence, who judges it, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from remit.authority import Action
from remit.ids import AgentId, UserId
from remit.model.agent import Agent
from remit.model.outcome import Outcome
from remit.model.wait import Submission, SubmissionStatus, WaitKind
from remit.services import lookup, views, waits
from remit.services.context import Context
from remit.store import waits as statements

MOST_SHOWN = 20


def handed_in(ctx: Context, outcome: Outcome) -> Submission | None:
    """What awaits a verdict, if anything does."""
    return ctx.tx.one(statements.OPEN_SUBMISSION, outcome=outcome.id)


def evidence(ctx: Context, files: Sequence[str]) -> list[dict[str, Any]]:
    """Files that the caller may read, each as it is now."""
    seen = {}
    for reference in dict.fromkeys(files):
        file = lookup.file(ctx, reference, Action.FILE_READ)
        seen[file.id] = {"id": file.id, "version": file.version, "hash": file.sha256}
    return list(seen.values())


def close(
    ctx: Context, outcome: Outcome, status: SubmissionStatus, note: str | None = None
) -> Submission | None:
    """End what is handed in, if anything is; its owner waits no more."""
    found = handed_in(ctx, outcome)
    if found is not None:
        end(ctx, found, status, note)
        waits.end(ctx, WaitKind.SUBMISSION, found.id)
    return found


def end(
    ctx: Context, submission: Submission, status: SubmissionStatus, note: str | None = None
) -> None:
    ctx.tx.run(
        statements.END_SUBMISSION,
        submission=submission.id,
        new_status=status.value,
        new_note=note,
        by=ctx.actor.address,
        now=ctx.now,
    )


def judge_of(outcome: Outcome, owner: Agent) -> tuple[AgentId | None, UserId | None]:
    """Who judges it: the present boss of its owner, an agent or a person."""
    if outcome.delegator_id is not None and outcome.delegator_id != owner.id:
        return outcome.delegator_id, None
    return owner.boss_id, owner.boss_user_id


def shown(ctx: Context, outcome: Outcome) -> list[dict[str, Any]]:
    """What was handed in, newest first."""
    return [
        {
            "id": one.id,
            "agent_id": one.agent_id,
            "note": one.note,
            "evidence": json.loads(one.evidence),
            "status": one.status.value,
            "verdict_note": one.verdict_note,
            "judged_by": one.judged_by,
            "created_at": views.time(one.created_at),
            "ended_at": views.time(one.ended_at),
        }
        for one in ctx.tx.all(statements.SUBMISSIONS_OF, outcome=outcome.id, limit=MOST_SHOWN)
    ]
