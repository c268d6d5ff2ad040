"""`remit approval`: what agents asked for; look at it, talk about it, decide."""

from __future__ import annotations

import sys
from typing import Any

import click

from remit.entrypoints.asked import asks_for
from remit.entrypoints.cli import approval_view, output
from remit.entrypoints.cli.address import path
from remit.entrypoints.cli.commands.hiring import json_object
from remit.entrypoints.cli.options import Group, Session, limit_option, pass_session, pick
from remit.errors import BadInput

OPEN = ("pending", "revision_requested")
STATUSES = (*OPEN, "approved", "rejected", "cancelled")

id_argument = click.argument("id_", metavar="ID")
note_option = click.option("--note", help="Why; whoever asked reads it.")
revision_option = click.option(
    "--revision", type=click.IntRange(min=1), help="Only if it still is at this revision."
)


@click.group(cls=Group)
def approval() -> None:
    """What agents asked for, and your decisions."""


@approval.command("list")
@click.option("--status", type=click.Choice(STATUSES), help="Only these; the open ones otherwise.")
@click.option("--all", "everything", is_flag=True, help="Also what is decided.")
@limit_option
@pass_session
def list_(session: Session, status: str | None, everything: bool, limit: int) -> None:
    """List what waits for a decision, the newest first."""
    target = session.under_company("approvals")
    if status is not None or everything:
        found = session.listed(target, limit, status=status)
    else:
        undecided = [one for each in OPEN for one in session.listed(target, limit, status=each)]
        found = sorted(undecided, key=lambda one: str(one["id"]), reverse=True)

    def draw(approvals: list[dict[str, Any]]) -> None:
        ids = output.short_ids(one["id"] for one in approvals)
        rows = [
            (
                ids[one["id"]],
                one["status"].replace("_", " "),
                asks_for(one),
                approval_view.who(session, one, "requestedBy"),
                one["revision"],
                output.when(one["createdAt"]),
            )
            for one in approvals
        ]
        columns = ("id", "status", "title", "asked by", "revision", "since")
        empty = "Nothing waits for a decision." if status is None else "There are none."
        output.table(columns, rows, empty=empty)

    session.show(found, draw)


@approval.command()
@id_argument
@pass_session
def show(session: Session, id_: str) -> None:
    """Show what is asked for, what changed since the last revision, and what was said."""
    found = session.client.get(_path(session, id_))
    session.show(found, lambda one: approval_view.draw(session, one))


@approval.command()
@id_argument
@note_option
@revision_option
@pass_session
def approve(session: Session, id_: str, note: str | None, revision: int | None) -> None:
    """Say yes; it takes effect at once."""
    _decide(session, id_, "approve", note, revision)


@approval.command()
@id_argument
@note_option
@revision_option
@pass_session
def reject(session: Session, id_: str, note: str | None, revision: int | None) -> None:
    """Say no; an agent that was to be hired is terminated."""
    _decide(session, id_, "reject", note, revision)


@approval.command()
@id_argument
@note_option
@revision_option
@pass_session
def revise(session: Session, id_: str, note: str | None, revision: int | None) -> None:
    """Send it back to be changed; say what with --note."""
    _decide(session, id_, "request-revision", note, revision)


@approval.command()
@id_argument
@click.option("--payload", metavar="JSON|@FILE", help="What is to be different.")
@pass_session
def resubmit(session: Session, id_: str, payload: str | None) -> None:
    """Submit again what was sent back to you."""
    body = {} if payload is None else {"payload": json_object(payload, "--payload")}
    answer = session.client.send("POST", _path(session, id_, "resubmit"), body)
    session.show(
        answer, lambda one: output.say(f"It is {one['status']} as revision {one['revision']}.")
    )


@approval.command()
@id_argument
@click.argument("text", required=False)
@click.option("--reply-to", metavar="COMMENT", help="The comment that this answers.")
@pass_session
def comment(session: Session, id_: str, text: str | None, reply_to: str | None) -> None:
    """Say something about it; without a text, from standard input."""
    body = {"body": sys.stdin.read() if text is None else text}
    if reply_to is not None:
        body["replyTo"] = reply_to
    answer = session.client.send("POST", _path(session, id_, "comments"), body)
    session.show(answer, lambda one: output.say(f"Said as comment {one['id']}."))


@approval.command()
@id_argument
@note_option
@pass_session
def cancel(session: Session, id_: str, note: str | None) -> None:
    """Withdraw it."""
    _decide(session, id_, "cancel", note, None)


@approval.command("delete-agent")
@id_argument
@click.option("--yes", is_flag=True, help="Do not ask before.")
@pass_session
def delete_agent(session: Session, id_: str, yes: bool) -> None:
    """Delete an agent that was not taken on; the approval and its comments stay."""
    if not yes:
        if session.as_json:
            raise click.UsageError("delete-agent with --json needs --yes.")
        found = session.client.get(_path(session, id_))
        name = output.clean(found["payload"].get("name") or "the agent")
        if not click.confirm(f"Delete {name} for good?", err=True):
            raise BadInput("Nothing was deleted.", "Repeat it with --yes if you are sure.")
    answer = session.client.send("DELETE", _path(session, id_, "agent"))
    session.show(answer, lambda _: output.say("The agent is deleted; the approval stays."))


def _decide(session: Session, id_: str, verb: str, note: str | None, revision: int | None) -> None:
    given = {"decisionNote": note, "expectedRevision": revision}
    body = {key: value for key, value in given.items() if value is not None}
    answer = session.client.send("POST", _path(session, id_, verb), body)

    def draw(one: dict[str, Any]) -> None:
        output.say(f"{asks_for(one)}: {one['status'].replace('_', ' ')}.")

    session.show(answer, draw)


def _path(session: Session, id_: str, *more: str) -> str:
    """An approval by its id; the beginning of one is looked up in the company in force."""
    bare = id_.removeprefix("approval:")
    if session.is_company_named and len(bare) < 36:
        mine = session.client.each(session.under_company("approvals"))
        bare = pick(mine, bare, "approval", "See `remit approval list --all`.")["id"]
    return path("approvals", bare, *more)
