"""Statements about what is due: what an agent is to be started for, and when it is looked at again.

The condition here is `standing` of `model/work/outcome.py`, asked of the database.
"""

import sqlalchemy as sa
from sqlalchemy import bindparam as bind

from remit.model.work.outcome import Outcome
from remit.store.engine.statement import Rows, Statement, change, if_asked, scalar
from remit.store.tables import outcomes
from remit.store.work.outcomes import BLOCKED_IDS, PARENT_IDS, PROMISED

_OUTCOMES = Rows(Outcome)
# Constants of an indexed condition must be written out, or SQLite does not see that they match.
_open = outcomes.c.status == sa.literal_column("'open'")
_inbox = outcomes.c.kind == sa.literal_column("'inbox'")
_actionable = sa.and_(
    _open,
    outcomes.c.open_prereqs == sa.literal_column("0"),
    sa.not_(outcomes.c.perpetual),
    sa.or_(outcomes.c.deferred_until.is_(None), outcomes.c.deferred_until <= bind("now")),
    sa.not_(PROMISED),
)
_not_waiting = outcomes.c.open_waits == sa.literal_column("0")
_news = outcomes.c.news > outcomes.c.seen
_dated = sa.and_(_open, outcomes.c.look_at.is_not(None), outcomes.c.look_at <= bind("now"))

#: Due because of something new: each of the two has an index of its own.
DUE_BY_NEWS = sa.and_(_open, sa.or_(_news, _inbox), _actionable, sa.or_(_inbox, _not_waiting))
DUE_BY_CLOCK = sa.and_(_dated, _actionable, _not_waiting)
DUE = sa.or_(DUE_BY_NEWS, DUE_BY_CLOCK)

#: Whether an agent is to be started for something.
IS_DUE = sa.or_(
    sa.exists().where(outcomes.c.owner_id == bind("agent"), DUE_BY_NEWS),
    sa.exists().where(outcomes.c.owner_id == bind("agent"), DUE_BY_CLOCK),
)
#: Outcomes that an agent is to be started for, most pressing first.
DUE_OF = _OUTCOMES.find(
    DUE,
    owner_id="agent",
    order=[outcomes.c.important.desc(), outcomes.c.urgent.desc(), outcomes.c.id],
    limit=bind("limit"),
)
#: Outcomes that an agent could work on and is not to be started for: it waits for nobody, and
#: nothing happened since it looked.
LEFT_ALONE = _OUTCOMES.find(
    _actionable,
    _not_waiting,
    sa.not_(_inbox),
    sa.not_(_news),
    owner_id="agent",
    limit=bind("limit"),
)
#: News about outcomes: their owner is to look at them, and whatever was tried before counts no
#: more. What was put off stays so.
_heard = {
    "news": bind("place"),
    "reviews": sa.literal(0),
    "look_at": outcomes.c.deferred_until,
    "look_for": sa.case(
        (outcomes.c.deferred_until.is_(None), sa.null()), else_=sa.literal("deferral")
    ),
}
#: Makes an outcome due: something happened to it.
NEWS = change(sa.update(outcomes).where(outcomes.c.id == bind("outcome")).values(_heard))
#: The same for what depends on an outcome, unless whoever owns it did this.
NEWS_FOR_DEPENDENTS = change(
    sa.update(outcomes)
    .where(
        _open,
        outcomes.c.owner_id != bind("actor"),
        outcomes.c.id.in_(PARENT_IDS.union_all(BLOCKED_IDS)),
    )
    .values(_heard)
)
#: An outcome moved by what its owner did: that is no news to the owner, and no standing still.
MOVED = _OUTCOMES.update(outcomes.c.id == bind("outcome"), reviews=0)
#: Forgets the fruitless reviews of the open parents of an outcome.
DEPENDENTS_MOVED = _OUTCOMES.update(_open, outcomes.c.id.in_(PARENT_IDS), reviews=0)
#: A run that ended well has seen what it was shown.
SEE = _OUTCOMES.update(
    outcomes.c.owner_id == bind("agent"),
    _open,
    _news,
    outcomes.c.news <= bind("shown"),
    seen=bind("shown"),
)
#: When an outcome is looked at next, why, and after how many reviews.
LOOK_AGAIN = _OUTCOMES.update(
    outcomes.c.id == bind("outcome"),
    reviews=bind("new_reviews"),
    look_at=bind("at"),
    look_for=bind("what_for"),
)
#: Everything that an agent could work on.
LOOK_NOW = _OUTCOMES.update(
    outcomes.c.owner_id == bind("agent"),
    _actionable,
    sa.not_(_inbox),
    look_at=bind("now"),
    look_for=sa.literal("review"),
)
#: When the clock brings something back next; what waits is brought back by who is awaited.
NEXT_LOOK = Statement(
    sa.select(outcomes.c.look_at)
    .where(_open, outcomes.c.look_at.is_not(None), outcomes.c.look_at > bind("now"))
    .order_by(outcomes.c.look_at, outcomes.c.id)
    .limit(1),
    scalar,
)
#: The next time at which an outcome of an agent is to be looked at.
NEXT_LOOK_OF = Statement(
    sa.select(sa.func.min(outcomes.c.look_at)).where(
        outcomes.c.owner_id == bind("agent"), _open, outcomes.c.look_at > bind("now")
    ),
    scalar,
)
#: An outcome of an agent that is to be looked at at that time.
LOOKED_AT = _OUTCOMES.find(_open, owner_id="agent", look_at="at", limit=1)
#: Outcomes that do not move: reviewed again and again, and their judges were told.
STALE = _OUTCOMES.after(
    outcomes.c.status == sa.literal("open"),
    outcomes.c.reviews > bind("reviews"),
    if_asked(outcomes.c.owner_id, "owner"),
    company_id="company",
)
