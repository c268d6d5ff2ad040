"""`remit job`: background jobs of agents, and cancelling them."""

from typing import Any

from remit.entrypoints.cli import references
from remit.entrypoints.cli.drawing import output, run_view
from remit.entrypoints.cli.options import Group, Session
from remit.ids import short

job = Group("job", help="Background jobs of agents.")


@job.rows(
    *("list", "id", "agent", "status", "asked for", "took", "tokens", "why"),
    empty="There are no background jobs.",
)
def _row(session: Session, one: dict[str, Any]) -> tuple[str, ...]:
    return (
        short(one["id"]),
        session.names.get(one["agentId"], one["agentId"]),
        one["status"],
        output.when(one["createdAt"]),
        _took(one),
        run_view.tokens(one),
        one["error"] or one["waitsFor"] or "",
    )


def _draw(session: Session, one: dict[str, Any]) -> None:
    output.fields(
        {
            "id": one["id"],
            "agent": session.agent_name(one["agentId"]),
            "status": one["status"],
            "error": one["error"],
            "waits for": one["waitsFor"],
            "message": one["messageId"],
            "answer": one["answerId"],
            "asked for": output.when(one["createdAt"]),
            "due": output.when(one["dueAt"]),
            "started": output.when(one["startedAt"]),
            "ended": output.when(one["completedAt"]),
            "took": _took(one),
            "attempts": one["attempts"],
            "adapter": one["adapterType"],
            "worker": one["worker"],
            "tokens in": one["tokensIn"],
            "tokens out": one["tokensOut"],
            "from cache": one["tokensCached"],
            "cost": run_view.money(one["costUsd"]),
        }
    )


def _took(one: dict[str, Any]) -> str:
    return run_view.took(one) if one["startedAt"] else ""


def job_id(session: Session, text: str) -> str:
    return references.picked(session, text, "job", "See `remit job list`.")


job.shows(
    *("jobs", "ID", job_id, _draw),
    "Show one job; what was asked and answered is mail, see `remit read`.",
)
