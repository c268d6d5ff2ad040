"""`remit link`: chat accounts that are linked to the caller."""

import click

from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Group
from remit.entrypoints.cli.session import Session, View

link = Group("link", help="Chat accounts whose messages count as yours.")


link.rows(
    *("list", "id", "channel: {kind}", "account: {label}", "since: {createdAt:when}"),
    "last used: {usedAt:when}",
    empty="None is linked to you.",
)


def _linking(kind: str, what: str) -> None:
    @link.command(kind, help=f"Get a code for {what}.")
    def get_code(session: Session) -> None:
        _code(session, kind)


_linking("telegram", "an account of Telegram")
_linking("slack", "an account of Slack")
_linking("email", "an e-mail address")


@link.command()
@click.argument("channel")
def code(session: Session, channel: str) -> None:
    """Get a code for an account of any channel that verifies its senders."""
    _code(session, channel)


def _code(session: Session, kind: str) -> None:
    answer = session.client.send("POST", "/api/linked-accounts", {"kind": kind})

    def draw(view: View) -> None:
        output.say(
            f"Your code for {kind}: {view['code']}",
            "  Send it to your agent there, in a direct conversation, within fifteen minutes.",
            "  That account speaks as you from then on; `remit link revoke` ends it.",
        )

    session.show(answer, draw)
