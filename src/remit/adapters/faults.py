"""Classification of faults: from the status codes, headers and messages of providers and their
programs to the cause of a failed run, and the time until which it lasts.

The only place that interprets such messages. An unrecognised failure counts as the agent's.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import parsedate_to_datetime
from zoneinfo import ZoneInfo

from remit.clock import DAY, HOUR, MINUTE, SECOND, Micros, SystemClock, from_iso
from remit.errors import BadInput
from remit.model.execution.fault import Fault

#: Most characters of a message that are read.
_LONGEST = 4000


@dataclass(frozen=True)
class Seen:
    """A fault that an adapter recognised."""

    fault: Fault
    #: Until when it lasts, if the message names a time.
    until: Micros | None = None
    #: The reason for the result, in one word.
    reason: str = ""


_REASONS = {
    Fault.AUTH: "auth",
    Fault.RATE: "rate_limited",
    Fault.OVERLOAD: "overloaded",
    Fault.BILLING: "billing",
    Fault.NETWORK: "unreachable",
    Fault.SETUP: "program",
    Fault.CONTEXT: "context_full",
    Fault.TURNS: "max_turns",
}
_STATUSES = {401: Fault.AUTH, 402: Fault.BILLING, 403: Fault.AUTH, 429: Fault.RATE}

#: Patterns of messages, the more specific ones first.
_WORDS: dict[Fault, re.Pattern[str]] = {
    Fault.CONTEXT: re.compile(
        r"prompt is too long|context window|maximum context|context length exceeded",
        re.IGNORECASE,
    ),
    Fault.BILLING: re.compile(
        r"credit balance|insufficient[_ ](?:quota|funds|credits?)|exceeded your current quota"
        r"|quota exceeded|payment required|billing",
        re.IGNORECASE,
    ),
    Fault.RATE: re.compile(
        r"(?:usage|rate|session|weekly|daily|hour|request|token)[ _-]limit"
        r"|hit your limit|limit reached|too many requests|rate_limited|quota",
        re.IGNORECASE,
    ),
    Fault.AUTH: re.compile(
        r"invalid (?:x-)?api[ -]key|incorrect api key|authentication[_ ](?:error|failed)"
        r"|not logged in|run /login|unauthorized|oauth token (?:has )?(?:expired|revoked)"
        r"|token_expired|access token could not be refreshed|missing environment variable"
        r"|organization has been disabled|permission_error|forbidden",
        re.IGNORECASE,
    ),
    Fault.OVERLOAD: re.compile(
        r"overloaded|high demand|internal server error|bad gateway|service unavailable"
        r"|gateway time-?out|server[_ ]error|temporarily unavailable",
        re.IGNORECASE,
    ),
    Fault.NETWORK: re.compile(
        r"connection error|connection_failed|connection reset|connection refused"
        r"|econnrefused|econnreset|enotfound|etimedout|eai_again|socket hang up|fetch failed"
        r"|network error|stream (?:disconnected|closed|ended)|error sending request"
        r"|unable to connect|name or service not known|temporary failure in name resolution"
        r"|request timed out|incomplete (?:chunked )?read|peer closed connection"
        r"|server disconnected|connection to the api was lost|malformed response"
        r"|failed to decode response|response ended prematurely",
        re.IGNORECASE,
    ),
    Fault.SETUP: re.compile(
        r"unknown option|unexpected argument|unrecognized (?:option|argument)|invalid value '"
        r"|unknown command|error loading config|exec format error|cannot execute"
        r"|command not found|error while loading shared libraries",
        re.IGNORECASE,
    ),
}
#: A status in the forms in which programs print it; a number alone could mean anything.
_STATUS = re.compile(
    r"(?:\bAPI Error:? \(?(?:Repeated )?|\bstatus(?:_code|code| code)?[:= ] ?"
    r"|\bHTTP(?:/[\d.]{1,3})? )"
    r"([1-5]\d\d)\b",
    re.IGNORECASE,
)


def by_status(
    status: int, text: str = "", headers: Mapping[str, str] | None = None, now: Micros | None = None
) -> Seen | None:
    """Return the fault that a server's status stands for; None if it is no fault."""
    at = SystemClock().now() if now is None else now
    words = _by_words(text)
    fault = _STATUSES.get(status) or (Fault.OVERLOAD if status >= 500 else None)
    if words in (Fault.BILLING, Fault.CONTEXT) and 400 <= status < 500:
        fault = words  # providers say both with 400, 403 and 429
    if fault is None:
        return None
    until = _retry_after(headers or {}, at) or _until(text, at)
    return _seen(fault, until)


def in_words(text: str, now: Micros | None = None) -> Seen | None:
    """Return the fault that a message describes; None if it is not recognised."""
    tail = text[-_LONGEST:]
    at = SystemClock().now() if now is None else now
    status = _STATUS.search(tail)
    if status is not None and (seen := by_status(int(status[1]), tail, now=at)) is not None:
        return seen
    fault = _by_words(tail)
    return None if fault is None else _seen(fault, _until(tail, at))


def _by_words(text: str) -> Fault | None:
    tail = text[-_LONGEST:]
    return next((fault for fault, sign in _WORDS.items() if sign.search(tail)), None)


def _seen(fault: Fault, until: Micros | None) -> Seen:
    return Seen(
        fault,
        until if fault in (Fault.RATE, Fault.OVERLOAD, Fault.BILLING) else None,
        _REASONS[fault],
    )


# ── until when ──────────────────────────────────────────────────────────────────────────────────

_UNITS: dict[str, Micros] = {"ms": SECOND // 1000, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY}
_PART = (
    r"(\d{1,7}(?:\.\d{1,6})?) ?"
    r"(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)\b"
)
_FOR = re.compile(
    r"(?:try again|retry|retrying|resets?|available|wait)(?: again)?(?: in| after|[-_ ]after:?)? "
    r"((?:\d{1,7}(?:\.\d{1,6})? ?[a-z]{1,12}[, ]{0,2}(?:and )?){1,5})",
    re.IGNORECASE,
)
_LENGTH = re.compile(_PART, re.IGNORECASE)
_SECONDS = re.compile(
    r"retry[-_ ]after(?:[\"']? ?[:=]|) ?[\"']?(\d{1,7}(?:\.\d{1,6})?)\b", re.IGNORECASE
)
_EPOCH = re.compile(
    r"(?:reached|limit|resets?(?:[ _]at)?|until)[\"']? ?[|:=]? ?(\d{10}|\d{13})\b", re.IGNORECASE
)
_MOMENT = re.compile(
    r"\b(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?)"
)
_DATE = (
    r"(?:(?:(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6} "
    r"(?P<day>\d{1,2})(?:st|nd|rd|th)?,? (?:(?P<year>\d{4}),? )?(?:at )?))?"
)
_CLOCK = re.compile(
    r"(?:resets?|again|available|until)(?: at| on)? "
    + _DATE
    + r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))? ?(?P<half>am|pm)?\b"
    r"(?: \((?P<zone>[A-Za-z_+/-]{2,40})\))?",
    re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def _retry_after(headers: Mapping[str, str], now: Micros) -> Micros | None:
    """Parse `Retry-After`, as seconds or as a date."""
    named = {name.lower(): value for name, value in headers.items()}
    if milliseconds := named.get("retry-after-ms", "").strip():
        return now + int(float(milliseconds) * 1000) if _is_number(milliseconds) else None
    header = named.get("retry-after", "").strip()
    if _is_number(header):
        return now + int(float(header) * SECOND)
    if not header:
        return None
    try:
        moment = parsedate_to_datetime(header)
    except (ValueError, TypeError):
        return None
    return _micros(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def _is_number(text: str) -> bool:
    return len(text) <= 12 and text.replace(".", "", 1).isdigit()


def _until(text: str, now: Micros) -> Micros | None:
    """Return the time that a message names, if it is in the future."""
    tail = text[-_LONGEST:]
    times = (_by_epoch(tail), _by_moment(tail), _by_length(tail, now), _by_clock(tail, now))
    for moment in times:
        if moment is not None and moment > now:
            return moment
    return None


def _by_epoch(text: str) -> Micros | None:
    match = _EPOCH.search(text)
    if match is None:
        return None
    number = int(match[1])
    return number * (SECOND if number < 10**11 else SECOND // 1000)


def _by_moment(text: str) -> Micros | None:
    match = _MOMENT.search(text)
    if match is None:
        return None
    try:
        return from_iso(match[1].replace("Z", "+00:00"))
    except BadInput:
        return None


def _by_length(text: str, now: Micros) -> Micros | None:
    match = _FOR.search(text)
    if match is not None:
        parts = _LENGTH.findall(match[1])
        if parts:
            return now + sum(int(float(number) * _unit(unit)) for number, unit in parts)
    plain = _SECONDS.search(text)
    return None if plain is None else now + int(float(plain[1]) * SECOND)


def _unit(word: str) -> Micros:
    lower = word.lower()
    if lower.startswith(("ms", "milli")):
        return _UNITS["ms"]
    return _UNITS[lower[0]]


def _by_clock(text: str, now: Micros) -> Micros | None:
    """Parse a time of day, in the zone that it names or else in this machine's zone."""
    match = _CLOCK.search(text)
    if match is None or (match["half"] is None and match["minute"] is None):
        return None
    hour, minute = int(match["hour"]), int(match["minute"] or 0)
    if match["half"]:
        hour = hour % 12 + (12 if match["half"].lower() == "pm" else 0)
    here = datetime.fromtimestamp(now / SECOND, UTC).astimezone(_zone(match["zone"]))
    try:
        moment = here.replace(hour=hour, minute=minute, second=0, microsecond=0)
        if match["month"]:
            month = _MONTHS.index(match["month"].lower()[:3]) + 1
            year = int(match["year"] or here.year)
            moment = moment.replace(year=year, month=month, day=int(match["day"]))
            if not match["year"] and moment < here - timedelta(days=1):
                moment = moment.replace(year=year + 1)
        elif moment <= here:
            moment += timedelta(days=1)
    except ValueError:
        return None
    return _micros(moment)


def _zone(name: str | None) -> tzinfo | None:
    """Return the named zone; None for that of this machine, UTC for an unknown name."""
    if not name:
        return None
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        return UTC


def _micros(moment: datetime) -> Micros:
    return int(moment.timestamp()) * SECOND
