"""`remit repo`: repositories that agents get copies of."""

from typing import Any

import click

from remit.entrypoints.cli.drawing import cells, output
from remit.entrypoints.cli.options import Group, Session

repo = Group("repo", help="Repositories that agents get copies of.")


repo.rows(
    *("list", "name", "ref", "secret: {secret}", "forge: {forge}", "url"),
    empty="There are no repositories.",
)
repo.rows(
    *("checks", "name", "required: {required:yes}", "network: {network:yes}", "seconds", "command"),
    empty="It has no checks.",
)


@repo.command()
@click.argument("name", required=False)
def sync(session: Session, name: str | None) -> None:
    """Fetch a repository now, or all of them, and check the copy."""
    listed = session.client.each(session.under_company("repos"))
    names = [name] if name is not None else [str(one["name"]) for one in listed]
    found = [
        session.client.send("POST", session.under_company("repos", one, "sync")) for one in names
    ]
    session.show_table(
        found,
        *("name", "branch: {head}", "branches", "fetched: {fetchedAt:when}"),
        empty="There are no repositories.",
    )


@repo.command()
@click.argument("name")
def remove(session: Session, name: str) -> None:
    """Forget a repository, its copy and every capability on it."""
    gone = session.client.send("DELETE", session.under_company("repos", name))
    said = "{name} is removed; {revoked:count} grants ended with it."
    session.show(gone, lambda one: output.say(cells.filled(session, one, said)))


def _draw(session: Session, one: dict[str, Any]) -> None:
    cells.fields(
        *(session, one, "name", "url", "ref", "username", "secret", "forge", "api"),
        *("api secret: {apiSecret}", ("webhooks", _webhooks), "heard: {people:list}", "label"),
        "added: {createdAt:when}",
    )


def _webhooks(_: Session, one: dict[str, Any]) -> str | None:
    return one["hook"] and f"/api/hooks/{one['id']}, signed with {one['hook']}"


repo.draw = _draw
# Views of checks have a name, too, but no URL: no grant is given on a check.
repo.more = lambda one: (
    [f"Next: remit grant give AGENT repo:{one['name']} read"] if "url" in one else []
)
