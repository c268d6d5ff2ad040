"""Data of a drawing of outcomes: limited in number, and to those that the caller may see."""

from typing import Any

from remit.authority import Action
from remit.errors import BadInput
from remit.model.work.outcome import Outcome, OutcomeStatus
from remit.services import lookup, shapes
from remit.services.command import Context, query
from remit.services.subjects import OUTCOME, reader, require_outcome
from remit.store.engine.statement import Statement
from remit.store.organisation import people
from remit.store.paging import each
from remit.store.record import company_dump, search
from remit.store.work import outcomes as statements

MOST_DRAWN = 2_000
#: Limit for each kind of neighbour around one outcome: parents, parts, blockers, dependents.
MOST_AROUND = 12
_PAGE = 500


@query("picture.show")
def show(
    ctx: Context,
    *,
    company: str | None,
    root: str | None = None,
    status: str | None = None,
    most: int = MOST_DRAWN,
    inboxes: bool = True,
) -> shapes.PictureShape:
    """Return the outcomes of a company, or one and those below it, oldest first.

    Without `inboxes`, only work.
    """
    if status is not None and status not in set(OutcomeStatus):
        raise BadInput("status must be open, completed or closed.", "Choose one of these.")
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.COMPANY_READ, on="outcomes")
    if root is None:
        filters: Any = {"status": status, "inboxes_too": inboxes, "company": ctx.company}
        rows = each(ctx.tx, search.DRAWN, page=_PAGE, **filters)
    else:
        top = lookup.find(ctx, OUTCOME, root)
        require_outcome(ctx, Action.OUTCOME_READ, top)
        below = each(ctx.tx, statements.OUTCOMES_BELOW, outcome=top.id, company=ctx.company)
        rows = (outcome for outcome in below if status is None or outcome.status == status)
    may_read = reader(ctx)
    nodes: dict[str, Outcome] = {}
    cut_off = False
    for outcome in rows:
        if may_read(outcome):
            cut_off = len(nodes) == min(most, MOST_DRAWN)
            if cut_off:
                break
            nodes[outcome.id] = outcome
    if root is None and nodes:
        between = {"company": ctx.company, "first": min(nodes), "last": max(nodes)}
        return _drawing(
            ctx,
            nodes,
            _known(nodes, ctx.tx.all(search.EDGES_AMONG, **between)),
            _known(nodes, ctx.tx.all(search.BLOCKERS_AMONG, **between)),
            cut_off,
        )
    parts, blockers = (
        _pairs(ctx, nodes, company_dump.PARENTS),
        _pairs(ctx, nodes, company_dump.BLOCKERS),
    )
    return _drawing(ctx, nodes, parts, blockers, cut_off)


@query("picture.around")
def around(ctx: Context, *, outcome: str) -> shapes.PictureShape:
    """Return one outcome with its reasons, its parts, and what waits for what."""
    row = lookup.find(ctx, OUTCOME, outcome)
    require_outcome(ctx, Action.OUTCOME_READ, row)
    nodes = {row.id: row}
    cut_off = False

    def add(outcomes: list[Outcome]) -> list[Outcome]:
        nonlocal cut_off
        cut_off = cut_off or len(outcomes) > MOST_AROUND
        nodes.update((node.id, node) for node in outcomes[:MOST_AROUND])
        return outcomes[:MOST_AROUND]

    few: dict[str, object] = {"outcome": row.id, "limit": MOST_AROUND + 1}
    may_read = reader(ctx)
    for parent in add(ctx.tx.all(statements.PARENTS, outcome=row.id)):
        if may_read(parent):
            add(ctx.tx.all(statements.PARENTS, outcome=parent.id))
    add(ctx.tx.all(statements.CHILDREN, **few))
    add(ctx.tx.all(statements.BLOCKERS, outcome=row.id))
    add(ctx.tx.all(search.WAITING_FOR, **few))
    parts, blockers = (
        _pairs(ctx, nodes, company_dump.PARENTS),
        _pairs(ctx, nodes, company_dump.BLOCKERS),
    )
    return _drawing(ctx, nodes, parts, blockers, cut_off)


def _drawing(
    ctx: Context,
    nodes: dict[Any, Outcome],
    parts: list[list[str]],
    blockers: list[list[str]],
    cut_off: bool,
) -> shapes.PictureShape:
    names: dict[str, str] = {}
    for outcome in nodes.values():
        if outcome.owner_id not in names:
            owner = lookup.agent_row(ctx, outcome.owner_id)
            names[outcome.owner_id] = owner.name if owner else ""
    company = ctx.tx.one(people.COMPANY)
    return {
        "company": company.name if company else "",
        "nodes": [
            {
                "id": node.id,
                "title": node.title,
                "status": node.status.value,
                "owner_id": node.owner_id,
                "owner": names[node.owner_id],
            }
            for node in nodes.values()
        ],
        "parts": parts,
        "blockers": blockers,
        "most": MOST_DRAWN,
        "cut_off": cut_off,
    }


def _known(nodes: dict[str, Outcome], edges: list[statements.Edge]) -> list[list[str]]:
    return [
        [edge.parent_id, edge.child_id]
        for edge in edges
        if edge.parent_id in nodes and edge.child_id in nodes
    ]


def _pairs(
    ctx: Context, nodes: dict[Any, Outcome], statement: Statement[company_dump.Named]
) -> list[list[str]]:
    """Return pairs of a shown outcome and each shown one above or before it."""
    return [
        [other.id, outcome_id]
        for outcome_id in nodes
        for other in ctx.tx.all(statement, outcome=outcome_id)
        if other.id in nodes
    ]
