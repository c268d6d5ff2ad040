"""`remit as-of`: the company as it was."""

from typing import Any

import click

from remit.entrypoints.cli.commands.work.kb import write_out
from remit.entrypoints.cli.drawing import cells, trees
from remit.entrypoints.cli.options import AGENT_NAME, Command, Session, option


@click.command("as-of", cls=Command)
@click.argument("time")
@click.argument("what", type=click.Choice(["org", "grants", "file"]))
@click.argument("id_", metavar="[FILE_ID]", required=False)
@option("--agent AGENT", "Only what this agent held.", type=AGENT_NAME)
def as_of(session: Session, time: str, what: str, id_: str | None, agent: str | None) -> None:
    """Show the tree, the grants or a file as they were at a time."""
    if (what == "file") != (id_ is not None):
        raise click.UsageError("A file, and only a file, is named by its id.")
    if agent is not None and what != "grants":
        raise click.UsageError("--agent goes with grants.")
    if id_ is not None:
        write_out(session, id_, at=time)
        return
    entries = list(
        session.client.each(session.under_company("as-of"), at=time, what=what, agent=agent)
    )
    if what == "org":
        forest = trees.nested(entries)
        title = f"{session.company['name']} at {time}"
        session.show(forest, lambda all_: trees.draw_agents(title, all_))
    else:
        session.show(entries, lambda grants: _draw_grants(session, grants))


def _draw_grants(session: Session, grants: list[dict[str, Any]]) -> None:
    holders = {grant["holderId"] for grant in grants}
    names = {holder: session.agent_name(holder) for holder in holders}
    cells.table(
        *(session, grants, ("agent", lambda _, grant: names[grant["holderId"]])),
        *("resource: {resource:ids}", "level", "mode", "since: {createdAt:when}"),
        *("expires: {expiresAt:when}", "id: {id:short}"),
        empty="No grants were in force then.",
    )
