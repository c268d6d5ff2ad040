"""Signs of life of the runs on this machine (output of a program, a turn of the model, a call), and
their identical successive calls of Remit's own tools."""

import time
from collections import OrderedDict

from remit.adapters.pace import Call


class Signs:
    """The last sign of life of each run here, by a monotonic clock.

    The clock stops while the machine sleeps, so that no run counts as silent for that.
    """

    def __init__(self) -> None:
        self._heard: dict[str, float] = {}

    def begin(self, run: str) -> None:
        self._heard[run] = time.monotonic()

    def note(self, run: str) -> None:
        """Note a sign of life, from any thread; runs of other processes are ignored."""
        if run in self._heard:
            self._heard[run] = time.monotonic()

    def silence(self, run: str) -> float:
        """Return the seconds since the last sign of life of a run."""
        return time.monotonic() - self._heard.get(run, time.monotonic())

    def forget(self, run: str) -> None:
        self._heard.pop(run, None)


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
