"""Outcomes: the list, the drawing of how they hang together, and a new one."""

from __future__ import annotations

from typing import Any, Final

from markupsafe import Markup
from starlette.responses import Response
from starlette.routing import Route

from remit.entrypoints import svg
from remit.entrypoints.web import asking
from remit.entrypoints.web.site import Done, Site, Visit
from remit.errors import BadInput, NotFound
from remit.model.outcome import OutcomeStatus
from remit.services import picture, searching
from remit.services.identity import Caller

PAGE: Final = 50
#: More boxes than this nobody looks through, and they would not fit a quick page.
MOST_DRAWN: Final = 500
#: What a new outcome can be part of is chosen among these; anything else from its own page.
MOST_PARENTS: Final = 50
STATUSES: Final = ("open", "completed", "closed")


def routes(site: Site) -> list[Route]:
    return [
        site.page("/outcomes", show),
        site.action("/outcomes", create, show),
    ]


async def show(visit: Visit) -> Response:
    if visit.argument("view") == "graph":
        return await _graph(visit)
    return await _list(visit)


async def _list(visit: Visit) -> Response:
    wanted = _wanted(visit)
    found: list[dict[str, Any]] = []
    nobody: NotFound | None = None
    try:
        found = await visit.ask(
            searching.outcomes,
            company=visit.company_id,
            owner=wanted["owner"] or _own_part(visit),
            status=wanted["status"] or None,
            actionable=bool(wanted["actionable"]),
            stale=bool(wanted["stale"]),
            words=wanted["query"],
            before=visit.argument("before") or searching.END_OF_IDS,
            limit=PAGE,
        )
    except NotFound as error:
        nobody = error
    names = await asking.names(visit, (one["owner_id"] for one in found))
    given = {**wanted, "status": wanted["status"] or "all"}
    return await visit.show(
        "outcomes.html",
        outcomes=found,
        names=names,
        wanted=wanted,
        nobody=nobody,
        statuses=STATUSES,
        filtered=any(wanted[one] for one in ("owner", "query", "actionable", "stale")),
        later=bool(visit.argument("before")),
        more=visit.link("/outcomes", **given, before=found[-1]["id"]) if len(found) == PAGE else "",
        parents=await _parents(visit),
    )


async def _graph(visit: Visit) -> Response:
    wanted = _wanted(visit)
    root = visit.argument("root") or None
    if root is None and visit.company is not None:
        # Who sees a part of the company sees what was handed to its top, and all below.
        root = visit.company.get("scope_agent_id")
    shown = await visit.ask(
        picture.show,
        company=visit.company_id,
        root=root,
        status=wanted["status"] or None,
        most=MOST_DRAWN,
        inboxes=False,
    )
    drawing = await visit.site.app.library.run(_draw, shown)
    top = next((node for node in shown["nodes"] if node["id"] == root), None)
    return await visit.show(
        "outcome_graph.html",
        drawing=drawing,
        number=len(shown["nodes"]),
        cut_off=shown["cut_off"],
        wanted=wanted,
        root=root or "",
        top=top,
        statuses=STATUSES,
    )


def _draw(shown: dict[str, Any]) -> Markup:
    return drawn(shown, "all")


def drawn(shown: dict[str, Any], name: str, here: str = "") -> Markup:
    """A drawing to put on a page."""
    drawing = svg.embed(shown, address, name=name, here=here)
    return Markup(drawing)  # noqa: S704  # every text in it is escaped


def address(outcome: str) -> str:
    return f"/outcomes/{outcome}"


async def create(visit: Visit) -> Done:
    """A part of an outcome that the board wants to be done."""
    parent = visit.form.text("parent")
    if not parent:
        raise BadInput("Every outcome is for something.", "Choose what it is part of.")
    made = await visit.site.app.library.create_outcome(
        Caller(visit.who.token, visit.form.key),
        parent=parent,
        title=visit.form.text("title"),
        description=visit.form.text("description"),
        urgent=visit.form.ticked("urgent"),
        important=visit.form.ticked("important"),
    )
    return Done(address(made["id"]), f"“{made['title']}” is on the list of whoever owns it.")


def _wanted(visit: Visit) -> dict[str, str]:
    """What is looked for, as the address says it."""
    status = visit.argument("status", OutcomeStatus.OPEN.value)
    if status != "all" and status not in STATUSES:
        raise BadInput("status must be open, completed, closed or all.", "Choose one of these.")
    return {
        "status": "" if status == "all" else status,
        "owner": visit.argument("owner").strip(),
        "query": visit.argument("query").strip(),
        "actionable": "1" if visit.argument("actionable") else "",
        "stale": "1" if visit.argument("stale") else "",
    }


def _own_part(visit: Visit) -> str | None:
    """For somebody with a part of the company: the agent at its top."""
    return None if visit.company is None else visit.company.get("scope_agent_id")


async def _parents(visit: Visit) -> list[dict[str, Any]]:
    if not visit.decides:
        return []
    part = _own_part(visit)
    return await visit.ask(
        searching.outcomes,
        company=visit.company_id,
        owner=part,
        status=OutcomeStatus.OPEN.value,
        roots=part is None,
        limit=MOST_PARENTS,
    )
