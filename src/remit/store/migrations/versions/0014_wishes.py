"""What came of a person's letter is kept, and each such letter is a wish until it is answered.

Letters that nobody has taken up yet become open wishes. What people need to know can go out by a
webhook, once for each thing.
"""

import sqlalchemy as sa
from alembic import op

from remit.clock import HOUR, SystemClock

revision = "0014"
down_revision = "0013"

ID = sa.String(length=36).with_variant(sa.String(length=36, collation="C"), "postgresql")
TIME = sa.BigInteger()

_UNREAD = (
    "INSERT INTO wishes (message_id, company_id, user_id, agent_id, status, look_at, created_at)"
    " SELECT m.id, m.company_id, m.sender_user_id, d.agent_id, 'open', :at, m.created_at"
    " FROM messages m JOIN deliveries d ON d.message_id = m.id"
    " JOIN agents a ON a.id = d.agent_id"
    " WHERE m.sender_kind = 'user' AND a.adapter_type <> 'human'"
    " AND d.status IN ('deferred', 'queued', 'leased')"
)


def upgrade() -> None:
    _check_what_waits_for_the_commit()
    op.add_column("messages", sa.Column("origin_id", ID, nullable=True))
    op.add_column("messages", sa.Column("mark", sa.Text(), nullable=True))
    op.create_index("ix_messages_sender_user_id", "messages", ["sender_user_id", "id"])
    op.add_column("outcomes", sa.Column("origin_id", ID, nullable=True))
    known = sa.text("origin_id IS NOT NULL")
    for table in ("messages", "outcomes"):
        op.create_index(
            f"ix_{table}_origin_id",
            table,
            ["origin_id", "id"],
            sqlite_where=known,
            postgresql_where=known,
        )
    _wishes()
    _notices()
    op.get_bind().execute(sa.text(_UNREAD), {"at": SystemClock().now() + HOUR})


def _check_what_waits_for_the_commit() -> None:
    """PostgreSQL changes no table while constraints of earlier migrations are still to be checked
    on its rows."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("SET CONSTRAINTS ALL IMMEDIATE")
        op.execute("SET CONSTRAINTS ALL DEFERRED")


def _wishes() -> None:
    op.create_table(
        "wishes",
        sa.Column("message_id", ID, nullable=False),
        sa.Column("company_id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=False),
        sa.Column("agent_id", ID, nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("look_at", TIME, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("ended_at", TIME, nullable=True),
        sa.Column("ended_why", sa.Text(), nullable=True),
        sa.Column("shared_with", ID, nullable=True),
        sa.CheckConstraint("status IN ('open', 'ended')", name=op.f("ck_wishes_status")),
        sa.CheckConstraint("(status = 'open') = (ended_at IS NULL)", name=op.f("ck_wishes_ended")),
        sa.ForeignKeyConstraint(
            ["message_id", "company_id"],
            ["messages.id", "messages.company_id"],
            name=op.f("fk_wishes_message_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["agent_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_wishes_agent_id_company_id"),
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_wishes_user_id")),
        sa.ForeignKeyConstraint(
            ["company_id"], ["companies.id"], name=op.f("fk_wishes_company_id")
        ),
        sa.PrimaryKeyConstraint("message_id", name=op.f("pk_wishes")),
    )
    is_open = sa.text("status = 'open'")
    op.create_index(
        "ix_wishes_open",
        "wishes",
        ["user_id", "company_id", "message_id"],
        sqlite_where=is_open,
        postgresql_where=is_open,
    )
    is_shared = sa.text("shared_with IS NOT NULL")
    op.create_index(
        "ix_wishes_shared_with",
        "wishes",
        ["shared_with"],
        sqlite_where=is_shared,
        postgresql_where=is_shared,
    )
    op.create_index(
        "ix_wishes_look_at", "wishes", ["look_at"], sqlite_where=is_open, postgresql_where=is_open
    )


def _notices() -> None:
    op.create_table(
        "notice_hooks",
        sa.Column("company_id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_notice_hooks_user_id")),
        sa.ForeignKeyConstraint(
            ["company_id"], ["companies.id"], name=op.f("fk_notice_hooks_company_id")
        ),
        sa.PrimaryKeyConstraint("company_id", "user_id", name=op.f("pk_notice_hooks")),
    )
    op.create_table(
        "notices",
        sa.Column("id", ID, nullable=False),
        sa.Column("company_id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=False),
        sa.Column("way", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject_id", ID, nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("next_at", TIME, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("lease_until", TIME, nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("ended_at", TIME, nullable=True),
        sa.Column("ended_why", sa.Text(), nullable=True),
        sa.CheckConstraint("way IN ('command', 'webhook')", name=op.f("ck_notices_way")),
        sa.CheckConstraint(
            "status IN ('queued', 'leased', 'done', 'dead', 'cancelled')",
            name=op.f("ck_notices_status"),
        ),
        sa.CheckConstraint(
            "(status = 'leased') = (lease_until IS NOT NULL)", name=op.f("ck_notices_leased")
        ),
        sa.CheckConstraint(
            "(status IN ('queued', 'leased')) = (ended_at IS NULL)", name=op.f("ck_notices_ended")
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_notices_user_id")),
        sa.ForeignKeyConstraint(
            ["company_id"], ["companies.id"], name=op.f("fk_notices_company_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notices")),
        sa.UniqueConstraint(
            "user_id",
            "way",
            "kind",
            "subject_id",
            name=op.f("uq_notices_user_id_way_kind_subject_id"),
        ),
    )
    unfinished = sa.text("status IN ('queued', 'leased')")
    op.create_index(
        "ix_notices_unfinished",
        "notices",
        ["next_at"],
        sqlite_where=unfinished,
        postgresql_where=unfinished,
    )
    op.create_index("ix_notices_user_id", "notices", ["user_id", "id"])
