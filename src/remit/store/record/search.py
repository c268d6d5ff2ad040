"""Statements for searches: newest first, filtered, and bounded."""

from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import bindparam as bind

from remit.clock import Micros
from remit.ids import MessageId
from remit.model.event import Event
from remit.model.execution.run import Run
from remit.model.messaging.mail import Message
from remit.model.organisation.agent import Agent
from remit.model.organisation.grant import Grant
from remit.model.work.outcome import Outcome
from remit.store.engine.statement import Rows, Statement, if_asked, into, unless
from remit.store.organisation.grants import LIVE
from remit.store.record.overview import scoped
from remit.store.tables import (
    agents,
    deliveries,
    events,
    files,
    messages,
    outcome_blockers,
    outcome_edges,
    outcomes,
    runs,
    users,
)
from remit.store.work.outcomes import Edge

ESCAPE: Final = "\\"


def containing(text: str) -> str:
    """Return a pattern for `LIKE` that finds a text literally."""
    for special in (ESCAPE, "%", "_"):
        text = text.replace(special, ESCAPE + special)
    return f"%{text}%"


_OUTCOMES = Rows(Outcome)
_wanted = (
    outcomes.c.kind == sa.literal("work"),
    if_asked(outcomes.c.status, "status"),
    unless("parts_too", outcomes.c.id.not_in(sa.select(outcome_edges.c.child_id))),
    unless(
        "blocked_too",
        sa.and_(
            outcomes.c.status == sa.literal_column("'open'"),
            outcomes.c.open_prereqs == sa.literal_column("0"),
            sa.not_(outcomes.c.perpetual),
            sa.or_(outcomes.c.deferred_until.is_(None), outcomes.c.deferred_until <= bind("now")),
        ),
    ),
    outcomes.c.reviews >= bind("least_reviews"),
    # SQLite folds the case of ASCII letters only, so the text is also tried as it was typed.
    unless(
        "any_title",
        outcomes.c.title.like(bind("title"), escape=ESCAPE),
        sa.func.lower(outcomes.c.title).like(bind("lower_title"), escape=ESCAPE),
    ),
)


#: A company's outcomes that match, newest first.
OUTCOMES_NEWEST = _OUTCOMES.before(*_wanted, company_id="company")
#: An agent's outcomes that match, newest first.
OUTCOMES_OF_NEWEST = _OUTCOMES.before(*_wanted, company_id="company", owner_id="owner")
#: Outcomes that wait for an outcome without being above it.
WAITING_FOR = _OUTCOMES.find(
    outcome_blockers.c.blocker_id == bind("outcome"),
    join=(outcome_blockers, outcome_blockers.c.outcome_id == outcomes.c.id),
    limit=bind("limit"),
)
#: A page of a company's outcomes for the graph, oldest first.
DRAWN = _OUTCOMES.after(
    unless("inboxes_too", outcomes.c.kind == sa.literal("work")),
    if_asked(outcomes.c.status, "status"),
    company_id="company",
)


def _among(above: sa.Column[str], below: sa.Column[str]) -> Statement[Edge]:
    query = sa.select(above, below).where(
        below.table.c.company_id == bind("company"), below.between(bind("first"), bind("last"))
    )
    return Statement(query.order_by(below, above), into(Edge))


#: The edges between outcomes whose ids lie between two others.
EDGES_AMONG = _among(outcome_edges.c.parent_id, outcome_edges.c.child_id)
#: The blockers among outcomes whose ids lie between two.
BLOCKERS_AMONG = _among(outcome_blockers.c.blocker_id, outcome_blockers.c.outcome_id)


@dataclass(frozen=True, slots=True)
class Letter:
    """A waiting letter as a list shows it."""

    message_id: MessageId
    subject: str
    deliver_at: Micros
    #: None for a message that Remit wrote.
    sender_name: str | None


#: Unread mail of a person in a company, without questions, which are listed on their own.
LETTERS_OF_USER = Statement(
    sa.select(
        deliveries.c.message_id,
        messages.c.subject,
        deliveries.c.deliver_at,
        sa.func.coalesce(messages.c.channel, agents.c.name, users.c.name),
    )
    .join(messages, messages.c.id == deliveries.c.message_id)
    .outerjoin(agents, agents.c.id == messages.c.sender_agent_id)
    .outerjoin(users, users.c.id == messages.c.sender_user_id)
    .where(
        deliveries.c.user_id == bind("user"),
        deliveries.c.company_id == bind("company"),
        deliveries.c.status == sa.literal_column("'queued'"),
        messages.c.question_id.is_(None),
    )
    .order_by(deliveries.c.position.desc())
    .limit(bind("limit")),
    into(Letter),
)


def _with_words(table: sa.Table, name: str, kind: str = "") -> sa.Select[Any]:
    """Select the resources of a company whose names contain the words."""
    own = sa.literal(f"{kind}:").concat(table.c.id) if kind else table.c.id
    return sa.select(own).where(
        table.c.company_id == bind("company"),
        sa.func.lower(table.c[name]).like(bind("lower_words"), escape=ESCAPE),
    )


#: A condition: an event's details or action, or the name of its actor or resource, has the words.
_says = sa.or_(
    sa.and_(
        # Events of reorganisations contain settings of adapters, which a search must not reveal.
        events.c.action.not_like(sa.literal("org.%")),
        sa.or_(
            events.c.details.like(bind("words"), escape=ESCAPE),
            sa.func.lower(events.c.details).like(bind("lower_details"), escape=ESCAPE),
        ),
    ),
    events.c.action.like(bind("lower_words"), escape=ESCAPE),
    events.c.actor_id.in_(_with_words(agents, "name")),
    events.c.resource.in_(_with_words(agents, "name", "agent")),
    events.c.resource.in_(_with_words(outcomes, "title", "outcome")),
    events.c.resource.in_(_with_words(files, "description", "kb_file")),
)
#: A page of a range of the record, filtered by action, actor, refusal or words, newest first.
EVENTS_AMONG = Rows(Event, "seq").before(
    events.c.seq >= bind("first"),
    unless(
        "any_action",
        events.c.action == bind("action"),
        events.c.action.like(bind("noun"), escape=ESCAPE),
    ),
    unless(
        "any_actor",
        sa.and_(events.c.actor_kind == bind("kind"), events.c.actor_id == bind("actor")),
    ),
    unless("allowed_too", sa.not_(events.c.allowed)),
    unless("any_words", _says),
    company_id="company",
)
#: The live grants on one resource.
HOLDING = Rows(Grant).find(
    LIVE, kind="kind", resource_id="resource", company_id="company", limit=bind("limit")
)


# Searches by name


def _called(*texts: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    """A condition: a text contains the words, as typed or with the case of ASCII letters folded."""
    return sa.or_(
        *(text.like(bind("words"), escape=ESCAPE) for text in texts),
        *(sa.func.lower(text).like(bind("lower"), escape=ESCAPE) for text in texts),
    )


#: Agents of a company, or of a part of it, by name, title or role; newest first.
AGENTS_CALLED = Rows(Agent).find(
    _called(agents.c.name, agents.c.title, agents.c.role),
    agents.c.status != sa.literal("terminated"),
    scoped(agents.c.id),
    company_id="company",
    order=[agents.c.id.desc()],
    limit=bind("limit"),
)
#: Outcomes by title, newest first.
OUTCOMES_CALLED = _OUTCOMES.find(
    _called(outcomes.c.title),
    outcomes.c.kind == sa.literal("work"),
    company_id="company",
    order=[outcomes.c.id.desc()],
    limit=bind("limit"),
)
#: Letters by subject, newest first.
MESSAGES_CALLED = Rows(Message).find(
    _called(messages.c.subject),
    company_id="company",
    order=[messages.c.id.desc()],
    limit=bind("limit"),
)
#: The newest runs of a company, to which the search for words is limited.
_lately = (
    sa.select(runs.c.id)
    .where(runs.c.company_id == bind("company"))
    .order_by(runs.c.id.desc())
    .limit(sa.literal_column("2000"))
    .subquery("lately")
)
#: Recent runs by their reason, error or agent's name, newest first.
RUNS_CALLED = Rows(Run).find(
    sa.or_(
        _called(runs.c.why, runs.c.error),
        runs.c.agent_id.in_(
            sa.select(agents.c.id).where(
                agents.c.company_id == bind("company"), _called(agents.c.name)
            )
        ),
    ),
    join=(_lately, _lately.c.id == runs.c.id),
    company_id="company",
    order=[runs.c.id.desc()],
    limit=bind("limit"),
)
