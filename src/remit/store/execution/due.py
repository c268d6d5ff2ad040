"""Statements about due outcomes: those that an agent is started for, and the time of each review.

The conditions are `standing` of `model/work/outcome.py`, written in SQL.
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

#: Due because of news, and due because of the clock; each condition has its own index.
DUE_BY_NEWS = sa.and_(_open, sa.or_(_news, _inbox), _actionable, sa.or_(_inbox, _not_waiting))
DUE_BY_CLOCK = sa.and_(_dated, _actionable, _not_waiting)
DUE = sa.or_(DUE_BY_NEWS, DUE_BY_CLOCK)

#: Whether any outcome of an agent is due.
IS_DUE = sa.or_(
    sa.exists().where(outcomes.c.owner_id == bind("agent"), DUE_BY_NEWS),
    sa.exists().where(outcomes.c.owner_id == bind("agent"), DUE_BY_CLOCK),
)
#: The due outcomes of an agent, most pressing first.
DUE_OF = _OUTCOMES.find(
    DUE,
    owner_id="agent",
    order=[outcomes.c.important.desc(), outcomes.c.urgent.desc(), outcomes.c.id],
    limit=bind("limit"),
)
#: Outcomes that an agent could work on and that are not due by news: without waits, without news
#: that the agent has not seen, and not its inbox.
LEFT_ALONE = _OUTCOMES.find(
    _actionable,
    _not_waiting,
    sa.not_(_inbox),
    sa.not_(_news),
    owner_id="agent",
    limit=bind("limit"),
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
#: Makes every outcome that an agent could work on due for a review now, except its inbox.
LOOK_NOW = _OUTCOMES.update(
    outcomes.c.owner_id == bind("agent"),
    _actionable,
    sa.not_(_inbox),
    look_at=bind("now"),
    look_for=sa.literal("review"),
)
#: The next time at which the clock makes any outcome due; waits end without the clock.
NEXT_LOOK = Statement(
    sa.select(outcomes.c.look_at)
    .where(_open, outcomes.c.look_at.is_not(None), outcomes.c.look_at > bind("now"))
    .order_by(outcomes.c.look_at, outcomes.c.id)
    .limit(1),
    scalar,
)
#: The next time at which the clock makes an outcome of an agent due.
NEXT_LOOK_OF = Statement(
    sa.select(sa.func.min(outcomes.c.look_at)).where(
        outcomes.c.owner_id == bind("agent"), _open, outcomes.c.look_at > bind("now")
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
