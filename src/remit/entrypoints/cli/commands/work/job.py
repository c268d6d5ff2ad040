"""`remit job`: background jobs of agents, and cancelling them."""

from typing import Any

from remit.entrypoints.cli import references
from remit.entrypoints.cli.drawing import cells, run_view
from remit.entrypoints.cli.options import REFERENCES, Group, Session

job = Group("job", help="Background jobs of agents.")


def _took(session: Session, view: dict[str, Any]) -> str:
    return run_view.took(session, view) if view["startedAt"] else ""


def job_id(session: Session, text: str) -> str:
    return references.picked(session, text, "job", "See `remit job list`.")


def _draw(session: Session, view: dict[str, Any]) -> None:
    cells.fields(
        *(session, view, "id", "agent: {agentId:name}", "status", "error", "waits for: {waitsFor}"),
        *("message: {messageId}", "answer: {answerId}", "asked for: {createdAt:when}"),
        *("due: {dueAt:when}", "started: {startedAt:when}", "ended: {completedAt:when}"),
        *(("took", _took), "attempts", "adapter: {adapterType}", "worker"),
        *("tokens in: {tokensIn}", "tokens out: {tokensOut}", "from cache: {tokensCached}"),
        ("cost", lambda _, row: run_view.money(row["costUsd"])),
    )


job.rows(
    *("list", "id: {id:short}", "agent: {agentId:known}", "status", "asked for: {createdAt:when}"),
    *(("took", _took), ("tokens", run_view.tokens)),
    ("why", lambda _, row: row["error"] or row["waitsFor"]),
    empty="There are no background jobs.",
)
job.shows(
    *(REFERENCES["job"], _draw),
    "Show one job; what was asked and answered is mail, see `remit read`.",
)
