"""Text of a turn: an agent's mail, formatted so that no body can imitate a header.

Every line of a body, and of an earlier letter that is quoted with it, has a bar in front. Lines
without a bar are always Remit's.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from remit.clock import Micros, to_iso
from remit.ids import short

_BAR = "| "
#: Controls, format characters (among them those for direction), surrogates, line ends.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
#: Tabs, and the joiners without which some scripts and emoji cannot be written.
_NEEDED = frozenset("\t\u200c\u200d")


@dataclass(frozen=True, slots=True)
class Titled:
    """A letter or an outcome that is named."""

    id: str
    title: str


@dataclass(frozen=True, slots=True)
class Quote:
    """An earlier letter, as far as it is quoted."""

    id: str
    #: Its sender's address, or `you`.
    sender: str
    created_at: Micros
    body: str
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Letter:
    """A message as it is shown to an agent."""

    id: str
    #: Address for an answer.
    sender: str
    #: The sender's name, and its relation to the reader.
    description: str
    from_board: bool
    subject: str
    created_at: Micros
    attempt: int
    #: File with the whole message.
    file: str
    attachments: tuple[str, ...]
    body: str
    #: Whether the body is cut; the file has the rest.
    cut: bool = False
    #: Whether an earlier run that claimed it failed.
    begun: bool = False
    #: Whether it came through a channel, from a speaker without a linked account.
    outside: bool = False
    #: The letter that it answers, and the outcome that it is about.
    answers: Titled | None = None
    about: Titled | None = None
    #: The letter that it answers and the one before that, oldest first.
    quotes: tuple[Quote, ...] = ()


def render_turn(letters: Sequence[Letter], pending: int, now: Micros) -> str:
    """Return the text of a turn; `pending` is the number of all waiting letters, these included."""
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
    if letter.answers is not None:
        answered = letter.answers
        lines.append(f"in-reply-to: {quoted(answered.title)} ({short(answered.id)})")
    if letter.about is not None:
        lines.append(f"about: {quoted(letter.about.title)} outcome:{letter.about.id}")
    lines.append(f"file: kb://{letter.file}")
    lines += [f"attachment: kb://{file}" for file in letter.attachments]
    earlier = "".join(_earlier(quote) for quote in letter.quotes)
    body = "body: (cut; the whole is in its file)" if letter.cut else "body:"
    return "\n".join(lines) + f"\n{earlier}{body}\n{barred(letter.body)}"


def _earlier(quote: Quote) -> str:
    cut = ", cut" if quote.cut else ""
    at = to_iso(quote.created_at)
    return f"earlier: {short(quote.id)} from {_one_line(quote.sender)} at {at}{cut}\n" + barred(
        quote.body
    )


def barred(text: str) -> str:
    """Put a bar before each line of a quoted text, so that it cannot imitate Remit's own lines."""
    return "".join(f"{_BAR}{_printable(line)}\n" for line in text.splitlines() or [""])


def quoted(text: str, most: int = 100) -> str:
    """Return a title on one line, in quotes that it cannot close."""
    line = _one_line(text).replace('"', "'")
    return f'"{line if len(line) <= most else line[: most - 1] + "…"}"'


def _one_line(text: str) -> str:
    return " ".join(_printable(part) for part in text.splitlines()).replace("\t", " ")


def _printable(line: str) -> str:
    """Replace characters that end a line, move a cursor, change the direction or hide text."""
    return "".join(char if _is_shown(char) else "\ufffd" for char in line)


def _is_shown(char: str) -> bool:
    return char in _NEEDED or unicodedata.category(char) not in _HIDDEN
