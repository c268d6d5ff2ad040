"""Walks through the graph of outcomes: why something is done, and how."""

from __future__ import annotations

from typing import Any

from remit.authority import Action
from remit.errors import BadInput
from remit.model.outcome import Outcome
from remit.services import lookup, views
from remit.services.command import Context, query
from remit.store import outcomes as statements

#: Sixteen stacked diamonds have 65,536 chains; nobody reads more than these.
MOST_CHAINS = 200
MOST_NODES = 20_000
DEEPEST = 1_000


@query
def ancestors(ctx: Context, *, outcome: str) -> dict[str, Any]:
    """Every reason for an outcome: the graph above it, and the chains to a root as lists of ids."""
    found = lookup.outcome_anywhere(ctx, outcome)
    lookup.require_outcome(ctx, Action.OUTCOME_READ, found)
    above = ctx.tx.all(statements.ANCESTORS, company=ctx.company, outcome=found.id)
    edges = ctx.tx.all(statements.ANCESTOR_EDGES, company=ctx.company, outcome=found.id)
    parents: dict[str, list[str]] = {}
    for edge in edges:
        parents.setdefault(edge.child_id, []).append(edge.parent_id)
    chains, more = _chains(found.id, parents)
    return {
        "outcomes": [_brief(one) for one in above],
        "edges": [{"parent": edge.parent_id, "child": edge.child_id} for edge in edges],
        "chains": chains,
        "more_chains": more,
    }


def _chains(start: str, parents: dict[str, list[str]]) -> tuple[list[list[str]], bool]:
    chains: list[list[str]] = []
    pending = [[start]]
    while pending:
        chain = pending.pop()
        above = parents.get(chain[-1], [])
        if not above:
            if len(chains) == MOST_CHAINS:
                return chains, True
            chains.append(chain)
        # A visited node cannot come again while the graph has no cycle; do not trust that here.
        pending += [[*chain, parent] for parent in reversed(above) if parent not in chain]
    return chains, False


@query
def subtree(ctx: Context, *, outcome: str, depth: int | None = None) -> dict[str, Any]:
    """An outcome and what it consists of. What hangs in several places is unfolded in the first."""
    if depth is not None and not 0 <= depth <= DEEPEST:
        raise BadInput(f"depth must be 0 to {DEEPEST}.", "Leave it out for everything.")
    found = lookup.outcome_anywhere(ctx, outcome)
    lookup.require_outcome(ctx, Action.OUTCOME_READ, found)
    reach: dict[str, Any] = {
        "company": ctx.company,
        "outcome": found.id,
        "depth": DEEPEST if depth is None else depth,
    }
    below = {one.id: one for one in ctx.tx.all(statements.SUBTREE, limit=MOST_NODES + 1, **reach)}
    edges = ctx.tx.all(statements.SUBTREE_EDGES, limit=10 * MOST_NODES, **reach)
    children: dict[str, list[str]] = {}
    for edge in edges:
        if edge.child_id in below:
            children.setdefault(edge.parent_id, []).append(edge.child_id)
    return {
        **_unfold(ctx, found, below, children),
        "cut_off": len(below) > MOST_NODES,
    }


def _unfold(
    ctx: Context, root: Outcome, below: dict[Any, Outcome], children: dict[str, list[str]]
) -> dict[str, Any]:
    """Nested nodes, built without recursion: a chain of outcomes may be long."""
    tree: dict[str, Any] = {**views.outcome(root, ctx.now), "children": []}
    unfolded = {root.id}
    pending = [tree]
    while pending:
        node = pending.pop()
        for child in children.get(node["id"], ()):
            if child in unfolded:
                node["children"].append({**_brief(below[child]), "elsewhere": True})
                continue
            unfolded.add(below[child].id)
            inner: dict[str, Any] = {**views.outcome(below[child], ctx.now), "children": []}
            node["children"].append(inner)
            pending.append(inner)
    return tree


def _brief(outcome: Outcome) -> dict[str, Any]:
    return {
        "id": outcome.id,
        "title": outcome.title,
        "status": outcome.status.value,
        "owner_id": outcome.owner_id,
    }
