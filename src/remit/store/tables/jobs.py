"""Background jobs: one program, one text, one answer by mail."""

from sqlalchemy import BigInteger, Column, Index, Integer, Text

from remit.model.execution.budget import METERS
from remit.store.tables import base as schema
from remit.store.tables.base import Id, Time

_UNFINISHED = "status IN ('queued', 'running')"

jobs = schema.table(
    "jobs",
    *schema.company_row(referable=True),
    # The agent that asked for it, and its message.
    *schema.required(Id, "agent_id"),
    Column("message_id", Id, nullable=False, unique=True),
    *schema.required(Text, "status", "adapter_type"),
    # JSON: the sender's configuration when it asked.
    *schema.required(Text, "adapter_config"),
    # Not before this time.
    *schema.required(Time, "due_at"),
    # How often a program was started for it.
    *schema.required(Integer, "attempts"),
    *schema.optional(Text, "worker"),
    # Goes up with every claim; who holds an older one has lost the job.
    *schema.required(BigInteger, "epoch"),
    *schema.optional(Time, "lease_until"),
    # The closed account or set-up that it waits for or, while it runs, finds out about.
    *schema.optional(Id, "held_by"),
    *schema.required(Time, "created_at"),
    *schema.optional(Time, "started_at", "ended_at"),
    *schema.optional(Text, "error"),
    # The message that answered the sender.
    *schema.optional(Id, "answer_id"),
    *schema.counters(*METERS),
    *schema.within_company("agents", "agent_id"),
    *schema.within_company("messages", "message_id", "answer_id"),
    *schema.leased_queue("running", "completed", "failed", "cancelled"),
    schema.partial_index("ix_jobs_unfinished", "id", where=_UNFINISHED),
    Index("ix_jobs_agent_id", "agent_id", "id"),
    Index("ix_jobs_company_id", "company_id", "id"),
    schema.by_short_id("jobs"),
)
