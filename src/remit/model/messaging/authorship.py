"""Authors of messages in chats, where Remit and an agent speak through the same account.

The first line says it, and is always Remit's: the mark of Remit, or the name of the agent. A line
that an agent wrote and that looks like the mark is quoted, so that it cannot pass for the beginning
of another message either.
"""

from __future__ import annotations

import re
import unicodedata

from remit.model.text import NAME

#: First line of Remit's messages. No name of an agent has such a character.
MARK = "◆ Remit"
_LIKENESS = " (an agent)"
_AUTHOR = re.compile(rf"(?:{MARK}(?: · \d of \d)?|{NAME.pattern}(?:{re.escape(_LIKENESS)})?:)\n")
_QUOTE = "> "
#: Letters and digits of the mark, and of the number of a part.
_LETTERS_OF_MARK = re.compile(r"remit(?:\d+of\d+)?")
#: Characters that look like the mark's.
_DIAMONDS = frozenset("◆◇◈❖⟐⬥⬦⬧⬨⬩⯁⯌♦♢🔶🔷🔸🔹💠")


def by_remit(text: str, part: int = 1, parts: int = 1) -> str:
    """Return a text of Remit as a chat shows it; `part` is the number of one of several."""
    number = f" · {part} of {parts}" if parts > 1 else ""
    return f"{MARK}{number}\n{text}"


def by_agent(name: str, text: str) -> str:
    """Return a text of an agent as a chat shows it."""
    likeness = _LIKENESS if _letters(name).startswith("remit") else ""
    lines = text.splitlines(keepends=True)
    quoted = (f"{_QUOTE}{line}" if _looks_like_mark(line) else line for line in lines)
    return f"{name}{likeness}:\n{''.join(quoted)}"


def parted(message: str) -> tuple[str, str]:
    """Return the line of a message that names its author, with its end, and the rest."""
    author = _AUTHOR.match(message)
    return (author[0], message[author.end() :]) if author else ("", message)


def _looks_like_mark(line: str) -> bool:
    seen = "".join(char for char in line if unicodedata.category(char) not in ("Cf", "Mn")).strip()
    return seen[:1] in _DIAMONDS or _LETTERS_OF_MARK.fullmatch(_letters(seen)) is not None


def _letters(text: str) -> str:
    """Return the letters and digits of a text, whatever their style and case."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(char for char in folded if char.isalnum())
