"""`remit send`, `inbox`, `read` and `needs-you`: a person's mail."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from remit.entrypoints.cli import letters, output
from remit.entrypoints.cli.address import path
from remit.entrypoints.cli.commands.kb import file_id, spooled, store
from remit.entrypoints.cli.options import Command, Session, limit_option, pass_session
from remit.errors import BadInput, NotFound
from remit.ids import is_id, normalise
from remit.model.text import plural

#: A text that is longer is stored first, so that it travels as it is.
_LONGEST_INLINE = 1024 * 1024


@click.command(cls=Command)
@click.argument("to")
@click.argument("text", metavar="[TEXT|-]", required=False)
@click.option("--subject", default="", help="What it is about.")
@click.option(
    "--attach", metavar="FILE", multiple=True, help="A local file, or one of the knowledge base."
)
@click.option("--reply-to", metavar="ID", help="The message that this one answers.")
@click.option("--at", metavar="TIME", help="Not before this time (ISO 8601).")
@pass_session
def send(
    session: Session,
    to: str,
    text: str | None,
    subject: str,
    attach: tuple[str, ...],
    reply_to: str | None,
    at: str | None,
) -> None:
    """Write to an agent, a person or the board.

    TO is an agent's name, agent:NAME, user:NAME or board. The text comes from standard input when
    it is - or is left out.
    """
    attached = [_attachment(session, one) for one in attach]
    body = {
        "to": to,
        **_text(session, text, subject),
        "subject": subject,
        "attachments": [_stored(session, one) for one in attached],
        "replyTo": letters.message_id(session, reply_to) if reply_to else None,
        "deliverAt": at,
    }
    answer = session.client.send("POST", session.under_company("messages"), body)

    def draw(sent: dict[str, Any]) -> None:
        when = f" It is delivered at {at}." if at else ""
        output.say(f"Sent {sent['id']} to {to}.{when}")
        if sent["notStarted"]:
            output.say(f"warning: {sent['notStarted']}")

    session.show(answer, draw)


def _text(session: Session, text: str | None, subject: str) -> dict[str, Any]:
    """The body, or the file that is the body."""
    if text not in (None, "-"):
        return {"body": text}
    with spooled("-") as (stream, size):
        if size == 0:
            raise click.UsageError("There is no text.")
        if size > _LONGEST_INLINE:
            description = f"Message: {subject}" if subject else "Message"
            made = store(session, description, stream, size, unlisted=True)
            return {"fileId": made["id"]}
        try:
            return {"body": stream.read().decode()}
        except UnicodeDecodeError:
            raise BadInput("The text is not UTF-8.", "Send the bytes with --attach.") from None


def _attachment(session: Session, text: str) -> str | Path:
    """The id of a file in the knowledge base, or the path of a local one."""
    local = Path(text)
    if not text.startswith(("kb://", "kb_file:")) and not is_id(text) and local.is_file():
        with local.open("rb"):  # before anything is sent
            return local
    try:
        normalise(text.removeprefix("kb://").removeprefix("kb_file:"))
    except BadInput:
        raise NotFound(
            f"There is no file {text[:200]!r}.", "Give a path, or an id as in `remit kb browse`."
        ) from None
    return file_id(session, text)


def _stored(session: Session, attached: str | Path) -> str:
    if isinstance(attached, str):
        return attached
    with spooled(str(attached)) as (stream, size):
        made = store(session, output.clean(attached.name), stream, size, unlisted=True)
    return str(made["id"])


@click.command(cls=Command)
@click.option("--agent", metavar="NAME", help="What waits for this agent, instead of for you.")
@click.option("--all", "everything", is_flag=True, help="Also what was read already.")
@limit_option
@pass_session
def inbox(session: Session, agent: str | None, everything: bool, limit: int) -> None:
    """List your mail, or an agent's.

    The oldest comes first, and looking changes nothing.
    """
    query = {"all": "1" if everything else None}
    if agent is not None:
        target = path("agents", session.agent_id(agent), "inbox")
        found = session.listed(target, limit, **query)
    else:
        company = session.company["id"] if session.is_company_named else None
        found = session.listed(path("inbox"), limit, company=company, **query)
    empty = f"There is no {'' if everything else 'unread '}mail."
    session.show(found, lambda mail: letters.draw_inbox(mail, with_state=everything, empty=empty))


@click.command(cls=Command)
@click.argument("id_", metavar="ID")
@click.option("--keep", is_flag=True, help="Leave it unread.")
@click.option("--revive", is_flag=True, help="Put it back in line if it is a dead letter.")
@click.option("--discard", is_flag=True, help="Let it rest if it is a dead letter.")
@pass_session
def read(session: Session, id_: str, keep: bool, revive: bool, discard: bool) -> None:
    """Read a message and its thread.

    What a person has read is no longer unread; what an agent has read is not thereby dealt with.
    """
    if revive and discard:
        raise click.UsageError("--revive and --discard exclude each other.")
    message = letters.message_id(session, id_)
    if revive or discard:
        verb = "revive" if revive else "discard"
        answer = session.client.send("POST", path("messages", message, verb))
        session.show(answer, lambda done: output.say(f"{done['id']} is {done['status']}."))
        return
    found = session.client.get(path("messages", message))
    thread = found["thread"]
    if all(one["id"] != found["id"] for one in thread):
        thread = [*thread, {name: value for name, value in found.items() if name != "thread"}]
    session.show(found, lambda _: letters.draw_thread(session, thread))
    unread = [one["id"] for one in thread if one["unread"]]
    if unread and not keep and session.client.get(path("me"))["kind"] == "user":
        sys.stdout.flush()  # what could not be shown was not read
        for one in unread:
            session.client.send("POST", path("messages", one, "ack"))


@click.command(cls=Command)
@click.argument("id_", metavar="ID", required=False)
@click.option("--all", "everything", is_flag=True, help="All that are listed.")
@limit_option
@pass_session
def revive(session: Session, id_: str | None, everything: bool, limit: int) -> None:
    """Put a dead letter back in line, or all that died through no fault of theirs.

    Without ID and --all these are listed.
    """
    if id_ is not None and everything:
        raise click.UsageError("Give ID or --all.")
    if id_ is not None:
        message = letters.message_id(session, id_)
        answer = session.client.send("POST", path("messages", message, "revive"))
        session.show(answer, lambda done: output.say(f"{done['id']} is {done['status']}."))
        return
    target = session.under_company("dead-letters")
    if everything:
        answer = session.client.send("POST", f"{target}/revive")
        session.show(
            answer,
            lambda done: output.say(f"{plural(len(done['revived']), 'letter')} back in line."),
        )
        return
    found = session.listed(target, limit)

    def draw(items: list[dict[str, Any]]) -> None:
        ids = output.short_ids(one["id"] for one in items)
        names = {agent: session.agent_name(agent) for agent in {one["agentId"] for one in items}}
        rows = [(ids[one["id"]], names[one["agentId"]], one["title"], one["why"]) for one in items]
        output.table(("id", "to", "subject", "why"), rows, empty="There are none.")
        if items:
            output.say("", "`remit revive --all` puts all of them back in line.")

    session.show(found, draw)


_STEPS = {
    "mail": "remit read {id}",
    "question": "remit question answer {id} …",
    "submission": "remit outcome accept {id}, or return {id} …",
    "dead_letter": "remit read {id} --revive, or --discard",
    "held": "remit account show {id}, then remit account retry {id}",
    "agent_error": "remit agent why-idle {id}, then remit agent resume {id}",
    "budget_stop": "remit agent budget {id}, then remit agent set",
}


@click.command("needs-you", cls=Command)
@limit_option
@pass_session
def needs_you(session: Session, limit: int) -> None:
    """List everything that awaits you."""
    company = session.company["id"] if session.is_company_named else None
    found = session.listed(path("needs-you"), limit, company=company)

    def draw(items: list[dict[str, Any]]) -> None:
        ids = output.short_ids(one["id"] for one in items)
        about = dict.fromkeys(one["agentId"] for one in items if one["agentId"])
        names = {agent: session.agent_name(agent) for agent in about}
        rows = [
            (
                one["kind"].replace("_", " "),
                letters.age(one["since"]),
                names.get(one["agentId"], ""),
                one["title"],
                one.get("command") or _STEPS.get(one["kind"], "").format(id=ids[one["id"]]),
            )
            for one in items
        ]
        columns = ("what", "age", "agent", "title", "next step")
        output.table(columns, rows, empty="Nothing awaits you.")

    session.show(found, draw)
