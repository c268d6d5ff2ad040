"""Halts: of a company, or of an agent with everybody below it."""

from sqlalchemy import Index

from remit.model.organisation.halt import Halt
from remit.store.tables import base as schema

halts = schema.table_of(
    *(Halt, "halts"),
    schema.check("one_maker", "(made_by_user_id IS NULL) <> (made_by_agent_id IS NULL)"),
    # Stopping twice is one halt.
    schema.partial_index("uq_halts_company", "company_id", unique=True, where="agent_id IS NULL"),
    Index("uq_halts_agent", "agent_id", unique=True),
    Index("ix_halts_company_id", "company_id", "agent_id"),
)
