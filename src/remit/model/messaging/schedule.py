"""Schedules: mail that an agent sends at set times, to itself or to others."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from remit.clock import Micros
from remit.errors import BadInput
from remit.ids import AgentId, CompanyId, ScheduleId

_FIELDS = 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


ScheduleStatus = StrEnum("ScheduleStatus", "ACTIVE DONE CANCELLED")


@dataclass(frozen=True, slots=True)
class Schedule:
    id: ScheduleId
    company_id: CompanyId
    agent_id: AgentId
    #: None if it is sent once.
    cron: str | None
    timezone: str
    address: str
    subject: str
    body: str
    next_at: Micros | None
    created_at: Micros
    status: ScheduleStatus = ScheduleStatus.ACTIVE
    last_at: Micros | None = None


def next_time(cron: str, timezone: str, after: Micros) -> Micros:
    """Return the first time after `after` that matches the expression in its time zone."""
    start = (_EPOCH + timedelta(microseconds=after)).astimezone(zone(timezone))
    try:
        if len(cron.split()) != _FIELDS:  # a sixth would be for seconds
            raise CronSimError
        moment = next(CronSim(cron, start))
    except (CronSimError, StopIteration):
        raise BadInput(
            f"{cron[:60]!r} is not a schedule, or never comes due.",
            "Write five fields, such as '0 9 * * 1-5'.",
        ) from None
    return (moment - _EPOCH) // timedelta(microseconds=1)


def zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadInput(
            f"{name[:60]!r} is not a time zone.", "Write it like Europe/Zurich or UTC."
        ) from None
