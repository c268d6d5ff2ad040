"""Compact form of a tool's answer for a model: names instead of ids, nothing empty, the next step.

Services answer for every caller; a model pays for each word, and has no use for a time of creation
or the id of its own company. Agents appear by the name that tools accept as argument; a terminated
one keeps its id, because its name may be in use again.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from remit.app import App
from remit.services.identity import Caller
from remit.services.screens import name_lookup

Answer = dict[str, Any]
Shorten = Callable[[str, str, Answer], Awaitable[Answer]]

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ADDRESS = re.compile(rf"(agent|user):({_UUID.pattern})")
#: Fields with an agent's id, and their names once the value is a name.
_AGENTS = {
    "owner_id": "owner",
    "delegator_id": "delegated_by",
    "agent_id": "agent",
    "awaited_agent_id": "awaited_agent",
    "author_agent_id": "author",
    "decided_by_agent_id": "decided_by",
    "boss_id": "boss",
    "reports_to": "reports_to",
    "holder_id": "holder",
    "granted_by_agent_id": "granted_by",
}
#: Fields of no use to an agent.
_DROPPED = frozenset(
    {
        *("company_id", "updated_at", "finished_at", "log_file_id", "state_file_id"),
        *("spent_monthly_cents", "budget_alert", "accountable_user_id", "seat_user_id"),
        *("position", "origin_id"),
    }
)
#: Flags that are shown only when they are true.
_FLAGS = frozenset({"perpetual", "delegated", "urgent", "important", "waiting", "unlisted"})

#: Tools whose answers have a fixed and short form, as those of the knowledge base have.
_AS_IT_IS = frozenset({"create_agent"})

_WAITS = "You get mail when it is decided; until then go on with something else, or end."
_NEXT: dict[str, Callable[[Mapping[str, Any]], str | None]] = {
    "hire_agent": lambda answer: _WAITS if answer.get("approval") else None,
    "delegate": lambda answer: (
        _WAITS if answer.get("approval") else "It is worked on below you; you judge what comes."
    ),
    "ask": lambda _: "The answer comes as mail; go on with something else, or end.",
    "capability_request": lambda _: _WAITS,
    "propose_config": lambda answer: _WAITS if answer.get("approval") else None,
    "outcome_submit": lambda _: "The verdict comes as mail; go on with something else, or end.",
}


def build(app: App) -> Shorten:
    async def shorten(token: str, tool: str, answer: Answer) -> Answer:
        if tool in _AS_IT_IS or tool.startswith("kb_"):
            return answer
        mentioned = _mentioned(answer)
        names = (
            await app.gate(
                Caller(token), name_lookup.names, company=None, ids=mentioned, living=True
            )
            if mentioned
            else {}
        )
        lean: Answer = _shorter(answer, names)
        following = _NEXT.get(tool)
        step = following(answer) if following is not None else None
        return lean if step is None else {**lean, "next_step": step}

    return shorten


def _mentioned(value: Any) -> set[str]:
    """The ids of agents and people in an answer."""
    found: set[str] = set()
    pending = [value]
    while pending:
        here = pending.pop()
        if isinstance(here, Mapping):
            for key, inner in here.items():
                if key in _AGENTS and isinstance(inner, str) and _UUID.fullmatch(inner):
                    found.add(inner)
                else:
                    pending.append(inner)
        elif isinstance(here, list):
            pending += here
        elif isinstance(here, str) and (address := _ADDRESS.fullmatch(here)):
            found.add(address[2])
    return found


def _shorter(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {
            name: shorter
            for key, inner in value.items()
            for name, shorter in _kept(key, inner, names)
        }
    if isinstance(value, list):
        return [_shorter(one, names) for one in value]
    if isinstance(value, str) and (address := _ADDRESS.fullmatch(value)):
        return f"{address[1]}:{names.get(address[2], address[2])}"
    return value


def _kept(key: str, value: Any, names: Mapping[str, str]) -> list[tuple[str, Any]]:
    if value is None or key in _DROPPED or (key in _FLAGS and value is False):
        return []
    if key in _AGENTS and isinstance(value, str):
        return [(_AGENTS[key], f"agent:{names[value]}")] if value in names else [(key, value)]
    return [(key, _shorter(value, names))]
