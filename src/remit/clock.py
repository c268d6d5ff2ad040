"""Time: the only module that reads a clock.

Times are whole microseconds since 1970 in UTC; people see ISO 8601 with an offset.
"""

import time
from datetime import UTC, datetime, timedelta
from typing import Annotated, Protocol

from remit.errors import BadInput

#: A time in microseconds; annotated, so that tables use 64-bit columns.
Micros = Annotated[int, "64 bits"]

SECOND: Micros = 1_000_000
MINUTE: Micros = 60 * SECOND
HOUR: Micros = 60 * MINUTE
DAY: Micros = 24 * HOUR

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_IN_UTC = _EPOCH.replace(tzinfo=None)


class Clock(Protocol):
    """Source of the present time; tests supply their own."""

    def now(self) -> Micros: ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> Micros:
        return time.time_ns() // 1000


def to_iso(at: Micros) -> str:
    # The offset is a constant, because formatting it costs time, and every view has times.
    return (_EPOCH_IN_UTC + timedelta(0, 0, at)).isoformat("T", "microseconds") + "+00:00"


def moment(at: Micros) -> str:
    """A time in a sentence for people, to the second."""
    return f"{to_iso(at)[:19]}Z"


def from_iso(text: str) -> Micros:
    """Read ISO 8601; a time without an offset is taken as UTC."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise BadInput(
            f"{text[:60]!r} is not a time.", "Write it like 2026-05-01T09:00:00+00:00."
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        delta = moment - _EPOCH
    except OverflowError:
        raise BadInput(f"{text[:60]!r} is out of range.", "Choose a nearer time.") from None
    return delta // timedelta(microseconds=1)


def given_time(text: object, name: str) -> Micros:
    """Parse a caller's argument `name` as a time."""
    if not isinstance(text, str):
        raise BadInput(f"{name} must be a time.", "Write it like 2026-05-01T09:00:00Z.")
    return from_iso(text)


def month_of(at: Micros) -> Micros:
    """Return the start of a time's calendar month, in UTC."""
    moment = _EPOCH + timedelta(microseconds=at)
    first = moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return (first - _EPOCH) // timedelta(microseconds=1)


def day_of(at: Micros) -> Micros:
    """Return the start of a time's day, in UTC."""
    return at - at % DAY


def next_day(at: Micros) -> Micros:
    return day_of(at) + DAY


def next_month(at: Micros) -> Micros:
    """Return the start of the calendar month after that of a time."""
    return month_of(month_of(at) + 32 * DAY)
