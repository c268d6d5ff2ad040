"""Who has not been heard of, by a clock that nobody can set."""

from __future__ import annotations

from collections.abc import Mapping

from remit.clock import Micros


class Silence:
    """Watches leases. One that stays as it is for too long belongs to a worker that is gone.

    The times in leases are of other machines, and of clocks that are set back and forth; nothing is
    concluded from them but that they changed.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        #: By run: what its lease said, and since when it has said so.
        self._seen: dict[str, tuple[Micros, float]] = {}

    def of(self, leases: Mapping[str, Micros], now: float) -> list[str]:
        """The runs whose lease is as it was so many seconds ago; `now` is of this process."""
        before, self._seen = self._seen, {}
        for run, until in leases.items():
            seen = before.get(run)
            self._seen[run] = seen if seen is not None and seen[0] == until else (until, now)
        return [run for run, (_, since) in self._seen.items() if now - since >= self._seconds]
