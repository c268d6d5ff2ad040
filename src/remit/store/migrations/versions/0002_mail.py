"""Mail, schedules, questions."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

ID = sa.String(length=36).with_variant(sa.String(length=36, collation="C"), "postgresql")


def upgrade() -> None:
    # Both databases take a constraint along with a new column, so no table is copied.
    op.execute(
        "ALTER TABLE companies ADD COLUMN messaging TEXT DEFAULT 'chain' NOT NULL CONSTRAINT"
        " ck_companies_messaging CHECK (messaging IN ('chain', 'team', 'subtree', 'open'))"
    )
    op.execute("ALTER TABLE companies ADD COLUMN mail_position BIGINT DEFAULT '0' NOT NULL")
    op.execute(
        "ALTER TABLE outcomes ADD COLUMN kind TEXT DEFAULT 'work' NOT NULL CONSTRAINT"
        " ck_outcomes_kind CHECK (kind IN ('work', 'inbox'))"
    )
    op.create_table(
        "questions",
        sa.Column("id", ID, nullable=False),
        sa.Column("company_id", ID, nullable=False),
        sa.Column("agent_id", ID, nullable=False),
        sa.Column("to_agent_id", ID, nullable=True),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("options", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("answered_by", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "(status = 'open') = (ended_at IS NULL)", name=op.f("ck_questions_ended")
        ),
        sa.CheckConstraint(
            "status IN ('open', 'answered', 'cancelled')", name=op.f("ck_questions_status")
        ),
        sa.ForeignKeyConstraint(
            ["agent_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_questions_agent_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["company_id"], ["companies.id"], name=op.f("fk_questions_company_id")
        ),
        sa.ForeignKeyConstraint(
            ["to_agent_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_questions_to_agent_id_company_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_questions")),
    )
    op.create_index("ix_questions_company_id", "questions", ["company_id", "id"], unique=False)
    op.create_index(
        "ix_questions_open",
        "questions",
        ["company_id", "agent_id"],
        unique=False,
        sqlite_where=sa.text("status = 'open'"),
        postgresql_where=sa.text("status = 'open'"),
    )
    op.create_table(
        "schedules",
        sa.Column("id", ID, nullable=False),
        sa.Column("company_id", ID, nullable=False),
        sa.Column("agent_id", ID, nullable=False),
        sa.Column("cron", sa.Text(), nullable=True),
        sa.Column("timezone", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("next_at", sa.BigInteger(), nullable=True),
        sa.Column("last_at", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "(status = 'active') = (next_at IS NOT NULL)", name=op.f("ck_schedules_next")
        ),
        sa.CheckConstraint(
            "status IN ('active', 'done', 'cancelled')", name=op.f("ck_schedules_status")
        ),
        sa.ForeignKeyConstraint(
            ["agent_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_schedules_agent_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["company_id"], ["companies.id"], name=op.f("fk_schedules_company_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_schedules")),
    )
    op.create_index("ix_schedules_agent_id", "schedules", ["agent_id"], unique=False)
    op.create_index("ix_schedules_company_id", "schedules", ["company_id", "id"], unique=False)
    op.create_index(
        "ix_schedules_due",
        "schedules",
        ["next_at"],
        unique=False,
        sqlite_where=sa.text("status = 'active'"),
        postgresql_where=sa.text("status = 'active'"),
    )
    op.create_table(
        "messages",
        sa.Column("id", ID, nullable=False),
        sa.Column("company_id", ID, nullable=False),
        sa.Column("thread_id", ID, nullable=False),
        sa.Column("reply_to", ID, nullable=True),
        sa.Column("sender_kind", sa.Text(), nullable=False),
        sa.Column("sender_agent_id", ID, nullable=True),
        sa.Column("sender_user_id", ID, nullable=True),
        sa.Column("sender_run_id", ID, nullable=True),
        sa.Column("from_board", sa.Boolean(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("body_file_id", ID, nullable=False),
        sa.Column("body_version", sa.Integer(), nullable=False),
        sa.Column("attachments", sa.Text(), nullable=False),
        sa.Column("hops", sa.Integer(), nullable=False),
        sa.Column("at_most_once", sa.Boolean(), nullable=False),
        sa.Column("question_id", ID, nullable=True),
        sa.Column("request", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "(sender_kind = 'agent') = (sender_agent_id IS NOT NULL) AND (sender_kind = 'user') = (sender_user_id IS NOT NULL)",
            name=op.f("ck_messages_one_sender"),
        ),
        sa.CheckConstraint(
            "NOT from_board OR sender_kind = 'user'", name=op.f("ck_messages_from_board")
        ),
        sa.CheckConstraint(
            "sender_kind IN ('agent', 'user', 'system')", name=op.f("ck_messages_sender_kind")
        ),
        sa.ForeignKeyConstraint(
            ["body_file_id", "company_id"],
            ["files.id", "files.company_id"],
            name=op.f("fk_messages_body_file_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["company_id"], ["companies.id"], name=op.f("fk_messages_company_id")
        ),
        sa.ForeignKeyConstraint(
            ["reply_to", "company_id"],
            ["messages.id", "messages.company_id"],
            name=op.f("fk_messages_reply_to_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["sender_agent_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_messages_sender_agent_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["sender_run_id"], ["runs.id"], name=op.f("fk_messages_sender_run_id")
        ),
        sa.ForeignKeyConstraint(
            ["sender_user_id"], ["users.id"], name=op.f("fk_messages_sender_user_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_messages")),
        sa.UniqueConstraint("id", "company_id", name=op.f("uq_messages_id_company_id")),
    )
    op.create_index("ix_messages_company_id", "messages", ["company_id", "id"], unique=False)
    op.create_index(
        "ix_messages_sender_agent_id", "messages", ["sender_agent_id", "id"], unique=False
    )
    op.create_index("ix_messages_thread_id", "messages", ["thread_id", "id"], unique=False)
    op.create_table(
        "deliveries",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("company_id", ID, nullable=False),
        sa.Column("message_id", ID, nullable=False),
        sa.Column("agent_id", ID, nullable=True),
        sa.Column("user_id", ID, nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("deliver_at", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("run_id", ID, nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_why", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "(status = 'deferred') OR (position IS NOT NULL) OR status = 'cancelled'",
            name=op.f("ck_deliveries_position"),
        ),
        sa.CheckConstraint(
            "(status = 'leased') = (run_id IS NOT NULL AND ended_at IS NULL)",
            name=op.f("ck_deliveries_leased"),
        ),
        sa.CheckConstraint(
            "status IN ('deferred', 'queued', 'leased', 'done', 'dead', 'cancelled')",
            name=op.f("ck_deliveries_status"),
        ),
        sa.CheckConstraint(
            "(agent_id IS NULL) <> (user_id IS NULL)", name=op.f("ck_deliveries_one_receiver")
        ),
        sa.ForeignKeyConstraint(
            ["agent_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_deliveries_agent_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["company_id"], ["companies.id"], name=op.f("fk_deliveries_company_id")
        ),
        sa.ForeignKeyConstraint(
            ["message_id", "company_id"],
            ["messages.id", "messages.company_id"],
            name=op.f("fk_deliveries_message_id_company_id"),
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_deliveries_run_id")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_deliveries_user_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deliveries")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_deliveries_agent_waiting",
        "deliveries",
        ["agent_id", "position"],
        unique=False,
        sqlite_where=sa.text("status IN ('queued', 'leased')"),
        postgresql_where=sa.text("status IN ('queued', 'leased')"),
    )
    op.create_index(
        "ix_deliveries_dead",
        "deliveries",
        ["company_id", "id"],
        unique=False,
        sqlite_where=sa.text("status = 'dead'"),
        postgresql_where=sa.text("status = 'dead'"),
    )
    op.create_index(
        "ix_deliveries_due",
        "deliveries",
        ["deliver_at"],
        unique=False,
        sqlite_where=sa.text("status = 'deferred'"),
        postgresql_where=sa.text("status = 'deferred'"),
    )
    op.create_index(
        "ix_deliveries_message_id", "deliveries", ["message_id", "agent_id"], unique=False
    )
    op.create_index(
        "ix_deliveries_run_id",
        "deliveries",
        ["run_id"],
        unique=False,
        sqlite_where=sa.text("status = 'leased'"),
        postgresql_where=sa.text("status = 'leased'"),
    )
    op.create_index("ix_deliveries_agent_id", "deliveries", ["agent_id"], unique=False)
    op.create_index(
        "ix_deliveries_user_id", "deliveries", ["user_id", "company_id", "position"], unique=False
    )
    op.create_index(
        "ix_deliveries_user_waiting",
        "deliveries",
        ["user_id", "company_id", "position"],
        unique=False,
        sqlite_where=sa.text("status = 'queued'"),
        postgresql_where=sa.text("status = 'queued'"),
    )
    op.create_index(
        "uq_outcomes_one_inbox",
        "outcomes",
        ["owner_id"],
        unique=True,
        sqlite_where=sa.text("kind = 'inbox'"),
        postgresql_where=sa.text("kind = 'inbox'"),
    )
