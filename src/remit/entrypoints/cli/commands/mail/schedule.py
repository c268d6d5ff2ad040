"""`remit schedule`: mail that agents send at set times."""

import click

from remit.entrypoints.cli.drawing import cells, letters, output
from remit.entrypoints.cli.options import Group, option, stated
from remit.entrypoints.cli.parameters import AGENT_NAME
from remit.entrypoints.cli.session import Session, View
from remit.ids import short

schedule = Group("schedule", help="Mail that agents send at set times.")


def _times(_: Session, row: View) -> str:
    return f"{row['cron']} {row['timezone']}" if row["cron"] else "once"


schedule.rows(
    *("list", "id: {id:short}", "agent: {agentId:known}", ("times", _times)),
    ("next", lambda _, row: output.when(row["nextAt"]) or row["status"]),
    ("title", lambda _, row: row["subject"] or letters.preview(row)),
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
def add(session: Session, /, **options: object) -> None:
    """Have an agent send mail again and again, or once at a time."""
    if (options["cron"] is None) == (options["at"] is None):
        raise click.UsageError("Give either --cron or --at.")
    answer = session.client.send("POST", session.under_company("schedules"), stated(options))
    name, first = session.agent_name(answer["agentId"]), output.when(answer["nextAt"])
    sentences = [
        f"{name} sends it {_times(session, answer)}; next at {first}.",
        f"  remit schedule cancel {short(answer['id'])}   ends it",
    ]
    session.done(answer, sentences, lambda view: _draw(session, view))


def _draw(session: Session, view: View) -> None:
    cells.fields(
        *(session, view, "id", "agent: {agentId:name}", "to", ("times", _times)),
        *("next: {nextAt:when}", "subject", "text: {body}"),
    )
