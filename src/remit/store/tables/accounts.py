"""Accounts of providers and set-ups of adapters on workers, on each of which agents depend."""

from sqlalchemy import Index

from remit.model.execution.account import Account
from remit.store.tables import base as schema

_HELD = "state <> 'open'"

accounts = schema.table_of(
    *(Account, "accounts"),
    *schema.references("runs", "probe_run_id"),
    schema.check("where", "(kind = 'setup') = (worker IS NOT NULL)"),
    schema.check("since", "(state = 'open') = (since IS NULL)"),
    Index("ix_accounts_company_id", "company_id", "name"),
    schema.partial_index("ix_accounts_held", "probe_at", where=_HELD),
    referable=True,
    defaults={"failures": 0, "started": 0},
)
