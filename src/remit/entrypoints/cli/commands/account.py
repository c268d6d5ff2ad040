"""`remit account`: what agents depend on, and what of it is closed for all of them."""

from __future__ import annotations

from typing import Any

import click

from remit.entrypoints.cli import letters, output
from remit.entrypoints.cli.options import Group, Session, limit_option, pass_session
from remit.errors import Conflict, NotFound, RemitError


@click.group(cls=Group)
def account() -> None:
    """Accounts of providers and set-ups of workers."""


@account.command("list")
@limit_option
@pass_session
def list_(session: Session, limit: int) -> None:
    """List accounts and set-ups, and say which are closed."""
    found = session.listed(session.under_company("accounts"), limit)

    def draw(items: list[dict[str, Any]]) -> None:
        rows = [
            (
                one["name"],
                one["state"],
                one["fault"] or "",
                letters.age(one["since"]) if one["since"] else "",
                one["until"] or one["triedAt"] or "",
                str(one["waiting"] or ""),
            )
            for one in items
        ]
        columns = ("name", "state", "fault", "since", "until", "waiting")
        output.table(columns, rows, empty="No agent has used an account of a provider yet.")

    session.show(found, draw)


@account.command("show")
@click.argument("name")
@pass_session
def show(session: Session, name: str) -> None:
    """Show one of them, with the cause and what to do about it."""
    found = _named(session, name)
    session.show(found, output.fields)


@account.command("retry")
@click.argument("name")
@pass_session
def retry(session: Session, name: str) -> None:
    """Try a closed one at once, because you saw to it."""
    found = _named(session, name)
    target = session.under_company("accounts", found["id"], "retry")
    answer = session.client.send("POST", target)
    session.show(answer, lambda done: output.say(f"{done['name']} is tried now."))


def _named(session: Session, name: str) -> dict[str, Any]:
    """By its name, or the beginning of its id."""
    every = list(session.client.each(session.under_company("accounts")))
    found = [one for one in every if one["name"] == name] or [
        one for one in every if len(name) >= 4 and one["id"].startswith(name)
    ]
    if not found:
        raise NotFound("There is no such account.", "`remit account list` names them.")
    if len(found) > 1:
        raise Conflict("Several match.", "Give more of its id.")
    return dict(found[0])


def held(session: Session) -> list[dict[str, Any]]:
    """Those that are closed, as far as they are ours to see."""
    try:
        every = session.client.each(session.under_company("accounts"))
        return [one for one in every if one["state"] != "open"]
    except RemitError:
        return []


def line(account: dict[str, Any]) -> str:
    """One sentence for people who look at something else."""
    waiting = f" {account['waiting']} waiting." if account["waiting"] else ""
    return f"{account['sentence']}{waiting}"
