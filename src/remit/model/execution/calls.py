"""Calls of a run's tools: how many of each, how many failed, and how many failed in a row."""

import re
from collections import Counter

#: Most tools that are counted by name, and that are told; the others are counted together.
_MOST_COUNTED = 50
_MOST_TOLD = 3
_OTHERS = "other tools"
_TIMES = "\N{MULTIPLICATION SIGN}"
_LONGEST_NAME = 60
_UNPRINTABLE = re.compile(r"[^\w./:@ -]+")


class Calls:
    """The calls of one run so far."""

    def __init__(self) -> None:
        self._made: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._failed_in_a_row = 0

    def made(self, tool: str) -> None:
        self._made[self._counted_as(tool)] += 1

    def ended(self, tool: str, *, failed: bool) -> int:
        """Note how a call ended; return how many calls in a row have failed."""
        self._failed_in_a_row = self._failed_in_a_row + 1 if failed else 0
        if failed:
            self._failed[self._counted_as(tool)] += 1
        return self._failed_in_a_row

    def _counted_as(self, tool: str) -> str:
        """The name under which a tool is counted: programs and models choose names as they like."""
        name = _UNPRINTABLE.sub("?", tool[:_LONGEST_NAME]) or "?"
        return name if name in self._made or len(self._made) < _MOST_COUNTED else _OTHERS

    def sentence(self) -> str:
        """Sentence about the tools that were called most; empty if none was."""
        if not self._made:
            return ""
        most = self._made.most_common(_MOST_TOLD)
        told = [self._told(tool, count) for tool, count in most]
        rest = sum(self._made.values()) - sum(count for _, count in most)
        if rest:
            told.append(f"{rest} {_TIMES} others")
        return f"Its calls: {'; '.join(told)}."

    def _told(self, tool: str, count: int) -> str:
        failed = self._failed[tool]
        return f"{count} {_TIMES} {tool}" + (f", {failed} refused or failed" if failed else "")


def with_calls(error: str | None, calls: Calls) -> str:
    """Return the error of a run that took too much, with what it called."""
    sentence = (error or "It took too much").strip().rstrip(".")
    return f"{sentence}. {calls.sentence()}".rstrip()
