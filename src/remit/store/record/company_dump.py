"""Statements that go through a whole company, page after page, in the order of its ids."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from sqlalchemy import Column, and_, false, or_, select
from sqlalchemy import bindparam as bind

from remit.ids import OutcomeId
from remit.model.messaging.mail import Message
from remit.model.messaging.question import Question
from remit.model.messaging.schedule import Schedule
from remit.model.organisation.agent import Agent
from remit.model.organisation.approval import Approval
from remit.model.organisation.configuration import ConfigRevision
from remit.model.organisation.grant import Grant
from remit.model.work.file import File, Version
from remit.model.work.outcome import Outcome
from remit.store.engine.database import Transaction
from remit.store.engine.statement import Statement, columns, into, scalar
from remit.store.organisation.agents import Place
from remit.store.tables import (
    agent_places,
    agents,
    approval_comments,
    approvals,
    config_revisions,
    deliveries,
    file_versions,
    files,
    grants,
    messages,
    outcome_blockers,
    outcome_edges,
    outcomes,
    questions,
    schedules,
)

T = TypeVar("T")
PAGE = 500


def _page(table: Any, value: type[T]) -> Statement[T]:
    return Statement(
        select(*columns(table, value))
        .where(table.c.company_id == bind("company"), table.c.id > bind("after"))
        .order_by(table.c.id)
        .limit(bind("limit")),
        into(value),
    )


#: A page of all agents.
AGENTS = _page(agents, Agent)
#: A page of all outcomes.
OUTCOMES = _page(outcomes, Outcome)
#: A page of all files.
FILES = _page(files, File)
#: A page of all messages.
MESSAGES = _page(messages, Message)
#: A page of all questions.
QUESTIONS = _page(questions, Question)
#: A page of all schedules.
SCHEDULES = _page(schedules, Schedule)
#: A page of all approvals.
APPROVALS = _page(approvals, Approval)
#: A page of all configurations.
CONFIGURATIONS = _page(config_revisions, ConfigRevision)
#: Agents with mail once no run has any of it: a letter that is tried only once has been tried.
AGENTS_WITH_MAIL = Statement(
    select(deliveries.c.agent_id)
    .distinct()
    .join(messages, messages.c.id == deliveries.c.message_id)
    .where(
        deliveries.c.company_id == bind("company"),
        deliveries.c.agent_id.is_not(None),
        or_(
            deliveries.c.status == "queued",
            and_(deliveries.c.status == "leased", messages.c.at_most_once == false()),
        ),
    ),
    scalar,
)
#: A page of all live capabilities.
LIVE_GRANTS = Statement(
    select(*columns(grants, Grant))
    .where(
        grants.c.company_id == bind("company"),
        grants.c.id > bind("after"),
        grants.c.revoked_at.is_(None),
        or_(grants.c.expires_at.is_(None), grants.c.expires_at > bind("now")),
    )
    .order_by(grants.c.id)
    .limit(bind("limit")),
    into(Grant),
)
#: All versions of a file.
VERSIONS = Statement(
    select(*columns(file_versions, Version))
    .where(file_versions.c.file_id == bind("file"))
    .order_by(file_versions.c.number),
    into(Version),
)
#: All places that an agent had.
PLACES = Statement(
    select(*(agent_places.c[field.name] for field in fields(Place)))
    .where(agent_places.c.agent_id == bind("agent"))
    .order_by(agent_places.c.since, agent_places.c.id),
    into(Place),
)


@dataclass(frozen=True, slots=True)
class Named:
    id: OutcomeId
    title: str


def _named(others: Column[str], this: Column[str]) -> Statement[Named]:
    found = select(outcomes.c.id, outcomes.c.title).join(others.table, others == outcomes.c.id)
    return Statement(found.where(this == bind("outcome")).order_by(outcomes.c.id), into(Named))


#: Ids and titles of an outcome's parents.
PARENTS = _named(outcome_edges.c.parent_id, outcome_edges.c.child_id)
#: Ids and titles of what an outcome waits for.
BLOCKERS = _named(outcome_blockers.c.blocker_id, outcome_blockers.c.outcome_id)


_top = (
    select(outcomes.c.id)
    .where(outcomes.c.company_id == bind("company"), outcomes.c.id == bind("outcome"))
    .cte("below", recursive=True)
)
_below = _top.union(select(outcome_edges.c.child_id).where(outcome_edges.c.parent_id == _top.c.id))
#: An outcome and all that is below it, however deep.
OUTCOMES_BELOW = Statement(
    select(*columns(outcomes, Outcome))
    .where(outcomes.c.id.in_(select(_below.c.id)), outcomes.c.id > bind("after"))
    .order_by(outcomes.c.id)
    .limit(bind("limit")),
    into(Outcome),
)

# Whether an id is taken, by any company of the instance. An agent has the id of an outcome.

#: Whether the id of an outcome is taken.
OUTCOME_TAKEN = Statement(select(outcomes.c.id).where(outcomes.c.id == bind("id")), scalar)
#: Whether the id of a file is taken.
FILE_TAKEN = Statement(select(files.c.id).where(files.c.id == bind("id")), scalar)
#: Whether the id of a capability is taken.
GRANT_TAKEN = Statement(select(grants.c.id).where(grants.c.id == bind("id")), scalar)
#: Whether the id of a message is taken.
MESSAGE_TAKEN = Statement(select(messages.c.id).where(messages.c.id == bind("id")), scalar)
#: Whether the id of a question is taken.
QUESTION_TAKEN = Statement(select(questions.c.id).where(questions.c.id == bind("id")), scalar)
#: Whether the id of a schedule is taken.
SCHEDULE_TAKEN = Statement(select(schedules.c.id).where(schedules.c.id == bind("id")), scalar)


def each(transaction: Transaction, statement: Statement[T], **parameters: Any) -> Iterator[T]:
    """Everything that a paged statement finds, a page in memory at a time."""
    after = ""
    while page := transaction.all(statement, after=after, limit=PAGE, **parameters):
        yield from page
        after = page[-1].id  # type: ignore[attr-defined]  # what is paged has an id


#: Whether the id of an approval is taken.
APPROVAL_TAKEN = Statement(select(approvals.c.id).where(approvals.c.id == bind("id")), scalar)
#: Whether the id of a comment is taken.
COMMENT_TAKEN = Statement(
    select(approval_comments.c.id).where(approval_comments.c.id == bind("id")), scalar
)
#: Whether the id of a configuration is taken.
CONFIGURATION_TAKEN = Statement(
    select(config_revisions.c.id).where(config_revisions.c.id == bind("id")), scalar
)
