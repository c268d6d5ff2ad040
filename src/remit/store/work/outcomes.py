"""Statements about outcomes and the graph they form.

A parent depends on its children, an outcome on its blockers; together these are the dependencies,
and they have no cycle.
"""

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import bindparam as bind

from remit.ids import AgentId, OutcomeId
from remit.model.work.outcome import Outcome, OutcomeStatus
from remit.store.engine.statement import (
    Rows,
    Statement,
    among,
    change,
    delete_from,
    if_asked,
    into,
    new,
    scalar,
    unless,
    values_of,
)
from remit.store.organisation.agents import BELOW_AGENT
from remit.store.tables import agents, outcome_blockers, outcome_edges, outcomes

_OUTCOMES = Rows(Outcome)

#: The company's outcome of that id.
OUTCOME = _OUTCOMES.one(company_id="company", id="outcome")
#: One outcome by id, of any company.
OUTCOME_ANYWHERE = _OUTCOMES.one(id="outcome")
#: The company's outcomes whose ids lie between two.
OUTCOMES_BY_PREFIX = _OUTCOMES.between(company_id="company", limit=20)
#: A page of a company's outcomes, by owner, status and place in the graph, if asked.
OUTCOMES = _OUTCOMES.after(
    if_asked(outcomes.c.owner_id, "owner"),
    if_asked(outcomes.c.status, "status"),
    unless("parts_too", outcomes.c.id.not_in(sa.select(outcome_edges.c.child_id))),
    company_id="company",
)
# Constants are written out, so that SQLite uses the partial indexes.
_ready = sa.and_(
    outcomes.c.status == sa.literal_column("'open'"),
    outcomes.c.open_prereqs == sa.literal_column("0"),
    sa.not_(outcomes.c.perpetual),
)
#: A condition: the hiring of an agent for the outcome awaits approval, and its owner waits.
_hired = agents.alias("hired")
PROMISED = sa.exists().where(
    _hired.c.id == outcomes.c.id, _hired.c.status == sa.literal_column("'pending_approval'")
)
#: The most pressing first: what is important before what is urgent, the oldest among equals.
PRESSING = (outcomes.c.important.desc(), outcomes.c.urgent.desc(), outcomes.c.id)
#: Outcomes that an agent can work on now, most pressing first.
ACTIONABLE = _OUTCOMES.find(
    _ready,
    sa.or_(outcomes.c.deferred_until.is_(None), outcomes.c.deferred_until <= bind("now")),
    sa.not_(PROMISED),
    owner_id="owner",
    order=PRESSING,
    limit=bind("limit"),
)
#: The outcomes among some that their owners can work on now.
ACTIONABLE_AMONG = among(
    _OUTCOMES.select(
        _ready,
        sa.or_(outcomes.c.deferred_until.is_(None), outcomes.c.deferred_until <= bind("now")),
        sa.not_(PROMISED),
    ).order_by(outcomes.c.id),
    outcomes.c.id,
    "ids",
    into(Outcome),
)
#: The inbox of an agent: an outcome that is open while the agent has mail.
INBOX_OF = _OUTCOMES.one(outcomes.c.kind == sa.literal_column("'inbox'"), owner_id="owner")
#: Puts an inbox off until a time, or not.
PUT_OFF_INBOX = _OUTCOMES.update(
    outcomes.c.id == bind("outcome"),
    deferred_until=bind("until"),
    look_at=bind("until"),
    look_for=sa.case(
        (sa.cast(bind("until"), sa.BigInteger).is_(None), sa.null()), else_="deferral"
    ),
)
#: Stores title, marks and times of an outcome, if it still is at the version that was seen.
UPDATE_OUTCOME = _OUTCOMES.update(
    outcomes.c.id == bind("outcome"),
    outcomes.c.version == bind("seen_version"),
    **new("title", "urgent", "important", "deferred_until", "look_at", "look_for", "version"),
    updated_at=bind("now"),
)
#: Ends an open outcome with a verdict.
FINISH_OUTCOME = _OUTCOMES.update(
    outcomes.c.id == bind("outcome"),
    outcomes.c.status == sa.literal("open"),
    **new("status", "verdict"),
    look_at=sa.null(),
    look_for=sa.null(),
    open_waits=0,
    finished_at=bind("now"),
    updated_at=bind("now"),
    version=outcomes.c.version + 1,
)
#: Opens a finished outcome again.
REOPEN_OUTCOME = _OUTCOMES.update(
    outcomes.c.id == bind("outcome"),
    outcomes.c.status != sa.literal("open"),
    status=sa.literal("open"),
    verdict=sa.null(),
    finished_at=sa.null(),
    updated_at=bind("now"),
    version=outcomes.c.version + 1,
)
#: The state for a new owner: the old owner's requests are gone, and the outcome is news, unless
#: the new owner took it itself (then `news` is 0).
_as_new = {
    "open_waits": sa.literal(0),
    "news": bind("news"),
    "seen": sa.literal(0),
    "reviews": sa.literal(0),
    "look_at": outcomes.c.deferred_until,
    "look_for": sa.case(
        (outcomes.c.deferred_until.is_(None), sa.null()), else_=sa.literal("deferral")
    ),
    "updated_at": bind("now"),
}
#: Sets another owner of an outcome, and its delegator.
HAND_OVER = _OUTCOMES.update(
    outcomes.c.id == bind("outcome"),
    delegated=bind("new_delegated"),
    owner_id=bind("new_owner"),
    delegator_id=bind("new_delegator"),
    version=outcomes.c.version + 1,
    **_as_new,
)

# Edges and blockers, and the counter of open prerequisites

#: Makes an outcome a part of another.
INSERT_EDGE = change(sa.insert(outcome_edges))
#: Removes an outcome from the parts of another.
DELETE_EDGE = delete_from(outcome_edges, parent_id="parent", child_id="child")
#: Makes an outcome wait for another.
INSERT_BLOCKER = change(sa.insert(outcome_blockers))
#: Removes a blocker from an outcome.
DELETE_BLOCKER = delete_from(outcome_blockers, outcome_id="outcome", blocker_id="blocker")
#: Adds to the number of open prerequisites of an outcome.
COUNT_PREREQS = _OUTCOMES.update(
    outcomes.c.id == bind("outcome"), open_prereqs=outcomes.c.open_prereqs + bind("step")
)
#: Adds one open prerequisite to an outcome, if the outcome is open.
COUNT_PREREQ_IF_OPEN = _OUTCOMES.update(
    outcomes.c.id == bind("outcome"),
    outcomes.c.status == sa.literal("open"),
    open_prereqs=outcomes.c.open_prereqs + 1,
)
#: Adds one open prerequisite to an outcome that got a new part, and resets its reviews.
COUNT_NEW_PART = _OUTCOMES.update(
    outcomes.c.id == bind("outcome"), open_prereqs=outcomes.c.open_prereqs + 1, reviews=0
)
#: The parents of an outcome, for conditions of other statements.
PARENT_IDS = sa.select(outcome_edges.c.parent_id).where(outcome_edges.c.child_id == bind("outcome"))
#: The outcomes that wait for an outcome, for conditions of other statements.
BLOCKED_IDS = sa.select(outcome_blockers.c.outcome_id).where(
    outcome_blockers.c.blocker_id == bind("outcome")
)
#: Adds to the number of open prerequisites of an outcome's parents: -1 when the outcome was
#: finished, +1 when it was reopened.
COUNT_FOR_PARENTS = _OUTCOMES.update(
    outcomes.c.id.in_(PARENT_IDS), open_prereqs=outcomes.c.open_prereqs + bind("step")
)
#: Adds to the number of open prerequisites of all that wait for an outcome.
COUNT_FOR_BLOCKED = _OUTCOMES.update(
    outcomes.c.id.in_(BLOCKED_IDS), open_prereqs=outcomes.c.open_prereqs + bind("step")
)
#: The parents of an outcome.
PARENTS = _OUTCOMES.find(
    outcome_edges.c.child_id == bind("outcome"),
    join=(outcome_edges, outcome_edges.c.parent_id == outcomes.c.id),
)
#: The parts of an outcome.
CHILDREN = _OUTCOMES.find(
    outcome_edges.c.parent_id == bind("outcome"),
    join=(outcome_edges, outcome_edges.c.child_id == outcomes.c.id),
    limit=bind("limit"),
)
#: The blockers of an outcome.
BLOCKERS = _OUTCOMES.find(
    outcome_blockers.c.outcome_id == bind("outcome"),
    join=(outcome_blockers, outcome_blockers.c.blocker_id == outcomes.c.id),
)
#: How many open outcomes that are to end an outcome has as parts or blockers.
COUNT_ENDING_PREREQS = _OUTCOMES.count(
    outcomes.c.status == sa.literal("open"),
    outcomes.c.perpetual == sa.false(),
    sa.or_(
        outcomes.c.id.in_(
            sa.select(outcome_edges.c.child_id).where(outcome_edges.c.parent_id == bind("outcome"))
        ),
        outcomes.c.id.in_(
            sa.select(outcome_blockers.c.blocker_id).where(
                outcome_blockers.c.outcome_id == bind("outcome")
            )
        ),
    ),
)
# Walks


@dataclass(frozen=True, slots=True)
class Edge:
    parent_id: OutcomeId
    child_id: OutcomeId


@dataclass(frozen=True, slots=True)
class Part:
    """The fields of an outcome that walks through thousands of them need."""

    id: OutcomeId
    owner_id: AgentId
    delegated: bool
    delegator_id: AgentId | None
    status: OutcomeStatus
    parent_id: OutcomeId


_EDGES = Rows(Edge, "child_id", table=outcome_edges)
_outcome = sa.select(outcomes.c.id).where(*_OUTCOMES.same(company_id="company", id="outcome"))
_from = _outcome.cte("needed", recursive=True)
# SQLite walks two tables in one recursion and uses an index on each; PostgreSQL allows only one
# recursive term, and plans a union of both well.
_needed_in_sqlite = _from.union(
    sa.select(outcome_edges.c.child_id).where(outcome_edges.c.parent_id == _from.c.id),
    sa.select(outcome_blockers.c.blocker_id).where(outcome_blockers.c.outcome_id == _from.c.id),
)
_dependency = sa.union_all(
    sa.select(outcome_edges.c.parent_id.label("whole"), outcome_edges.c.child_id.label("part")),
    sa.select(outcome_blockers.c.outcome_id, outcome_blockers.c.blocker_id),
).subquery("dependency")
_needed = _from.union(sa.select(_dependency.c.part).where(_dependency.c.whole == _from.c.id))
#: Whether one outcome depends on another, over any number of steps, or is the same.
DEPENDS_ON = Statement(
    sa.select(_needed.c.id).where(_needed.c.id == bind("other")).limit(1),
    scalar,
    sqlite=sa.select(_needed_in_sqlite.c.id)
    .where(_needed_in_sqlite.c.id == bind("other"))
    .limit(1),
)


def _walk(
    start: sa.Select[Any], name: str, nearer: sa.Column[str], farther: sa.Column[str]
) -> sa.CTE:
    """Outcomes to begin with, and all that edges lead to from them. Each is walked once, however
    many ways lead to it."""
    seed = start.cte(name, recursive=True)
    return seed.union(sa.select(farther).where(nearer == seed.c.id))


_UP = (outcome_edges.c.child_id, outcome_edges.c.parent_id)
_DOWN = (outcome_edges.c.parent_id, outcome_edges.c.child_id)
_above = _walk(_outcome, "above", *_UP)
#: The outcome and all its ancestors.
ANCESTORS = _OUTCOMES.find(outcomes.c.id.in_(sa.select(_above.c.id)), order=())
#: The edges among an outcome and its ancestors.
ANCESTOR_EDGES = _EDGES.find(
    outcome_edges.c.child_id.in_(sa.select(_above.c.id)), order=[outcome_edges.c.parent_id]
)

_mine = sa.select(outcomes.c.id).where(
    outcomes.c.owner_id == bind("agent"), outcomes.c.delegated == sa.true()
)
_why = _walk(_mine, "why", *_UP)
#: The outcomes delegated to an agent, and all their ancestors, which are their reasons.
REASONS_OF = values_of(_why.c.id)
#: Whether an outcome is one of the reasons that `REASONS_OF` finds.
IS_REASON_FOR = values_of(_why.c.id, id="outcome", limit=1)


_top = _outcome.add_columns(sa.literal(0).label("depth")).cte("below", recursive=True)
_below = _top.union(
    sa.select(outcome_edges.c.child_id, _top.c.depth + 1).where(
        outcome_edges.c.parent_id == _top.c.id, _top.c.depth < bind("depth")
    )
)
#: The outcome and its descendants down to a depth.
SUBTREE = _OUTCOMES.find(outcomes.c.id.in_(sa.select(_below.c.id)), order=(), limit=bind("limit"))
#: The edges within a subtree; those from its deepest level would lead out of it.
SUBTREE_EDGES = _EDGES.find(
    outcome_edges.c.parent_id.in_(sa.select(_below.c.id).where(_below.c.depth < bind("depth"))),
    limit=bind("limit"),
)

_parts = _walk(_outcome, "whole", *_DOWN)
_is_part = outcomes.c.id.in_(sa.select(_parts.c.id))
#: The outcome and all its descendants.
DESCENDANTS = _OUTCOMES.find(_is_part, order=())
#: A page of the outcome and all its descendants.
OUTCOMES_BELOW = _OUTCOMES.after(_is_part)
#: The outcome and its descendants, each once for each of its parents, with owner and delegator.
PARTS = Statement(
    sa.select(
        outcomes.c.id,
        outcomes.c.owner_id,
        outcomes.c.delegated,
        outcomes.c.delegator_id,
        outcomes.c.status,
        outcome_edges.c.parent_id,
    )
    .join(outcome_edges, outcome_edges.c.child_id == outcomes.c.id)
    .where(outcome_edges.c.child_id.in_(sa.select(_parts.c.id))),
    into(Part),
)
#: All edges to the outcome and its descendants, also from outside.
EDGES_TO_DESCENDANTS = _EDGES.find(outcome_edges.c.child_id.in_(sa.select(_parts.c.id)))

# Outcomes that move with a delegation: descendants that the delegator owns, except those that are
# also part of another owner's work, and the delegator's outcomes below these.

_child = outcomes.alias("child")
_root = (
    sa.select(outcomes.c.id).where(outcomes.c.id == bind("outcome")).cte("moving", recursive=True)
)
_moving = _root.union(
    sa.select(_child.c.id)
    .join(outcome_edges, outcome_edges.c.child_id == _child.c.id)
    .where(
        outcome_edges.c.parent_id == _root.c.id,
        _child.c.owner_id == bind("delegator"),
        _child.c.delegated == sa.false(),
    )
)
_foreign = outcomes.alias("foreign_parent")
_own = sa.and_(
    _child.c.owner_id == bind("delegator"),
    _child.c.delegated == sa.false(),
    _child.c.id != bind("outcome"),
)
_first_shared = (
    sa.select(_child.c.id)
    .join(outcome_edges, outcome_edges.c.child_id == _child.c.id)
    .join(_foreign, _foreign.c.id == outcome_edges.c.parent_id)
    .where(_own, _foreign.c.owner_id != bind("delegator"))
    .cte("shared", recursive=True)
)
_shared = _first_shared.union(
    sa.select(_child.c.id)
    .join(outcome_edges, outcome_edges.c.child_id == _child.c.id)
    .where(_own, outcome_edges.c.parent_id == _first_shared.c.id)
)
#: Sets another owner of the descendants that move with a delegation; returns their ids.
MOVE_SUBTREE = Statement(
    sa.update(outcomes)
    .where(
        outcomes.c.id.in_(sa.select(_moving.c.id)),
        outcomes.c.id.not_in(sa.select(_shared.c.id)),
        outcomes.c.id != bind("outcome"),
    )
    .values(owner_id=bind("new_owner"), **_as_new)
    .returning(outcomes.c.id),
    scalar,
)

# Outcomes that return to another owner

#: A page of an agent's outcomes.
OWNED_BY = _OUTCOMES.after(owner_id="owner")
#: The outcomes of an agent and everybody below it.
OWNED_BELOW_AGENT = _OUTCOMES.find(outcomes.c.owner_id.in_(sa.select(BELOW_AGENT.c.id)), order=())
#: The outcomes that were delegated to an agent.
DELEGATED_TO = _OUTCOMES.find(outcomes.c.delegated == sa.true(), owner_id="owner", order=())
_work_of = (outcomes.c.owner_id == bind("owner"), outcomes.c.kind == sa.literal("work"))
_taken_over: dict[str, Any] = {
    "owner_id": bind("new_owner"),
    "delegated": sa.false(),
    "delegator_id": sa.null(),
    **_as_new,
}
#: Sets another owner of all work of an agent, finished or not.
REOWN_ALL = _OUTCOMES.update(*_work_of, **_taken_over)
#: Sets another owner of all open work of an agent.
REOWN_OPEN = _OUTCOMES.update(*_work_of, outcomes.c.status == sa.literal("open"), **_taken_over)
#: Passes the undelegated outcomes of one owner, among an outcome and its descendants, to another.
REOWN_WITHIN = _OUTCOMES.update(
    _is_part,
    outcomes.c.owner_id == bind("owner"),
    outcomes.c.delegated == sa.false(),
    owner_id=bind("new_owner"),
    **_as_new,
)
#: The outcomes that an agent delegated.
DELEGATED_BY = _OUTCOMES.find(outcomes.c.delegated == sa.true(), delegator_id="agent", order=())
#: Sets another delegator of an outcome.
CHANGE_DELEGATOR = _OUTCOMES.update(
    outcomes.c.id == bind("outcome"), delegator_id=bind("new_delegator"), updated_at=bind("now")
)

#: The owners of an outcome's dependents that wait for nothing else.
OWNERS_OF_DEPENDENTS = values_of(
    outcomes.c.owner_id,
    outcomes.c.open_prereqs == sa.literal(0),
    outcomes.c.status == sa.literal("open"),
    sa.or_(outcomes.c.id.in_(PARENT_IDS), outcomes.c.id.in_(BLOCKED_IDS)),
)
