"""`remit as-of`: the company as it was."""

from typing import Any

import click

from remit.entrypoints.cli.commands.work.kb import write_out
from remit.entrypoints.cli.drawing import output, trees
from remit.entrypoints.cli.options import Command, Session, pass_session
from remit.ids import short


@click.command("as-of", cls=Command)
@click.argument("time")
@click.argument("what", type=click.Choice(["org", "grants", "file"]))
@click.argument("id_", metavar="[FILE_ID]", required=False)
@click.option("--agent", metavar="AGENT", help="Only what this agent held.")
@pass_session
def as_of(session: Session, time: str, what: str, id_: str | None, agent: str | None) -> None:
    """Show the tree, the grants or a file as they were at a time."""
    if (what == "file") != (id_ is not None):
        raise click.UsageError("A file, and only a file, is named by its id.")
    if agent is not None and what != "grants":
        raise click.UsageError("--agent goes with grants.")
    if id_ is not None:
        write_out(session, id_, at=time)
        return
    found = list(
        session.client.each(session.under_company("as-of"), at=time, what=what, agent=agent)
    )
    if what == "org":
        forest = trees.nested(found)
        title = f"{session.company['name']} at {time}"
        session.show(forest, lambda all_: trees.draw_agents(title, all_))
    else:
        session.show(found, lambda grants: _draw_grants(session, grants))


def _draw_grants(session: Session, grants: list[dict[str, Any]]) -> None:
    names: dict[str, str] = {}
    for one in grants:
        if one["holderId"] not in names:
            names[one["holderId"]] = session.agent_name(one["holderId"])
    rows = [
        (
            names[one["holderId"]],
            output.shortened(one["resource"]),
            one["level"],
            one["mode"],
            output.when(one["createdAt"]),
            output.when(one["expiresAt"]),
            short(one["id"]),
        )
        for one in grants
    ]
    columns = ("agent", "resource", "level", "mode", "since", "expires", "id")
    output.table(columns, rows, empty="No grants were in force then.")
