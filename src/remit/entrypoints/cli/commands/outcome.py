"""`remit outcome`: show, complete, close."""

from __future__ import annotations

from typing import Any

import click

from remit.entrypoints.cli import output
from remit.entrypoints.cli.address import path
from remit.entrypoints.cli.options import Group, Session, pass_session
from remit.ids import is_id


@click.group(cls=Group)
def outcome() -> None:
    """Outcomes, such as an agent's mandate.

    An outcome is named by its id, and a mandate also by its agent's name.
    """


@outcome.command()
@click.argument("id_", metavar="ID")
@pass_session
def show(session: Session, id_: str) -> None:
    """Show one outcome."""
    session.show(session.client.get(path("outcomes", _id(session, id_))), _draw)


@outcome.command()
@click.argument("id_", metavar="ID")
@click.option("--note", default="", help="What to remember about it.")
@pass_session
def complete(session: Session, id_: str, note: str) -> None:
    """Say that an outcome is accomplished; grants that were to last as long end."""
    target = path("outcomes", _id(session, id_), "complete")
    session.show(session.client.send("POST", target, {"note": note}), _draw)


@outcome.command()
@click.argument("id_", metavar="ID")
@click.argument("rationale")
@pass_session
def close(session: Session, id_: str, rationale: str) -> None:
    """End an outcome that is not wanted any more, and say why."""
    target = path("outcomes", _id(session, id_), "close")
    session.show(session.client.send("POST", target, {"rationale": rationale}), _draw)


def _id(session: Session, text: str) -> str:
    text = text.removeprefix("outcome:")
    if is_id(text):
        return text
    # A mandate has the id of its agent.
    return str(session.client.get(path("agents", session.agent_id(text)))["id"])


def _draw(one: dict[str, Any]) -> None:
    output.fields(
        {
            "title": one["title"],
            "id": one["id"],
            "status": one["status"],
            "perpetual": "yes" if one["perpetual"] else "no",
            "owner": one["ownerId"],
            "created": output.when(one["createdAt"]),
            "finished": output.when(one["finishedAt"]),
        }
    )
