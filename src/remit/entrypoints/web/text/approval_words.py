"""Approvals as text for the page. Arguments that come from an agent may have any form."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from remit.entrypoints.web.text.words import money
from remit.model.organisation.agent_spec import AgentRole
from remit.services.command import Answer

#: Keys of a payload that are shown elsewhere on the page or are for programs.
_FREE: Final = frozenset({"title"})
_NOT_SHOWN: Final = {
    "hire_agent": frozenset(
        {
            *("agentId", "requestedByAgentId", "requestedConfigurationSnapshot", "grants"),
            *("name", "role", "title", "reportsTo", "outcomeId", "permissions"),
        }
    ),
    "config_change": frozenset(
        {*("agentId", "name", "configuration", "difference", "changed", "baseRevision")}
    ),
    "capability_use": frozenset({"options", "verb", "basis", "prepared", "action", "resource"}),
    "budget": frozenset({"agentId"}),
}
#: Labels of keys.
_NAMES: Final = {
    "arguments": "with",
    "because": "why a person is asked",
    "budgetMonthlyCents": "monthly budget",
    "permissionLevel": "permission level",
    "perpetual": "lasts",
    "purpose": "mandate",
}
_LASTS: Final = {True: "ongoing", False: "until it is done"}
_CAMEL: Final = re.compile(r"(?<=[a-z])[A-Z]")
_LONGEST_NAME: Final = 60
DEEPEST_THREAD: Final = 6
#: Words for events of the history that the approval itself does not have.
_HAPPENED: Final = {
    "approval.revise": "sent it back",
    "approval.remind": "sent a reminder",
    "approval.use": "used it",
}
_DECIDED: Final = {"approved": "approved it", "rejected": "rejected it", "cancelled": "withdrew it"}


def text(value: object) -> str:
    """Return a text of a request; empty if the agent gave another type."""
    return value if isinstance(value, str) else ""


def document(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def facts(payload: Mapping[str, Any], kind: str) -> list[tuple[str, Any]]:
    """Return the parts of a request that the page shows nowhere else, with labels."""
    hidden = _NOT_SHOWN.get(kind, _FREE)
    pairs = []
    for key, value in payload.items():
        if key in hidden or value in (None, "", [], {}):
            continue
        shown = value
        if key == "budgetMonthlyCents" and isinstance(value, int):
            shown = money(value)
        elif key == "perpetual" and kind == "hire_agent" and isinstance(value, bool):
            shown = _LASTS[value]
        words = _NAMES.get(key) or _CAMEL.sub(lambda match: f" {match[0].lower()}", str(key))
        pairs.append((words[:_LONGEST_NAME], shown))
    return pairs


def can_create(payload: Mapping[str, Any]) -> bool:
    """Return whether the hired agent can hire; by default the CEO alone can."""
    permission = document(payload.get("permissions")).get("canCreateAgents")
    leads = payload.get("role") == AgentRole.CEO and not payload.get("reportsTo")
    return permission if isinstance(permission, bool) else leads


def rights(payload: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the grants of a new agent besides those of its place."""
    wishes = payload.get("grants")
    return [
        {name: str(wish.get(name) or "") for name in ("resource", "level", "mode")}
        for wish in (wishes if isinstance(wishes, list) else [])
        if isinstance(wish, dict)
    ]


def resources(approval: Mapping[str, Any], rights: Iterable[Mapping[str, str]]) -> set[str]:
    named = {right["resource"] for right in rights}
    payload = approval["payload"]
    if approval["type"] == "hire_agent" and text(payload.get("outcomeId")):
        named.add(f"outcome:{payload['outcomeId']}")
    if approval["type"] == "capability_use":
        named.add(text(payload.get("resource")))
    return named


_SNAPSHOT: Final = "requestedConfigurationSnapshot."


def once(changes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Merge differences of two revisions that a hire has twice."""
    merged: dict[str, dict[str, Any]] = {}
    for change in changes:
        path = str(change["path"]).removeprefix(_SNAPSHOT)
        merged.setdefault(path, {**change, "path": path})
    return list(merged.values())


def thread(comments: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return comments, oldest first, with their answers nested; deep chains stop indenting."""
    top: list[dict[str, Any]] = []
    known: dict[str, dict[str, Any]] = {}
    for comment in comments:
        above = known.get(comment["reply_to"] or "")
        while above is not None and above["depth"] >= DEEPEST_THREAD:
            above = above["above"]
        depth = 0 if above is None else above["depth"] + 1
        known[comment["id"]] = {**comment, "answers": [], "above": above, "depth": depth}
        (top if above is None else above["answers"]).append(known[comment["id"]])
    return top


def timeline(approval: Answer, happened: Iterable[Answer]) -> list[Answer]:
    """Return the steps of an approval, each with who and when: requested, revised, decided,
    used."""
    steps: list[tuple[Any, ...]] = []
    for revision in approval["revisions"]:
        author = revision["author_agent_id"] or revision["author_user_id"]
        number = revision["number"]
        step = "requested it" if number == 1 else f"submitted revision {number}"
        steps.append((revision["created_at"], author, step, None))
    steps += [
        (event["at"], event["by"].partition(":")[2], what, event["why"])
        for event in happened
        if (what := _HAPPENED.get(event["action"]))
    ]
    if at := approval["decided_at"]:
        judge = approval["decided_by_user_id"] or approval["decided_by_agent_id"]
        decision = _DECIDED.get(approval["status"], approval["status"].replace("_", " "))
        steps.append((at, judge, decision, approval["decision_note"]))
    return [
        {"at": at, "who": who, "what": what, "note": note or ""}
        for at, who, what, note in sorted(steps, key=lambda step: str(step[0]))
    ]
