"""The tables, with every guarantee that the database itself can enforce.

Ids are text, times whole microseconds, JSON is text: the same bytes on SQLite and PostgreSQL.
Foreign keys include the company, so that no row can refer to another company.

Each table is defined in the module of its noun, and imported from here.
"""

from remit.store.tables.accounts import accounts
from remit.store.tables.base import metadata
from remit.store.tables.budgets import budget_accounts, budget_stops, reservations, spending
from remit.store.tables.changes import (
    change_checks,
    change_comments,
    change_errands,
    changes,
    forge_issues,
    forge_watches,
)
from remit.store.tables.channels import agent_bindings, channel_deliveries, channel_receipts
from remit.store.tables.chat import (
    button_references,
    channel_intake,
    channel_posts,
    channel_receivers,
    link_codes,
    linked_accounts,
)
from remit.store.tables.connections import folders, mcp_servers, repos, secrets
from remit.store.tables.content import access_log, file_links, file_versions, files, grants
from remit.store.tables.governance import (
    approval_comments,
    approval_revisions,
    approvals,
    config_revisions,
)
from remit.store.tables.halts import halts
from remit.store.tables.history import answers, event_heads, events
from remit.store.tables.jobs import jobs
from remit.store.tables.limits import limits_reached
from remit.store.tables.mail import deliveries, messages, questions, schedules
from remit.store.tables.organisation import (
    agent_places,
    agents,
    outcome_blockers,
    outcome_edges,
    outcomes,
)
from remit.store.tables.people import companies, memberships, tokens, users
from remit.store.tables.runtime import agent_leases, agent_sessions, run_logs, runs
from remit.store.tables.waits import submissions, wait_outcomes, waits
from remit.store.tables.wishes import notice_hooks, notice_rules, notices, wishes
