"""`remit confirm`: decisions that came by e-mail in the caller's name."""

import click

from remit.entrypoints.cli.commands.work import approval
from remit.entrypoints.cli.drawing import cells, output
from remit.entrypoints.cli.options import Command, option
from remit.entrypoints.cli.session import Session, View, path
from remit.errors import Conflict
from remit.ids import short


@click.command(cls=Command)
@click.argument("id_", metavar="[ID]", required=False)
@option("--dismiss", "Nothing is done.")
@approval.revision_option
def confirm(session: Session, id_: str | None, dismiss: bool, revision: int | None) -> None:
    """Confirm a decision that came by e-mail in your name; without ID, list them.

    If it approves a request, the whole request is shown, and you are asked; a script names with
    --revision the revision that was read.
    """
    if id_ is None:
        rows = session.client.get("/api/confirmations")
        session.show(rows, lambda waiting: _draw(session, waiting))
        return
    here = path("confirmations", id_)
    if dismiss:
        answer = session.client.send("DELETE", here)
        session.show(answer, lambda row: output.say(f"Dismissed: {row['title']}"))
        return
    _read_first(session, session.client.get(here), revision)
    answer = session.client.send("POST", f"{here}/confirm", {})
    session.show(answer, lambda row: output.say(f"Confirmed: {row['title']}", row["done"]))


def _read_first(session: Session, waiting: View, revision: int | None) -> None:
    """Nobody approves what they have not read, also if an e-mail says that they did."""
    if waiting["act"] != "approve" or waiting["endedWhy"] is not None:
        return
    request = session.client.get(path("approvals", waiting["subject"].removeprefix("approval:")))
    if revision is None:
        command = f"confirm {short(waiting['id'])}"
        approval.read_and_confirmed(session, request, "approve", command)
    elif revision != request["revision"]:
        raise Conflict(
            f"It is at revision {request['revision']} by now.",
            f"See `remit approval show {short(request['id'])}`.",
        )


def _draw(session: Session, waiting: list[View]) -> None:
    cells.table(
        *(session, waiting, "id: {id:short}", "decision: {title}", "from: {account}"),
        "until: {expiresAt:when}",
        empty="No decision waits for your confirmation.",
    )
