"""Wrong tries, such as guessed tokens and codes: each further one of a stranger waits longer.

They are counted by where they come from and by what they aim at, and forgotten by halves. A right
one is not slowed by this: callers ask after they know that a try was wrong, or keep the order.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

#: Time after which half of the tries of a key are forgotten.
HALF_LIFE = 60.0
#: Most keys in memory; the ones that were quiet for longest are dropped first.
MAX_KEYS = 10_000
_MAX_DOUBLINGS = 20


@dataclass(frozen=True)
class Pace:
    """How fast one key may try: some are free, then each waits twice as long as the one before."""

    free: int
    first: float
    longest: float

    def delay(self, tries: float) -> float:
        beyond = round(tries) - self.free
        if beyond <= 0:
            return 0.0
        return min(self.longest, self.first * float(2 ** min(beyond - 1, _MAX_DOUBLINGS)))


@dataclass
class _Record:
    tries: float
    at: float
    until: float = 0.0


class Tries:
    """Wrong tries of sources and at targets; bounded in memory."""

    def __init__(
        self, source: Pace, target: Pace, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.source, self.target = source, target
        self._now = now
        self._records: OrderedDict[tuple[str, str], _Record] = OrderedDict()

    def wrong(self, source: str, target: str) -> float:
        """Count a wrong try; returns the seconds that it is made to wait."""
        of_source = self._count(("source", source), self.source)
        return max(of_source, self._count(("target", target), self.target))

    def wait(self, source: str, target: str) -> float:
        """Return the seconds until the source may try the target again."""
        records = (self._records.get(key) for key in (("source", source), ("target", target)))
        return max(0.0, *(record.until - self._now() for record in records if record), 0.0)

    def __len__(self) -> int:
        return len(self._records)

    def _count(self, key: tuple[str, str], pace: Pace) -> float:
        now = self._now()
        record = self._records.setdefault(key, _Record(0.0, now))
        record.tries = 1 + record.tries * 0.5 ** ((now - record.at) / HALF_LIFE)
        record.at = now
        delay = pace.delay(record.tries)
        record.until = now + delay
        self._records.move_to_end(key)
        if len(self._records) > MAX_KEYS:
            self._records.popitem(last=False)
        return delay
