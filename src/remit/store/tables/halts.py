"""Halts: of a company, or of an agent with everybody below it."""

from sqlalchemy import Index, Text

from remit.store.tables import base as schema
from remit.store.tables.base import Id, Time

halts = schema.table(
    "halts",
    *schema.company_row(),
    # The top of what is stopped; null for the whole company.
    *schema.optional(Id, "agent_id"),
    *schema.references("users", "made_by_user_id"),
    *schema.optional(Id, "made_by_agent_id"),
    *schema.required(Text, "note"),
    *schema.required(Time, "created_at"),
    *schema.within_company("agents", "agent_id", "made_by_agent_id"),
    schema.check("one_maker", "(made_by_user_id IS NULL) <> (made_by_agent_id IS NULL)"),
    # Stopping twice is one halt.
    schema.partial_index("uq_halts_company", "company_id", unique=True, where="agent_id IS NULL"),
    Index("uq_halts_agent", "agent_id", unique=True),
    Index("ix_halts_company_id", "company_id", "agent_id"),
)
