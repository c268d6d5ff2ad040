"""Repetitions in words: `0 9 * * 1-5` is "weekdays at 09:00"."""

import re
from typing import Final

_DAYS: Final = ("Sundays", "Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays")
_EVERY: Final = re.compile(r"\*/(\d+)")


def told(cron: str, timezone: str) -> str:
    """Return a schedule in words; unusual ones as cron."""
    parts = cron.split()
    words = _told(*parts) if len(parts) == 5 else None
    return f"{words or cron} ({timezone})" if timezone else words or cron


def _told(minute: str, hour: str, day: str, month: str, weekday: str) -> str | None:
    if month != "*":
        return None
    if (hour, day, weekday) == ("*", "*", "*"):
        return _within_hours(minute)
    if not (minute.isdecimal() and hour.isdecimal()):
        return None
    days = _days(day, weekday)
    return f"{days} at {int(hour):02}:{int(minute):02}" if days else None


def _within_hours(minute: str) -> str | None:
    if every := _EVERY.fullmatch(minute):
        return f"every {every[1]} minutes"
    return f"every hour at :{int(minute):02}" if minute.isdecimal() else None


def _days(day: str, weekday: str) -> str | None:
    if weekday == "*":
        return "daily" if day == "*" else f"day {day} of each month" if day.isdecimal() else None
    if day != "*":
        return None
    if weekday == "1-5":
        return "weekdays"
    named = weekday.split(",")
    if all(number.isdecimal() and int(number) <= 7 for number in named):
        return ", ".join(_DAYS[int(number) % 7] for number in named)
    return None
