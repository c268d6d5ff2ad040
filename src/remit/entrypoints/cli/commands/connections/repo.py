"""`remit repo` and `remit folder`: copies of repositories, and folders that runs see."""

import click

from remit.entrypoints.cli.drawing import cells
from remit.entrypoints.cli.options import Group
from remit.entrypoints.cli.session import Session, View

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
    names = [name] if name is not None else [str(row["name"]) for row in listed]
    copies = [
        session.client.send("POST", session.under_company("repos", repo_name, "sync"))
        for repo_name in names
    ]
    session.show_table(
        copies,
        *("name", "branch: {head}", "branches", "fetched: {fetchedAt:when}"),
        empty="There are no repositories.",
    )


@repo.command()
@click.argument("name")
def remove(session: Session, name: str) -> None:
    """Forget a repository, its copy and every capability on it."""
    ended = "{name} is removed; {revoked:count} grants ended with it."
    session.change("DELETE", session.under_company("repos", name), tells=ended)


def _draw(session: Session, view: View) -> None:
    cells.fields(
        *(session, view, "name", "url", "ref", "username", "secret", "forge", "api"),
        *("api secret: {apiSecret}", ("webhooks", _webhooks), "heard: {people:list}", "label"),
        *("proposals are pushed: {push:words}", "fork", "fork secret: {forkSecret}"),
        ("instructions", lambda _, row: _told(row)),
        "added: {createdAt:when}",
    )


def _webhooks(session: Session, view: View) -> str | None:
    place = f"{session.url_for_others}/api/hooks/{view['id']}"
    return view["hook"] and f"{place}, signed with {view['hook']}"


def _told(row: View) -> str:
    return "told" if row["instructions"] else "left out"


repo.draw = _draw
# Views of checks have a name, too, but no URL: no grant is given on a check.
repo.more = lambda view: (
    [f"Next: remit grant give AGENT repo:{view['name']} read"] if "url" in view else []
)


folder = Group("folder", help="Folders of the machine that agents' runs work in or read.")

folder.rows(
    *("list", "id", "kind", ("agent", lambda _, row: row["agentName"] or "all"), "folder: {title}"),
    ("PATH", lambda _, row: " ".join(row["programs"])),
    ("INSTRUCTIONS", lambda _, row: _told(row) if row["kind"] == "work" else ""),
    empty="There are no folders.",
)
folder.more = lambda view: (
    [f"Hidden from its runs, as keys: {', '.join(view['hides'])}."] if view.get("hides") else []
)
