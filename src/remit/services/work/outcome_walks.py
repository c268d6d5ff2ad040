"""Walks through the graph of outcomes: why something is done, and how.

A walk shows the neighbours of an outcome that the caller may read, and continues only from readable
ones.
"""

from typing import Annotated, Any

from remit.authority import Action
from remit.errors import BadInput
from remit.ids import OutcomeId
from remit.model.work.outcome import Outcome
from remit.services import lookup, shapes, views
from remit.services.command import Context, query
from remit.services.fields import OutcomeRef, Range
from remit.services.subjects import OUTCOME, reader, require_outcome
from remit.services.surfaces import AsRoute, AsTool
from remit.services.verbs import Added
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


@query(
    "graph.ancestors",
    AsTool("outcome_ancestors", "Every chain of reasons for an outcome.", id="outcome"),
    AsRoute("GET /outcomes/{id}/ancestors", "list_reasons"),
)
def ancestors(ctx: Context, *, outcome: OutcomeRef) -> shapes.ReasonsShape:
    """Every reason for an outcome: the graph above it, and the chains to a root as lists of ids."""
    row = lookup.find(ctx, OUTCOME, outcome)
    require_outcome(ctx, Action.OUTCOME_READ, row)
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
        "outcomes": [_brief(reason) for reason in above if reason.id in shown],
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
    row = lookup.find(ctx, OUTCOME, outcome)
    require_outcome(ctx, Action.OUTCOME_READ, row)
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
    row = lookup.find(ctx, OUTCOME, outcome)
    require_outcome(ctx, Action.OUTCOME_READ, row)
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
                    node["children"].append({**_brief(below[child]), "elsewhere": True})
                    continue
                if not may_read(below[child]):
                    node["children"].append({**_brief(below[child]), "hidden": True})
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


def _brief(outcome: Outcome) -> shapes.BriefOutcomeShape:
    return {
        "id": outcome.id,
        "title": outcome.title,
        "status": outcome.status.value,
        "owner_id": outcome.owner_id,
    }
