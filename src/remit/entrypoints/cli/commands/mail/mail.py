"""`remit send`, `reply`, `cancel`, `inbox`, `read` and `needs-you`: a person's mail."""

import sys
from functools import partial
from pathlib import Path

import click

from remit.entrypoints.cli import following
from remit.entrypoints.cli.awaiting import await_answer
from remit.entrypoints.cli.commands.work.kb import file_id, spooled, store
from remit.entrypoints.cli.drawing import cells, letters, output
from remit.entrypoints.cli.following import watch_option
from remit.entrypoints.cli.options import Command, limit_option, option
from remit.entrypoints.cli.parameters import AGENT, AGENT_NAME, MESSAGE
from remit.entrypoints.cli.session import Cell, Session, View, path
from remit.errors import BadInput, NotFound
from remit.ids import is_id, normalise, short
from remit.model.messaging.mail import answer_subject
from remit.model.text import plural

id_argument = click.argument("id_", metavar="ID", type=MESSAGE)
attach_option = option("--attach FILE…", "A local file, or one of the knowledge base.")

_STATE = "{id:short} is {status}."
#: A longer text is stored as a file first: plain bytes instead of JSON.
_LONGEST_INLINE = 1024 * 1024


@click.command(
    cls=Command,
    examples=(
        'remit send ceo "Write a page about our app."',
        'remit send writer "Use this." --attach brief.md',
        'remit send writer "When is it done?" --wait --timeout 600',
    ),
)
@click.argument("to", type=AGENT_NAME)
@click.argument("text", metavar="[TEXT|-]", required=False)
@option("--subject TEXT", "Subject.", default="")
@attach_option
@option("--reply-to ID", "The message that this one answers.", type=MESSAGE)
@option("--at TIME", "Not before this time (ISO 8601).")
@option("--wait", "Wait for the answer and print it.")
@option("--timeout SECONDS", "Wait no longer than this.", type=float)
def send(
    session: Session,
    to: str,
    text: str | None,
    subject: str,
    attach: tuple[str, ...],
    reply_to: str | None,
    at: str | None,
    wait: bool,
    timeout: float | None,
) -> None:
    """Send a message to an agent, a person or the board.

    TO is an agent's name, agent:NAME, user:NAME or board. The text comes from standard input when
    it is - or is left out. With --wait, Ctrl-C leaves the letter where it is.
    """
    if timeout is not None and not wait:
        raise click.UsageError("--timeout goes with --wait.")
    letter = _letter(session, text, subject, attach)
    body = {**letter, "to": to, "replyTo": reply_to, "deliverAt": at}
    answer = session.client.send("POST", session.under_company("messages"), body)

    def draw(sent: View) -> None:
        _draw_sent(sent, to, f" It is delivered at {at}." if at else "")

    if not wait:
        session.show(answer, draw)
        return
    if not str(answer["to"]).startswith("agent:"):
        raise BadInput(
            f"Sent {short(answer['id'])}; nobody can say when a person answers.",
            "Look into `remit inbox`.",
        )
    if not session.as_json:
        draw(answer)
    await_answer(session, answer["id"], timeout)


@click.command(
    cls=Command,
    examples=(
        'remit reply 4b6f2d91a0c7 "Yes, go ahead."',
        "remit reply 4b6f2d91a0c7 - < answer.txt",
    ),
)
@id_argument
@click.argument("text", metavar="[TEXT|-]", required=False)
@attach_option
def reply(session: Session, id_: str, text: str | None, attach: tuple[str, ...]) -> None:
    """Answer a message.

    The answer goes to who wrote it or, if that was you, to who it went to."""
    letter = session.client.get(path("messages", id_))
    me = session.client.get(path("me"))
    own_address = f"{me['kind']}:{me['id']}"
    # Mail from a channel to somebody else: only its receiver can answer in the channel.
    overheard = letter["sender"].startswith("channel:") and letter["to"] != own_address
    away = letter["sender"] == own_address or overheard
    to = letter["to"] if away else letter["sender"]
    if to == "system":
        raise BadInput(
            "Remit wrote this message and reads no answers.", "Write to an agent with `remit send`."
        )
    subject = answer_subject(letter["subject"])
    body = {**_letter(session, text, subject, attach), "to": to, "replyTo": letter["id"]}
    answer = session.client.send("POST", path("companies", letter["companyId"], "messages"), body)
    name = letter["toName"] if away else letter["senderName"]
    session.show(answer, lambda sent: _draw_sent(sent, name))


def _draw_sent(sent: View, to: str, when: str = "") -> None:
    output.say(f"Sent {short(sent['id'])} to {to}.{when}")
    if sent["notStarted"]:
        output.say(f"warning: {sent['notStarted']}")


_ENDS = {
    "letters": "unread: {subject} (to {to})",
    "runs": "run of {agent}",
    "outcomes": "outcome: {title} ({owner})",
    "agents": "agent {name}",
    "questions": "question: {text}",
    "approvals": "approval: {about}",
    "jobs": "background job of {agent}",
}


@click.command(cls=Command)
@id_argument
@option("--dry-run", "Only show what would end.")
@option("--yes", "Do not ask for confirmation.")
def cancel(session: Session, id_: str, dry_run: bool, yes: bool) -> None:
    """Take back a request: a message that you sent, with the work that came of it.

    It ends with the outcomes, runs, hires and approvals that it led to, except
    those that something else also needs. The command first shows what would end.
    """
    target = path("messages", id_, "cancel")
    if not (dry_run or yes or sys.stdin.isatty()):
        raise BadInput("Nobody can be asked to confirm it.", "Look with --dry-run, then add --yes.")
    if dry_run or not yes:
        preview = session.client.send("POST", target, {"dryRun": True})
        if dry_run:
            session.show(preview, lambda ends: _draw_ends(ends, "Would end:"))
            return
        _draw_ends(preview, "Ends with it:", note=session.as_json)
        click.confirm("Take it back?", abort=True, err=True)
    answer = session.client.send("POST", target)

    def draw(done: View) -> None:
        if yes:
            _draw_ends(done, "Ended with it:")
        output.say(f"{done['id']} is taken back.")

    session.show(answer, draw)


def _draw_ends(ends: View, title: str, *, note: bool = False) -> None:
    say = output.note if note else output.say
    lines = [line.format_map(entry) for name, line in _ENDS.items() for entry in ends[name]]
    say(title if lines else "Nothing came of it that would end.")
    for line in lines:
        say(f"  {line}")
    if ends["kept"]:
        say("Stays:")
    for kept_entry in ends["kept"]:
        say(f"  {kept_entry['title']}: {kept_entry['why']}")


def _letter(session: Session, text: str | None, subject: str, attach: tuple[str, ...]) -> View:
    """Return body and attachments of a letter; no file is stored before all are found."""
    attached = [_attachment(session, reference) for reference in attach]
    content = {**_text(session, text, subject), "subject": subject}
    return {**content, "attachments": [_stored(session, attachment) for attachment in attached]}


def _text(session: Session, text: str | None, subject: str) -> View:
    """Return the body field, or the id of a file that holds a long body."""
    if text not in (None, "-"):
        return {"body": text}
    with spooled("-") as (stream, size):
        if size == 0:
            raise click.UsageError("There is no text.")
        if size > _LONGEST_INLINE:
            description = f"Message: {subject}" if subject else "Message"
            file = store(session, description, stream, size, unlisted=True)
            return {"fileId": file["id"]}
        try:
            return {"body": stream.read().decode()}
        except UnicodeDecodeError:
            raise BadInput("The text is not UTF-8.", "Send the bytes with --attach.") from None


def _attachment(session: Session, text: str) -> str | Path:
    """The id of a file in the knowledge base, or the path of a local one."""
    local = Path(text)
    if not text.startswith(("kb://", "kb_file:")) and not is_id(text) and local.is_file():
        with local.open("rb"):  # fails before anything is sent if it is not readable
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
        file = store(session, output.clean(attached.name), stream, size, unlisted=True)
    return str(file["id"])


@click.command(
    cls=Command,
    examples=(
        "remit inbox",
        "remit inbox --agent writer --all",
        "remit inbox --watch",
    ),
)
@option("--agent NAME", "Mail of this agent, instead of yours.", type=AGENT)
@option("--all", "Include mail that was read.", field="everything")
@option("--sent", "Letters you wrote, newest first, and their state.")
@limit_option
@watch_option
def inbox(
    session: Session, agent: str | None, everything: bool, sent: bool, limit: int, watch: bool
) -> None:
    """List your mail, or an agent's.

    The oldest comes first, and looking changes nothing.
    """
    if sent:
        if agent is not None or everything:
            raise click.UsageError("--sent is about your own letters; it goes with neither.")
        target = session.under_company("messages")
        following.show(session, letters.draw_sent, target, limit, watch=watch, sent="1")
        return
    query = {"all": "1" if everything else None}
    if agent is None and session.is_company_named:
        query["company"] = session.company["id"]
    target = path("inbox") if agent is None else path("agents", agent, "inbox")
    empty = f"There is no {'' if everything else 'unread '}mail."
    draw = partial(letters.draw_inbox, with_state=everything, empty=empty)
    following.show(session, draw, target, limit, watch=watch, **query)


@click.command(cls=Command)
@id_argument
@option("--keep", "Leave it unread.")
@option("--revive", "Queue a dead letter again.")
@option("--discard", "Discard a dead letter; its state is then cancelled.")
def read(session: Session, id_: str, keep: bool, revive: bool, discard: bool) -> None:
    """Read a message and its thread.

    Mail that a person reads is marked as read; mail that an agent reads is not yet handled.
    """
    if revive and discard:
        raise click.UsageError("--revive and --discard exclude each other.")
    if revive or discard:
        verb = "revive" if revive else "discard"
        session.change("POST", path("messages", id_, verb), tells=_STATE)
        return
    letter = session.client.get(path("messages", id_))
    thread = letter["thread"]
    if all(entry["id"] != letter["id"] for entry in thread):
        alone = {name: value for name, value in letter.items() if name not in ("thread", "trace")}
        thread = [*thread, alone]

    def draw(_: View) -> None:
        letters.draw_thread(session, thread)
        if letter["trace"]:
            letters.draw_trace(letter["trace"])

    session.show(letter, draw)
    unread = [entry["id"] for entry in thread if entry["unread"]]
    if unread and not keep and session.client.get(path("me"))["kind"] == "user":
        sys.stdout.flush()  # a letter that could not be printed stays unread
        for unread_id in unread:
            session.client.send("POST", path("messages", unread_id, "ack"))


@click.command(cls=Command)
@click.argument("id_", metavar="ID", required=False, type=MESSAGE)
@option("--all", "All that are listed.", field="everything")
@limit_option
def revive(session: Session, id_: str | None, everything: bool, limit: int) -> None:
    """Queue a dead letter again, or all that failed through no fault of their own.

    Without ID and --all these are listed.
    """
    if id_ is not None and everything:
        raise click.UsageError("Give ID or --all.")
    if id_ is not None:
        session.change("POST", path("messages", id_, "revive"), tells=_STATE)
        return
    target = session.under_company("dead-letters")
    if everything:
        answer = session.client.send("POST", f"{target}/revive")
        sentence = f"{plural(len(answer['revived']), 'letter')} queued again."
        session.show(answer, lambda _: output.say(sentence))
        return

    def draw(items: list[View]) -> None:
        row = ("id: {id:short}", "to: {agentId:name}", "subject: {title}", "why")
        cells.table(session, items, *row, empty="There are none.")
        if items:
            output.say("", "`remit revive --all` queues all of them again.")

    session.show(session.listed(target, limit), draw)


@click.command(
    "needs-you",
    cls=Command,
    examples=(
        "remit needs-you",
        "remit needs-you --watch",
    ),
)
@limit_option
@watch_option
def needs_you(session: Session, limit: int, watch: bool) -> None:
    """List everything that awaits you."""
    company = session.company["id"] if session.is_company_named else None

    def draw(items: list[View]) -> None:
        names: dict[str, str] = {}
        if company is None:
            names = {mine["id"]: mine["name"] for mine in session.client.each(path("companies"))}
        row: list[Cell] = ["what: {kind:words}", "age: {since:age}", "agent: {agentId:name}"]
        row += ["title", ("cause", lambda _, item: output.timed(item["cause"]))]
        row += ["next step: {next:ids}"]
        if len(names) > 1:
            row.insert(0, ("company", lambda _, item: names.get(item["companyId"], "")))
        cells.table(session, items, *row, empty="Nothing awaits you.")

    following.show(session, draw, path("needs-you"), limit, watch=watch, company=company)
