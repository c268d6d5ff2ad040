"""Detection of dead workers, by a monotonic clock."""

import math
from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

from remit.clock import Micros

T = TypeVar("T", bound=Hashable)


class Silence(Generic[T]):
    """Finds leases that have not been renewed for too long, whose worker is gone.

    The times in leases come from other machines and from clocks that can be set, so only their
    changes count.
    """

    def __init__(self, seconds: float, longest_gap: float = math.inf) -> None:
        """Between two looks, at most `longest_gap` counts: a renewal may be later because the
        database was away, and so was the look."""
        self._seconds = seconds
        self._longest_gap = longest_gap
        self._looked: float | None = None
        #: The time that counts, by an own clock.
        self._watched = 0.0
        #: The last seen end of each lease, and the own time since which it has been unchanged.
        self._seen: dict[T, tuple[Micros, float]] = {}

    def of(self, leases: Mapping[T, Micros], now: float) -> list[T]:
        """Return the leases that have not changed for the given time, by this process's clock."""
        if self._looked is not None:
            self._watched += min(now - self._looked, self._longest_gap)
        self._looked, now = now, self._watched
        before, self._seen = self._seen, {}
        for held, until in leases.items():
            seen = before.get(held)
            self._seen[held] = seen if seen is not None and seen[0] == until else (until, now)
        return [held for held, (_, since) in self._seen.items() if now - since >= self._seconds]
