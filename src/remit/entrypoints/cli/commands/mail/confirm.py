"""`remit confirm`: decisions that came by e-mail in the caller's name."""

import click

from remit.entrypoints.cli.drawing import cells, output
from remit.entrypoints.cli.options import Command, option
from remit.entrypoints.cli.session import Session, View, path


@click.command(cls=Command)
@click.argument("id_", metavar="[ID]", required=False)
@option("--dismiss", "Nothing is done.")
def confirm(session: Session, id_: str | None, dismiss: bool) -> None:
    """Confirm a decision that came by e-mail in your name; without ID, list them."""
    if id_ is None:
        rows = session.client.get("/api/confirmations")
        session.show(rows, lambda waiting: _draw(session, waiting))
        return
    here = path("confirmations", id_)
    if dismiss:
        answer = session.client.send("DELETE", here)
        session.show(answer, lambda row: output.say(f"Dismissed: {row['title']}"))
        return
    answer = session.client.send("POST", f"{here}/confirm", {})
    session.show(answer, lambda row: output.say(f"Confirmed: {row['title']}", row["done"]))


def _draw(session: Session, waiting: list[View]) -> None:
    cells.table(
        *(session, waiting, "id: {id:short}", "decision: {title}", "from: {account}"),
        "until: {expiresAt:when}",
        empty="No decision waits for your confirmation.",
    )
