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
    found = changes.required(ctx, change, Action.CHANGE_COMMENT)
    if line is not None and path is None:
        raise BadInput("Which file is the line in?", "Name its path, too.")
    if ctx.actor.agent_id == found.agent_id:
        # Comments by the author of a change are copied to its request at the forge.
        ctx.tx.run(forge_statements.RING, repo=found.repo_id, due=ctx.now)
    made = ChangeComment(
        **new_row(ctx),
        change_id=found.id,
        head_commit=head or found.head_commit,
        path=path,
        line=line,
        side=Side(side or Side.NEW) if line is not None else None,
        body=body,
        agent_id=ctx.actor.agent_id,
        user_id=ctx.actor.user_id,
    )
    ctx.tx.add(made)
    ctx.record("change.comment", f"change:{found.id}", {"comment": made.id, "path": path})
    if found.agent_id != ctx.actor.agent_id:
        authors.tell(
            ctx, found, f"Comment on {found.title}", f"{ctx.actor.name} says{at(made)}:\n\n{body}"
        )
    return changes.view_comment(made)


def at(comment: ChangeComment) -> str:
    if comment.path is None:
        return ""
    return f" about {comment.path}" + (f", line {comment.line}" if comment.line else "")
