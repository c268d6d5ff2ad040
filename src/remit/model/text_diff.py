"""Difference of two texts by lines, in bounded time even for malicious input."""

import difflib
from itertools import groupby
from typing import Final, NamedTuple

#: Unchanged lines shown around a change.
CONTEXT: Final = 3
#: Most lines of each text that are compared, without the common beginning and end.
MOST_LINES: Final = 1_500
MOST_SHOWN: Final = 1_000
LONGEST_LINE: Final = 2_000


class Comparison(NamedTuple):
    #: Kind and line: `same`, `added`, `removed` or `gap`, whose line is the number of hidden lines.
    lines: list[tuple[str, str]]
    #: Whether the comparison is incomplete.
    cut_off: bool
    added: int
    removed: int


def compare(before: str, after: str) -> Comparison:
    """Return the lines that differ, with a few lines of context, as far as a page shows them."""
    whole = compare_whole(before, after)
    return Comparison(
        [(kind, line[:LONGEST_LINE]) for kind, line in whole.lines[:MOST_SHOWN]],
        whole.cut_off or len(whole.lines) > MOST_SHOWN,
        whole.added,
        whole.removed,
    )


def compare_whole(before: str, after: str) -> Comparison:
    """Return all lines that differ, with a few lines of context; `cut_off` if only the first
    `MOST_LINES` were compared."""
    old, new = _lines(before), _lines(after)
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    middle_old, middle_new = old[start : len(old) - end], new[start : len(new) - end]
    cut_off = max(len(middle_old), len(middle_new)) > MOST_LINES
    changed_lines = changed(middle_old[:MOST_LINES], middle_new[:MOST_LINES])
    tail = [] if cut_off else [("same", line) for line in old[len(old) - end :]]
    whole = [*(("same", line) for line in old[:start]), *changed_lines, *tail]
    return Comparison(
        _folded(whole),
        cut_off,
        sum(kind == "added" for kind, _ in changed_lines),
        sum(kind == "removed" for kind, _ in changed_lines),
    )


def _lines(text: str) -> list[str]:
    return text.split("\n") if text else []


def changed(old: list[str], new: list[str]) -> list[tuple[str, str]]:
    """Return all lines of both texts, each marked as same, removed or added."""
    marked: list[tuple[str, str]] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, old, new).get_opcodes():
        if kind == "equal":
            marked += [("same", line) for line in old[a:b]]
        else:
            marked += [("removed", line) for line in old[a:b]]
            marked += [("added", line) for line in new[c:d]]
    return marked


def _folded(lines: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Replace long unchanged stretches by a gap with their length."""
    changes = (at for at, (kind, _) in enumerate(lines) if kind != "same")
    near = {at for change in changes for at in range(change - CONTEXT, change + CONTEXT + 1)}
    folded: list[tuple[str, str]] = []
    for is_near, stretch in groupby(range(len(lines)), near.__contains__):
        places = list(stretch)
        folded += [lines[at] for at in places] if is_near else [("gap", str(len(places)))]
    return folded
