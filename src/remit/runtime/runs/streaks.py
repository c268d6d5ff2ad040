"""Counter of identical calls in a row, as Remit's own tools see them."""

from collections import OrderedDict

from remit.adapters.pace import Call

#: Of so many runs; the ones that have not called for longest are forgotten first.
_MOST_RUNS = 10_000


class Streaks:
    """For each run its last call, and how often in a row it was made."""

    def __init__(self) -> None:
        self._last: OrderedDict[str, tuple[Call, int]] = OrderedDict()

    def count(self, run: str, call: Call) -> int:
        """The run makes a call; how often in a row it is the same."""
        before, times = self._last.pop(run, (None, 0))
        times = times + 1 if before == call else 1
        self._last[run] = (call, times)
        if len(self._last) > _MOST_RUNS:
            self._last.popitem(last=False)
        return times

    def interrupt(self, run: str) -> None:
        """The run did something else in between, or is over."""
        self._last.pop(run, None)
