"""Counter of identical successive calls of Remit's own tools."""

from collections import OrderedDict

from remit.adapters.pace import Call

#: Most runs that are remembered; the least recently active is forgotten first.
_MOST_RUNS = 10_000


class Streaks:
    """The last call of each run, and how often it was made in a row."""

    def __init__(self) -> None:
        self._last: OrderedDict[str, tuple[Call, int]] = OrderedDict()

    def count(self, run: str, call: Call) -> int:
        """Note a call of a run; return how often in a row it was made."""
        before, times = self._last.pop(run, (None, 0))
        times = times + 1 if before == call else 1
        self._last[run] = (call, times)
        if len(self._last) > _MOST_RUNS:
            self._last.popitem(last=False)
        return times

    def interrupt(self, run: str) -> None:
        """End the streak of a run that did something else, or ended."""
        self._last.pop(run, None)
