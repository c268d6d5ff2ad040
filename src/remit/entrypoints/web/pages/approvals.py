"""Approvals: the list, and the page on which a person decides one."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, Final

from remit.entrypoints.approval_text import asks_to, difference
from remit.entrypoints.web.pages import approval_forms
from remit.entrypoints.web.site import Done, Page, Routes, Site, Visit
from remit.entrypoints.web.text import approval_words, common_queries
from remit.errors import NotFound, RemitError
from remit.model.organisation.approval import ApprovalStatus
from remit.services.governance import approvals
from remit.services.screens import agent_page, overview

PAGE: Final = 50
DELETED: Final = "The agent was deleted; the approval stays."
_PENDING: Final = ApprovalStatus.PENDING.value
_DECISIONS: Final = {
    "approve": (approvals.approve, "Approved."),
    "reject": (approvals.reject, "Rejected."),
    "revise": (approvals.request_revision, "Sent back for another revision."),
}


def routes(site: Site) -> Routes:
    here, comment, delete = "/approvals/{approval}", approvals.comment, approvals.delete_agent
    return [
        site.page("/approvals", listing),
        site.page(here, show),
        *site.forms(here, show, decide=decide, resubmit=approval_forms.resubmit),
        site.does(f"{here}/comment", comment, show, here, "Comment added.", "body", "reply_to"),
        site.does(f"{here}/cancel", approvals.cancel, show, here, "Withdrawn."),
        site.does(f"{here}/delete-agent", delete, show, here, DELETED),
    ]


def listing(visit: Visit) -> Page:
    status = visit.argument("status")
    rows = visit.ask(
        approvals.listing,
        company=visit.company_id,
        status=status or None,
        before=visit.before_id,
        limit=PAGE,
    )
    more = visit.more("/approvals", rows, PAGE, status=status)
    if not status:
        rows = _pending_first(visit, rows)
    called = common_queries.called(visit, visit.company_id, rows)
    return visit.show(
        "approvals.html",
        approvals=[{**approval, "asks": asks_to(approval, called)} for approval in rows],
        names=common_queries.names(visit, (who for approval in rows for who in _people(approval))),
        status=status,
        statuses=[state.value for state in ApprovalStatus],
        more=more,
    )


def _pending_first(visit: Visit, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Move pending approvals to the top of the first page."""
    pending = visit.ask(approvals.listing, company=visit.company_id, status=_PENDING, limit=PAGE)
    if len(pending) == PAGE:  # too many to move
        return rows
    others = [approval for approval in rows if approval["status"] != _PENDING]
    return others if visit.argument("before") else [*pending, *others]


def show(visit: Visit) -> Page:
    approval = visit.ask(approvals.show, approval=visit.argument("approval"))
    visit.enter(approval["company_id"])
    payload, kind = approval["payload"], approval["type"]
    snapshot = approval_words.document(payload.get("requestedConfigurationSnapshot"))
    rights = approval_words.rights(payload) if kind == "hire_agent" else []
    about = visit.ask(
        agent_page.resources,
        company=approval["company_id"],
        named=approval_words.resources(approval, rights),
    )
    called = {name: resource["name"] for name, resource in about.items()}
    happened = visit.ask(approvals.history, approval=approval["id"])
    return visit.show(
        "approval.html",
        one=approval,
        asks=asks_to(approval, called),
        about=_about(visit, approval),
        resources=about,
        rights=rights,
        can_create=approval_words.can_create(payload),
        snapshot=snapshot if kind == "hire_agent" else {},
        boss=approval_words.text(payload.get("reportsTo")) if kind == "hire_agent" else "",
        facts=approval_words.facts(payload, kind),
        compared=[
            (now["number"], approval_words.once(difference(before["payload"], now["payload"])))
            for before, now in pairwise(approval["revisions"])
        ][::-1],
        thread=approval_words.thread(approval["comments"]),
        timeline=approval_words.timeline(approval, happened),
        names=common_queries.names(
            visit, (*_everybody(approval), *(event["by"].partition(":")[2] for event in happened))
        ),
        **approval_forms.shown(visit, approval),
    )


def _about(visit: Visit, approval: Mapping[str, Any]) -> dict[str, Any] | None:
    """The agent that an approval is about, unless it was deleted."""
    if not approval["agent_id"]:
        return None
    try:
        return visit.ask(overview.agent, agent=approval["agent_id"])
    except RemitError:
        return None


async def decide(visit: Visit) -> Done:
    chosen = _DECISIONS.get(visit.form.text("decision"))
    if chosen is None:
        raise NotFound("There is no such decision.", "Approve, reject or return it.")
    verb, message = chosen
    done = await visit.do(
        verb,
        approval=visit.argument("approval"),
        note=visit.form.maybe("note"),
        expected_revision=visit.form.number("revision"),
    )
    return Done(f"/approvals/{done['id']}", message)


def _people(approval: Mapping[str, Any]) -> list[str | None]:
    return [
        approval[f"{role}_{kind}_id"]
        for role in ("requested_by", "decided_by")
        for kind in ("agent", "user")
    ]


def _everybody(approval: Mapping[str, Any]) -> Iterable[str | None]:
    yield from _people(approval)
    yield approval["agent_id"]
    yield approval["routed_to_agent_id"]
    yield approval_words.text(approval["payload"].get("reportsTo"))
    for entry in (*approval["comments"], *approval["revisions"]):
        yield entry["author_agent_id"] or entry["author_user_id"]
