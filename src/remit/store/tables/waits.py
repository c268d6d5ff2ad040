"""Waits of agents, and submissions that nobody has judged."""

from sqlalchemy import Column, Index, Integer, Text, UniqueConstraint

from remit.store.tables import base as schema
from remit.store.tables.base import Id, Time

#: A row exists exactly while its subject is undecided.
waits = schema.table(
    "waits",
    *schema.company_row(referable=True),
    # The agent that waits.
    *schema.required(Id, "agent_id"),
    *schema.required(Text, "kind"),
    # The question, approval, submission, or the message that asks or expects a reply.
    *schema.required(Id, "subject_id"),
    # The awaited agent or person; neither means the board.
    *schema.optional(Id, "awaited_agent_id"),
    *schema.references("users", "awaited_user_id"),
    *schema.required(Time, "since"),
    # How often who is awaited was reminded, and when that happens next.
    Column("reminders", Integer, nullable=False, server_default="0"),
    *schema.optional(Time, "remind_at"),
    UniqueConstraint("kind", "subject_id"),
    *schema.within_company("agents", "agent_id", "awaited_agent_id"),
    schema.one_of("kind", "question", "approval", "capability", "reply", "submission"),
    Index("ix_waits_agent_id", "agent_id", "id"),
    Index("ix_waits_awaited_agent_id", "awaited_agent_id", "id"),
    Index("ix_waits_company_id", "company_id", "id"),
    schema.partial_index("ix_waits_remind_at", "remind_at", where="remind_at IS NOT NULL"),
)

wait_outcomes = schema.table(
    "wait_outcomes",
    schema.company_id(),
    *schema.keys(Id, "wait_id", "outcome_id"),
    *schema.within_company("waits", "wait_id"),
    *schema.within_company("outcomes", "outcome_id"),
    Index("ix_wait_outcomes_outcome_id", "outcome_id"),
)

submissions = schema.table(
    "submissions",
    *schema.company_row(referable=True),
    *schema.required(Id, "outcome_id", "agent_id"),
    *schema.required(Text, "note"),
    # JSON: files, each with the version and the hash that it had.
    *schema.required(Text, "evidence", "status"),
    *schema.optional(Text, "verdict_note", "judged_by"),
    *schema.required(Time, "created_at"),
    *schema.optional(Time, "ended_at"),
    *schema.within_company("outcomes", "outcome_id"),
    *schema.within_company("agents", "agent_id"),
    schema.one_of("status", "open", "accepted", "returned", "withdrawn"),
    schema.partial_index("uq_submissions_open", "outcome_id", unique=True, where="status = 'open'"),
    Index("ix_submissions_outcome_id", "outcome_id", "id"),
)
