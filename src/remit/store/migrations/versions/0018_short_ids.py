"""Indexes on the short ids that lists show, so that one is found without a walk over the table."""

from alembic import op

revision = "0018"
down_revision = "0017"

_TABLES = (
    *("agents", "approvals", "events", "files", "grants", "jobs", "messages", "outcomes"),
    *("questions", "runs", "schedules"),
)


def upgrade() -> None:
    for table in _TABLES:
        op.execute(f"CREATE INDEX ix_{table}_short_id ON {table} (substr(id, 25))")
