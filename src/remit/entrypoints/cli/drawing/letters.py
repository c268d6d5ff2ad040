"""Mail on the terminal. Text of a message is escaped or behind a bar: it cannot imitate other
lines."""

import sys
from collections.abc import Sequence
from typing import Any

from remit.clock import DAY, HOUR, MINUTE, SystemClock, from_iso
from remit.entrypoints.cli import references
from remit.entrypoints.cli.address import path
from remit.entrypoints.cli.drawing import output, trees
from remit.entrypoints.cli.options import Session
from remit.errors import RemitError
from remit.ids import short
from remit.model.messaging.mail import MARKS, Mark

Entry = dict[str, Any]

#: Characters of a body's preview.
_PREVIEW = 160
_BAR = "│ "


def message_id(session: Session, text: str) -> str:
    """Resolve a message by its id or a part of it, in the company in force."""
    return references.picked(session, text, "message", "See `remit inbox`.")


def age(time: str | None) -> str:
    """Return the time passed in a few characters, such as "3 h"; a date after two weeks."""
    if not time:
        return ""
    passed = SystemClock().now() - from_iso(time)
    if passed < MINUTE:
        return "now"
    for unit, word, until in ((MINUTE, "min", HOUR), (HOUR, "h", DAY), (DAY, "d", 14 * DAY)):
        if passed < until:
            return f"{passed // unit} {word}"
    return time[:10]


def who(one: Entry) -> str:
    """The sender; an agent by its bare name, as it is written to."""
    kind = one["sender"].partition(":")[0]
    return f"user:{one['senderName']}" if kind == "user" else str(one["senderName"])


def preview(one: Entry) -> str:
    """The first words of a body, on one line."""
    return " ".join(output.clean(one["body"][: 4 * _PREVIEW]).split())[:_PREVIEW]


def state(one: Entry) -> str:
    """State of a message in an inbox."""
    words = {"queued": "unread", "leased": "in work", "done": "read"}
    return str(words.get(one["status"], one["status"]))


def draw_inbox(entries: Sequence[Entry], *, with_state: bool, empty: str) -> None:
    """Table of letters: sender, age and subject, at most as wide as the terminal."""
    if not entries:
        output.say(empty)
        return
    if sys.stdout.isatty():
        _draw(entries, with_state=with_state)
        return
    columns = ["id", "from", "age", *(["state"] if with_state else []), "subject", "text"]
    rows = [
        [
            short(one["id"]),
            who(one),
            age(one["deliveredAt"]),
            *([state(one)] if with_state else []),
            one["subject"] + _files(one),
            preview(one),
        ]
        for one in entries
    ]
    output.table(columns, rows, empty=empty)


def _draw(entries: Sequence[Entry], *, with_state: bool) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, show_header=False, padding=(0, 2, 0, 0), expand=True)
    drawn.add_column(no_wrap=True, style="dim")
    drawn.add_column(no_wrap=True, max_width=20, overflow="ellipsis")
    drawn.add_column(no_wrap=True, justify="right", style="dim")
    if with_state:
        drawn.add_column(no_wrap=True, style="dim")
    drawn.add_column(no_wrap=True, ratio=1, overflow="ellipsis")
    for one in entries:
        unread = one["status"] in ("queued", "leased")
        # Text, so that brackets in somebody's words are not taken for markup.
        about = Text.assemble(
            (output.clean(one["subject"]), "bold" if unread else ""),
            (_files(one) + (_GAP if one["subject"] else ""), "dim"),
            (preview(one), "dim"),
        )
        drawn.add_row(
            short(one["id"]),
            Text(output.clean(who(one)), style="green" if one["fromBoard"] else "cyan"),
            age(one["deliveredAt"]),
            *([state(one)] if with_state else []),
            about,
        )
    Console(highlight=False).print(drawn)


_GAP = "  "


def _files(one: Entry) -> str:
    count = len(one["attachments"])
    return f" ({count} file{'s' if count > 1 else ''})" if count else ""


def draw_thread(session: Session, shown: Sequence[Entry]) -> None:
    """Print messages one after the other, each with its head, its files and its text."""
    for number, one in enumerate(shown):
        if number:
            print()
        _draw_letter(session, one)


def _draw_letter(session: Session, one: Entry) -> None:
    kind = one["sender"].partition(":")[0]
    width = trees.terminal_width()
    _say(one["subject"] or "(no subject)", width)
    head = {
        "from": one["senderName"] if kind == "system" else f"{kind}:{one['senderName']}",
        "board": "yes" if one["fromBoard"] else None,
        "to": _receiver(one),
        "sent": f"{output.when(one['createdAt'])}, {_ago(one['createdAt'])}",
        "state": ", ".join(_states(one)),
        "note": one["mark"] and MARKS[Mark(one["mark"])],
        "id": one["id"],
        "question": one["questionId"] and f"remit question answer {short(one['questionId'])} …",
        "asks for": one["request"] and _request(one),
    }
    output.fields({f"  {name}": value for name, value in head.items() if value})
    for file in one["attachments"]:
        _say(f"  file  {_described(session, file)}", width)
    print()
    for line in one["body"].splitlines() or [""]:
        for piece in _pieces(output.clean(line.expandtabs(4)), width):
            print(_BAR + piece)
    if one["bodyCut"]:
        print()
        output.say(f"  The whole text: remit kb cat {short(one['fileId'])}")


def draw_sent(entries: Sequence[Entry]) -> None:
    """Sent letters, each with its state."""
    rows = [
        (
            *(short(one["id"]), _receiver(one), age(one["createdAt"])),
            one["state"].replace("_", " "),
            one["subject"] or preview(one),
            one["sentence"],
        )
        for one in entries
    ]
    columns = ("id", "to", "age", "state", "letter", "what became of it")
    output.table(columns, rows, empty="You have written nothing.")


def draw_trace(trace: Entry) -> None:
    """The trace of a letter, below it."""
    lines = [("", trace["sentence"])]
    lines += [("run", f"{one['agent']}, {one['status']}  {one['id']}") for one in trace["runs"]]
    lines += [
        ("outcome", f"{one['title']}, {one['status']}, {one['owner']}  {one['id']}")
        for one in trace["outcomes"]
    ]
    lines += [("hired", f"{one['name']}, {one['status']}") for one in trace["hires"]]
    lines += [("asked", f"{one['text']} ({one['status']})") for one in trace["questions"]]
    lines += [("mail", f"{one['from']} to {one['to']}  {one['id']}") for one in trace["letters"]]
    lines += [
        ("reply", f"{one['from']}, {output.when(one['at'])}{_mark(one)}  {one['id']}")
        for one in trace["replies"]
    ]
    width = trees.terminal_width()
    print()
    _say(f"State of {trace['messageId']}: {trace['state'].replace('_', ' ')}", width)
    for what, text in lines:
        if text:
            _say(f"  {what:8}{text}" if what else f"  {text}", width)


def _mark(one: Entry) -> str:
    return f" ({MARKS[Mark(one['mark'])]})" if one["mark"] else ""


def _say(line: str, width: int | None) -> None:
    """Print exactly one line, cut to the width: a second one could pass for another field."""
    line = output.clean(line)
    print(line if width is None else trees.fit(line, width))


def _pieces(line: str, width: int | None) -> list[str]:
    """Split a line of a body to fit the width, so that the terminal wraps none without its bar."""
    if width is None or not line:
        return [line]
    from rich.cells import chop_cells

    return chop_cells(line, width - len(_BAR))


def _receiver(one: Entry) -> str:
    kind, colon, _ = one["to"].partition(":")
    return f"{kind}:{one['toName']}" if colon else kind


def _ago(time: str) -> str:
    passed = age(time)
    return passed if passed == "now" or "-" in passed else f"{passed} ago"


def _states(one: Entry) -> list[str]:
    """States of a letter's deliveries that are worth showing."""
    found = []
    for delivery in one["deliveries"]:
        name = delivery["toName"]
        if delivery["status"] == "deferred":
            found.append(f"{name} gets it at {output.when(delivery['deliverAt'])}")
        elif delivery["status"] in ("dead", "cancelled"):
            found.append(f"{delivery['status']} for {name} ({delivery['endedWhy']})")
        elif delivery["attempt"] > 1:
            found.append(f"attempt {delivery['attempt']} by {name}")
    return found


def _request(one: Entry) -> str:
    asked = one["request"]
    resource = output.shortened(asked["resource"])
    return f"{asked['level']} on {resource}; remit grant give --request {short(one['id'])}"


def _described(session: Session, file: str) -> str:
    try:
        found = session.client.get(path("files", file))
    except RemitError:
        return f"kb://{file}"
    size = f", {output.size(found['size'])}" if "size" in found else ""
    return f"kb://{file}  {found['description']}{size}"
