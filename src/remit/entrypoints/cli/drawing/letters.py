"""Mail on the terminal. Text of a message is escaped or behind a bar: it cannot imitate other
lines."""

from collections.abc import Sequence
from typing import Any

from remit.entrypoints.cli.drawing import output, terminal
from remit.entrypoints.cli.session import Session, path, picked
from remit.errors import RemitError
from remit.ids import short
from remit.model.messaging.mail import MARKS, Mark

Entry = dict[str, Any]

#: Characters of a body's preview.
_PREVIEW = 160
_BAR = "│ "


def message_id(session: Session, text: str) -> str:
    """Resolve a message by its id or a part of it, in the company in force."""
    return picked(session, text, "message", "See `remit inbox`.")


def who(entry: Entry) -> str:
    """The sender; an agent by its bare name, as it is written to."""
    kind = entry["sender"].partition(":")[0]
    return f"user:{entry['senderName']}" if kind == "user" else str(entry["senderName"])


def preview(entry: Entry) -> str:
    """The first words of a body, on one line; an ellipsis says that there are more."""
    words = " ".join(output.clean(entry["body"][: 4 * _PREVIEW]).split())
    return words if len(words) < _PREVIEW else f"{words[: _PREVIEW - 1].rstrip()}…"


def state(entry: Entry) -> str:
    """State of a message in an inbox."""
    words = {"queued": "unread", "leased": "in work", "done": "read"}
    return str(words.get(entry["status"], entry["status"]))


def draw_inbox(entries: Sequence[Entry], *, with_state: bool, empty: str) -> None:
    """Table of letters: sender, age, subject, the first words, and what Remit notes about it."""
    columns = ["id", "from", "age", *(["state"] if with_state else []), "subject", "text", "note"]
    rows = [
        [
            short(entry["id"]),
            who(entry),
            output.age(entry["deliveredAt"]),
            *([state(entry)] if with_state else []),
            entry["subject"] + _files(entry),
            preview(entry),
            _note(entry),
        ]
        for entry in entries
    ]
    output.table(columns, rows, empty=empty)


def _note(entry: Entry) -> str | None:
    """The remark about a letter that Remit sent in an agent's place."""
    return entry["mark"] and MARKS[Mark(entry["mark"])]


def _files(entry: Entry) -> str:
    count = len(entry["attachments"])
    return f" ({count} file{'s' if count > 1 else ''})" if count else ""


def draw_thread(session: Session, shown: Sequence[Entry]) -> None:
    """Print messages one after the other, each with its head, its files and its text."""
    for number, entry in enumerate(shown):
        if number:
            print()
        _draw_letter(session, entry)


def _draw_letter(session: Session, entry: Entry) -> None:
    kind = entry["sender"].partition(":")[0]
    width = terminal.width()
    _say(entry["subject"] or "(no subject)", width)
    head = {
        "from": entry["senderName"] if kind == "system" else f"{kind}:{entry['senderName']}",
        "board": "yes" if entry["fromBoard"] else None,
        "to": _receiver(entry),
        "sent": f"{output.when(entry['createdAt'])}, {_ago(entry['createdAt'])}",
        "state": ", ".join(_states(entry)),
        "note": _note(entry),
        "id": entry["id"],
        "question": entry["questionId"] and f"remit question answer {short(entry['questionId'])} …",
        "asks for": entry["request"] and _request(entry),
    }
    output.fields({f"  {name}": value for name, value in head.items() if value})
    for file in entry["attachments"]:
        named, *command = _described(session, file)
        _say(f"  file  {named}", width)
        output.say(*(f"        {line}" for line in command))
    print()
    for line in entry["body"].splitlines() or [""]:
        for piece in _pieces(output.clean(line.expandtabs(4)), width):
            print(_BAR + piece)
    if entry["bodyCut"]:
        print()
        output.say(f"  The whole text: remit kb cat {short(entry['fileId'])}")


def draw_sent(entries: Sequence[Entry]) -> None:
    """Sent letters, each with its state."""
    rows = [
        (
            *(short(entry["id"]), _receiver(entry), output.age(entry["createdAt"])),
            entry["state"].replace("_", " "),
            entry["subject"] or preview(entry),
            output.timed(entry["sentence"]),
        )
        for entry in entries
    ]
    columns = ("id", "to", "age", "state", "letter", "what became of it")
    output.table(columns, rows, empty="You have written nothing.")


#: By the title of a line in a trace: the key of its entries, and how each is written.
_TRACES = {
    "run": ("runs", "{agent}, {status}  {id}"),
    "outcome": ("outcomes", "{title}, {status}, {owner}  {id}"),
    "hired": ("hires", "{name}, {status}"),
    "asked": ("questions", "{text} ({status})"),
    "mail": ("letters", "{from} to {to}  {id}"),
}


def draw_trace(trace: Entry) -> None:
    """The trace of a letter, below it."""
    lines = [("", output.timed(trace["sentence"]))]
    lines += [
        (what, line.format_map(entry))
        for what, (key, line) in _TRACES.items()
        for entry in trace[key]
    ]
    lines += [
        ("reply", f"{reply['from']}, {output.when(reply['at'])}{_mark(reply)}  {reply['id']}")
        for reply in trace["replies"]
    ]
    width = terminal.width()
    print()
    _say(f"State of {trace['messageId']}: {trace['state'].replace('_', ' ')}", width)
    for what, text in lines:
        if text:
            _say(f"  {what:8}{text}" if what else f"  {text}", width)


def _mark(entry: Entry) -> str:
    return f" ({_note(entry)})" if entry["mark"] else ""


def _say(line: str, width: int | None) -> None:
    """Print exactly one line, cut to the width: a second one could pass for another field."""
    line = output.clean(line)
    print(line if width is None else terminal.fit(line, width))


def _pieces(line: str, width: int | None) -> list[str]:
    """Split a line of a body to fit the width, so that the terminal wraps none without its bar."""
    if width is None or not line:
        return [line]
    from rich.cells import chop_cells

    return chop_cells(line, width - len(_BAR))


def _receiver(entry: Entry) -> str:
    kind, colon, _ = entry["to"].partition(":")
    return f"{kind}:{entry['toName']}" if colon else kind


def _ago(time: str) -> str:
    passed = output.age(time)
    return passed if passed == "now" or "-" in passed else f"{passed} ago"


def _states(entry: Entry) -> list[str]:
    """States of a letter's deliveries that are worth showing."""
    states = []
    for delivery in entry["deliveries"]:
        name = delivery["toName"]
        if delivery["status"] == "deferred":
            states.append(f"{name} gets it at {output.when(delivery['deliverAt'])}")
        elif delivery["status"] in ("dead", "cancelled"):
            states.append(f"{delivery['status']} for {name} ({delivery['endedWhy']})")
        elif delivery["attempt"] > 1:
            states.append(f"attempt {delivery['attempt']} by {name}")
    return states


def _request(entry: Entry) -> str:
    request = entry["request"]
    resource = output.shortened(request["resource"])
    return f"{request['level']} on {resource}; remit grant give --request {short(entry['id'])}"


def _described(session: Session, file: str) -> list[str]:
    """A file's address, description and size, and the command that opens it."""
    try:
        answer = session.client.get(path("files", file))
    except RemitError:
        return [f"kb://{file}"]
    size = f", {output.size(answer['size'])}" if "size" in answer else ""
    return [f"kb://{file}  {answer['description']}{size}", f"remit kb cat {short(file)}"]
