"""Whether a run goes on with the conversation of the last one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from remit.clock import DAY, HOUR, MINUTE, SECOND, Micros

_UNITS = {"s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY}


def resumable(session: dict[str, Any] | None, policy: Any, adapter_type: str, now: Micros) -> bool:
    """By the agent's policy. Without a policy every run begins anew."""
    if session is None or policy is None or session["adapter_type"] != adapter_type:
        return False
    if policy.max_age and now - session["begun_at"] > duration(policy.max_age):
        return False
    if policy.idle_time and now - session["used_at"] > duration(policy.idle_time):
        return False
    if policy.max_context_tokens and session["context_tokens"] > policy.max_context_tokens:
        return False
    return not (policy.daily_reset_at and _reset_between(policy.daily_reset_at, session, now))


def duration(text: str) -> Micros:
    """`90s`, `15m`, `2h` or `7d`."""
    return int(text[:-1]) * _UNITS[text[-1]]


def _reset_between(at: str, session: dict[str, Any], now: Micros) -> bool:
    """Whether that time of day has passed since the conversation was last used."""
    hour, minute = (int(part) for part in at.split(":"))
    today = datetime.fromtimestamp(now / SECOND, UTC)
    reset = today.replace(hour=hour, minute=minute, second=0, microsecond=0)
    last = int(reset.timestamp()) * SECOND
    if last > now:
        last -= DAY
    return bool(session["used_at"] < last)
