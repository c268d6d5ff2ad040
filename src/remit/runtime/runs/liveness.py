"""Signs of life of the runs on this machine: what a program prints, a turn of its model, a call."""

import time


class Signs:
    """The last sign of life of each run here, by a clock that nobody can set.

    It does not count the time that the machine sleeps, so nobody is silent for that.
    """

    def __init__(self) -> None:
        self._heard: dict[str, float] = {}

    def begin(self, run: str) -> None:
        self._heard[run] = time.monotonic()

    def note(self, run: str) -> None:
        """From any thread; of runs elsewhere nothing is kept."""
        if run in self._heard:
            self._heard[run] = time.monotonic()

    def silence(self, run: str) -> float:
        """For how many seconds nothing was heard of it."""
        return time.monotonic() - self._heard.get(run, time.monotonic())

    def forget(self, run: str) -> None:
        self._heard.pop(run, None)
