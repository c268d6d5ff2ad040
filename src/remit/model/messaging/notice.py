"""Notices: telling people outside that something needs them, where and when they want it."""

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
    *("approval", "question", "submission", "mail", "unanswered", "dead_letter", "failed_run"),
    *("silent_run", "runaway", "budget_stop", "limit", "held", "agent_error"),
)
#: In routes: every kind that has no route of its own, and what others did not decide in time.
ALL, ESCALATED = "all", "escalated"
#: Kinds of notices that are about no single thing of that list.
TRIAL, DIGEST = "test", "digest"
LONGEST_MINUTES = 7 * 24 * 60

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


#: How a person is told outside; any kind of channel that they are linked in is one, too.
Way = StrEnum("Way", "COMMAND WEBHOOK BROWSER")


@dataclass(frozen=True, slots=True)
class Hook:
    company_id: CompanyId
    user_id: UserId
    url: str
    #: The key that signs what is sent; it was shown once.
    key: str
    created_at: Micros


@dataclass(frozen=True, slots=True)
class Notice(Queued):
    """Cancelled when what it is about was decided before it went out."""

    user_id: UserId
    way: str
    #: The subject, as in the list of what needs the person.
    kind: str
    subject_id: str
    #: The notice that told of it together with others.
    digest_id: str | None = None
    #: The person who did not decide it in time.
    escalated_from: UserId | None = None
    #: The post in a chat, which can be changed afterwards; and JSON: its text.
    post_id: str | None = None
    told: str | None = None
    #: Of what it tells, how much it shows as dealt with.
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
    """Which kinds a person is told of, where and when. Times are minutes of their day."""

    #: By kind; a kind that is not here goes by `all`, and without that by the usual ways.
    routes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    time_zone: str = "UTC"
    quiet: tuple[int, int] | None = None
    #: Kinds that are told during quiet hours, too.
    urgent: tuple[str, ...] = ()
    #: Kinds that are told together, once a day.
    digest: tuple[str, ...] = ()
    digest_at: int = 8 * 60
    #: Told only of what has waited for so long.
    after_minutes: int = 0
    #: Minutes until an open item is told to somebody else as well; 0 for never.
    escalate_minutes: int = 0
    #: To this user; None for the next member of the board.
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
        """Where a kind goes; None for the usual ways."""
        return self.routes.get(kind, self.routes.get(ALL))

    def not_before(self, kind: str, now: Micros) -> Micros:
        """When a notice may go out: now, or when the quiet hours end."""
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
        """Whether something has waited for long enough to be told; what began later than now did so
        before the clock was set back."""
        return min(since, now) + self.after_minutes * MINUTE <= now

    def is_late(self, since: Micros, now: Micros) -> bool:
        """Whether something has waited for so long that somebody else is told."""
        return bool(self.escalate_minutes) and since + self.escalate_minutes * MINUTE <= now

    def is_gathered(self, kind: str) -> bool:
        """Whether it is told in the digest only."""
        return any(one == kind for one in self.digest)

    def last_digest(self, now: Micros) -> Micros:
        """The last time for a digest that has come."""
        day = self._local(now).date()
        today = self._at(day, self.digest_at)
        return today if today <= now else self._at(day - timedelta(days=1), self.digest_at)

    def _local(self, now: Micros) -> datetime:
        return (_EPOCH + timedelta(microseconds=now)).astimezone(zone(self.time_zone))

    def _at(self, day: date, minute: int) -> Micros:
        local = datetime.combine(day, time(minute // 60, minute % 60), zone(self.time_zone))
        return (local.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)


def minute_of(text: object, name: str) -> int:
    """The minute of a day that `08:30` is."""
    found = _CLOCK.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None:
        raise BadInput(f"{name} must be a time of day.", "Write it like 08:30.")
    return int(found[1]) * 60 + int(found[2])


def span_of(text: str) -> tuple[int, int] | None:
    """The quiet hours that `22:00-07:00` are; none without text."""
    if not text.strip():
        return None
    begins, dash, ends = text.partition("-")
    if not dash:
        raise BadInput("quiet must be two times of day.", "Write it like 22:00-07:00.")
    found = minute_of(begins, "quiet"), minute_of(ends, "quiet")
    if found[0] == found[1]:
        raise BadInput("quiet must end at another time than it begins.", "Leave it out for none.")
    return found


def clock_of(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"


def shown(rules: Rules) -> dict[str, Any]:
    """The rules as people read and write them."""
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
