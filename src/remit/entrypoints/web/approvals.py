"""Approvals: the list, and one of them with all that a person needs to decide it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, Final

from starlette.responses import Response
from starlette.routing import Route

from remit.entrypoints.asked import asks_to, difference
from remit.entrypoints.web import asking
from remit.entrypoints.web.site import Done, Site, Visit
from remit.errors import NotFound, RemitError
from remit.model.approval import ApprovalStatus
from remit.services import approvals, overview

PAGE: Final = 50
#: Of what is asked for, what is said elsewhere on the page or is for programs.
_NOT_SHOWN: Final = frozenset(
    {
        *("agentId", "requestedByAgentId", "requestedConfigurationSnapshot", "configuration"),
        *("difference", "changed", "name", "role", "title", "reportsTo", "outcomeId", "prepared"),
        *("baseRevision", "options", "verb", "basis", "prompt", "capabilities"),
    }
)
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
    return await visit.show(
        "approvals.html",
        approvals=[{**one, "asks": asks_to(one)} for one in found],
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
    about = await _about(visit, one)
    payload = one["payload"]
    revisions = one["revisions"]
    return await visit.show(
        "approval.html",
        one=one,
        asks=asks_to(one),
        about=about,
        snapshot=payload.get("requestedConfigurationSnapshot") or payload,
        boss=payload.get("reportsTo"),
        rest={key: value for key, value in payload.items() if key not in _NOT_SHOWN and value},
        compared=[
            (now["number"], difference(before["payload"], now["payload"]))
            for before, now in pairwise(revisions)
        ][::-1],
        thread=_thread(one["comments"]),
        timeline=_timeline(one),
        names=await asking.names(visit, _everybody(one)),
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
    yield one["payload"].get("reportsTo")
    for said in (*one["comments"], *one["revisions"]):
        yield said["author_agent_id"] or said["author_user_id"]


def _thread(comments: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Comments with the answers to each below it."""
    known = {one["id"]: {**one, "answers": []} for one in comments}
    top: list[dict[str, Any]] = []
    for one in known.values():
        above = known.get(one["reply_to"] or "")
        (above["answers"] if above is not None else top).append(one)
    return top


def _timeline(one: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Asked, revised, decided: each with who and when."""
    steps = [
        {
            "at": revision["created_at"],
            "who": revision["author_agent_id"] or revision["author_user_id"],
            "what": "asked for it"
            if revision["number"] == 1
            else f"sent revision {revision['number']}",
            "note": "",
        }
        for revision in one["revisions"]
    ]
    if one["decided_at"]:
        words = {"approved": "approved it", "rejected": "rejected it", "cancelled": "cancelled it"}
        steps.append(
            {
                "at": one["decided_at"],
                "who": one["decided_by_user_id"] or one["decided_by_agent_id"],
                "what": words.get(one["status"], one["status"].replace("_", " ")),
                "note": one["decision_note"] or "",
            }
        )
    elif one["status"] == "revision_requested":
        steps.append({"at": one["updated_at"], "who": None, "what": "It was sent back", "note": ""})
    return steps
