"""Patterns of paths and branches that limit a right on a repository.

A pattern is a path whose segments may have a `*`; `**` as its last segment matches everything
below. Such simple patterns make it decidable whether one lies within another: a passed-on limit
must lie within the held one.
"""

import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from remit.errors import BadInput

MOST_PATTERNS = 50
LONGEST_PATTERN = 200
_ANYTHING_BELOW = "**"
_NOT_IN_PATTERN = re.compile(r"[\x00-\x1f\x7f\\]|//|^/|/$|^$")


def patterns(texts: Iterable[object], noun: str) -> tuple[str, ...]:
    """Validate a list of patterns."""
    checked = tuple(dict.fromkeys(_pattern(text, noun) for text in texts))
    if len(checked) > MOST_PATTERNS:
        raise BadInput(f"At most {MOST_PATTERNS} {noun}.", "Use patterns such as src/**.")
    return checked


def _pattern(text: object, noun: str) -> str:
    segments = text.split("/") if isinstance(text, str) else []
    if (
        not isinstance(text, str)
        or len(text) > LONGEST_PATTERN
        or _NOT_IN_PATTERN.search(text)
        or any(segment in (".", "..") for segment in segments)
        or any(_ANYTHING_BELOW in segment for segment in segments[:-1])
        or (_ANYTHING_BELOW in segments[-1] and segments[-1] != _ANYTHING_BELOW)
    ):
        raise BadInput(
            f"{str(text)[:60]!r} is not a pattern of {noun}.",
            "Write a path such as docs/guide.md, docs/*.md or src/**.",
        )
    return text


def stored(texts: Sequence[str] | None) -> str | None:
    return None if texts is None else json.dumps(list(texts), ensure_ascii=False)


@lru_cache(maxsize=4096)
def read(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(json.loads(text))


def matches(path: str, pattern: str) -> bool:
    """Match without a regular expression, which several `*` could make exponential."""
    segments, wanted = path.split("/"), pattern.split("/")
    if wanted[-1] == _ANYTHING_BELOW:
        wanted.pop()
        if not "/".join(segments[len(wanted) :]):
            return False
    elif len(segments) != len(wanted):
        return False
    return all(map(_fits, segments, wanted))


def _fits(text: str, segment: str) -> bool:
    first, *parts = segment.split("*")
    if not parts:
        return text == first
    *middle, last = parts
    at, end = len(first), len(text) - len(last)
    if at > end or not text.startswith(first) or not text.endswith(last):
        return False
    for part in middle:
        at = text.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


def within(inner: str, outer: str) -> bool:
    """Return whether `outer` matches everything that `inner` matches; False when in doubt."""
    narrow, wide = inner.split("/"), outer.split("/")
    for number, segment in enumerate(wide):
        if segment == _ANYTHING_BELOW:
            return len(narrow) > number
        if number >= len(narrow) or narrow[number] == _ANYTHING_BELOW:
            return False
        if not _segment_within(narrow[number], segment):
            return False
    return len(narrow) == len(wide)


def _segment_within(narrow: str, wide: str) -> bool:
    if narrow == wide or wide == "*":
        return True
    return "*" not in narrow and matches(narrow, wide)


def apart(pattern: str, other: str) -> bool:
    """Return whether no path matches both; False when in doubt."""
    left, right = pattern.split("/"), other.split("/")
    for a, b in zip(left, right, strict=False):
        if _ANYTHING_BELOW in (a, b):
            return False
        if "*" not in a and "*" not in b and a != b:
            return True
        if "*" in a and "*" not in b and not matches(b, a):
            return True
        if "*" in b and "*" not in a and not matches(a, b):
            return True
    return len(left) != len(right)
