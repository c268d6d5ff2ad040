"""`remit link`: chat accounts that are linked to the caller."""

from typing import Any

import click

from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Group, Session, pass_session

link = Group("link", help="Chat accounts that speak as you.")


@link.rows("list", "id", "channel", "account", "since", "last used", empty="None is linked to you.")
def _row(_: Session, one: dict[str, Any]) -> tuple[str, ...]:
    since, used = output.when(one["createdAt"]), output.when(one["usedAt"])
    return one["id"], one["kind"], one["label"], since, used


@link.command()
@pass_session
def telegram(session: Session) -> None:
    """Get a code for an account of Telegram."""
    _code(session, "telegram")


@link.command()
@pass_session
def slack(session: Session) -> None:
    """Get a code for an account of Slack."""
    _code(session, "slack")


@link.command()
@pass_session
def email(session: Session) -> None:
    """Get a code for an e-mail address."""
    _code(session, "email")


@link.command()
@click.argument("channel")
@pass_session
def code(session: Session, channel: str) -> None:
    """Get a code for an account of any channel that proves who speaks."""
    _code(session, channel)


def _code(session: Session, kind: str) -> None:
    made = session.client.send("POST", "/api/linked-accounts", {"kind": kind})

    def draw(one: dict[str, Any]) -> None:
        output.say(
            f"Your code for {kind}: {one['code']}",
            "  Send it to your agent there, in a direct conversation, within fifteen minutes.",
            "  That account speaks as you from then on; `remit link revoke` ends it.",
        )

    session.show(made, draw)
