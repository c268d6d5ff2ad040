"""Comments on changes, and decisions: approve, return, decline, withdraw, merge.

A decision names the two commits that were looked at, and is refused if the author proposed others
since. The merge is an errand: it is pinned to the same two commits, and its commit is recorded
before the push, so that the next process after a crash finds out whether the push happened, and
pushes once.
"""

import json
from typing import Annotated, cast

from remit.authority import Action
from remit.errors import BadInput, Conflict
from remit.model.connections.change import (
    LONGEST_COMMENT,
    LONGEST_PATH,
    Change,
    ChangeComment,
    ChangeDecision,
    ChangeStatus,
    Errand,
    MergeMethod,
    Side,
)
from remit.model.connections.forge import merge_methods
from remit.model.organisation.decision import Effect, allow, deny
from remit.model.organisation.principal import ActorKind
from remit.services import lookup, shapes
from remit.services.changes import changes, checks, endings, errands, pushing
from remit.services.command import FOR_REMIT, Context, command, query
from remit.services.fields import ChangeRef, Help, Range, Reason, Remark, Text
from remit.services.new_rows import new_row
from remit.services.organisation import halts
from remit.services.queues import MOST_AT_ONCE
from remit.services.shape_basics import JsonObject
from remit.services.surfaces import AsCommand, AsRoute, AsTool
from remit.store.connections import changes as statements
from remit.store.connections import forges as forge_statements

Commit = Annotated[str, Text(64, one_line=True)]
Head = Annotated[Commit, Help("The commit that was looked at", model=True)]
Base = Annotated[Commit, Help("The commit that it was compared with", model=True)]
Judged = Annotated[Remark, Help("Note for the author.")]
_JUDGES = allow("judge", "You may have it taken in, if need be after asking.")


@command(
    "changes.push",
    AsRoute("POST /changes/{id}/push", "push_change", 202),
    AsCommand(
        "change push",
        said="{title} is being pushed.",
        examples=("remit change push 4b6f2d91a0c7 HEAD BASE  # as `remit change show` says",),
    ),
)
def push(ctx: Context, *, change: ChangeRef, head: Head, base: Base) -> shapes.ChangeShape:
    """Have a proposal pushed that a person looks at first, as it was seen. The forge runs it from
    then on."""
    change_row = _judged(ctx, change, head, base)
    if not change_row.awaits_look(changes.repo_of(ctx, change_row).push):
        raise Conflict("It is pushed already, or will be.", "Look at its state.")
    return changes.view(ctx, pushing.release(ctx, change_row))


@command(
    "changes.approve",
    AsTool("repo_approve", "Approve another's change, as you saw it.", offer="merging"),
    AsRoute("POST /changes/{id}/approve", "approve_change"),
    AsCommand(
        "change approve",
        said="{title} is approved.",
        examples=("remit change approve 4b6f2d91a0c7 HEAD BASE  # as `remit change show` says",),
    ),
)
def approve(
    ctx: Context, *, change: ChangeRef, head: Head, base: Base, note: Judged = ""
) -> shapes.ChangeShape:
    """Say that a change is good as it is. It is not taken in by that."""
    change_row = _judged(ctx, change, head, base)
    if ctx.actor.kind is ActorKind.USER:
        change_row = pushing.release(ctx, change_row)
    now = _decide(ctx, change_row, ChangeDecision.APPROVED, note)
    remark = f" and says:\n\n{note}" if note else "."
    changes.tell(ctx, now, f"Approved: {now.title}", f"{ctx.actor.name} approved it{remark}")
    return changes.view(ctx, now)


@command(
    "changes.return",
    AsTool("repo_return", "Send another's change back to its author.", offer="merging"),
    AsRoute("POST /changes/{id}/return", "return_change"),
    AsCommand(
        "change return",
        said="{title} went back to its author.",
        examples=('remit change return 4b6f2d91a0c7 HEAD BASE "Add a test."',),
    ),
)
def return_(
    ctx: Context,
    *,
    change: ChangeRef,
    head: Head,
    base: Base,
    note: Annotated[Reason, Help("Changes that are wanted.")],
) -> shapes.ChangeShape:
    """Have the author change something first; what the change is for is due again."""
    change_row = _judged(ctx, change, head, base)
    now = _decide(ctx, change_row, ChangeDecision.RETURNED, note)
    changes.tell(
        ctx,
        now,
        f"Returned: {now.title}",
        f"{ctx.actor.name} wants it changed before it is taken in:\n\n{note}\n\n"
        "Mend it on the same branch and propose that again.",
    )
    return changes.view(ctx, now)


@command(
    "changes.decline",
    AsTool("repo_decline", "End another's change without taking it in.", offer="merging"),
    AsRoute("POST /changes/{id}/decline", "decline_change"),
    AsCommand(
        "change decline",
        said="{title} is declined.",
        examples=('remit change decline 4b6f2d91a0c7 HEAD BASE "We do not need it."',),
    ),
)
def decline(
    ctx: Context,
    *,
    change: ChangeRef,
    head: Head,
    base: Base,
    note: Annotated[Reason, Help("Why it is not wanted.")],
) -> shapes.ChangeShape:
    """End a change without taking it in. Its branch stays at the remote."""
    change_row = _judged(ctx, change, head, base)
    return _given_up(ctx, change_row, "declined", note)


@command(
    "changes.withdraw",
    AsTool("repo_withdraw", "Take your own change back.", offer="changes"),
    AsRoute("POST /changes/{id}/withdraw", "withdraw_change"),
    AsCommand("change withdraw", said="{title} is withdrawn."),
)
def withdraw(
    ctx: Context, *, change: ChangeRef, note: Annotated[Remark, Help("Why.")] = ""
) -> shapes.ChangeShape:
    """Take a change of one's own back. Its branch stays at the remote."""
    change_row = lookup.find(ctx, changes.CHANGE, change)
    decision = changes.decide(ctx, Action.CHANGE_COMMENT, change_row)
    if decision.effect is not Effect.DENY and change_row.agent_id != ctx.actor.agent_id:
        decision = deny("not_author", "A change is withdrawn by its author alone.")
    ctx.accept(Action.CHANGE_COMMENT, f"change:{change_row.id}", decision)
    if change_row.status is not ChangeStatus.OPEN:
        raise Conflict(f"The change is {change_row.status.value}.", "Look at it again.")
    errands.refuse_merging(ctx, change_row)
    return _given_up(ctx, change_row, "withdrawn", note)


def _given_up(ctx: Context, change: Change, how: str, note: str) -> shapes.ChangeShape:
    waiting = ctx.tx.all(statements.UNFINISHED_OF, change=change.id)
    errands.cancel(ctx, waiting, f"the change is {how}")
    return changes.view(ctx, endings.closed(ctx, change, ctx.actor.name, note, how=how))


@command(
    "changes.merge",
    AsTool("repo_merge", "Have another's change taken in, as you saw it.", offer="merging"),
    AsRoute("POST /changes/{id}/merge", "merge_change", 202),
    AsCommand(
        "change merge",
        said="{title} is being merged into {target}.",
        examples=("remit change merge 4b6f2d91a0c7 HEAD BASE  # as `remit change show` says",),
    ),
)
def merge(
    ctx: Context,
    *,
    change: ChangeRef,
    head: Head,
    base: Base,
    method: Annotated[str, MergeMethod, Help("How its commits come into the branch.")] = "merge",
    note: Judged = "",
) -> shapes.ChangeShape:
    """Merge exactly these commits of a change, once the required checks that are still running
    have passed."""
    change_row = changes.required(ctx, change, Action.CHANGE_MERGE)
    _same(change_row, head, base)
    forge = changes.repo_of(ctx, change_row).forge
    if method not in merge_methods(forge):
        raise BadInput(f"{forge} does not fast-forward.", "Merge it, or squash it.")
    errands.refuse_merging(ctx, change_row)
    # The judge does not wait for the checks: the errand does.
    checks.refuse_unchecked(ctx, change_row, changes.repo_of(ctx, change_row), still_running=True)
    change_row = pushing.release(ctx, change_row)
    if change_row.is_decided and change_row.decision is ChangeDecision.RETURNED and not note:
        raise Conflict(
            "It was returned to its author.", "Say with a note why it is taken in all the same."
        )
    if not (change_row.is_decided and change_row.decision is ChangeDecision.APPROVED):
        change_row = _decide(ctx, change_row, ChangeDecision.APPROVED, note)
    pinned = {"head": head, "base": base, "method": method, "by": ctx.actor.name}
    errands.put(ctx, change_row, Errand.MERGE, **pinned)
    ctx.record("change.merge", f"change:{change_row.id}", pinned)
    return changes.view(ctx, change_row)


def _judged(ctx: Context, text: str, head: str, base: str) -> Change:
    """Return a change to somebody who may judge it; a right to merge after approval is enough."""
    change = lookup.find(ctx, changes.CHANGE, text)
    decision = changes.decide(ctx, Action.CHANGE_MERGE, change)
    if decision.effect is Effect.ASK:
        decision = _JUDGES
    ctx.accept(Action.CHANGE_MERGE, f"change:{change.id}", decision)
    _same(change, head, base)
    errands.refuse_merging(ctx, change)
    return change


def _same(change: Change, head: str, base: str) -> None:
    """Refuse unless the change is open and these are its proposed commits."""
    if change.status is not ChangeStatus.OPEN:
        raise Conflict(f"The change is {change.status.value}.", "Look at it again.")
    if (head, base) != (change.head_commit, change.base_commit):
        raise Conflict(
            "Something else is proposed by now than what you looked at.",
            "Look at it again, and decide about that.",
            code="change_moved",
        )


def _decide(ctx: Context, change: Change, decision: ChangeDecision, note: str) -> Change:
    if not ctx.tx.run(
        statements.DECIDE,
        change=change.id,
        seen_version=change.version,
        new_decision=decision.value,
        new_decision_note=note,
        new_decided_head=change.head_commit,
        new_decided_base=change.base_commit,
        new_decided_by_agent=ctx.actor.agent_id,
        new_decided_by_user=ctx.actor.user_id,
    ):
        raise Conflict("The change was changed meanwhile.", "Look at it again.")
    about = {"head": change.head_commit, "base": change.base_commit, "note": note}
    ctx.record(f"change.{decision.value}", f"change:{change.id}", about)
    return changes.existing(ctx, change.id)


@query("reviews.material")
def material(ctx: Context, *, change: str) -> shapes.ReviewMaterialShape:
    """Return what is needed to show the diff of a change."""
    change_row = changes.required(ctx, change, Action.CHANGE_READ)
    return {
        "change": change_row,
        "detail": changes.detail(ctx, change_row),
        "judges": changes.decide(ctx, Action.CHANGE_MERGE, change_row).effect is not Effect.DENY,
        **changes.source(ctx, change_row),
    }


# ── for the worker that runs the errand ─────────────────────────────────────────────────────────


@query("reviews.ready", FOR_REMIT)
def ready(ctx: Context) -> list[tuple[str, str]]:
    """Return the merge errands that are due, each with its repository."""
    rows = ctx.tx.all(statements.READY_TO_MERGE, limit=MOST_AT_ONCE)
    return [(row.id, row.repo_id) for row in rows]


@command("reviews.intend", FOR_REMIT)
def intend(ctx: Context, *, errand: str, epoch: int, commit: str) -> shapes.OfChangeShape:
    """Record the commit that is about to be pushed; refuse if the change may not be merged any
    more."""
    errand_row, change = errands.held(ctx, errand, epoch)
    pinned: JsonObject = json.loads(errand_row.details)
    _same(change, pinned["head"], pinned["base"])
    halts.refuse_stopped(ctx, lookup.known_agent(ctx, change.agent_id))
    checks.refuse_unchecked(ctx, change, changes.repo_of(ctx, change))
    details = json.dumps({**pinned, "commit": commit})
    ctx.tx.run(statements.SET_DETAILS, errand=errand, epoch=epoch, new_details=details)
    ctx.record("change.intend", f"change:{change.id}", {"commit": commit, **pinned})
    return {"change": change.id}


@command("reviews.taken_in")
def taken_in(ctx: Context, *, errand: str, epoch: int, commit: str) -> shapes.OfChangeShape:
    """End a change as merged by this commit, and its errand as done."""
    errand_row, change = errands.held(ctx, errand, epoch)
    endings.merged(ctx, change, commit, json.loads(errand_row.details)["by"])
    errands.delivered.body(ctx, errand=errand, epoch=epoch)
    return {"change": change.id}


@command("reviews.refused", FOR_REMIT)
def refused(
    ctx: Context, *, errand: str, epoch: int, why: str, conflicts: bool
) -> shapes.EndedShape:
    """Reject a merge for good, and tell the author and the decider why; it is not retried."""
    _, change = errands.held(ctx, errand, epoch)
    if conflicts and change.status is ChangeStatus.OPEN:
        ctx.tx.run(statements.SET_CONFLICTS, change=change.id, new_conflicts=True)
    ended = errands.failed.body(ctx, errand=errand, epoch=epoch, why=why, for_good=True)
    return cast(shapes.EndedShape, ended)


# ── comments ────────────────────────────────────────────────────────────────────────────────────

Line = Annotated[int, Range(1, 10_000_000), Help("The line of it.")]


@command(
    "changes.comment",
    AsTool("repo_comment", "Say something about a change, or about a line of it.", offer="changes"),
    AsRoute("POST /changes/{id}/comments", "comment_change", 201),
    AsCommand(
        "change comment",
        said="Its author has it as mail.",
        examples=('remit change comment 4b6f2d91a0c7 "Why a new dependency?"',),
    ),
)
def comment(
    ctx: Context,
    *,
    change: ChangeRef,
    body: Annotated[str, Text(LONGEST_COMMENT)],
    path: Annotated[str, Text(LONGEST_PATH, one_line=True), Help("The file that it is about.")]
    | None = None,
    line: Line | None = None,
    side: Annotated[str, Side, Help("Of the line: as it is now, or as it was.")] | None = None,
    head: Annotated[str, Text(64, one_line=True), Help("The commit that it is about.")]
    | None = None,
) -> shapes.ChangeCommentShape:
    """Say something about a change; its author reads it as mail."""
    change_row = changes.required(ctx, change, Action.CHANGE_COMMENT)
    if line is not None and path is None:
        raise BadInput("Which file is the line in?", "Name its path, too.")
    if ctx.actor.agent_id == change_row.agent_id:
        # Comments by the author of a change are copied to its request at the forge.
        ctx.tx.run(forge_statements.RING, repo=change_row.repo_id, due=ctx.now)
    comment_row = ChangeComment(
        **new_row(ctx),
        change_id=change_row.id,
        head_commit=head or change_row.head_commit,
        path=path,
        line=line,
        side=Side(side or Side.NEW) if line is not None else None,
        body=body,
        agent_id=ctx.actor.agent_id,
        user_id=ctx.actor.user_id,
    )
    ctx.tx.add(comment_row)
    ctx.record(
        "change.comment", f"change:{change_row.id}", {"comment": comment_row.id, "path": path}
    )
    if change_row.agent_id != ctx.actor.agent_id:
        changes.tell(
            ctx,
            change_row,
            f"Comment on {change_row.title}",
            f"{ctx.actor.name} says{comment_row.place}:\n\n{body}",
        )
    return changes.view_comment(comment_row)
