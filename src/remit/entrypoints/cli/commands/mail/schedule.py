"""`remit schedule`: mail that agents send at set times."""

from typing import Any

import click

from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Group, Session, pass_session
from remit.ids import short

schedule = Group("schedule", help="Mail that agents send at set times.")


@schedule.rows("list", "id", "agent", "times", "next", "title", empty="There are no schedules.")
def _row(session: Session, one: dict[str, Any]) -> tuple[str, ...]:
    return (
        short(one["id"]),
        session.names.get(one["agentId"], one["agentId"]),
        _times(one),
        output.when(one["nextAt"]) or one["status"],
        one["subject"] or one["body"],
    )


def _times(one: dict[str, Any]) -> str:
    return f"{one['cron']} {one['timezone']}" if one["cron"] else "once"


@schedule.command()
@click.argument("text")
@click.option("--agent", metavar="AGENT", help="The sender; you, if you are an agent.")
@click.option("--to", metavar="ADDRESS", help="The receiver; the same agent otherwise.")
@click.option("--cron", metavar="FIELDS", help="When, such as '0 9 * * 1-5'.")
@click.option("--timezone", metavar="ZONE", default="UTC", show_default=True, help="Of --cron.")
@click.option("--at", metavar="TIME", help="When, for once (ISO 8601).")
@click.option("--subject", default="", help="Subject.")
@pass_session
def add(session: Session, /, agent: str | None, **given: Any) -> None:
    """Have an agent send mail again and again, or once at a time."""
    if (given["cron"] is None) == (given["at"] is None):
        raise click.UsageError("Give either --cron or --at.")
    body = {name: value for name, value in given.items() if value is not None}
    body["body"] = body.pop("text")
    if agent is not None:
        body["agent"] = session.agent_id(agent)
    answer = session.client.send("POST", session.under_company("schedules"), body)
    name, first = session.agent_name(answer["agentId"]), output.when(answer["nextAt"])
    said = [
        f"{name} sends it {_times(answer)}; next at {first}.",
        f"  remit schedule cancel {short(answer['id'])}   ends it",
    ]
    session.done(answer, said, lambda one: _draw(session, one))


def _draw(session: Session, one: dict[str, Any]) -> None:
    output.fields(
        {
            "id": one["id"],
            "agent": session.agent_name(one["agentId"]),
            "to": one["to"],
            "times": _times(one),
            "next": output.when(one["nextAt"]),
            "subject": one["subject"],
            "text": one["body"],
        }
    )
