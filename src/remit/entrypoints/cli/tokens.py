"""Tokens of users and keys of agents: made, listed and revoked the same way."""

from typing import Any
from urllib.parse import quote

import click

from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import option, stated, together
from remit.entrypoints.cli.session import Session, View, pick

token_options = together(
    option("--expires TIME", "Time when it expires (ISO 8601).", field="expiresAt"),
    option("--label TEXT", "Purpose.", default=""),
    option("--revoke ID", "Revoke this token instead."),
    option("--list", "List the tokens instead.", field="list_"),
)


def carry_out(
    session: Session, target: str, *, list_: bool, revoke: str | None, **options: Any
) -> None:
    if list_ and revoke:
        raise click.UsageError("--list and --revoke exclude each other.")
    if list_:
        session.show_table(
            list(session.client.each(target)),
            *("id: {id:short}", "kind", "label", "created: {createdAt:when}"),
            *("expires: {expiresAt:when}", "revoked: {revokedAt:when}"),
            empty="There are none.",
        )
    elif revoke is not None:
        token = pick(session.client.each(target), revoke, "token", "See --list.")
        answer = session.client.send("DELETE", f"{target}/{quote(token['id'], safe='')}")
        session.show(answer, lambda _: output.say(f"Revoked {token['id']}."))
    else:
        session.show(session.client.send("POST", target, stated(options)), _draw_new)


def _draw_new(token: View) -> None:
    if token.get("token"):
        print(token["token"])
        output.note(f"Keep it now, it is not shown again. Its id is {token['id']}.")
    else:
        output.note(
            f"The token {token['id']} was made, but the connection broke before it could be shown. "
            "Revoke it and make another."
        )
