"""Endings of changes: merged, with the commit as evidence, or closed."""

from remit.errors import Conflict
from remit.model.connections.change import Change, ChangeStatus
from remit.model.connections.repo import Repo
from remit.services.changes import changes, checks, errands
from remit.services.command import Context
from remit.store.connections import changes as statements
from remit.store.connections import forges as forge_statements


def merged(ctx: Context, change: Change, commit: str, by: str) -> Change:
    """End a change as merged by this commit, and give its author a file as evidence."""
    ended = _end(ctx, change, ChangeStatus.MERGED, f"merged by {by}", commit)
    text = (
        f"# {change.title}\n\n"
        f"Merged into {change.target} of {changes.repo_of(ctx, change).name} by {by}.\n\n"
        f"- commit: {commit}\n- proposed: {change.head_commit}\n- from: {change.base_commit}\n"
        f"- change: {change.id}\n"
        + "".join(
            f"- check {check.name}: {check.state}, kb_file:{check.evidence_id}\n"
            for check in checks.of_change(ctx, change)
            if check.evidence_id is not None
        )
    )
    evidence = changes.evidence(ctx, change, f"Merged: {change.title}", text)
    ctx.record(
        "change.merged",
        f"change:{change.id}",
        {"commit": commit, "head": change.head_commit, "by": by, "evidence": evidence.id},
    )
    changes.tell(
        ctx,
        ended,
        f"Merged: {change.title}",
        f"It is in {change.target} since commit {commit}, by {by}. kb_file:{evidence.id} says so: "
        "name it as evidence when you hand in what it was for.",
        [evidence.id],
    )
    return ended


def closed(ctx: Context, change: Change, by: str, why: str = "", *, how: str = "closed") -> Change:
    """End a change without a merge. A pushed branch stays at the remote; its request is closed."""
    ended = _end(ctx, change, ChangeStatus.CLOSED, f"{how} by {by}")
    ctx.record("change.closed", f"change:{change.id}", {"by": by, "why": why})
    ctx.tx.run(forge_statements.RING, repo=change.repo_id, due=ctx.now)
    if change.agent_id != ctx.actor.agent_id:
        text = f"{by} {how} it without taking it in. {why}"
        changes.tell(ctx, ended, f"{how.capitalize()}: {change.title}", text)
    return ended


def _end(
    ctx: Context, change: Change, status: ChangeStatus, why: str, commit: str | None = None
) -> Change:
    if not ctx.tx.run(
        statements.END,
        change=change.id,
        new_status=status.value,
        new_merged_commit=commit,
        new_ended_why=why,
    ):
        raise Conflict("The change has ended already.", "Look at it again.")
    checks.leave(ctx, change, f"the change is {status.value}")
    return changes.existing(ctx, change.id)


def end_all_in(ctx: Context, repo: Repo) -> None:
    """Close every open change of a repository that is removed, and cancel its errands."""
    waiting = ctx.tx.all(statements.UNFINISHED_IN, repo=repo.id)
    errands.cancel(ctx, waiting, "the repository was removed")
    for change in ctx.tx.all(statements.OPEN_IN_REPO, repo=repo.id, limit=10_000):
        closed(ctx, change, ctx.actor.name, "The repository was removed.")
