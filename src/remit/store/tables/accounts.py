"""Accounts of providers, and adapters as workers have them: several agents depend on each."""

from sqlalchemy import Column, Index, Integer, Text

from remit.store.tables import base as schema
from remit.store.tables.base import Time

_HELD = "state <> 'open'"

accounts = schema.table(
    "accounts",
    # A digest of the company and of what makes it another account.
    *schema.company_row(referable=True),
    *schema.required(Text, "kind", "name", "adapter_type", "endpoint", "credential"),
    *schema.optional(Text, "worker"),
    *schema.required(Text, "state"),
    *schema.optional(Text, "fault", "cause"),
    *schema.optional(Time, "since", "until", "probe_at"),
    *schema.references("runs", "probe_run_id"),
    Column("failures", Integer, nullable=False, server_default="0"),
    *schema.optional(Time, "opened_at"),
    Column("started", Integer, nullable=False, server_default="0"),
    *schema.optional(Time, "answered_at", "told_at"),
    *schema.optional(Text, "told_fault"),
    *schema.required(Time, "created_at"),
    schema.one_of("kind", "account", "setup"),
    schema.one_of("state", "open", "closed", "failing"),
    schema.check("where", "(kind = 'setup') = (worker IS NOT NULL)"),
    schema.check("since", "(state = 'open') = (since IS NULL)"),
    Index("ix_accounts_company_id", "company_id", "name"),
    schema.partial_index("ix_accounts_held", "probe_at", where=_HELD),
)
