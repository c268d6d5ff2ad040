"""`remit repo`: repositories that agents get copies of."""

from __future__ import annotations

from typing import Any

import click

from remit.entrypoints.cli import output
from remit.entrypoints.cli.options import Group, Session, limit_option, pass_session


@click.group(cls=Group)
def repo() -> None:
    """Repositories that agents get copies of."""


@repo.command()
@click.argument("name")
@click.argument("address", metavar="URL")
@click.option("--ref", metavar="REF", help="To clone unless another is asked for.")
@click.option("--username", metavar="NAME", help="Who the secret is of, at the remote.")
@click.option("--secret", metavar="NAME", help="The name of the secret that opens it.")
@pass_session
def add(session: Session, /, address: str, **given: Any) -> None:
    """Make a repository known; this instance then fetches it."""
    body = {name: value for name, value in given.items() if value is not None}
    body["url"] = address
    made = session.client.send("POST", session.under_company("repos"), body)
    name = made["name"]
    said = [f"{name} is known.", f"Next: remit grant give AGENT repo:{name} use"]
    session.done(made, said, _draw)


@repo.command("list")
@limit_option
@pass_session
def list_(session: Session, limit: int) -> None:
    """List the repositories of the company."""
    found = session.listed(session.under_company("repos"), limit)

    def draw(repos: list[dict[str, Any]]) -> None:
        rows = [(one["name"], one["ref"], one.get("secret"), one["url"]) for one in repos]
        output.table(("name", "ref", "secret", "url"), rows, empty="There are no repositories.")

    session.show(found, draw)


@repo.command()
@click.argument("name", required=False)
@pass_session
def sync(session: Session, name: str | None) -> None:
    """Fetch a repository now, or all of them, and check the copy."""
    listed = session.client.each(session.under_company("repos"))
    names = [name] if name is not None else [str(one["name"]) for one in listed]
    found = [
        session.client.send("POST", session.under_company("repos", one, "sync")) for one in names
    ]

    def draw(repos: list[dict[str, Any]]) -> None:
        rows = [
            (one["name"], one["head"], one["branches"], output.when(one["fetchedAt"]))
            for one in repos
        ]
        columns = ("name", "branch", "branches", "fetched")
        output.table(columns, rows, empty="There are no repositories.")

    session.show(found, draw)


@repo.command()
@click.argument("name")
@pass_session
def remove(session: Session, name: str) -> None:
    """Forget a repository, its copy and every capability on it."""
    gone = session.client.send("DELETE", session.under_company("repos", name))

    def draw(one: dict[str, Any]) -> None:
        output.say(f"{one['name']} is removed; {len(one['revoked'])} grants ended with it.")

    session.show(gone, draw)


def _draw(one: dict[str, Any]) -> None:
    output.fields(
        {
            "name": one["name"],
            "url": one["url"],
            "ref": one["ref"],
            "username": one["username"],
            "secret": one["secret"],
            "added": output.when(one["createdAt"]),
        }
    )
