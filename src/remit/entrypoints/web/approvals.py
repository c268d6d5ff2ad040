"""Approvals: the list, and one of them with all that a person needs to decide it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, Final

from starlette.responses import Response
from starlette.routing import Route

from remit.entrypoints.asked import asks_to, difference
from remit.entrypoints.web import asking
from remit.entrypoints.web.agent_forms import as_json, read_json
from remit.entrypoints.web.site import Done, Site, Visit
from remit.entrypoints.web.words import money
from remit.errors import BadInput, NotFound, RemitError
from remit.model.approval import ApprovalStatus
from remit.services import approvals, overview, portrait

PAGE: Final = 50
#: Of what is asked for, what is said elsewhere on the page or is for programs.
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
#: What people call what programs named.
_NAMES: Final = {
    "arguments": "with",
    "because": "why a person is asked",
    "budgetMonthlyCents": "monthly budget",
    "permissionLevel": "permission level",
}
_CAMEL: Final = re.compile(r"(?<=[a-z])[A-Z]")
_LONGEST_NAME: Final = 60
#: What happened that the approval itself does not tell any more.
_HAPPENED: Final = {
    "approval.revise": "sent it back",
    "approval.remind": "asked for it again",
    "approval.use": "made use of it",
}
_DECIDED: Final = {
    "approved": "approved it",
    "rejected": "rejected it",
    "cancelled": "withdrew it",
}
_DECISIONS: Final = {
    "approve": (approvals.approve, "Approved."),
    "reject": (approvals.reject, "Rejected."),
    "revise": (approvals.request_revision, "Sent back for another revision."),
}


def routes(site: Site) -> list[Route]:
    return [
        site.page("/approvals", listing),
        site.page("/approvals/{approval}", show),
        site.action("/approvals/{approval}/decide", decide, show),
        site.action("/approvals/{approval}/comment", comment, show),
        site.action("/approvals/{approval}/resubmit", resubmit, show),
        site.action("/approvals/{approval}/cancel", cancel, show),
        site.action("/approvals/{approval}/delete-agent", delete_agent, show),
    ]


async def listing(visit: Visit) -> Response:
    status = visit.argument("status")
    found = await visit.ask(
        approvals.listing,
        company=visit.company_id,
        status=status or None,
        before=visit.argument("before") or approvals.END_OF_IDS,
        limit=PAGE,
    )
    called = await asking.called(visit, visit.company_id, found)
    return await visit.show(
        "approvals.html",
        approvals=[{**one, "asks": asks_to(one, called)} for one in found],
        names=await asking.names(visit, (who for one in found for who in _people(one))),
        status=status,
        statuses=[one.value for one in ApprovalStatus],
        more=visit.link("/approvals", status=status, before=found[-1]["id"])
        if len(found) == PAGE
        else "",
    )


async def show(visit: Visit) -> Response:
    one = await visit.ask(approvals.show, approval=visit.argument("approval"))
    visit.enter(one["company_id"])
    payload, kind = one["payload"], one["type"]
    snapshot = _document(payload.get("requestedConfigurationSnapshot"))
    rights = _rights(payload) if kind == "hire_agent" else []
    about = await visit.ask(
        portrait.resources, company=one["company_id"], named=_resources(one, rights)
    )
    called = {name: found["name"] for name, found in about.items()}
    happened = await visit.ask(approvals.history, approval=one["id"])
    return await visit.show(
        "approval.html",
        one=one,
        asks=asks_to(one, called),
        about=await _about(visit, one),
        resources=about,
        rights=rights,
        snapshot=snapshot if kind == "hire_agent" else {},
        boss=_text(payload.get("reportsTo")) if kind == "hire_agent" else "",
        facts=_facts(payload, kind),
        compared=[
            (now["number"], difference(before["payload"], now["payload"]))
            for before, now in pairwise(one["revisions"])
        ][::-1],
        thread=_thread(one["comments"]),
        timeline=_timeline(one, happened),
        names=await asking.names(visit, _everybody(one)),
        again=_again(visit, one),
    )


async def _about(visit: Visit, one: Mapping[str, Any]) -> dict[str, Any] | None:
    """The agent that it is about, unless it was deleted."""
    if not one["agent_id"]:
        return None
    try:
        return await visit.ask(overview.agent, agent=one["agent_id"])
    except RemitError:
        return None


async def decide(visit: Visit) -> Done:
    chosen = _DECISIONS.get(visit.form.text("decision"))
    if chosen is None:
        raise NotFound("There is no such decision.", "Approve, reject or send it back.")
    verb, said = chosen
    done = await visit.do(
        verb,
        approval=visit.argument("approval"),
        note=visit.form.maybe("note"),
        expected_revision=visit.form.number("revision"),
    )
    return Done(f"/approvals/{done['id']}", said)


async def comment(visit: Visit) -> Done:
    approval = visit.argument("approval")
    await visit.do(
        approvals.comment,
        approval=approval,
        body=visit.form.text("body"),
        reply_to=visit.form.maybe("reply_to"),
    )
    return Done(f"/approvals/{approval}", "Your comment is there for everybody concerned.")


async def resubmit(visit: Visit) -> Done:
    """What a person asked for is submitted again by a person."""
    approval = visit.argument("approval")
    payload = read_json(visit.form.text("payload") or "{}", "payload")
    if not isinstance(payload, dict):
        raise BadInput("payload: must be an object.", "Write it as a JSON object.")
    await visit.do(approvals.resubmit, approval=approval, payload=payload)
    return Done(f"/approvals/{approval}", "It is submitted again.")


async def cancel(visit: Visit) -> Done:
    approval = visit.argument("approval")
    await visit.do(approvals.cancel, approval=approval)
    return Done(f"/approvals/{approval}", "It is withdrawn.")


async def delete_agent(visit: Visit) -> Done:
    approval = visit.argument("approval")
    await visit.do(approvals.delete_agent, approval=approval)
    return Done(f"/approvals/{approval}", "The agent was deleted; the approval stays.")


def _people(one: Mapping[str, Any]) -> list[str | None]:
    return [
        one[f"{role}_{kind}_id"]
        for role in ("requested_by", "decided_by")
        for kind in ("agent", "user")
    ]


def _everybody(one: Mapping[str, Any]) -> Iterable[str | None]:
    yield from _people(one)
    yield one["agent_id"]
    yield one["routed_to_agent_id"]
    yield _text(one["payload"].get("reportsTo"))
    for said in (*one["comments"], *one["revisions"]):
        yield said["author_agent_id"] or said["author_user_id"]


def _text(value: object) -> str:
    """What an agent wrote into a request need not be what belongs there."""
    return value if isinstance(value, str) else ""


def _document(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _rights(payload: Mapping[str, Any]) -> list[dict[str, str]]:
    """What a new agent is to get, besides what its place gives it."""
    wishes = payload.get("grants")
    return [
        {name: str(wish.get(name) or "") for name in ("resource", "level", "mode")}
        for wish in (wishes if isinstance(wishes, list) else [])
        if isinstance(wish, dict)
    ]


def _resources(one: Mapping[str, Any], rights: Iterable[Mapping[str, str]]) -> set[str]:
    found = {right["resource"] for right in rights}
    payload = one["payload"]
    if one["type"] == "hire_agent" and _text(payload.get("outcomeId")):
        found.add(f"outcome:{payload['outcomeId']}")
    if one["type"] == "capability_use":
        found.add(_text(payload.get("resource")))
    return found


def _facts(payload: Mapping[str, Any], kind: str) -> list[tuple[str, Any]]:
    """What is asked for, as far as nothing else on the page says it, under names to read."""
    hidden = _NOT_SHOWN.get(kind, _FREE)
    found = []
    for key, value in payload.items():
        if key in hidden or value in (None, "", [], {}):
            continue
        shown = money(value) if key == "budgetMonthlyCents" and isinstance(value, int) else value
        words = _NAMES.get(key) or _CAMEL.sub(lambda found: f" {found[0].lower()}", str(key))
        found.append((words[:_LONGEST_NAME], shown))
    return found


def _again(visit: Visit, one: Mapping[str, Any]) -> str | None:
    """What somebody of the board can submit again, when a person asked and it was sent back."""
    if one["status"] != "revision_requested" or not one["requested_by_user_id"]:
        return None
    payload = one["payload"]
    inner = {"hire_agent": "requestedConfigurationSnapshot", "config_change": "configuration"}
    key = inner.get(one["type"])
    document = _document(payload.get(key)) if key else payload
    return visit.form.text("payload") or as_json(document)


def _thread(comments: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Comments with the answers to each below it."""
    known = {one["id"]: {**one, "answers": []} for one in comments}
    top: list[dict[str, Any]] = []
    for one in known.values():
        above = known.get(one["reply_to"] or "")
        (above["answers"] if above is not None else top).append(one)
    return top


def _timeline(
    one: Mapping[str, Any], happened: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Asked, sent back, revised, decided, used: each with who and when."""
    steps = [
        _step(
            revision["created_at"],
            revision["author_agent_id"] or revision["author_user_id"],
            "asked for it"
            if revision["number"] == 1
            else f"submitted revision {revision['number']}",
        )
        for revision in one["revisions"]
    ]
    steps += [
        _step(event["at"], event["by"].partition(":")[2], _HAPPENED[event["action"]], event["why"])
        for event in happened
        if event["action"] in _HAPPENED
    ]
    if one["decided_at"]:
        steps.append(
            _step(
                one["decided_at"],
                one["decided_by_user_id"] or one["decided_by_agent_id"],
                _DECIDED.get(one["status"], one["status"].replace("_", " ")),
                one["decision_note"],
            )
        )
    return sorted(steps, key=lambda step: str(step["at"]))


def _step(at: str, who: str | None, what: str, note: str | None = None) -> dict[str, Any]:
    return {"at": at, "who": who, "what": what, "note": note or ""}
