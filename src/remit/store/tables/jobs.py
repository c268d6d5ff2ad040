"""Background jobs: one program, one text, one answer by mail."""

from sqlalchemy import Column, Index

from remit.model.execution.budget import METERS
from remit.model.execution.job import Job
from remit.store.tables import base as schema
from remit.store.tables.base import Id

_UNFINISHED = "status IN ('queued', 'running')"

jobs = schema.table_of(
    *(Job, "jobs"),
    Column("message_id", Id, nullable=False, unique=True),
    # The closed account or set-up that a queued job waits for, or that a running job probes.
    *schema.optional(Id, "held_by"),
    *schema.counters(*METERS),
    *schema.within_company("messages", "message_id"),
    *schema.leased_queue("running", "completed", "failed", "cancelled"),
    schema.partial_index("ix_jobs_unfinished", "id", where=_UNFINISHED),
    Index("ix_jobs_agent_id", "agent_id", "id"),
    Index("ix_jobs_company_id", "company_id", "id"),
    schema.by_short_id("jobs"),
    referable=True,
    defaults={"cost_estimated": False},
)
