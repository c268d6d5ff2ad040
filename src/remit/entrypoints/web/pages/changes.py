"""Changes of repositories: the list, and the page on which a person reviews one."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

from remit.entrypoints.web.site import Done, Page, Routes, Site, Visit
from remit.entrypoints.web.text import common_queries
from remit.errors import NotFound
from remit.model.connections.change import ChangeStatus, MergeMethod
from remit.model.connections.forge import merge_methods
from remit.services.changes import changes, checking, reviews
from remit.services.command import Answer, Verb

VIEWS: Final = {"inline": "One column", "split": "Side by side"}
_METHODS: Final = [
    (MergeMethod.MERGE.value, "with a merge commit"),
    (MergeMethod.SQUASH.value, "as one commit"),
    (MergeMethod.FAST_FORWARD.value, "fast-forward only"),
]


def routes(site: Site) -> Routes:
    here = "/changes/{change}"
    return [
        site.page("/changes", listing),
        site.page(here, show),
        *site.forms(here, show, comment=comment, decide=decide),
        site.does(f"{here}/check", checking.again, show, here, "Checks started again."),
    ]


def listing(visit: Visit) -> Page:
    status = visit.argument("status")
    rows = visit.listed(changes.listing, status=status if status in list(ChangeStatus) else None)
    return visit.show(
        "changes.html",
        changes=rows,
        names=common_queries.names(visit, (change["agent_id"] for change in rows)),
        status=status,
        statuses=[state.value for state in ChangeStatus],
        more=visit.more("/changes", rows, status=status),
    )


async def show(visit: Visit) -> Page:
    page = await visit.look(_show)
    diff, why = await visit.site.app.reviews.shown(page.values["known"])
    page.values.update(diff=diff, why=why)
    return page


def _show(visit: Visit) -> Page:
    """Build the page without the diff, which git makes of the values in `known`."""
    known = visit.ask(reviews.material, change=visit.argument("change"))
    change = known["detail"]
    visit.enter(change["company_id"])
    remarks = change["comments"]
    decision = change["decision"] or {}
    everybody = [change["agent_id"], decision.get("agent_id"), decision.get("user_id")]
    everybody += [remark["agent_id"] or remark["user_id"] for remark in remarks]
    placed, loose = _placed(change)
    view = visit.argument("view")
    return visit.show(
        "change.html",
        known=known,
        one=change,
        view=view if view in VIEWS else "inline",
        views=VIEWS,
        methods=[method for method in _METHODS if method[0] in merge_methods(known["repo"].forge)],
        judges=known["judges"] and change["status"] == ChangeStatus.OPEN.value,
        placed=placed,
        loose=loose,
        names=common_queries.names(visit, everybody),
    )


def _placed(change: Answer) -> tuple[dict[tuple[str, str, int], list[Answer]], list[Answer]]:
    """Comments on lines of the current head, by file, side and line number; and the others."""
    placed, loose = defaultdict(list), []
    for remark in change["comments"]:
        if remark["line"] is not None and remark["head"] == change["head"]:
            placed[remark["path"], remark["side"], remark["line"]].append(remark)
        else:
            loose.append(remark)
    return dict(placed), loose


async def comment(visit: Visit) -> Done:
    change, form = visit.argument("change"), visit.form
    on_a_line = ("line", "side") if form.text("path") and form.text("line") else ()
    arguments = form.arguments(reviews.comment, ("body", "path", "head", *on_a_line))
    await visit.do(reviews.comment, change=change, **arguments)
    return Done(f"/changes/{change}", "Comment sent to the author.")


async def decide(visit: Visit) -> Done:
    change, decision = visit.argument("change"), visit.form.text("decision")
    if decision not in _DECISIONS:
        raise NotFound("There is no such decision.", "Approve, return, decline or merge it.")
    verb, message = _DECISIONS[decision]
    names = ("head", "base", *_FIELDS.get(decision, ("note",)))
    await visit.do(verb, change=change, **{name: visit.form.text(name) for name in names})
    return Done(f"/changes/{change}", message)


#: Fields of the form besides the commits; usually a note.
_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {"push": (), "merge": ("note", "method")}
_DECISIONS: Final[Mapping[str, tuple[Verb[..., Any], str]]] = {
    "push": (reviews.push, "Push started."),
    "approve": (reviews.approve, "Approved."),
    "return": (reviews.return_, "Returned to the author."),
    "decline": (reviews.decline, "Declined."),
    "merge": (reviews.merge, "Merge started."),
}
