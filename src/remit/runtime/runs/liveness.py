"""Signs of life of the runs on this machine (output of a program, a turn of the model, a call), and
their calls: identical successive ones of Remit's own tools, and counts of all."""

import time
from collections import OrderedDict

from remit.adapters.pace import Call
from remit.model.execution.calls import Calls


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
    """The last call of each run, how often it was made in a row, and the counts of its calls."""

    def __init__(self) -> None:
        self._last: OrderedDict[str, tuple[Call, int]] = OrderedDict()
        self._calls: OrderedDict[str, Calls] = OrderedDict()

    def count(self, run: str, call: Call) -> int:
        """Note a call of a run; return how often in a row it was made."""
        before, times = self._last.pop(run, (None, 0))
        times = times + 1 if before == call else 1
        self._last[run] = (call, times)
        if len(self._last) > _MOST_RUNS:
            self._last.popitem(last=False)
        return times

    def calls(self, run: str) -> Calls:
        """Return the counts of a run's calls."""
        calls = self._calls[run] = self._calls.pop(run) if run in self._calls else Calls()
        if len(self._calls) > _MOST_RUNS:
            self._calls.popitem(last=False)
        return calls

    def interrupt(self, run: str) -> None:
        """End the streak of a run that did something else."""
        self._last.pop(run, None)

    def forget(self, run: str) -> None:
        """Forget a run that ended."""
        self._last.pop(run, None)
        self._calls.pop(run, None)
