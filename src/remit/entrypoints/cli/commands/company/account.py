"""`remit account`: accounts and set-ups that agents share, and which of them are closed."""

import click

from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Group
from remit.entrypoints.cli.session import Session, View
from remit.errors import NotFound
from remit.ids import several

account = Group("account", help="Accounts of providers and set-ups of workers.")


account.rows(
    *("list", "name", "state", "fault", "since: {since:age}"),
    ("until", lambda _, row: output.when(row["until"] or row["triedAt"])),
    ("waiting", lambda _, row: row["waiting"] or ""),
    empty="No agent has used an account of a provider yet.",
)


@account.command("show")
@click.argument("name")
def show(session: Session, name: str) -> None:
    """Show one of them, with the cause and what to do about it."""
    view = _named(session, name)
    session.show(view, output.fields)


def _named(session: Session, name: str) -> View:
    """Find an account by its name or the beginning of its id."""
    every = list(session.client.each(session.under_company("accounts")))
    matches = [view for view in every if view["name"] == name] or [
        view for view in every if len(name) >= 4 and view["id"].startswith(name)
    ]
    if not matches:
        raise NotFound("There is no such account.", "`remit account list` names them.")
    if len(matches) > 1:
        which = [f"{view['id']} ({view['endpoint'] or view['credential']})" for view in matches]
        raise several(f"Several match {name[:100]!r}", which)
    return dict(matches[0])


def account_id(session: Session, name: str) -> str:
    return str(_named(session, name)["id"])


def held(session: Session) -> list[View]:
    """Closed accounts; none if the caller may not see them."""
    return [view for view in session.visible("accounts") if view["state"] != "open"]


def line(account: View) -> str:
    """Return one line about an account, for views of something else."""
    waiting = f" {account['waiting']} waiting." if account["waiting"] else ""
    return f"{output.timed(account['sentence'])}{waiting}"
