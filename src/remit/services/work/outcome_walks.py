"""Walks through the graph of outcomes: why something is done, and how; and data to draw it.

A walk shows the neighbours of an outcome that the caller may read, and continues only from readable
ones. A drawing is limited in number, too.
"""

from collections.abc import Collection, Iterator
from typing import Annotated, Any

from remit.authority import Action
from remit.errors import BadInput
from remit.ids import OutcomeId
from remit.model.work.outcome import Outcome, OutcomeStatus
from remit.services import lookup, shapes, views
from remit.services.command import Context, query
from remit.services.fields import OutcomeRef, Range
from remit.services.subjects import reader, require_named_outcome
from remit.services.surfaces import AsRoute, AsTool
from remit.services.verbs import Added
from remit.store.organisation import people
from remit.store.paging import each
from remit.store.record import company_dump, search
from remit.store.work import outcomes as statements

#: Sixteen stacked diamonds have 65,536 chains; nobody reads more than these.
MOST_CHAINS = 200
MOST_NODES = 20_000
#: More would be longer than what agents' programs show a model of one answer.
MOST_NODES_FOR_A_MODEL = 300
#: Nested JSON: many parsers give up at some hundred levels, and each outcome takes two.
DEEPEST = 100
#: The most parts of each outcome in an outline.
MOST_PARTS = 50
MOST_DRAWN = 2_000
#: Limit for each kind of neighbour around one outcome: parents, parts, blockers, dependents.
MOST_AROUND = 12
_PAGE = 500


@query(
    "graph.ancestors",
    AsTool("outcome_ancestors", "Every chain of reasons for an outcome.", id="outcome"),
    AsRoute("GET /outcomes/{id}/ancestors", "list_reasons"),
)
def ancestors(ctx: Context, *, outcome: OutcomeRef) -> shapes.ReasonsShape:
    """Every reason for an outcome: the graph above it, and the chains to a root as lists of ids."""
    row = require_named_outcome(ctx, Action.OUTCOME_READ, outcome)
    above = ctx.tx.all(statements.ANCESTORS, outcome=row.id)
    may_read = reader(ctx)
    readable = {reason.id for reason in above if may_read(reason)}
    edges = [
        edge
        for edge in ctx.tx.all(statements.ANCESTOR_EDGES, outcome=row.id)
        if edge.child_id in readable
    ]
    shown = readable | {edge.parent_id for edge in edges}
    parents: dict[str, list[str]] = {}
    for edge in edges:
        parents.setdefault(edge.child_id, []).append(edge.parent_id)
    chains, more = _chains(row.id, parents)
    return {
        "outcomes": [views.brief_outcome(reason) for reason in above if reason.id in shown],
        "edges": [{"parent": edge.parent_id, "child": edge.child_id} for edge in edges],
        "chains": chains,
        "more_chains": more,
    }


def _chains(start: str, parents: dict[str, list[str]]) -> tuple[list[list[str]], bool]:
    chains: list[list[str]] = []
    pending = [[start]]
    while pending:
        chain = pending.pop()
        # An acyclic graph has no repeated node in a chain; this does not rely on that.
        above = [parent for parent in parents.get(chain[-1], ()) if parent not in chain]
        if not above:
            if len(chains) == MOST_CHAINS:
                return chains, True
            chains.append(chain)
        pending += [[*chain, parent] for parent in reversed(above)]
    return chains, False


@query(
    "graph.subtree",
    AsTool(
        "outcome_subtree",
        "An outcome and everything it consists of.",
        id="outcome",
        given={"most": MOST_NODES_FOR_A_MODEL},
    ),
    AsRoute("GET /outcomes/{id}/subtree", "show_subtree", without=("most",)),
    Added("most", MOST_NODES),
)
def subtree(
    ctx: Context,
    *,
    outcome: OutcomeRef,
    depth: Annotated[int, Range(0, DEEPEST)] | None = None,
    most: int = MOST_NODES,
) -> shapes.WholeTreeShape:
    """An outcome and its parts. One that hangs in several places is unfolded in the first."""
    if depth is not None and not 0 <= depth <= DEEPEST:
        raise BadInput(f"depth must be 0 to {DEEPEST}.", "Leave it out for everything.")
    row = require_named_outcome(ctx, Action.OUTCOME_READ, outcome)
    shown = DEEPEST if depth is None else depth
    # One level more than is shown, to know where there is more.
    reach: dict[str, object] = {"company": ctx.company, "outcome": row.id, "depth": shown + 1}
    below = {part.id: part for part in ctx.tx.all(statements.SUBTREE, limit=most + 1, **reach)}
    edges = ctx.tx.all(statements.SUBTREE_EDGES, limit=10 * most, **reach)
    children: dict[str, list[str]] = {}
    for edge in edges:
        if edge.child_id in below:
            children.setdefault(edge.parent_id, []).append(edge.child_id)
    return {**_unfold(ctx, row, below, children, shown), "cut_off": len(below) > most}


@query("graph.outline")
def outline(
    ctx: Context, *, outcome: str, depth: int = 3, most: int = 200
) -> list[shapes.OutlinedShape]:
    """Return the parts of an outcome as a list with depths, limited in number.

    The cost is proportional to what is shown. `more` marks where parts were left out.
    """
    row = require_named_outcome(ctx, Action.OUTCOME_READ, outcome)
    may_read = reader(ctx)
    parts: dict[str, list[Outcome]] = {}
    more: dict[str, str] = {}
    shown = {row.id: 0}
    level = [row]
    # Breadth first, so that the deepest parts are left out.
    for deep in range(1, depth + 1):
        below: list[Outcome] = []
        for node in level:
            children = ctx.tx.all(statements.CHILDREN, outcome=node.id, limit=MOST_PARTS + 1)
            new = [child for child in children[:MOST_PARTS] if child.id not in shown]
            room = max(0, most + 1 - len(shown))
            if len(new) > room or len(children) > MOST_PARTS:
                more[node.id] = "more"
            parts[node.id] = new[:room]
            shown |= {child.id: deep for child in new[:room]}
            below += [child for child in new[:room] if may_read(child)]
        level = below
    for node in level:
        if ctx.tx.all(statements.CHILDREN, outcome=node.id, limit=1):
            more[node.id] = "deeper"
    return _listed(ctx, row.id, parts, shown, more)


def _listed(
    ctx: Context,
    top: str,
    parts: dict[str, list[Outcome]],
    depth: dict[OutcomeId, int],
    more: dict[str, str],
) -> list[shapes.OutlinedShape]:
    """Flatten in preorder: each outcome before its own parts."""
    rows: list[shapes.OutlinedShape] = []
    waiting = list(reversed(parts.get(top, ())))
    while waiting:
        part = waiting.pop()
        view = views.outcome(part, ctx.now)
        rows.append({**view, "depth": depth[part.id], "more": more.get(part.id)})
        waiting += reversed(parts.get(part.id, ()))
    return rows


def _unfold(
    ctx: Context,
    root: Outcome,
    below: dict[Any, Outcome],
    children: dict[str, list[str]],
    depth: int,
) -> shapes.TreeShape:
    """Nest the nodes, breadth first, so that each is unfolded where it is nearest to the root."""
    tree = _node(ctx, root)
    may_read = reader(ctx)
    unfolded = {root.id}
    level = [tree]
    for _ in range(depth):
        next_level: list[shapes.TreeShape] = []
        for node in level:
            for child in children.get(node["id"], ()):
                if child in unfolded:
                    node["children"].append(
                        {**views.brief_outcome(below[child]), "elsewhere": True}
                    )
                    continue
                if not may_read(below[child]):
                    node["children"].append({**views.brief_outcome(below[child]), "hidden": True})
                    continue
                unfolded.add(below[child].id)
                inner = _node(ctx, below[child])
                node["children"].append(inner)
                next_level.append(inner)
        level = next_level
    for node in level:
        if more := len(children.get(node["id"], ())):
            node["more"] = more
    return tree


def _node(ctx: Context, outcome: Outcome) -> shapes.TreeShape:
    everything: shapes.MoreShape = {}
    return {**views.outcome(outcome, ctx.now), "children": [], **everything}


# ── drawings ────────────────────────────────────────────────────────────────────────────────────


@query("picture.show")
def drawing(
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
        top = require_named_outcome(ctx, Action.OUTCOME_READ, root)
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
        parts = _known(nodes, ctx.tx.all(search.EDGES_AMONG, **between))
        blockers = _known(nodes, ctx.tx.all(search.BLOCKERS_AMONG, **between))
    else:
        parts, blockers = pairs(ctx, nodes)
    return _drawing(ctx, nodes, parts, blockers, cut_off)


@query("picture.around")
def drawing_around(ctx: Context, *, outcome: str) -> shapes.PictureShape:
    """Return one outcome with its reasons, its parts, and what waits for what."""
    row = require_named_outcome(ctx, Action.OUTCOME_READ, outcome)
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
    parts, blockers = pairs(ctx, nodes)
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
            {**views.brief_outcome(node), "owner": names[node.owner_id]} for node in nodes.values()
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


def pairs(ctx: Context, nodes: Collection[str]) -> Iterator[list[list[str]]]:
    """Pairs of each shown outcome with the shown ones above it, and with those before it."""
    for statement in (company_dump.PARENTS, company_dump.BLOCKERS):
        yield [
            [other.id, own]
            for own in nodes
            for other in ctx.tx.all(statement, outcome=own)
            if other.id in nodes
        ]
