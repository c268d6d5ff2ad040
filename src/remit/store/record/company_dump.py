"""Statements that read a whole company, page by page, in the order of ids."""

from dataclasses import dataclass
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
from remit.model.work.file import File, Version
from remit.model.work.outcome import Outcome
from remit.store.engine.statement import Rows, Statement, into, values_of
from remit.store.organisation.agents import Place
from remit.store.tables import (
    agent_places,
    deliveries,
    messages,
    outcome_blockers,
    outcome_edges,
    outcomes,
)

T = TypeVar("T")


def _page(value: type[T]) -> Statement[T]:
    return Rows(value).after(company_id="company")


#: A page of all agents.
AGENTS = _page(Agent)
#: A page of all outcomes.
OUTCOMES = _page(Outcome)
#: A page of all files.
FILES = _page(File)
#: A page of all messages.
MESSAGES = _page(Message)
#: A page of all questions.
QUESTIONS = _page(Question)
#: A page of all schedules.
SCHEDULES = _page(Schedule)
#: A page of all approvals.
APPROVALS = _page(Approval)
#: A page of all configurations.
CONFIGURATIONS = _page(ConfigRevision)
#: Agents that will have queued mail when their runs are gone: leased mail returns to the queue,
#: unless it is delivered at most once.
AGENTS_WITH_MAIL = values_of(
    deliveries.c.agent_id,
    deliveries.c.agent_id.is_not(None),
    or_(
        deliveries.c.status == "queued",
        and_(deliveries.c.status == "leased", messages.c.at_most_once == false()),
    ),
    join=(messages, messages.c.id == deliveries.c.message_id),
    distinct=True,
    company_id="company",
)
#: All versions of a file.
VERSIONS = Rows(Version, "number").find(file_id="file")
#: All places that an agent had.
PLACES = Rows(Place, table=agent_places).find(
    agent_id="agent", order=[agent_places.c.since, agent_places.c.id]
)


@dataclass(frozen=True, slots=True)
class Named:
    id: OutcomeId
    title: str


def _named(others: Column[str], this: Column[str]) -> Statement[Named]:
    query = select(outcomes.c.id, outcomes.c.title).join(others.table, others == outcomes.c.id)
    return Statement(query.where(this == bind("outcome")).order_by(outcomes.c.id), into(Named))


#: Ids and titles of an outcome's parents.
PARENTS = _named(outcome_edges.c.parent_id, outcome_edges.c.child_id)
#: Ids and titles of the blockers of an outcome.
BLOCKERS = _named(outcome_blockers.c.blocker_id, outcome_blockers.c.outcome_id)


def taken(kind: type[object]) -> Statement[Any]:
    """A statement: whether an id is taken by a row of this type, in any company of the instance.

    An agent has the id of its mandate, so a look-up of the outcome covers both."""
    return Rows(kind).any(id="id")
