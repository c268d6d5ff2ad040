"""The answer of a program or of an agent elsewhere: one JSON object.

    {"ok": true, "text": "…", "error": "…", "session": "…", "fault": "rate", "until": "2026-…",
     "usage": {"tokens_in": 0, "tokens_out": 0, "tokens_cached": 0, "cost_micros": 0}}

All fields are optional; camelCase names are accepted as well. Values of a wrong type are ignored.
`fault` is one of `remit.model.execution.fault.Fault`, for a failure that is not the agent's;
`until` is the time until which it lasts, in ISO 8601 or in seconds since 1970.
"""

import contextlib
import json
from collections.abc import Mapping
from typing import Any

from remit.adapters.running import RunResult, Usage
from remit.clock import SECOND, Micros, from_iso
from remit.errors import BadInput
from remit.model.execution.fault import Fault

_NAMES = {
    "tokens_in": "tokensIn",
    "tokens_out": "tokensOut",
    "tokens_cached": "tokensCached",
    "cost_micros": "costMicros",
}
LONGEST_ERROR = 500
LONGEST_SESSION = 200
_MOST = 1 << 53


def parse(text: str) -> Mapping[str, Any]:
    """Parse a JSON object; other output becomes the `text` of one."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        answer = None
    return answer if isinstance(answer, dict) else {"text": text}


def usage_of(answer: Mapping[str, Any]) -> Usage:
    usage = answer.get("usage")
    if not isinstance(usage, dict):
        return Usage()
    counts = {name: _count(usage.get(name, usage.get(camel))) for name, camel in _NAMES.items()}
    return Usage(
        tokens_in=counts["tokens_in"],
        tokens_out=counts["tokens_out"],
        tokens_cached=counts["tokens_cached"],
        cost_micros=counts["cost_micros"],
    )


def result_of(answer: Mapping[str, Any], *, failure: str | None = None) -> RunResult:
    """Make a result of an answer; `failure` is a reason of failure that overrides its `ok`."""
    ok = failure is None and answer.get("ok", True) is not False
    session = answer.get("session")
    text = answer.get("text")
    fault, until = (None, None) if ok else fault_of(answer)
    return RunResult(
        ok,
        text=text if isinstance(text, str) else "",
        reason="completed" if ok else "exit" if failure else "reported",
        error=None if ok else str(answer.get("error") or failure or "it says so")[:LONGEST_ERROR],
        usage=usage_of(answer),
        session=session[:LONGEST_SESSION] if isinstance(session, str) and session else None,
        fault=fault,
        until=until,
    )


def fault_of(answer: Mapping[str, Any]) -> tuple[str | None, Micros | None]:
    """Return the fault that an answer names, if it is a known one, and until when it lasts."""
    named, until = answer.get("fault"), answer.get("until")
    if not isinstance(named, str) or named not in frozenset(Fault):
        return None, None
    if isinstance(until, str):
        with contextlib.suppress(BadInput):
            return named, from_iso(until)
    if isinstance(until, int | float) and not isinstance(until, bool) and 0 < until < 1e11:
        return named, int(until * SECOND)
    return named, None


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return value if 0 <= value <= _MOST else 0
