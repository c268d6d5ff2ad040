"""Approvals: the list, and the page on which a person decides one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, Final

from starlette.routing import Route

from remit.entrypoints.approval_text import asks_to, difference
from remit.entrypoints.web.pages import approval_forms
from remit.entrypoints.web.site import Done, Page, Site, Visit
from remit.entrypoints.web.text import approval_words, common_queries
from remit.errors import NotFound, RemitError
from remit.model.organisation.approval import ApprovalStatus
from remit.services.command import Verb
from remit.services.governance import approvals
from remit.services.screens import agent_page, overview

PAGE: Final = 50
_PENDING: Final = ApprovalStatus.PENDING.value
_DECISIONS: Final = {
    "approve": (approvals.approve, "Approved."),
    "reject": (approvals.reject, "Rejected."),
    "revise": (approvals.request_revision, "Sent back for another revision."),
}


def routes(site: Site) -> list[Route]:
    acts = {
        "decide": decide,
        "comment": comment,
        "resubmit": approval_forms.resubmit,
        "cancel": cancel,
    }
    return [
        site.page("/approvals", listing),
        site.page("/approvals/{approval}", show),
        *site.forms("/approvals/{approval}", show, delete_agent=delete_agent, **acts),
    ]


def listing(visit: Visit) -> Page:
    status = visit.argument("status")
    found = visit.ask(
        approvals.listing,
        company=visit.company_id,
        status=status or None,
        before=visit.before_id,
        limit=PAGE,
    )
    last = found[-1]["id"] if len(found) == PAGE else ""
    if not status:
        found = _pending_first(visit, found)
    called = common_queries.called(visit, visit.company_id, found)
    return visit.show(
        "approvals.html",
        approvals=[{**one, "asks": asks_to(one, called)} for one in found],
        names=common_queries.names(visit, (who for one in found for who in _people(one))),
        status=status,
        statuses=[one.value for one in ApprovalStatus],
        more=visit.link("/approvals", status=status, before=last) if last else "",
    )


def _pending_first(visit: Visit, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Move pending approvals to the top of the first page."""
    pending = visit.ask(approvals.listing, company=visit.company_id, status=_PENDING, limit=PAGE)
    if len(pending) == PAGE:  # too many to move
        return found
    others = [one for one in found if one["status"] != _PENDING]
    return others if visit.argument("before") else [*pending, *others]


def show(visit: Visit) -> Page:
    one = visit.ask(approvals.show, approval=visit.argument("approval"))
    visit.enter(one["company_id"])
    payload, kind = one["payload"], one["type"]
    snapshot = approval_words.document(payload.get("requestedConfigurationSnapshot"))
    rights = approval_words.rights(payload) if kind == "hire_agent" else []
    about = visit.ask(
        agent_page.resources, company=one["company_id"], named=approval_words.resources(one, rights)
    )
    called = {name: found["name"] for name, found in about.items()}
    happened = visit.ask(approvals.history, approval=one["id"])
    return visit.show(
        "approval.html",
        one=one,
        asks=asks_to(one, called),
        about=_about(visit, one),
        resources=about,
        rights=rights,
        can_create=approval_words.can_create(payload),
        snapshot=snapshot if kind == "hire_agent" else {},
        boss=approval_words.text(payload.get("reportsTo")) if kind == "hire_agent" else "",
        facts=approval_words.facts(payload, kind),
        compared=[
            (now["number"], approval_words.once(difference(before["payload"], now["payload"])))
            for before, now in pairwise(one["revisions"])
        ][::-1],
        thread=approval_words.thread(one["comments"]),
        timeline=approval_words.timeline(one, happened),
        names=common_queries.names(
            visit, (*_everybody(one), *(event["by"].partition(":")[2] for event in happened))
        ),
        **approval_forms.shown(visit, one),
    )


def _about(visit: Visit, one: Mapping[str, Any]) -> dict[str, Any] | None:
    """The agent that an approval is about, unless it was deleted."""
    if not one["agent_id"]:
        return None
    try:
        return visit.ask(overview.agent, agent=one["agent_id"])
    except RemitError:
        return None


async def decide(visit: Visit) -> Done:
    chosen = _DECISIONS.get(visit.form.text("decision"))
    if chosen is None:
        raise NotFound("There is no such decision.", "Approve, reject or return it.")
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
    return Done(f"/approvals/{approval}", "Comment added.")


async def cancel(visit: Visit) -> Done:
    return await _done(visit, approvals.cancel, "Withdrawn.")


async def delete_agent(visit: Visit) -> Done:
    said = "The agent was deleted; the approval stays."
    return await _done(visit, approvals.delete_agent, said)


async def _done(visit: Visit, verb: Verb[..., Any], said: str, **given: Any) -> Done:
    approval = visit.argument("approval")
    await visit.do(verb, approval=approval, **given)
    return Done(f"/approvals/{approval}", said)


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
