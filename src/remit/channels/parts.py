"""Cuts of a long text into parts, at the ends of lines."""

from __future__ import annotations

import re
from collections.abc import Callable

#: The marks before quoted words. Each line of them has the mark, also the rest of one that was cut.
_FENCE = re.compile(r"[ \t]*(?:[|│┃>]+[ \t]*)*")
#: Longest fence that is repeated.
_LONGEST_FENCE = 40
#: A long line is begun in a part that has as much room; else in the next one.
_LEAST_PIECE = 200
_GOES_ON = "…"


def split(text: str, most: int, size: Callable[[str], int] = len) -> list[str]:
    """Return the parts of a text, each of at most `most` by its `size`.

    A line that is longer than a part is cut. Its rest stands behind the same fence, so that quoted
    words do not look like Remit's.
    """
    parts: list[list[str]] = [[]]
    room = most
    for whole in text.split("\n"):
        line = whole
        while size(line) > room:
            if parts[-1] and (size(line) <= most or room < _LEAST_PIECE):
                parts.append([])
                room = most
                continue
            fits = _fitting(line, room, size)
            parts[-1].append(line[:fits])
            parts.append([])
            line, room = f"{_fence(whole)}{_GOES_ON}{line[fits:]}", most
        parts[-1].append(line)
        room -= size(line) + 1
    return ["\n".join(lines) for lines in parts]


def cut(text: str, most: int, size: Callable[[str], int] = len) -> str:
    """Return the beginning of a text that is too long, with a sign that it goes on."""
    if size(text) <= most:
        return text
    return f"{split(text, most - size(_GOES_ON), size)[0]}{_GOES_ON}"


def _fence(line: str) -> str:
    fence = _FENCE.match(line)
    return fence[0][:_LONGEST_FENCE] if fence else ""


def _fitting(line: str, most: int, size: Callable[[str], int]) -> int:
    """Return how many characters of a line fit."""
    low, high = 1, len(line)
    while low < high:
        middle = (low + high + 1) // 2
        if size(line[:middle]) <= most:
            low = middle
        else:
            high = middle - 1
    return low
