"""Virtual clock: time that tests advance, forwards and, as real clocks sometimes do, backwards."""

from remit.clock import Micros

#: A day like others, 2027-01-15, so that nothing depends on the day of the test.
A_DAY: Micros = 1_800_000_000_000_000


class VirtualClock:
    def __init__(self, at: Micros = A_DAY) -> None:
        self._at = at

    def now(self) -> Micros:
        return self._at

    def advance(self, by: Micros) -> None:
        """Advance the clock; a negative `by` sets it back."""
        self._at += by
