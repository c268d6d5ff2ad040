"""`remit notify`: how a person is told outside that something needs them."""

from __future__ import annotations

from typing import Any

import click

from remit.entrypoints.cli import output, process
from remit.entrypoints.cli.address import path
from remit.entrypoints.cli.options import Command, Group, Session, pass_session, pick
from remit.errors import BadInput
from remit.runtime import notify_commands


@click.group(cls=Group)
def notify() -> None:
    """How you are told outside that something needs you.

    Once for each thing, by a command on the machine of the instance, by a signed webhook, or both.
    """


@notify.command(cls=Command)
@pass_session
def show(session: Session) -> None:
    """Show how you are told, and what became of the last notices."""
    answer = session.client.get(session.under_company("notify"))

    def draw(found: dict[str, Any]) -> None:
        output.fields(
            {
                "command": found["commandProblem"] or ("set" if found["command"] else "none"),
                "webhook": found["webhook"] or "none",
            }
        )
        rows = [
            (one["kind"].replace("_", " "), one["way"], one["status"], one["why"] or "")
            for one in found["latest"]
        ]
        columns = ("what", "by", "state", "why")
        output.table(columns, rows, empty="You have not been told of anything yet.")

    session.show(answer, draw)


@notify.command("set", cls=Command)
@click.option("--command", metavar="COMMAND", help="Run this; {text} in it is what needs you.")
@click.option("--no-command", is_flag=True, help="Run nothing any more.")
@click.option("--webhook", metavar="URL", help="Post it there, as signed JSON.")
@click.option("--no-webhook", is_flag=True, help="Post it nowhere any more.")
@click.option("--user", metavar="NAME", help="Set the command of this person, instead of yours.")
@pass_session
def set_(
    session: Session,
    command: str | None,
    no_command: bool,
    webhook: str | None,
    no_webhook: bool,
    user: str | None,
) -> None:
    """Say how you are to be told.

    A command is run by the instance, without a shell, and gets what needs you as JSON on standard
    input. It is kept in a file of the instance, so it can only be set on its machine, by whoever
    runs it.
    """
    if not (command or no_command or webhook or no_webhook):
        raise click.UsageError("Give --command, --no-command, --webhook or --no-webhook.")
    if command and no_command:
        raise click.UsageError("--command and --no-command exclude each other.")
    if webhook and no_webhook:
        raise click.UsageError("--webhook and --no-webhook exclude each other.")
    if user is not None and (webhook or no_webhook):
        raise click.UsageError("Everybody sets their own webhook.")
    answer: dict[str, Any] = {}
    if command or no_command:
        _require_here(session)
        who = _user(session, user)
        notify_commands.write(session.settings.home / notify_commands.NOTIFY_FILE, who, command)
        answer["command"] = command is not None
    if webhook or no_webhook:
        body = {"webhook": webhook}
        answer |= session.client.send("PATCH", session.under_company("notify"), body)
    session.show(answer, _draw)


@notify.command("test", cls=Command)
@pass_session
def test_(session: Session) -> None:
    """Send a test in every way that you are told; `show` has what became of it."""
    answer = session.client.send("POST", session.under_company("notify", "test"))

    def draw(done: dict[str, Any]) -> None:
        output.say(f"A test goes out by {' and by '.join(done['ways'])}; see `remit notify show`.")

    session.show(answer, draw)


def _draw(done: dict[str, Any]) -> None:
    if "command" in done:
        output.say("The command is set." if done["command"] else "No command is run any more.")
    if "webhook" in done:
        where = done["webhook"]
        output.say(f"What needs you is posted to {where}." if where else "Nothing is posted.")
    if done.get("key"):
        output.say(f"It is signed with this key, which is shown once: {done['key']}")


def _require_here(session: Session) -> None:
    """The file that counts is in the home of the instance that answers."""
    held = process.holder(session.settings)
    if held.url is None or held.url.rstrip("/") != session.url:
        raise BadInput(
            f"The instance at {session.url} does not run from {session.settings.home}.",
            "Run this on its machine, as the user that runs it, with its REMIT_HOME.",
        )


def _user(session: Session, name: str | None) -> str:
    if name is None:
        me = session.client.get(path("me"))
        if me["kind"] != "user":
            raise BadInput("Only people are told.", "Use the token of a person, or --user.")
        return str(me["id"])
    known = session.client.each(session.under_company("users"))
    return str(pick(known, name, "user", "See `remit user list`.")["id"])
