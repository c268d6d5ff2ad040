"""Signs of life of the runs on this machine: output of a program, a turn of the model, a call."""

import time


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
