"""`remit schedule`: mail that agents send at set times."""

from typing import Any

import click

from remit.entrypoints.cli.drawing import cells, output
from remit.entrypoints.cli.options import (
    AGENT_NAME,
    Group,
    Session,
    option,
    stated,
)
from remit.ids import short

schedule = Group("schedule", help="Mail that agents send at set times.")


def _times(_: Session, one: dict[str, Any]) -> str:
    return f"{one['cron']} {one['timezone']}" if one["cron"] else "once"


schedule.rows(
    *("list", "id: {id:short}", "agent: {agentId:known}", ("times", _times)),
    ("next", lambda _, one: output.when(one["nextAt"]) or one["status"]),
    ("title", lambda _, one: one["subject"] or one["body"]),
    empty="There are no schedules.",
)


@schedule.command()
@click.argument("body", metavar="TEXT")
@option("--agent AGENT", "The sender; you, if you are an agent.")
@option("--to ADDRESS", "The receiver; the same agent otherwise.", type=AGENT_NAME)
@option("--cron FIELDS", "Schedule in cron fields, such as '0 9 * * 1-5'.")
@option("--timezone ZONE", "Time zone of --cron.", default="UTC", show_default=True)
@option("--at TIME", "Time of a single message (ISO 8601).")
@option("--subject TEXT", "Subject.", default="")
def add(session: Session, /, **given: Any) -> None:
    """Have an agent send mail again and again, or once at a time."""
    if (given["cron"] is None) == (given["at"] is None):
        raise click.UsageError("Give either --cron or --at.")
    answer = session.client.send("POST", session.under_company("schedules"), stated(given))
    name, first = session.agent_name(answer["agentId"]), output.when(answer["nextAt"])
    said = [
        f"{name} sends it {_times(session, answer)}; next at {first}.",
        f"  remit schedule cancel {short(answer['id'])}   ends it",
    ]
    session.done(answer, said, lambda one: _draw(session, one))


def _draw(session: Session, one: dict[str, Any]) -> None:
    cells.fields(
        *(session, one, "id", "agent: {agentId:name}", "to", ("times", _times)),
        *("next: {nextAt:when}", "subject", "text: {body}"),
    )
