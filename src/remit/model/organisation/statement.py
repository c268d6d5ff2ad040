"""The statement of an approval as plain text: for chats, mail, terminals and agents.

A statement has sections with a title, and these have entries with a name, a kind and lines, in
which nothing is invisible (`remit.model.spelling`). A line that begins with the fence is quoted:
the words of a requester, or a value of several lines. No other line begins with something that a
requester wrote, except for a plain name before a colon.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

#: DANGER: a sentence of Remit about what is dangerous. NOTE: another sentence of Remit. VALUE: a
#: value of one line. WORDS: words of the requester, or a value of several lines. DIFFERENCE: lines
#: that replace others. LINK: a page of Remit, and the command that shows the same.
EntryKind = StrEnum("EntryKind", "DANGER NOTE VALUE WORDS DIFFERENCE LINK")

FENCE: Final = "│ "
_QUOTES: Final = f"Lines after {FENCE.strip()} are not Remit's: they are quoted as they stand."


def as_text(statement: Mapping[str, Any], address: str = "") -> str:
    """Return a statement as plain text. `address` is that of the instance, for links; without one,
    the commands that show the same are named."""
    text: list[str] = []
    for section in statement["sections"]:
        text += ["", section["title"].upper(), *as_lines(section["entries"], address)]
    if any(line.startswith(FENCE) for line in text):
        text = [_QUOTES, *text]
    return "\n".join(text).strip("\n")


def as_lines(entries: Iterable[Mapping[str, Any]], address: str = "") -> list[str]:
    """Return the lines of some entries as plain text."""
    return [line for shown in entries for line in _written(shown, address)]


def _written(shown: Mapping[str, Any], address: str) -> Iterator[str]:
    name, lines = shown["name"], shown["lines"]
    match shown["kind"]:
        case EntryKind.DANGER:
            yield f"! {lines[0]}"
        case EntryKind.NOTE:
            yield lines[0]
        case EntryKind.VALUE:
            yield f"{name}: {lines[0]}"
        case EntryKind.LINK:
            page, command = lines
            yield f"{name}: {address.rstrip('/')}{page}" if address else f"{name}: `{command}`"
        case _:
            yield f"{name}:"
            yield from (f"{FENCE}{line}" for line in lines)
