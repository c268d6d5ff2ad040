"""`remit repo`: repositories that agents get copies of."""

from typing import Any

import click

from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Group, Session, pass_session

repo = Group("repo", help="Repositories that agents get copies of.")


@repo.rows("list", "name", "ref", "secret", "forge", "url", empty="There are no repositories.")
def _row(_: Session, one: dict[str, Any]) -> tuple[object, ...]:
    return one["name"], one["ref"], one.get("secret"), one.get("forge"), one["url"]


@repo.rows("checks", "name", "required", "network", "seconds", "command", empty="It has no checks.")
def _check_row(_: Session, one: dict[str, Any]) -> tuple[object, ...]:
    said = ["yes" if one[key] else "no" for key in ("required", "network")]
    return one["name"], *said, one["seconds"], one["command"]


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
    session.show_table(
        found,
        ("name", "branch", "branches", "fetched"),
        lambda one: (one["name"], one["head"], one["branches"], output.when(one["fetchedAt"])),
        empty="There are no repositories.",
    )


repo.removes(
    "repos",
    "Forget a repository, its copy and every capability on it.",
    lambda one: f"{one['name']} is removed; {len(one['revoked'])} grants ended with it.",
)


def _draw(_: Session, one: dict[str, Any]) -> None:
    output.fields(
        {
            "name": one["name"],
            "url": one["url"],
            "ref": one["ref"],
            "username": one["username"],
            "secret": one["secret"],
            "forge": one["forge"],
            "api": one["api"],
            "api secret": one["apiSecret"],
            "webhooks": one["hook"] and f"/api/hooks/{one['id']}, signed with {one['hook']}",
            "heard": ", ".join(one["people"]) or None,
            "label": one["label"],
            "added": output.when(one["createdAt"]),
        }
    )


repo.draw = _draw
# Views of checks have a name, too, but no URL: no grant is given on a check.
repo.more = lambda one: (
    [f"Next: remit grant give AGENT repo:{one['name']} read"] if "url" in one else []
)
