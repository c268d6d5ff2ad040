"""A range of time in an address: one of a few names, or two days."""

from dataclasses import dataclass
from typing import Final

from remit.clock import DAY, HOUR, Micros, from_iso, to_iso
from remit.entrypoints.web.site import Visit
from remit.errors import BadInput

#: Labels by their names in the address, in the order of the menu.
RANGES: Final = {
    "1h": "1 hour",
    "24h": "24 hours",
    "today": "Today",
    "yesterday": "Yesterday",
    "7d": "7 days",
    "30d": "30 days",
    "all": "All time",
}


@dataclass(frozen=True)
class Range:
    #: Empty for a range of two days.
    name: str
    since: Micros | None
    until: Micros | None
    #: The two days or minutes, as in the form's fields.
    first: str = ""
    last: str = ""

    @property
    def query(self) -> dict[str, str]:
        """Query parameters of the range."""
        return {"range": self.name, "from": self.first, "to": self.last}

    @property
    def title(self) -> str:
        return RANGES.get(self.name) or " to ".join(filter(None, (self.first, self.last)))


def chosen(visit: Visit, default: str = "all") -> Range:
    """Return the range of the address, in days of UTC; invalid values are ignored."""
    now = visit.site.app.clock.now()
    first, last = visit.argument("from")[:16], visit.argument("to")[:16]
    if first or last:
        since, until = _moment(first), _moment(last)
        if until is not None and len(last) == len("2026-01-01"):
            until += DAY  # including that day
        return Range(
            "", since, until, "" if since is None else first, "" if until is None else last
        )
    name = visit.argument("range", default)
    today = now - now % DAY
    known: dict[str, tuple[Micros | None, Micros | None]] = {
        "1h": (now - HOUR, None),
        "24h": (now - DAY, None),
        "today": (today, None),
        "yesterday": (today - DAY, today),
        "7d": (today - 6 * DAY, None),
        "30d": (today - 29 * DAY, None),
    }
    return Range(name if name in RANGES else "all", *known.get(name, (None, None)))


def _moment(text: str) -> Micros | None:
    """Parse a day, as its beginning, or a minute."""
    try:
        return from_iso(text) if text else None
    except BadInput:
        return None


def day_of(time: str, now: Micros) -> str:
    """Return the heading of the day of a time."""
    day = time[:10]
    if day == to_iso(now)[:10]:
        return f"Today, {day}"
    return f"Yesterday, {day}" if day == to_iso(now - DAY)[:10] else day
