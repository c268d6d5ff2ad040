"""`remit company accept`: look at a company from outside, and let it begin."""

import sys
from collections.abc import Callable

import click

from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Command, option
from remit.entrypoints.cli.session import Session, View
from remit.errors import BadInput, Conflict
from remit.model.text import plural


@click.command(cls=Command)
@click.argument("name", required=False)
@option("--dry-run", "Only show what it would run, reach and be lent.")
@option("--yes", "Do not ask for confirmation.")
@option("--digest TEXT", "Accept what was shown with this digest, and nothing else.")
def accept(
    session: Session, name: str | None, dry_run: bool, yes: bool, digest: str | None
) -> None:
    """Let a company that was imported begin, once you have seen what it would do here.

    It shows the programs, addresses, sandboxes, keys, rights, schedules and mail of the company,
    and asks.
    """
    session.company_option = name or session.company_option
    target = session.under_company("acceptance")
    shown = session.client.get(target)
    if dry_run:
        session.show(shown, lambda view: _draw(view, dry_run))
        return
    if not shown["awaits"]:
        raise Conflict(f"{shown['name']} does not wait to be accepted.", "Nothing is to be done.")
    if digest is None and not yes:
        question = f"Accept {shown['name']} and let it start?"
        agree(session, "accept", lambda: _draw(shown, dry_run), question)
    answer = session.client.send("POST", target, {"digest": digest or shown["digest"]})
    session.show(answer, lambda _: output.say(f"{shown['name']} is accepted, and its work starts."))


def agree(session: Session, command: str, show: Callable[[], None], question: str) -> None:
    """Show on a terminal what is to be accepted, and ask; raise unless the answer is yes."""
    if not session.as_json:
        if not sys.stdin.isatty():
            raise BadInput(
                "Nobody can be asked to accept it.",
                "Look with --dry-run, then repeat it with --digest and the digest that is shown.",
            )
        show()
    session.confirm(command, lambda: question, "Nothing was changed.")


def _draw(view: View, dry_run: bool) -> None:
    output.say(f"{view['name']} would run, reach and be lent on the instance's machine:")
    draw_reach(view)
    if dry_run:
        output.say(f"Digest: {view['digest']}")


def draw_reach(view: View) -> None:
    """Print the entries of a preview by owner, and what was left out of it."""
    for owner in dict.fromkeys(entry["of"] for entry in view["entries"]):
        output.say(owner)
        for entry in view["entries"]:
            if entry["of"] == owner:
                output.say(f"  {entry['kind']}: {entry['text']}")
    if view["keysHere"]:
        count = plural(len(view["keysHere"]), "key")
        output.say(f"Set on the instance's machine: {count}: {', '.join(view['keysHere'])}.")
    for sentence in view["leftOut"]:
        output.say(f"Left out: {sentence}.")
