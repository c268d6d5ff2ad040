"""Approvals as text for the page. Arguments that come from an agent may have any form."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from remit.model.organisation.agent_spec import AgentRole
from remit.services.command import Answer

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
