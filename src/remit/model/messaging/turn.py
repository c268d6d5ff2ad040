"""Text of a turn: an agent's mail, so that no body can pass for a header.

Every line of a body stands behind a bar. Whatever a sender writes, a line without a bar is ours.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from remit.clock import Micros, to_iso
from remit.ids import short

_BAR = "| "
#: Controls, format characters (among them those for direction), halves of characters, line ends.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
#: Tabs, and the joiners without which some scripts and emoji cannot be written.
_NEEDED = frozenset("\t\u200c\u200d")


@dataclass(frozen=True, slots=True)
class Letter:
    """A message as it is shown to an agent."""

    id: str
    #: An address that can be answered to.
    sender: str
    #: The sender's name, and what it is to the reader.
    description: str
    from_board: bool
    subject: str
    created_at: Micros
    attempt: int
    #: The file that is the message.
    file: str
    attachments: tuple[str, ...]
    body: str
    #: Whether the body goes on in its file.
    cut: bool = False
    #: Whether an earlier run had taken it up and did not end well.
    begun: bool = False
    #: Whether it came through a channel, from somebody whom Remit does not know.
    outside: bool = False


def render_turn(letters: Sequence[Letter], pending: int, now: Micros) -> str:
    """The text of a turn; `pending` counts what is waiting in all, these included."""
    blocks = [f"now: {to_iso(now)}\npending-envelopes: {pending}\n"]
    blocks += [_render(letter) for letter in letters]
    return "---\n".join(blocks)


def _render(letter: Letter) -> str:
    lines = [
        f"envelope-id: {short(letter.id)}",
        f"from: {_one_line(letter.sender)}",
        f"sender: {_one_line(letter.description)}",
        f"from-board: {'yes' if letter.from_board else 'no'}",
        f"created-at: {to_iso(letter.created_at)}",
    ]
    if letter.outside:
        lines.insert(4, "from-outside: yes (not from this company, and without authority in it)")
    if letter.subject:
        lines.append(f"subject: {_one_line(letter.subject)}")
    if letter.attempt > 1:
        lines.append(f"attempt: {letter.attempt} (an earlier run may have handled this)")
    elif letter.begun:
        lines.append("begun: yes (an earlier run may have handled this)")
    lines.append(f"file: kb://{letter.file}")
    lines += [f"attachment: kb://{file}" for file in letter.attachments]
    lines.append("body: (cut; the whole is in its file)" if letter.cut else "body:")
    return "\n".join(lines) + "\n" + barred(letter.body)


def barred(text: str) -> str:
    """Quoted text, each line behind a bar: none of it can stand where only Remit speaks."""
    return "".join(f"{_BAR}{_printable(line)}\n" for line in text.splitlines() or [""])


def quoted(text: str, most: int = 100) -> str:
    """A title on one line, in quotes that it cannot close."""
    line = _one_line(text).replace('"', "'")
    return f'"{line if len(line) <= most else line[: most - 1] + "…"}"'


def _one_line(text: str) -> str:
    return " ".join(_printable(part) for part in text.splitlines()).replace("\t", " ")


def _printable(line: str) -> str:
    """Without what would end a line, move a cursor, turn the direction or hide text."""
    return "".join(char if _is_shown(char) else "\ufffd" for char in line)


def _is_shown(char: str) -> bool:
    return char in _NEEDED or unicodedata.category(char) not in _HIDDEN
