"""Outcomes as a tree: each below what it is part of, with its waits, its judge, and the progress of
its parts. The cost is proportional to what is shown, not to the company."""

from collections.abc import Sequence
from typing import Final

from remit.authority import Action
from remit.ids import END_OF_IDS, AgentId
from remit.model.work.outcome import Outcome, OutcomeKind, OutcomeStatus
from remit.services import lookup, shapes, views
from remit.services.command import Context, query
from remit.services.subjects import reader, require_named_outcome
from remit.services.work import outcome_walks, submissions, waits
from remit.store.organisation import people
from remit.store.record import search
from remit.store.work import outcomes as statements
from remit.store.work import waits as wait_statements

MOST_ROWS: Final = 120
#: Deeper levels are behind a link.
DEEPEST: Final = 8
#: Most parts of one outcome.
MOST_PARTS: Final = 300


@query("outcome_tree.page")
def page(
    ctx: Context,
    *,
    company: str | None,
    root: str | None = None,
    ended: bool = False,
    limit: int = MOST_ROWS,
) -> shapes.TreePageShape:
    """The tree from the top, or below one outcome; `ended` includes ended outcomes.

    Breadth first, so that the deepest are left out; each row has the number of its hidden parts.
    """
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.COMPANY_READ, on="outcomes")
    may_read = reader(ctx)
    tops = [top for top in _tops(ctx, root, ended) if may_read(top)]
    shown: dict[str, int] = {top.id: 0 for top in tops[:limit]}
    parts: dict[str, list[Outcome]] = {}
    counts: dict[str, tuple[int, int]] = {}
    hidden: dict[str, int] = {}
    level: Sequence[Outcome] = tops[:limit]
    for depth in range(1, DEEPEST + 1):
        below: list[Outcome] = []
        for parent in level:
            children = ctx.tx.all(statements.CHILDREN, outcome=parent.id, limit=MOST_PARTS)
            work = [child for child in children if child.kind is OutcomeKind.WORK]
            done = sum(child.status is not OutcomeStatus.OPEN for child in work)
            counts[parent.id] = (done, len(work))
            new = [
                child
                for child in work
                if child.id not in shown
                and (ended or child.status is OutcomeStatus.OPEN)
                and may_read(child)
            ]
            room = max(0, limit - len(shown)) if depth < DEEPEST else 0
            hidden[parent.id] = len(new) - len(new[:room])
            parts[parent.id] = new[:room]
            shown |= {child.id: depth for child in new[:room]}
            below += new[:room]
        level = below
    rows: list[shapes.TreeRowShape] = []
    waiting = list(reversed(tops[:limit]))
    while waiting:
        outcome = waiting.pop()
        rows.append(
            {
                **_row(ctx, outcome),
                "depth": shown[outcome.id],
                "parts_done": counts.get(outcome.id, (0, 0))[0],
                "parts": counts.get(outcome.id, (0, 0))[1],
                "hidden": hidden.get(outcome.id, 0),
                "opens": bool(parts.get(outcome.id)),
            }
        )
        waiting += reversed(parts.get(outcome.id, ()))
    return {"rows": rows, "cut_off": len(tops) > limit or any(hidden.values())}


@query("outcome_tree.picture")
def picture(
    ctx: Context, *, company: str | None, root: str | None = None, ended: bool = False, limit: int
) -> shapes.DrawnTreeShape:
    """The upper levels of the same tree for a drawing, with the edges."""
    tree = page.body(ctx, company=company, root=root, ended=ended, limit=limit)
    rows: dict[str, shapes.TreeRowShape] = {row["id"]: row for row in tree["rows"]}
    names = {row["owner_id"]: lookup.agent_row(ctx, row["owner_id"]) for row in rows.values()}
    parts, blockers = outcome_walks.pairs(ctx, rows)
    here = ctx.tx.one(people.COMPANY)
    return {
        "company": here.name if here else "",
        "nodes": [
            {**row, "owner": owner.name if (owner := names[row["owner_id"]]) else ""}
            for row in rows.values()
        ],
        "parts": parts,
        "blockers": blockers,
        "cut_off": tree["cut_off"],
    }


@query("outcome_tree.states")
def states(ctx: Context, *, company: str | None, outcomes: Sequence[str]) -> dict[str, str]:
    """States of those outcomes that the caller may read, in a word each."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.COMPANY_READ, on="outcomes")
    may_read = reader(ctx)
    rows = {own: ctx.tx.one(statements.OUTCOME, outcome=own) for own in outcomes}
    return {
        own: state(ctx, outcome)
        for own, outcome in rows.items()
        if outcome is not None and may_read(outcome)
    }


def _tops(ctx: Context, root: str | None, ended: bool) -> list[Outcome]:
    if root is not None:
        top = require_named_outcome(ctx, Action.OUTCOME_READ, root)
        return [top]
    tops = ctx.tx.all(
        search.OUTCOMES_NEWEST,
        before=END_OF_IDS,
        status=OutcomeStatus.OPEN.value,
        any_status=ended,
        parts_too=False,
        blocked_too=True,
        least_reviews=0,
        any_title=True,
        title="",
        lower_title="",
        limit=MOST_ROWS + 1,
    )
    return tops[::-1]


def _row(ctx: Context, outcome: Outcome) -> shapes.StandingOutcomeShape:
    held = (
        ctx.tx.all(wait_statements.WAITS_OF_OUTCOME, outcome=outcome.id)
        if outcome.open_waits
        else []
    )
    return {
        **views.outcome(outcome, ctx.now),
        "state": state(ctx, outcome),
        "waits": [waits.view(ctx, wait) for wait in held[:3]],
        "judge": judge(ctx, outcome) if outcome.delegated else None,
    }


def state(ctx: Context, outcome: Outcome) -> str:
    """State of an outcome in a word: completed, closed, submitted, waiting, ongoing, deferred,
    blocked, split (its parts are to be done first) or ready."""
    if outcome.status is not OutcomeStatus.OPEN:
        return outcome.status.value
    if outcome.open_waits:
        handed_in = submissions.handed_in(ctx, outcome)
        return "submitted" if handed_in is not None else "waiting"
    if outcome.perpetual:
        return "ongoing"
    if outcome.open_prereqs:
        blockers = ctx.tx.all(statements.BLOCKERS, outcome=outcome.id)
        held_up = any(other.status is OutcomeStatus.OPEN for other in blockers)
        return "blocked" if held_up else "split"
    if outcome.deferred_until is not None and ctx.now < outcome.deferred_until:
        return "deferred"
    return "ready"


def judge(ctx: Context, outcome: Outcome) -> shapes.JudgeShape:
    """Judge of an outcome: the boss of its owner, an agent or a person."""
    owner = lookup.agent_row(ctx, AgentId(outcome.owner_id))
    agent, user = submissions.judge_of(outcome, owner) if owner is not None else (None, None)
    return {"agent_id": agent, "user_id": user}
