"""Outcomes: the list, the tree, the graph, and a form for a new one."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from markupsafe import Markup

from remit.entrypoints import svg
from remit.entrypoints.web.site import Done, Page, Routes, Site, Visit
from remit.entrypoints.web.text import common_queries
from remit.errors import BadInput, NotFound
from remit.model.work.outcome import OutcomeStatus
from remit.services.record import search
from remit.services.screens import outcome_tree

#: Most boxes drawn, so that the page stays readable and fast.
MOST_DRAWN: Final = 120
#: Most parents offered for a new outcome; others have a form on their own page.
MOST_PARENTS: Final = 50
STATUSES: Final = ("open", "completed", "closed")
#: Label of each state of an outcome, and the style of its badge.
STATES: Final = {
    "ready": ("Ready", "ready"),
    "split": ("In parts", "idle"),
    "blocked": ("Blocked", "blocked"),
    "waiting": ("Waiting", "waiting"),
    "submitted": ("Submitted", "submitted"),
    "deferred": ("Deferred", "idle"),
    "ongoing": ("Ongoing", "idle"),
    "completed": ("Completed", "completed"),
    "closed": ("Closed", "idle"),
    # For visitors who may not know more.
    "open": ("Open", "idle"),
}


def routes(site: Site) -> Routes:
    return site.form("/outcomes", show, create)


def show(visit: Visit) -> Page:
    view = visit.argument("view")
    if view == "graph":
        return _graph(visit)
    sought = any(visit.argument(name) for name in ("query", "owner", "actionable", "stale"))
    status = visit.argument("status", "open")
    if view == "list" or sought or status in ("completed", "closed"):
        return _list(visit)
    return _tree(visit)


def _tree(visit: Visit) -> Page:
    wanted = _wanted(visit)
    tree = visit.ask(
        outcome_tree.page,
        company=visit.company_id,
        root=visit.argument("root") or visit.part,
        ended=not wanted["status"],
    )
    rows = tree["rows"]
    judges = [row["judge"] for row in rows if row["judge"]]
    people = [judge[key] for judge in judges for key in ("agent_id", "user_id")]
    return visit.show(
        "outcome_tree.html",
        rows=rows,
        root=visit.argument("root"),
        cut_off=tree["cut_off"],
        names=common_queries.names(visit, [*(row["owner_id"] for row in rows), *people]),
        wanted=wanted,
        view="tree",
        states=STATES,
        parents=_parents(visit),
    )


def _list(visit: Visit) -> Page:
    wanted = _wanted(visit)
    rows: list[dict[str, Any]] = []
    nobody: NotFound | None = None
    try:
        rows = visit.listed(
            search.outcomes,
            owner=wanted["owner"] or visit.part,
            status=wanted["status"] or None,
            actionable=bool(wanted["actionable"]),
            stale=bool(wanted["stale"]),
            words=wanted["query"],
        )
    except NotFound as error:
        nobody = error
    names = common_queries.names(visit, (row["owner_id"] for row in rows))
    filters: dict[str, Any] = {**wanted, "status": wanted["status"] or "all"}
    return visit.show(
        "outcomes.html",
        outcomes=rows,
        names=names,
        wanted=wanted,
        nobody=nobody,
        statuses=STATUSES,
        states=STATES,
        standing_of=standing_of(visit, rows),
        filtered=any(wanted[key] for key in ("owner", "query", "actionable", "stale")),
        later=bool(visit.argument("before")),
        more=visit.more("/outcomes", rows, view="list", **filters),
        view="list",
        parents=_parents(visit),
    )


def standing_of(visit: Visit, rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the state of each outcome, as a key of `STATES`."""
    ids = [row["id"] for row in rows]
    known = visit.ask(outcome_tree.states, company=visit.company_id, outcomes=ids)
    return {row["id"]: known.get(row["id"], row["status"]) for row in rows}


def _graph(visit: Visit) -> Page:
    wanted = _wanted(visit)
    # A person with a part of the company sees outcomes handed to its top, and all below.
    root = visit.argument("root") or visit.part
    shown = visit.ask(
        outcome_tree.picture,
        company=visit.company_id,
        root=root,
        ended=wanted["status"] != "open",
        limit=MOST_DRAWN,
    )
    top = next((node for node in shown["nodes"] if node["id"] == root), None)
    return visit.show(
        "outcome_graph.html",
        drawing=partial(drawn, shown, "all", shown["nodes"][0]["id"] if shown["nodes"] else ""),
        number=len(shown["nodes"]),
        cut_off=shown["cut_off"],
        wanted=wanted,
        root=root or "",
        top=top,
        view="graph",
        states=STATES,
    )


def drawn(shown: dict[str, Any], name: str, here: str = "") -> Markup:
    """Return a drawing as an element of a page."""
    drawing = svg.embed(shown, address, name=name, here=here)
    return Markup(drawing)  # noqa: S704  # every text in it is escaped


def address(outcome: str) -> str:
    return f"/outcomes/{outcome}"


async def create(visit: Visit) -> Done:
    """Create a part of an outcome, as the board."""
    parent = visit.form.text("parent")
    if not parent:
        raise BadInput("Every outcome is part of another.", "Choose its parent.")
    part = await create_part(visit, parent)
    return Done(address(part["id"]), f"Created “{part['title']}”.")


async def create_part(visit: Visit, parent: str) -> dict[str, Any]:
    """Create the part of an outcome that the form describes."""
    return await visit.site.app.library.create_outcome(
        visit.caller,
        parent=parent,
        title=visit.form.text("title"),
        description=visit.form.text("description"),
        urgent=visit.form.ticked("urgent"),
        important=visit.form.ticked("important"),
    )


def _wanted(visit: Visit) -> dict[str, str]:
    """The filters of the address."""
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


def _parents(visit: Visit) -> list[dict[str, Any]]:
    if not visit.decides:
        return []
    return visit.ask(
        search.outcomes,
        company=visit.company_id,
        owner=visit.part,
        status=OutcomeStatus.OPEN.value,
        roots=visit.part is None,
        limit=MOST_PARENTS,
    )
