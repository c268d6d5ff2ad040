"""Waits of agents, and submissions of outcomes for a verdict."""

from sqlalchemy import Index, UniqueConstraint

from remit.model.work.wait import Submission, Wait
from remit.store.tables import base as schema
from remit.store.tables.base import Id

#: A row exists exactly while its subject is undecided.
waits = schema.table_of(
    *(Wait, "waits"),
    # The question, approval, submission, or the message that asks or expects a reply.
    *schema.required(Id, "subject_id"),
    *schema.counters("place"),
    UniqueConstraint("kind", "subject_id"),
    Index("ix_waits_agent_id", "agent_id", "id"),
    Index("ix_waits_awaited_agent_id", "awaited_agent_id", "id"),
    Index("ix_waits_company_id", "company_id", "id"),
    schema.partial_index("ix_waits_remind_at", "remind_at", where="remind_at IS NOT NULL"),
    # The newest wait of an agent's desk.
    schema.partial_index(
        "ix_waits_desk", "agent_id", "place", where="desk = true", sqlite="desk = 1"
    ),
    referable=True,
    defaults={"reminders": 0, "desk": False},
)

wait_outcomes = schema.table(
    "wait_outcomes",
    schema.company_id(),
    *schema.keys(Id, "wait_id", "outcome_id"),
    *schema.within_company("waits", "wait_id"),
    *schema.within_company("outcomes", "outcome_id"),
    Index("ix_wait_outcomes_outcome_id", "outcome_id"),
)

submissions = schema.table_of(
    *(Submission, "submissions"),
    schema.partial_index("uq_submissions_open", "outcome_id", unique=True, where="status = 'open'"),
    Index("ix_submissions_outcome_id", "outcome_id", "id"),
    referable=True,
)
