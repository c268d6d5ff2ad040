"""Statements about due outcomes: those that an agent is started for, and when it looks again.

The conditions are `remit.model.work.outcome.standing`, written in SQL. Each has an index in the
order of its statement, so that a start costs the same whatever its agent owns.
"""

import sqlalchemy as sa
from sqlalchemy import bindparam as bind

from remit.model.work.outcome import Outcome
from remit.store.engine.statement import (
    Rows,
    Statement,
    among,
    change,
    if_asked,
    into,
    scalar,
)
from remit.store.tables import agent_leases, outcomes
from remit.store.work.outcomes import BLOCKED_IDS, PARENT_IDS, PRESSING, PROMISED

_OUTCOMES = Rows(Outcome)
# Constants of an indexed condition must be written out, or SQLite does not see that they match.
_open = outcomes.c.status == sa.literal_column("'open'")
_inbox = outcomes.c.kind == sa.literal_column("'inbox'")
_ready = sa.and_(
    _open, outcomes.c.open_prereqs == sa.literal_column("0"), sa.not_(outcomes.c.perpetual)
)
_not_promised = sa.and_(
    sa.or_(outcomes.c.deferred_until.is_(None), outcomes.c.deferred_until <= bind("now")),
    sa.not_(PROMISED),
)
_not_waiting = outcomes.c.open_waits == sa.literal_column("0")
_news = outcomes.c.news > outcomes.c.seen
_came = sa.and_(outcomes.c.look_at.is_not(None), outcomes.c.look_at <= bind("now"))
_left_alone = sa.and_(
    _ready, _not_waiting, outcomes.c.kind == sa.literal_column("'work'"), sa.not_(_news)
)
#: Never reviewed since it moved, and without a time of its own.
_fresh = sa.and_(
    _left_alone, outcomes.c.reviews == sa.literal_column("0"), outcomes.c.look_at.is_(None)
)

#: Due because of news, and due because its date has come.
DUE_BY_NEWS = sa.and_(_ready, sa.or_(_news, _inbox), _not_promised, sa.or_(_inbox, _not_waiting))
DUE_BY_DATE = sa.and_(
    _ready,
    _came,
    outcomes.c.look_for == sa.literal_column("'deferral'"),
    _not_promised,
    _not_waiting,
)
#: Left alone, and never reviewed since it moved.
FRESH = sa.and_(_fresh, _not_promised)
_REVIEW_CAME = sa.and_(
    _left_alone, _came, outcomes.c.look_for == sa.literal_column("'review'"), _not_promised
)
_ANY_LEFT = sa.and_(_left_alone, _not_promised)
_for_all = agent_leases.c.look_for == sa.literal_column("'start'")


def _looks(
    lease: sa.FromClause,
) -> list[tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]]:
    """Each kind of work that a look of an agent at what it left alone concerns, and the condition
    on its lease: the time has come, and no wait of its desk pauses that."""
    came = sa.and_(
        lease.c.look_at.is_not(None), lease.c.look_at <= bind("now"), sa.not_(lease.c.rests)
    )
    for_all = lease.c.look_for == sa.literal_column("'start'")
    return [(FRESH, came), (_REVIEW_CAME, came), (_ANY_LEFT, sa.and_(came, for_all))]


def due_by_look(lease: sa.FromClause) -> list[sa.ColumnElement[bool]]:
    """The conditions, one by one because each has an index, under which an outcome is due because
    its owner looks at what it left alone."""
    return [sa.and_(came, due) for due, came in _looks(lease)]


_agent = bind("agent", type_=sa.String)
_own = agent_leases.alias("own_lease")
_by_itself = (DUE_BY_NEWS, DUE_BY_DATE)
#: Work that a look of a named agent concerns, and whether its time came; that is looked up once.
_by_look = [(due, sa.exists().where(_own.c.agent_id == _agent, came)) for due, came in _looks(_own)]
#: Whether any outcome of an agent is due.
IS_DUE = sa.or_(
    *(sa.exists().where(outcomes.c.owner_id == _agent, due) for due in _by_itself),
    *(
        sa.and_(came, sa.exists().where(outcomes.c.owner_id == _agent, due))
        for due, came in _by_look
    ),
)


def _first(*where: sa.ColumnElement[bool]) -> sa.Select[tuple[str]]:
    """The most pressing outcomes of an agent that meet a condition."""
    query = sa.select(outcomes.c.id).where(outcomes.c.owner_id == _agent, *where)
    first = query.order_by(*PRESSING).limit(bind("limit")).subquery()
    return sa.select(first.c.id)


def _firsts(*conditions: sa.ColumnElement[bool]) -> Statement[Outcome]:
    """The most pressing outcomes of an agent that meet one of the conditions."""
    return _OUTCOMES.find(
        outcomes.c.id.in_(sa.union_all(*map(_first, conditions))),
        order=PRESSING,
        limit=bind("limit"),
    )


#: The outcomes of an agent that are due by themselves, most pressing first.
DUE_OF = _firsts(*_by_itself)
#: The outcomes that a look of the agent concerns.
LOOKED_OF = _firsts(FRESH, _REVIEW_CAME)
#: The outcomes that it left alone and could work on.
LEFT_OF = _firsts(_ANY_LEFT)
#: Whether an agent left anything alone that its next look concerns.
FRESH_OF = _OUTCOMES.any(FRESH, owner_id="agent")
#: The most pressing outcomes that the next look of an agent concerns, whenever that is.
FIRST_FRESH_OF = _OUTCOMES.find(FRESH, owner_id="agent", order=PRESSING, limit=bind("limit"))
#: Whether an agent could work on anything that it left alone.
ANY_LEFT_OF = _OUTCOMES.any(_ANY_LEFT, owner_id="agent")
#: The outcomes among some that their owner could work on and left alone: without waits, without
#: news that it has not seen, and not its inbox.
LEFT_AMONG = among(
    _OUTCOMES.select(_ANY_LEFT).order_by(outcomes.c.id),
    outcomes.c.id,
    "ids",
    into(Outcome),
)
#: The time of the next review of an outcome of an agent.
NEXT_REVIEW_OF = Statement(
    sa.select(sa.func.min(outcomes.c.look_at)).where(
        outcomes.c.owner_id == bind("agent"),
        _ready,
        outcomes.c.look_at.is_not(None),
        outcomes.c.look_for == sa.literal_column("'review'"),
    ),
    scalar,
)
#: The values of an outcome with news: reviews are counted anew, and a deferral stays.
_heard = {
    "news": bind("place"),
    "reviews": sa.literal(0),
    "look_at": outcomes.c.deferred_until,
    "look_for": sa.case(
        (outcomes.c.deferred_until.is_(None), sa.null()), else_=sa.literal("deferral")
    ),
}
#: Makes an outcome due because of news about it.
NEWS = change(sa.update(outcomes).where(outcomes.c.id == bind("outcome")).values(_heard))
#: Makes the dependents of an outcome due, except those of the agent that caused the news.
NEWS_FOR_DEPENDENTS = change(
    sa.update(outcomes)
    .where(
        _open,
        outcomes.c.owner_id != bind("actor"),
        outcomes.c.id.in_(PARENT_IDS.union_all(BLOCKED_IDS)),
    )
    .values(_heard)
)
#: Resets the reviews of an outcome that its owner moved, which is no news to the owner.
MOVED = _OUTCOMES.update(outcomes.c.id == bind("outcome"), reviews=0)
#: Resets the reviews of the open parents of an outcome.
DEPENDENTS_MOVED = _OUTCOMES.update(_open, outcomes.c.id.in_(PARENT_IDS), reviews=0)
#: Marks news as seen up to the place in the record that a successful run was shown.
SEE = _OUTCOMES.update(
    outcomes.c.owner_id == bind("agent"),
    _open,
    _news,
    outcomes.c.news <= bind("shown"),
    seen=bind("shown"),
)
#: Sets the time, reason and number of an outcome's next review.
LOOK_AGAIN = _OUTCOMES.update(
    outcomes.c.id == bind("outcome"),
    reviews=bind("new_reviews"),
    look_at=bind("at"),
    look_for=bind("what_for"),
)
_next_date = (
    sa.select(outcomes.c.look_at.label("at"))
    .where(_open, outcomes.c.look_at.is_not(None), outcomes.c.look_at > bind("now"))
    .order_by(outcomes.c.look_at, outcomes.c.id)
    .limit(1)
    .subquery()
)
_next_look = (
    sa.select(agent_leases.c.look_at.label("at"))
    .where(agent_leases.c.look_at.is_not(None), agent_leases.c.look_at > bind("now"))
    .order_by(agent_leases.c.look_at)
    .limit(1)
    .subquery()
)
_next = sa.union_all(sa.select(_next_date.c.at), sa.select(_next_look.c.at)).subquery()
#: The next time at which the clock makes any outcome due; waits end without the clock.
NEXT_LOOK = Statement(sa.select(sa.func.min(_next.c.at)), scalar)
#: The next date of an outcome of an agent that was put off.
NEXT_DATE_OF = Statement(
    sa.select(sa.func.min(outcomes.c.look_at)).where(
        outcomes.c.owner_id == bind("agent"),
        _ready,
        outcomes.c.look_at.is_not(None),
        outcomes.c.look_at > bind("now"),
        outcomes.c.look_for == sa.literal_column("'deferral'"),
    ),
    scalar,
)
#: An outcome of an agent that becomes due at a given time.
LOOKED_AT = _OUTCOMES.find(_open, owner_id="agent", look_at="at", limit=1)
#: Stale outcomes: reviewed more often than a number without moving.
STALE = _OUTCOMES.after(
    outcomes.c.status == sa.literal("open"),
    outcomes.c.reviews > bind("reviews"),
    if_asked(outcomes.c.owner_id, "owner"),
    company_id="company",
)
