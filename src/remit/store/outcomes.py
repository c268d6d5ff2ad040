"""Statements about outcomes and the graph they form.

A parent depends on its children, an outcome on its blockers; together these are the dependencies,
and they have no cycle.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import (
    Boolean,
    and_,
    case,
    delete,
    exists,
    false,
    insert,
    literal,
    literal_column,
    not_,
    null,
    or_,
    select,
    true,
    union_all,
    update,
)
from sqlalchemy import bindparam as bind

from remit.ids import OutcomeId
from remit.model.outcome import Outcome
from remit.store.agents import BELOW_AGENT
from remit.store.statement import Statement, change, columns, into, scalar
from remit.store.tables import agents, outcome_blockers, outcome_edges, outcomes

_all = columns(outcomes, Outcome)

INSERT_OUTCOME = change(insert(outcomes))
OUTCOME = Statement(
    select(*_all).where(outcomes.c.company_id == bind("company"), outcomes.c.id == bind("outcome")),
    into(Outcome),
)
OUTCOME_ANYWHERE = Statement(select(*_all).where(outcomes.c.id == bind("outcome")), into(Outcome))
OUTCOMES_BY_PREFIX = Statement(
    select(*_all)
    .where(
        outcomes.c.company_id == bind("company"),
        outcomes.c.id >= bind("low"),
        outcomes.c.id < bind("high"),
    )
    .limit(20),
    into(Outcome),
)
#: A page of a company's outcomes; the filters that are not wanted are switched off.
OUTCOMES = Statement(
    select(*_all)
    .where(
        outcomes.c.company_id == bind("company"),
        outcomes.c.id > bind("after"),
        or_(bind("any_owner", type_=Boolean) == true(), outcomes.c.owner_id == bind("owner")),
        or_(bind("any_status", type_=Boolean) == true(), outcomes.c.status == bind("status")),
        or_(
            bind("parts_too", type_=Boolean) == true(),
            outcomes.c.id.not_in(select(outcome_edges.c.child_id)),
        ),
    )
    .order_by(outcomes.c.id)
    .limit(bind("limit")),
    into(Outcome),
)
# Constants of an indexed condition must be written out, or SQLite does not see that they match.
_ready = and_(
    outcomes.c.status == literal_column("'open'"),
    outcomes.c.open_prereqs == literal_column("0"),
    not_(outcomes.c.perpetual),
)
#: Somebody is to be hired for it, and the board has not decided yet: its owner waits.
_hired = agents.alias("hired")
PROMISED = exists().where(
    _hired.c.id == outcomes.c.id, _hired.c.status == literal_column("'pending_approval'")
)
#: What an agent can work on now, most pressing first.
ACTIONABLE = Statement(
    select(*_all)
    .where(
        outcomes.c.owner_id == bind("owner"),
        _ready,
        or_(outcomes.c.deferred_until.is_(None), outcomes.c.deferred_until <= bind("now")),
        not_(PROMISED),
    )
    .order_by(outcomes.c.important.desc(), outcomes.c.urgent.desc(), outcomes.c.id)
    .limit(bind("limit")),
    into(Outcome),
)
#: The outcome that is open while an agent has mail.
INBOX_OF = Statement(
    select(*_all).where(
        outcomes.c.owner_id == bind("owner"), outcomes.c.kind == literal_column("'inbox'")
    ),
    into(Outcome),
)
UPDATE_OUTCOME = change(
    update(outcomes)
    .where(outcomes.c.id == bind("outcome"), outcomes.c.version == bind("seen_version"))
    .values(
        title=bind("new_title"),
        urgent=bind("new_urgent"),
        important=bind("new_important"),
        deferred_until=bind("new_deferred_until"),
        look_at=bind("new_look_at"),
        look_for=bind("new_look_for"),
        version=bind("new_version"),
        updated_at=bind("now"),
    )
)
FINISH_OUTCOME = change(
    update(outcomes)
    .where(outcomes.c.id == bind("outcome"), outcomes.c.status == literal("open"))
    .values(
        look_at=null(),
        look_for=null(),
        open_waits=0,
        status=bind("new_status"),
        verdict=bind("new_verdict"),
        finished_at=bind("now"),
        updated_at=bind("now"),
        version=outcomes.c.version + 1,
    )
)
REOPEN_OUTCOME = change(
    update(outcomes)
    .where(outcomes.c.id == bind("outcome"), outcomes.c.status != literal("open"))
    .values(
        status=literal("open"),
        verdict=null(),
        finished_at=null(),
        updated_at=bind("now"),
        version=outcomes.c.version + 1,
    )
)
#: What a new owner takes over: nothing that the old one raised about it, and news of it, unless
#: the new owner took it itself (then `news` is 0).
_as_new = {
    "open_waits": literal(0),
    "news": bind("news"),
    "seen": literal(0),
    "reviews": literal(0),
    "look_at": outcomes.c.deferred_until,
    "look_for": case((outcomes.c.deferred_until.is_(None), null()), else_=literal("deferral")),
    "updated_at": bind("now"),
}
HAND_OVER = change(
    update(outcomes)
    .where(outcomes.c.id == bind("outcome"))
    .values(
        owner_id=bind("new_owner"),
        delegated=bind("new_delegated"),
        delegator_id=bind("new_delegator"),
        version=outcomes.c.version + 1,
        **_as_new,
    )
)

# Edges and blockers, with the counter that they keep

INSERT_EDGE = change(insert(outcome_edges))
DELETE_EDGE = change(
    delete(outcome_edges).where(
        outcome_edges.c.parent_id == bind("parent"), outcome_edges.c.child_id == bind("child")
    )
)
INSERT_BLOCKER = change(insert(outcome_blockers))
DELETE_BLOCKER = change(
    delete(outcome_blockers).where(
        outcome_blockers.c.outcome_id == bind("outcome"),
        outcome_blockers.c.blocker_id == bind("blocker"),
    )
)
COUNT_PREREQS = change(
    update(outcomes)
    .where(outcomes.c.id == bind("outcome"))
    .values(open_prereqs=outcomes.c.open_prereqs + bind("step"))
)
#: An outcome was finished (-1) or opened again (+1): its parents and what it blocks take note.
COUNT_FOR_PARENTS = change(
    update(outcomes)
    .where(
        outcomes.c.id.in_(
            select(outcome_edges.c.parent_id).where(outcome_edges.c.child_id == bind("outcome"))
        )
    )
    .values(open_prereqs=outcomes.c.open_prereqs + bind("step"))
)
COUNT_FOR_BLOCKED = change(
    update(outcomes)
    .where(
        outcomes.c.id.in_(
            select(outcome_blockers.c.outcome_id).where(
                outcome_blockers.c.blocker_id == bind("outcome")
            )
        )
    )
    .values(open_prereqs=outcomes.c.open_prereqs + bind("step"))
)
PARENTS = Statement(
    select(*_all)
    .join(outcome_edges, outcome_edges.c.parent_id == outcomes.c.id)
    .where(outcome_edges.c.child_id == bind("outcome"))
    .order_by(outcomes.c.id),
    into(Outcome),
)
CHILDREN = Statement(
    select(*_all)
    .join(outcome_edges, outcome_edges.c.child_id == outcomes.c.id)
    .where(outcome_edges.c.parent_id == bind("outcome"))
    .order_by(outcomes.c.id)
    .limit(bind("limit")),
    into(Outcome),
)
BLOCKERS = Statement(
    select(*_all)
    .join(outcome_blockers, outcome_blockers.c.blocker_id == outcomes.c.id)
    .where(outcome_blockers.c.outcome_id == bind("outcome"))
    .order_by(outcomes.c.id),
    into(Outcome),
)
# Walks


@dataclass(frozen=True, slots=True)
class Edge:
    parent_id: OutcomeId
    child_id: OutcomeId


_from = (
    select(outcomes.c.id)
    .where(outcomes.c.company_id == bind("company"), outcomes.c.id == bind("outcome"))
    .cte("needed", recursive=True)
)
# SQLite walks two tables in one recursion and uses an index on each; PostgreSQL allows only one
# recursive term, and plans a union of both well.
_needed_in_sqlite = _from.union(
    select(outcome_edges.c.child_id).where(outcome_edges.c.parent_id == _from.c.id),
    select(outcome_blockers.c.blocker_id).where(outcome_blockers.c.outcome_id == _from.c.id),
)
_dependency = union_all(
    select(outcome_edges.c.parent_id.label("whole"), outcome_edges.c.child_id.label("part")),
    select(outcome_blockers.c.outcome_id, outcome_blockers.c.blocker_id),
).subquery("dependency")
_needed = _from.union(select(_dependency.c.part).where(_dependency.c.whole == _from.c.id))
#: Whether one outcome depends on another, over any number of steps, or is the same.
DEPENDS_ON = Statement(
    select(_needed.c.id).where(_needed.c.id == bind("other")).limit(1),
    scalar,
    sqlite=select(_needed_in_sqlite.c.id).where(_needed_in_sqlite.c.id == bind("other")).limit(1),
)

_here = (
    select(outcomes.c.id)
    .where(outcomes.c.company_id == bind("company"), outcomes.c.id == bind("outcome"))
    .cte("above", recursive=True)
)
_above = _here.union(
    select(outcome_edges.c.parent_id).where(outcome_edges.c.child_id == _here.c.id)
)
#: The outcome and all its ancestors.
ANCESTORS = Statement(select(*_all).where(outcomes.c.id.in_(select(_above.c.id))), into(Outcome))
#: The edges among them.
ANCESTOR_EDGES = Statement(
    select(outcome_edges.c.parent_id, outcome_edges.c.child_id)
    .where(outcome_edges.c.child_id.in_(select(_above.c.id)))
    .order_by(outcome_edges.c.parent_id),
    into(Edge),
)

_mine = (
    select(outcomes.c.id)
    .where(outcomes.c.owner_id == bind("agent"), outcomes.c.delegated == true())
    .cte("why", recursive=True)
)
_why = _mine.union(select(outcome_edges.c.parent_id).where(outcome_edges.c.child_id == _mine.c.id))
#: Everything that is a reason for what was delegated to an agent.
REASONS_OF = Statement(select(_why.c.id), scalar)
#: Whether an outcome is one of these.
IS_REASON_FOR = Statement(select(_why.c.id).where(_why.c.id == bind("outcome")).limit(1), scalar)


@dataclass(frozen=True, slots=True)
class Depth:
    id: OutcomeId
    depth: int


_top = (
    select(outcomes.c.id, literal(0).label("depth"))
    .where(outcomes.c.company_id == bind("company"), outcomes.c.id == bind("outcome"))
    .cte("below", recursive=True)
)
_below = _top.union(
    select(outcome_edges.c.child_id, _top.c.depth + 1).where(
        outcome_edges.c.parent_id == _top.c.id, _top.c.depth < bind("depth")
    )
)
#: The outcome and its descendants down to a depth.
SUBTREE = Statement(
    select(*_all).where(outcomes.c.id.in_(select(_below.c.id))).limit(bind("limit")),
    into(Outcome),
)
#: What leads from one of them to another; from the deepest it would lead out.
SUBTREE_EDGES = Statement(
    select(outcome_edges.c.parent_id, outcome_edges.c.child_id)
    .where(outcome_edges.c.parent_id.in_(select(_below.c.id).where(_below.c.depth < bind("depth"))))
    .order_by(outcome_edges.c.child_id)
    .limit(bind("limit")),
    into(Edge),
)

# Without a depth each node is walked once, however many ways lead to it.
_whole = (
    select(outcomes.c.id)
    .where(outcomes.c.company_id == bind("company"), outcomes.c.id == bind("outcome"))
    .cte("whole", recursive=True)
)
_parts = _whole.union(
    select(outcome_edges.c.child_id).where(outcome_edges.c.parent_id == _whole.c.id)
)
#: The outcome and all its descendants.
DESCENDANTS = Statement(select(*_all).where(outcomes.c.id.in_(select(_parts.c.id))), into(Outcome))
#: All edges to them, also from outside.
EDGES_TO_DESCENDANTS = Statement(
    select(outcome_edges.c.parent_id, outcome_edges.c.child_id)
    .where(outcome_edges.c.child_id.in_(select(_parts.c.id)))
    .order_by(outcome_edges.c.child_id),
    into(Edge),
)

# What moves with a delegation: what lies below and is the delegator's own, except what is also
# part of somebody else's work, and whatever of the delegator's lies below that.

_child = outcomes.alias("child")
_root = select(outcomes.c.id).where(outcomes.c.id == bind("outcome")).cte("moving", recursive=True)
_moving = _root.union(
    select(_child.c.id)
    .join(outcome_edges, outcome_edges.c.child_id == _child.c.id)
    .where(
        outcome_edges.c.parent_id == _root.c.id,
        _child.c.owner_id == bind("delegator"),
        _child.c.delegated == false(),
    )
)
_foreign = outcomes.alias("foreign_parent")
_own = and_(
    _child.c.owner_id == bind("delegator"),
    _child.c.delegated == false(),
    _child.c.id != bind("outcome"),
)
_first_shared = (
    select(_child.c.id)
    .join(outcome_edges, outcome_edges.c.child_id == _child.c.id)
    .join(_foreign, _foreign.c.id == outcome_edges.c.parent_id)
    .where(_own, _foreign.c.owner_id != bind("delegator"))
    .cte("shared", recursive=True)
)
_shared = _first_shared.union(
    select(_child.c.id)
    .join(outcome_edges, outcome_edges.c.child_id == _child.c.id)
    .where(_own, outcome_edges.c.parent_id == _first_shared.c.id)
)
MOVE_SUBTREE = Statement(
    update(outcomes)
    .where(
        outcomes.c.id.in_(select(_moving.c.id)),
        outcomes.c.id.not_in(select(_shared.c.id)),
        outcomes.c.id != bind("outcome"),
    )
    .values(owner_id=bind("new_owner"), **_as_new)
    .returning(outcomes.c.id),
    scalar,
)

# What comes back with a reclaim

OWNED_BY = Statement(
    select(*_all)
    .where(outcomes.c.owner_id == bind("owner"), outcomes.c.id > bind("after"))
    .order_by(outcomes.c.id)
    .limit(bind("limit")),
    into(Outcome),
)
#: What an agent and everybody below it own.
OWNED_BELOW_AGENT = Statement(
    select(*_all).where(outcomes.c.owner_id.in_(select(BELOW_AGENT.c.id))), into(Outcome)
)
DELEGATED_TO = Statement(
    select(*_all).where(outcomes.c.owner_id == bind("owner"), outcomes.c.delegated == true()),
    into(Outcome),
)
REOWN_ALL = change(
    update(outcomes)
    .where(outcomes.c.owner_id == bind("owner"), outcomes.c.kind == literal("work"))
    .values(owner_id=bind("new_owner"), delegated=false(), delegator_id=null(), **_as_new)
)
REOWN_OPEN = change(
    update(outcomes)
    .where(
        outcomes.c.owner_id == bind("owner"),
        outcomes.c.status == literal("open"),
        outcomes.c.kind == literal("work"),
    )
    .values(owner_id=bind("new_owner"), delegated=false(), delegator_id=null(), **_as_new)
)
#: Of the outcome and its descendants, what is an owner's own.
REOWN_WITHIN = change(
    update(outcomes)
    .where(
        outcomes.c.id.in_(select(_parts.c.id)),
        outcomes.c.owner_id == bind("owner"),
        outcomes.c.delegated == false(),
    )
    .values(owner_id=bind("new_owner"), **_as_new)
)
DELEGATED_BY = Statement(
    select(*_all).where(outcomes.c.delegator_id == bind("agent"), outcomes.c.delegated == true()),
    into(Outcome),
)
CHANGE_DELEGATOR = change(
    update(outcomes)
    .where(outcomes.c.id == bind("outcome"))
    .values(delegator_id=bind("new_delegator"), updated_at=bind("now"))
)

#: The owners of what depends on an outcome and waits for nothing else.
OWNERS_OF_DEPENDENTS = Statement(
    select(outcomes.c.owner_id).where(
        outcomes.c.open_prereqs == literal(0),
        outcomes.c.status == literal("open"),
        or_(
            outcomes.c.id.in_(
                select(outcome_edges.c.parent_id).where(outcome_edges.c.child_id == bind("outcome"))
            ),
            outcomes.c.id.in_(
                select(outcome_blockers.c.outcome_id).where(
                    outcome_blockers.c.blocker_id == bind("outcome")
                )
            ),
        ),
    ),
    scalar,
)
