"""Notices: notifications of people outside of Remit, by their rules of where and when."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Any

from remit.clock import MINUTE, Micros
from remit.errors import BadInput
from remit.ids import CompanyId, UserId
from remit.model.leased import Queued
from remit.model.messaging.schedule import zone

#: Kinds of items that await a person, as in the list of what needs them.
KINDS = (
    *("confirmation", "approval", "question", "submission", "mail", "unanswered"),
    *("dead_letter", "failed_run", "silent_run", "runaway", "budget_stop", "limit", "held"),
    *("agent_error", "change"),
)
#: Keys of routes: all kinds without a route of their own, and items escalated from others.
ALL, ESCALATED = "all", "escalated"
#: Kinds of notices that are about no single item.
TRIAL, DIGEST = "test", "digest"
LONGEST_MINUTES = 7 * 24 * 60

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


#: Ways of notification, besides the channels in which the person has a linked account.
Way = StrEnum("Way", "COMMAND WEBHOOK BROWSER")


@dataclass(frozen=True, slots=True)
class Hook:
    company_id: CompanyId
    user_id: UserId
    url: str
    #: Key that signs the posts; it was shown once.
    key: str
    created_at: Micros


@dataclass(frozen=True, slots=True)
class Notice(Queued):
    """Queued notification; cancelled if its item is decided before it is sent."""

    user_id: UserId
    way: str
    #: Kind and id of the item that it is about.
    kind: str
    subject_id: str
    #: The digest that included it.
    digest_id: str | None = None
    #: The person whose undecided item it is.
    escalated_from: UserId | None = None
    #: The post in a chat, which can be edited; and JSON: its text.
    post_id: str | None = None
    told: str | None = None
    #: Number of its items that are shown as settled.
    settled: int = 0


@dataclass(frozen=True, slots=True)
class StoredRules:
    company_id: CompanyId
    user_id: UserId
    #: JSON: `Rules`.
    rules: str
    #: The time of the last digest.
    digested_at: Micros


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules of a person's notifications: kinds, ways and times. Times are minutes of the day."""

    #: Ways by kind; a kind without an entry uses `all`, and else the usual ways.
    routes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    time_zone: str = "UTC"
    quiet: tuple[int, int] | None = None
    #: Kinds sent during quiet hours, too.
    urgent: tuple[str, ...] = ()
    #: Kinds sent together once a day.
    digest: tuple[str, ...] = ()
    digest_at: int = 8 * 60
    #: Minutes that an item waits before its notice.
    after_minutes: int = 0
    #: Minutes until an open item is escalated; 0 for never.
    escalate_minutes: int = 0
    #: Receiver of escalations; None for the next member of the board.
    escalate_to: str | None = None

    @classmethod
    def read(cls, text: str) -> Rules:
        stored = json.loads(text)
        stored["routes"] = {kind: tuple(ways) for kind, ways in stored["routes"].items()}
        for name in ("urgent", "digest"):
            stored[name] = tuple(stored[name])
        stored["quiet"] = tuple(stored["quiet"]) if stored["quiet"] else None
        return cls(**stored)

    def written(self) -> str:
        fields_ = {name: getattr(self, name) for name in self.__slots__}
        return json.dumps(fields_ | {"routes": dict(self.routes)}, sort_keys=True)

    def ways(self, kind: str) -> tuple[str, ...] | None:
        """Return the ways for a kind; None for the usual ways."""
        return self.routes.get(kind, self.routes.get(ALL))

    def not_before(self, kind: str, now: Micros) -> Micros:
        """Return when a notice may be sent: now, or at the end of the quiet hours."""
        if self.quiet is None or kind in self.urgent:
            return now
        begins, ends = self.quiet
        local = self._local(now)
        minute = local.hour * 60 + local.minute
        inside = begins <= minute < ends if begins < ends else minute >= begins or minute < ends
        if not inside:
            return now
        today = self._at(local.date(), ends)
        return today if today > now else self._at(local.date() + timedelta(days=1), ends)

    def is_told(self, since: Micros, now: Micros) -> bool:
        """Return whether an item has waited long enough for a notice; a start in the future means
        that the clock was set back."""
        return min(since, now) + self.after_minutes * MINUTE <= now

    def is_late(self, since: Micros, now: Micros) -> bool:
        """Return whether an item has waited long enough to be escalated."""
        return bool(self.escalate_minutes) and since + self.escalate_minutes * MINUTE <= now

    def is_gathered(self, kind: str) -> bool:
        """Return whether a kind is sent in the digest only."""
        return any(entry == kind for entry in self.digest)

    def last_digest(self, now: Micros) -> Micros:
        """Return the last past time for a digest."""
        day = self._local(now).date()
        today = self._at(day, self.digest_at)
        return today if today <= now else self._at(day - timedelta(days=1), self.digest_at)

    def _local(self, now: Micros) -> datetime:
        return (_EPOCH + timedelta(microseconds=now)).astimezone(zone(self.time_zone))

    def _at(self, day: date, minute: int) -> Micros:
        local = datetime.combine(day, time(minute // 60, minute % 60), zone(self.time_zone))
        return (local.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)


def minute_of(text: object, name: str) -> int:
    """Parse a time of day such as `08:30` to its minute."""
    match = _CLOCK.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise BadInput(f"{name} must be a time of day.", "Write it like 08:30.")
    return int(match[1]) * 60 + int(match[2])


def span_of(text: str) -> tuple[int, int] | None:
    """Parse quiet hours such as `22:00-07:00`; None for an empty text."""
    if not text.strip():
        return None
    begins, dash, ends = text.partition("-")
    if not dash:
        raise BadInput("quiet must be two times of day.", "Write it like 22:00-07:00.")
    span = minute_of(begins, "quiet"), minute_of(ends, "quiet")
    if span[0] == span[1]:
        raise BadInput("quiet must end at another time than it begins.", "Leave it out for none.")
    return span


def clock_of(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"


def shown(rules: Rules) -> dict[str, Any]:
    """Return the rules in the form that people read and write."""
    quiet = rules.quiet
    return {
        "routes": {kind: list(ways) for kind, ways in rules.routes.items()},
        "time_zone": rules.time_zone,
        "quiet": None if quiet is None else f"{clock_of(quiet[0])}-{clock_of(quiet[1])}",
        "urgent": list(rules.urgent),
        "digest": list(rules.digest),
        "digest_at": clock_of(rules.digest_at),
        "after_minutes": rules.after_minutes,
        "escalate_minutes": rules.escalate_minutes,
        "escalate_to": rules.escalate_to,
    }
