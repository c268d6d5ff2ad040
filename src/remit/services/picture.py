"""What a drawing of outcomes shows: as many as fit, and only those the caller may see."""

from __future__ import annotations

from typing import Any

from remit.authority import Action
from remit.model.outcome import Outcome
from remit.services import lookup
from remit.services.command import Context, query
from remit.store import people, whole
from remit.store.statement import Statement

MOST_DRAWN = 2_000


@query
def show(ctx: Context, *, company: str | None, root: str | None = None) -> dict[str, Any]:
    """The outcomes of a company, or one and those below it, oldest first."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.COMPANY_READ, on="outcomes")
    here = {"company": ctx.company}
    if root is None:
        rows = whole.each(ctx.tx, whole.OUTCOMES, **here)
    else:
        top = lookup.outcome_anywhere(ctx, root)
        lookup.require_outcome(ctx, Action.OUTCOME_READ, top)
        rows = whole.each(ctx.tx, whole.OUTCOMES_BELOW, outcome=top.id, **here)
    may_read = lookup.reader(ctx)
    nodes: dict[str, Outcome] = {}
    cut_off = False
    for one in rows:
        if may_read(one):
            cut_off = len(nodes) == MOST_DRAWN
            if cut_off:
                break
            nodes[one.id] = one
    names = {agent.id: agent.name for agent in whole.each(ctx.tx, whole.AGENTS, **here)}
    found = ctx.tx.one(people.COMPANY, **here)
    return {
        "company": found.name if found else "",
        "nodes": [
            {
                "id": one.id,
                "title": one.title,
                "status": one.status.value,
                "owner_id": one.owner_id,
                "owner": names[one.owner_id],
            }
            for one in nodes.values()
        ],
        "parts": _pairs(ctx, nodes, whole.PARENTS),
        "blockers": _pairs(ctx, nodes, whole.BLOCKERS),
        "most": MOST_DRAWN,
        "cut_off": cut_off,
    }


def _pairs(
    ctx: Context, nodes: dict[str, Outcome], statement: Statement[whole.Named]
) -> list[list[str]]:
    """For each outcome that is shown, what above it or before it is shown as well."""
    return [
        [other.id, one]
        for one in nodes
        for other in ctx.tx.all(statement, outcome=one)
        if other.id in nodes
    ]
