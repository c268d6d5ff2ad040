"""Comments about a change and its lines; the author gets them as mail."""

from typing import Annotated

from remit.authority import Action
from remit.errors import BadInput
from remit.model.connections.change import LONGEST_COMMENT, LONGEST_PATH, ChangeComment, Side
from remit.services import shapes
from remit.services.changes import authors, changes
from remit.services.command import Context, command
from remit.services.fields import ChangeRef, Help, Range, Text
from remit.services.new_rows import new_row
from remit.services.surfaces import AsCommand, AsRoute, AsTool
from remit.store.connections import forges as forge_statements

Line = Annotated[int, Range(1, 10_000_000), Help("The line of it.")]


@command(
    "changes.comment",
    AsTool("repo_comment", "Say something about a change, or about a line of it.", offer="changes"),
    AsRoute("POST /changes/{id}/comments", "comment_change", 201),
    AsCommand("change comment", said="Its author has it as mail."),
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
        authors.tell(
            ctx,
            change_row,
            f"Comment on {change_row.title}",
            f"{ctx.actor.name} says{at(comment_row)}:\n\n{body}",
        )
    return changes.view_comment(comment_row)


def at(comment: ChangeComment) -> str:
    if comment.path is None:
        return ""
    return f" about {comment.path}" + (f", line {comment.line}" if comment.line else "")
