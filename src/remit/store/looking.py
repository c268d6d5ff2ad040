"""Statements for those who look: the newest first, by what they look for, and never too much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import (
    Boolean,
    ColumnElement,
    and_,
    func,
    literal,
    literal_column,
    not_,
    or_,
    select,
    true,
)
from sqlalchemy import bindparam as bind

from remit.clock import Micros
from remit.ids import MessageId
from remit.model.event import Event
from remit.model.grant import Grant
from remit.model.outcome import Outcome
from remit.store.outcomes import Edge
from remit.store.statement import Statement, columns, into
from remit.store.tables import (
    agents,
    deliveries,
    events,
    grants,
    messages,
    outcome_blockers,
    outcome_edges,
    outcomes,
    users,
)

ESCAPE: Final = "\\"


def containing(text: str) -> str:
    """A pattern for `LIKE` that finds the text as it stands."""
    for special in (ESCAPE, "%", "_"):
        text = text.replace(special, ESCAPE + special)
    return f"%{text}%"


def _on(name: str) -> ColumnElement[bool]:
    """A condition that is switched off."""
    return bind(name, type_=Boolean) == true()


_outcome = columns(outcomes, Outcome)
_wanted = (
    outcomes.c.company_id == bind("company"),
    outcomes.c.id < bind("before"),
    outcomes.c.kind == literal("work"),
    or_(_on("any_status"), outcomes.c.status == bind("status")),
    or_(_on("parts_too"), outcomes.c.id.not_in(select(outcome_edges.c.child_id))),
    or_(
        _on("blocked_too"),
        and_(
            outcomes.c.status == literal_column("'open'"),
            outcomes.c.open_prereqs == literal_column("0"),
            not_(outcomes.c.perpetual),
            or_(outcomes.c.deferred_until.is_(None), outcomes.c.deferred_until <= bind("now")),
        ),
    ),
    outcomes.c.reviews >= bind("least_reviews"),
    # SQLite knows the other case of English letters only, so that as it was typed is tried, too.
    or_(
        _on("any_title"),
        outcomes.c.title.like(bind("title"), escape=ESCAPE),
        func.lower(outcomes.c.title).like(bind("lower_title"), escape=ESCAPE),
    ),
)


def _newest(*more: ColumnElement[bool]) -> Statement[Outcome]:
    found = select(*_outcome).where(*_wanted, *more)
    return Statement(found.order_by(outcomes.c.id.desc()).limit(bind("limit")), into(Outcome))


OUTCOMES_NEWEST = _newest()
OUTCOMES_OF_NEWEST = _newest(outcomes.c.owner_id == bind("owner"))
#: What waits for an outcome without being above it.
WAITING_FOR = Statement(
    select(*_outcome)
    .join(outcome_blockers, outcome_blockers.c.outcome_id == outcomes.c.id)
    .where(outcome_blockers.c.blocker_id == bind("outcome"))
    .order_by(outcomes.c.id)
    .limit(bind("limit")),
    into(Outcome),
)
#: A page of what is drawn, oldest first.
DRAWN = Statement(
    select(*_outcome)
    .where(
        outcomes.c.company_id == bind("company"),
        outcomes.c.id > bind("after"),
        or_(_on("inboxes_too"), outcomes.c.kind == literal("work")),
        or_(_on("any_status"), outcomes.c.status == bind("status")),
    )
    .order_by(outcomes.c.id)
    .limit(bind("limit")),
    into(Outcome),
)
#: What connects outcomes whose ids lie between two others.
EDGES_AMONG = Statement(
    select(outcome_edges.c.parent_id, outcome_edges.c.child_id)
    .where(
        outcome_edges.c.company_id == bind("company"),
        outcome_edges.c.child_id.between(bind("first"), bind("last")),
    )
    .order_by(outcome_edges.c.child_id, outcome_edges.c.parent_id),
    into(Edge),
)
BLOCKERS_AMONG = Statement(
    select(outcome_blockers.c.blocker_id, outcome_blockers.c.outcome_id)
    .where(
        outcome_blockers.c.company_id == bind("company"),
        outcome_blockers.c.outcome_id.between(bind("first"), bind("last")),
    )
    .order_by(outcome_blockers.c.outcome_id, outcome_blockers.c.blocker_id),
    into(Edge),
)


@dataclass(frozen=True, slots=True)
class Letter:
    """What a list says about mail that waits."""

    message_id: MessageId
    subject: str
    deliver_at: Micros
    #: None when Remit wrote it.
    sender_name: str | None


#: Unread mail of a person in a company; questions are told of as such.
LETTERS_OF_USER = Statement(
    select(
        deliveries.c.message_id,
        messages.c.subject,
        deliveries.c.deliver_at,
        func.coalesce(messages.c.channel, agents.c.name, users.c.name),
    )
    .join(messages, messages.c.id == deliveries.c.message_id)
    .outerjoin(agents, agents.c.id == messages.c.sender_agent_id)
    .outerjoin(users, users.c.id == messages.c.sender_user_id)
    .where(
        deliveries.c.user_id == bind("user"),
        deliveries.c.company_id == bind("company"),
        deliveries.c.status == literal_column("'queued'"),
        messages.c.question_id.is_(None),
    )
    .order_by(deliveries.c.position.desc())
    .limit(bind("limit")),
    into(Letter),
)
#: A stretch of the record, of which only what is looked for is shown.
EVENTS_AMONG = Statement(
    select(*columns(events, Event))
    .where(
        events.c.company_id == bind("company"),
        events.c.seq < bind("before"),
        events.c.seq >= bind("first"),
        or_(
            _on("any_action"),
            events.c.action == bind("action"),
            events.c.action.like(bind("noun"), escape=ESCAPE),
        ),
        or_(
            _on("any_actor"),
            and_(events.c.actor_kind == bind("kind"), events.c.actor_id == bind("actor")),
        ),
        or_(_on("allowed_too"), not_(events.c.allowed)),
    )
    .order_by(events.c.seq.desc())
    .limit(bind("limit")),
    into(Event),
)
#: Who holds something on one resource.
HOLDING = Statement(
    select(*columns(grants, Grant))
    .where(
        grants.c.kind == bind("kind"),
        grants.c.resource_id == bind("resource"),
        grants.c.company_id == bind("company"),
        grants.c.revoked_at.is_(None),
        or_(grants.c.expires_at.is_(None), grants.c.expires_at > bind("now")),
    )
    .order_by(grants.c.id)
    .limit(bind("limit")),
    into(Grant),
)
