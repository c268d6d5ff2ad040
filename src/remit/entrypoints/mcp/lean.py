"""Compact form of a tool's answer for a model: names instead of ids, nothing empty, the next step.

Services answer for every caller; a model pays for each word, and has no use for a time of creation
or the id of its own company. Agents appear by the name that tools accept as argument; a terminated
one keeps its id, because its name may be in use again.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from remit.entrypoints.mcp.registry import Tool, caller
from remit.services.command import Context
from remit.services.screens import name_lookup

Answer = dict[str, Any]

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

#: Tools whose answers would repeat what was sent, and what is kept of each part of the answer.
_HIRING = frozenset({"hire_agent", "delegate"})
_KEPT_OF = {
    "agent": ("id", "name", "status", "reports_to", "adapter_type"),
    "approval": ("id", "status", "revision", "routed_to_agent_id"),
}
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


class LeanCall:
    """One call of a tool, and the names that its answer needs.

    The names are looked up in the transaction of the verb that answers, which has identified the
    caller already.
    """

    def __init__(self, tool: Tool, token: str, arguments: object) -> None:
        self._tool = tool
        #: A server's own answer is passed on, and some of ours are short as they are.
        self._as_it_is = (
            tool.schema is not None or tool.name in _AS_IT_IS or tool.name.startswith("kb_")
        )
        self._names: dict[str, str] = {}
        on_answer = None if self._as_it_is else self._look_up
        self.caller = replace(caller(token, arguments), on_answer=on_answer)

    def _look_up(self, ctx: Context, answer: object) -> None:
        ids = _mentioned(answer) - self._names.keys()
        if ids:
            self._names |= name_lookup.names.body(ctx, company=None, ids=ids, living=True)

    def shorten(self, answer: Answer) -> Answer:
        if self._as_it_is:
            return answer
        if self._tool.name in _HIRING:
            answer = {
                key: _only(part, _KEPT_OF[key]) if key in _KEPT_OF else part
                for key, part in answer.items()
            }
        lean: Answer = _shorter(answer, self._names)
        following = _NEXT.get(self._tool.name)
        step = following(answer) if following is not None else None
        return lean if step is None else {**lean, "next_step": step}


def _only(thing: Answer | None, keys: Collection[str]) -> Answer | None:
    return None if thing is None else {key: thing[key] for key in keys if key in thing}


def _mentioned(value: Any) -> set[str]:
    """The ids of agents and people in an answer."""
    ids: set[str] = set()
    pending = [value]
    while pending:
        here = pending.pop()
        if isinstance(here, Mapping):
            for key, inner in here.items():
                if key in _AGENTS and isinstance(inner, str) and _UUID.fullmatch(inner):
                    ids.add(inner)
                else:
                    pending.append(inner)
        elif isinstance(here, list):
            pending += here
        elif isinstance(here, str) and (address := _ADDRESS.fullmatch(here)):
            ids.add(address[2])
    return ids


def _shorter(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        if value.get("waiting") and value.get("actionable"):
            value = {**value, "actionable": False}  # not before the wait ends
        return {
            name: shorter
            for key, inner in value.items()
            for name, shorter in _kept(key, inner, names)
        }
    if isinstance(value, list):
        return [_shorter(entry, names) for entry in value]
    if isinstance(value, str) and (address := _ADDRESS.fullmatch(value)):
        return f"{address[1]}:{names.get(address[2], address[2])}"
    return value


def _kept(key: str, value: Any, names: Mapping[str, str]) -> list[tuple[str, Any]]:
    if value is None or key in _DROPPED or (key in _FLAGS and value is False):
        return []
    if key in _AGENTS and isinstance(value, str):
        return [(_AGENTS[key], f"agent:{names[value]}")] if value in names else [(key, value)]
    return [(key, _shorter(value, names))]
