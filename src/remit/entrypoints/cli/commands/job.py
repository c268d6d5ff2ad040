"""`remit job`: what agents have done in the background, and putting an end to it."""

from __future__ import annotations

from typing import Any

import click

from remit.entrypoints.cli import output, run_view
from remit.entrypoints.cli.address import path
from remit.entrypoints.cli.options import Group, Session, limit_option, pass_session, pick
from remit.ids import is_id, normalise, short

id_argument = click.argument("id_", metavar="ID")


@click.group(cls=Group)
def job() -> None:
    """Background jobs of agents."""


@job.command("list")
@click.option("--agent", metavar="AGENT", help="Only this agent's.")
@click.option("--unfinished", is_flag=True, help="Only those that have not ended.")
@limit_option
@pass_session
def list_(session: Session, agent: str | None, unfinished: bool, limit: int) -> None:
    """List jobs, the newest first: the company's, or your own if you are an agent."""
    found = session.listed(
        session.under_company("jobs"),
        limit,
        agent=session.agent_id(agent) if agent else None,
        unfinished="true" if unfinished else None,
    )

    def draw(jobs: list[dict[str, Any]]) -> None:
        rows = [
            (
                short(one["id"]),
                session.names.get(one["agentId"], one["agentId"]),
                one["status"],
                output.when(one["createdAt"]),
                _took(one),
                run_view.tokens(one),
                one["error"] or one["waitsFor"] or "",
            )
            for one in jobs
        ]
        columns = ("id", "agent", "status", "asked for", "took", "tokens", "why")
        output.table(columns, rows, empty="There are no background jobs.")

    session.show(found, draw)


@job.command()
@id_argument
@pass_session
def show(session: Session, id_: str) -> None:
    """Show one job; what was asked and answered is mail, see `remit read`."""
    target = path("jobs", _job_id(session, id_))
    found = session.client.get(target)

    def draw(one: dict[str, Any]) -> None:
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

    session.show(found, draw)


@job.command()
@id_argument
@click.option("--reason", default="", help="Why; whoever asked for it is told.")
@pass_session
def cancel(session: Session, id_: str, reason: str) -> None:
    """End a job, in line or under way."""
    target = path("jobs", _job_id(session, id_), "cancel")
    answer = session.client.send("POST", target, {"reason": reason})
    session.show(answer, lambda one: output.say(f"The job is {one['status']}."))


def _took(one: dict[str, Any]) -> str:
    return run_view.took(one) if one["startedAt"] else ""


def _job_id(session: Session, text: str) -> str:
    name = text.removeprefix("job:")
    if is_id(name) or not session.is_company_named:
        return normalise(name)  # the instance looks it up in the companies of the caller
    known = session.client.each(session.under_company("jobs"))
    return str(pick(known, name, "job", "See `remit job list`.")["id"])
