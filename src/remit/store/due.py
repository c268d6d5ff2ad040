"""Statements about what is due: what an agent is to be started for, and when it is looked at again.

The condition here is `standing` of `model/outcome.py`, asked of the database.
"""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    and_,
    case,
    exists,
    func,
    literal,
    literal_column,
    not_,
    null,
    or_,
    select,
    true,
    update,
)
from sqlalchemy import bindparam as bind

from remit.model.outcome import Outcome
from remit.store.outcomes import PROMISED
from remit.store.statement import Statement, change, columns, into, scalar
from remit.store.tables import outcome_blockers, outcome_edges, outcomes

_all = columns(outcomes, Outcome)
# Constants of an indexed condition must be written out, or SQLite does not see that they match.
_open = outcomes.c.status == literal_column("'open'")
_inbox = outcomes.c.kind == literal_column("'inbox'")
_actionable = and_(
    _open,
    outcomes.c.open_prereqs == literal_column("0"),
    not_(outcomes.c.perpetual),
    or_(outcomes.c.deferred_until.is_(None), outcomes.c.deferred_until <= bind("now")),
    not_(PROMISED),
)
_not_waiting = outcomes.c.open_waits == literal_column("0")
_news = outcomes.c.news > outcomes.c.seen
_dated = and_(_open, outcomes.c.look_at.is_not(None), outcomes.c.look_at <= bind("now"))

#: Due because of something new: each of the two has an index of its own.
DUE_BY_NEWS = and_(_open, or_(_news, _inbox), _actionable, or_(_inbox, _not_waiting))
DUE_BY_CLOCK = and_(_dated, _actionable, _not_waiting)
DUE = or_(DUE_BY_NEWS, DUE_BY_CLOCK)

#: Whether an agent is to be started for something.
IS_DUE = or_(
    exists().where(outcomes.c.owner_id == bind("agent"), DUE_BY_NEWS),
    exists().where(outcomes.c.owner_id == bind("agent"), DUE_BY_CLOCK),
)
#: What an agent is to be started for, most pressing first.
DUE_OF = Statement(
    select(*_all)
    .where(outcomes.c.owner_id == bind("agent"), DUE)
    .order_by(outcomes.c.important.desc(), outcomes.c.urgent.desc(), outcomes.c.id)
    .limit(bind("limit")),
    into(Outcome),
)
#: What an agent could work on and is not to be started for: it waits for nobody, and nothing
#: happened since it looked.
LEFT_ALONE = Statement(
    select(*_all)
    .where(
        outcomes.c.owner_id == bind("agent"),
        _actionable,
        _not_waiting,
        not_(_inbox),
        not_(_news),
    )
    .order_by(outcomes.c.id)
    .limit(bind("limit")),
    into(Outcome),
)
#: News about outcomes: their owner is to look at them, and whatever was tried before counts no
#: more. What was put off stays so.
_heard = {
    "news": bind("place"),
    "reviews": literal(0),
    "look_at": outcomes.c.deferred_until,
    "look_for": case((outcomes.c.deferred_until.is_(None), null()), else_=literal("deferral")),
}
NEWS = change(update(outcomes).where(outcomes.c.id == bind("outcome")).values(_heard))
#: The same for what depends on an outcome, unless whoever owns it did this.
NEWS_FOR_DEPENDENTS = change(
    update(outcomes)
    .where(
        _open,
        outcomes.c.owner_id != bind("actor"),
        outcomes.c.id.in_(
            select(outcome_edges.c.parent_id)
            .where(outcome_edges.c.child_id == bind("outcome"))
            .union_all(
                select(outcome_blockers.c.outcome_id).where(
                    outcome_blockers.c.blocker_id == bind("outcome")
                )
            )
        ),
    )
    .values(_heard)
)
#: An outcome moved by what its owner did: that is no news to the owner, and no standing still.
MOVED = change(update(outcomes).where(outcomes.c.id == bind("outcome")).values(reviews=0))
DEPENDENTS_MOVED = change(
    update(outcomes)
    .where(
        _open,
        outcomes.c.id.in_(
            select(outcome_edges.c.parent_id).where(outcome_edges.c.child_id == bind("outcome"))
        ),
    )
    .values(reviews=0)
)
#: A run that ended well has seen what it was shown.
SEE = change(
    update(outcomes)
    .where(
        outcomes.c.owner_id == bind("agent"),
        _open,
        _news,
        outcomes.c.news <= bind("shown"),
    )
    .values(seen=bind("shown"))
)
LOOK_AGAIN = change(
    update(outcomes)
    .where(outcomes.c.id == bind("outcome"))
    .values(look_at=bind("at"), look_for=bind("what_for"), reviews=bind("new_reviews"))
)
#: Everything that an agent could work on.
LOOK_NOW = change(
    update(outcomes)
    .where(outcomes.c.owner_id == bind("agent"), _actionable, not_(_inbox))
    .values(look_at=bind("now"), look_for=literal("review"))
)
#: When the clock brings something back next; what waits is brought back by who is awaited.
NEXT_LOOK = Statement(
    select(outcomes.c.look_at)
    .where(_open, outcomes.c.look_at.is_not(None), outcomes.c.look_at > bind("now"))
    .order_by(outcomes.c.look_at, outcomes.c.id)
    .limit(1),
    scalar,
)
NEXT_LOOK_OF = Statement(
    select(func.min(outcomes.c.look_at)).where(
        outcomes.c.owner_id == bind("agent"), _open, outcomes.c.look_at > bind("now")
    ),
    scalar,
)
LOOKED_AT = Statement(
    select(*_all)
    .where(outcomes.c.owner_id == bind("agent"), _open, outcomes.c.look_at == bind("at"))
    .order_by(outcomes.c.id)
    .limit(1),
    into(Outcome),
)
#: What does not move: it was looked at again and again, and whoever judges it was told.
STALE = Statement(
    select(*_all)
    .where(
        outcomes.c.company_id == bind("company"),
        outcomes.c.status == literal("open"),
        outcomes.c.reviews > bind("reviews"),
        or_(bind("any_owner", type_=Boolean) == true(), outcomes.c.owner_id == bind("owner")),
        outcomes.c.id > bind("after"),
    )
    .order_by(outcomes.c.id)
    .limit(bind("limit")),
    into(Outcome),
)
