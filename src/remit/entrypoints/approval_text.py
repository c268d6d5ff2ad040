"""Text of approvals: the request in words for people, the same on every surface."""

from collections.abc import Mapping
from typing import Any, Final

from remit.model.text import monthly

#: Sentences for a single use of a capability.
_USES: Final = {
    "agent.create": "create the agent {}",
    "agent.control": "control {}",
    "change.merge": "merge {}",
    "change.propose": "propose a change to {}",
    "file.read": "read {}",
    "file.write": "change {}",
    "message.send": "write to {}",
    "outcome.read": "look at {}",
    "outcome.create": "create a part of {}",
    "outcome.change": "change {}",
    "outcome.finish": "finish {}",
    "outcome.delegate": "hand over {}",
    "outcome.reclaim": "take back {}",
}
_LONGEST: Final = 200


def asks_for(request: Mapping[str, Any], called: Mapping[str, str] | None = None) -> str:
    """Describe a request in one short line; `called` maps resources to their names."""
    words = _words(request, called or {})
    plain = " ".join("".join(char if char.isprintable() else " " for char in words).split())
    return plain if len(plain) <= _LONGEST else f"{plain[: _LONGEST - 1]}…"


def _words(request: Mapping[str, Any], called: Mapping[str, str]) -> str:
    payload = request["payload"]
    match request["type"]:
        case "hire_agent":
            title = f" ({payload['title']})" if payload.get("title") else ""
            return f"hire {payload.get('name')} as {payload.get('role')}{title}"
        case "config_change":
            changed = ", ".join(payload.get("changed") or ())
            return f"change {changed} of {payload.get('name')}"
        case "capability_use":
            return _use(payload, called)
        case "budget":
            return f"a budget of {monthly(payload)}"
        case kind:
            return str(payload.get("title") or kind.replace("_", " "))


def _use(payload: Mapping[str, Any], called: Mapping[str, str]) -> str:
    action, resource = str(payload.get("action")), str(payload.get("resource"))
    if action not in _USES:
        return f"{action} on {called.get(resource, resource)}"
    name = called.get(resource) or resource
    return _USES[action].format(name.removeprefix("agent:"))


def asks_to(request: Mapping[str, Any], called: Mapping[str, str] | None = None) -> str:
    """Describe a request as the continuation of "Somebody asks to"."""
    words = asks_for(request, called)
    if request["type"] in ("hire_agent", "config_change"):
        return words
    if request["type"] == "capability_use" and request["payload"].get("action") in _USES:
        return words
    if request["type"] == "budget":
        return f"have {words}"
    return f"be allowed: {words}"
