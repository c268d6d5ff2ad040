"""Limits that were reached, and until when they keep agents from being started."""

from sqlalchemy import Index

from remit.model.execution.limit import Reached
from remit.store.tables import base as schema
from remit.store.tables.base import Id

limits_reached = schema.table_of(
    *(Reached, "limits_reached"),
    # The agent, or the company for a limit of the company.
    *schema.required(Id, "subject_id"),
    schema.one_of(
        "name",
        "agent_runs_per_hour",
        "agent_tokens_per_day",
        "company_runs_per_hour",
        "company_cents_per_day",
        "company_unpriced_tokens_per_day",
    ),
    Index("uq_limits_reached_subject", "subject_id", "name", unique=True),
    Index("ix_limits_reached_company_id", "company_id"),
)
