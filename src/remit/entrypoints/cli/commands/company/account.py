"""`remit account`: accounts and set-ups that agents share, and which of them are closed."""

from typing import Any

import click

from remit.entrypoints.cli.drawing import letters, output
from remit.entrypoints.cli.options import Group, Session
from remit.errors import Conflict, NotFound

account = Group("account", help="Accounts of providers and set-ups of workers.")


account.rows(
    *("list", "name", "state", "fault"),
    ("since", lambda _, one: letters.age(one["since"])),
    ("until", lambda _, one: one["until"] or one["triedAt"]),
    ("waiting", lambda _, one: one["waiting"] or ""),
    empty="No agent has used an account of a provider yet.",
)


@account.command("show")
@click.argument("name")
def show(session: Session, name: str) -> None:
    """Show one of them, with the cause and what to do about it."""
    found = _named(session, name)
    session.show(found, output.fields)


def _named(session: Session, name: str) -> dict[str, Any]:
    """Find an account by its name or the beginning of its id."""
    every = list(session.client.each(session.under_company("accounts")))
    found = [one for one in every if one["name"] == name] or [
        one for one in every if len(name) >= 4 and one["id"].startswith(name)
    ]
    if not found:
        raise NotFound("There is no such account.", "`remit account list` names them.")
    if len(found) > 1:
        raise Conflict("Several match.", "Give more of its id.")
    return dict(found[0])


def account_id(session: Session, name: str) -> str:
    return str(_named(session, name)["id"])


def held(session: Session) -> list[dict[str, Any]]:
    """Closed accounts; none if the caller may not see them."""
    return [one for one in session.visible("accounts") if one["state"] != "open"]


def line(account: dict[str, Any]) -> str:
    """Return one line about an account, for views of something else."""
    waiting = f" {account['waiting']} waiting." if account["waiting"] else ""
    return f"{account['sentence']}{waiting}"
