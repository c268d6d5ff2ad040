"""Approvals: the list, and one of them with all that a person needs to decide it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, Final

from starlette.responses import Response
from starlette.routing import Route

from remit.entrypoints.asked import asks_to, difference
from remit.entrypoints.web import approval_words, asking
from remit.entrypoints.web.agent_forms import as_json, read_json
from remit.entrypoints.web.site import Done, Site, Visit
from remit.errors import BadInput, NotFound, RemitError
from remit.model.approval import ApprovalStatus
from remit.services import approvals, overview, portrait

PAGE: Final = 50
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
    snapshot = approval_words.document(payload.get("requestedConfigurationSnapshot"))
    rights = approval_words.rights(payload) if kind == "hire_agent" else []
    about = await visit.ask(
        portrait.resources, company=one["company_id"], named=approval_words.resources(one, rights)
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
        boss=approval_words.text(payload.get("reportsTo")) if kind == "hire_agent" else "",
        facts=approval_words.facts(payload, kind),
        compared=[
            (now["number"], difference(before["payload"], now["payload"]))
            for before, now in pairwise(one["revisions"])
        ][::-1],
        thread=approval_words.thread(one["comments"]),
        timeline=approval_words.timeline(one, happened),
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
    yield approval_words.text(one["payload"].get("reportsTo"))
    for said in (*one["comments"], *one["revisions"]):
        yield said["author_agent_id"] or said["author_user_id"]


def _again(visit: Visit, one: Mapping[str, Any]) -> str | None:
    """What somebody of the board can submit again, when a person asked and it was sent back."""
    if one["status"] != "revision_requested" or not one["requested_by_user_id"]:
        return None
    payload = one["payload"]
    inner = {"hire_agent": "requestedConfigurationSnapshot", "config_change": "configuration"}
    key = inner.get(one["type"])
    document = approval_words.document(payload.get(key)) if key else payload
    return visit.form.text("payload") or as_json(document)
