"""Detection of silent workers, by a clock that nobody can set."""

from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

from remit.clock import Micros

T = TypeVar("T", bound=Hashable)


class Silence(Generic[T]):
    """Watches leases. One that stays as it is for too long belongs to a worker that is gone.

    The times in leases are of other machines, and of clocks that are set back and forth; nothing is
    concluded from them but that they changed.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        #: By what is held: what its lease said, and since when it has said so.
        self._seen: dict[T, tuple[Micros, float]] = {}

    def of(self, leases: Mapping[T, Micros], now: float) -> list[T]:
        """The leases that did not change for so many seconds, by the clock of this process."""
        before, self._seen = self._seen, {}
        for held, until in leases.items():
            seen = before.get(held)
            self._seen[held] = seen if seen is not None and seen[0] == until else (until, now)
        return [held for held, (_, since) in self._seen.items() if now - since >= self._seconds]
