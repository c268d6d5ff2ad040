"""Channels: bindings of agents, what goes out through them, and what came in."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

ID = sa.String(length=36).with_variant(sa.String(length=36, collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "agent_bindings",
        sa.Column("id", ID, nullable=False),
        sa.Column("company_id", ID, nullable=False),
        sa.Column("agent_id", ID, nullable=False),
        sa.Column("adapter_type", sa.Text(), nullable=False),
        sa.Column("adapter_token", sa.Text(), nullable=False),
        sa.Column("adapter_config", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("removed_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["agent_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_agent_bindings_agent_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["company_id"], ["companies.id"], name=op.f("fk_agent_bindings_company_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agent_bindings")),
        sa.UniqueConstraint("id", "company_id", name=op.f("uq_agent_bindings_id_company_id")),
        sa.UniqueConstraint(
            "adapter_type",
            "adapter_token",
            name=op.f("uq_agent_bindings_adapter_type_adapter_token"),
        ),
    )
    op.create_index(
        "uq_agent_bindings_agent_id",
        "agent_bindings",
        ["agent_id", "adapter_type"],
        unique=True,
        sqlite_where=sa.text("removed_at IS NULL"),
        postgresql_where=sa.text("removed_at IS NULL"),
    )
    op.create_index("ix_agent_bindings_company_id", "agent_bindings", ["company_id", "id"])
    op.create_table(
        "channel_deliveries",
        sa.Column("message_id", ID, nullable=False),
        sa.Column("company_id", ID, nullable=False),
        sa.Column("agent_id", ID, nullable=False),
        sa.Column("adapter_type", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("deliver_at", sa.BigInteger(), nullable=False),
        sa.Column("next_at", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_why", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "status IN ('queued', 'leased', 'done', 'dead', 'cancelled')",
            name=op.f("ck_channel_deliveries_status"),
        ),
        sa.CheckConstraint(
            "(status = 'leased') = (lease_until IS NOT NULL)",
            name=op.f("ck_channel_deliveries_leased"),
        ),
        sa.CheckConstraint(
            "(status IN ('queued', 'leased')) = (ended_at IS NULL)",
            name=op.f("ck_channel_deliveries_ended"),
        ),
        sa.ForeignKeyConstraint(
            ["agent_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_channel_deliveries_agent_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["company_id"], ["companies.id"], name=op.f("fk_channel_deliveries_company_id")
        ),
        sa.ForeignKeyConstraint(
            ["message_id", "company_id"],
            ["messages.id", "messages.company_id"],
            name=op.f("fk_channel_deliveries_message_id_company_id"),
        ),
        sa.PrimaryKeyConstraint("message_id", name=op.f("pk_channel_deliveries")),
    )
    op.create_index(
        "ix_channel_deliveries_unfinished",
        "channel_deliveries",
        ["agent_id", "adapter_type", "message_id"],
        sqlite_where=sa.text("status IN ('queued', 'leased')"),
        postgresql_where=sa.text("status IN ('queued', 'leased')"),
    )
    op.create_index(
        "ix_channel_deliveries_dead",
        "channel_deliveries",
        ["company_id", "message_id"],
        sqlite_where=sa.text("status = 'dead'"),
        postgresql_where=sa.text("status = 'dead'"),
    )
    op.create_table(
        "channel_receipts",
        sa.Column("binding_id", ID, nullable=False),
        sa.Column("outside_id", sa.Text(), nullable=False),
        sa.Column("company_id", ID, nullable=False),
        sa.Column("message_id", ID, nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["binding_id", "company_id"],
            ["agent_bindings.id", "agent_bindings.company_id"],
            name=op.f("fk_channel_receipts_binding_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["company_id"], ["companies.id"], name=op.f("fk_channel_receipts_company_id")
        ),
        sa.ForeignKeyConstraint(
            ["message_id", "company_id"],
            ["messages.id", "messages.company_id"],
            name=op.f("fk_channel_receipts_message_id_company_id"),
        ),
        sa.PrimaryKeyConstraint("binding_id", "outside_id", name=op.f("pk_channel_receipts")),
    )
    op.create_index("ix_channel_receipts_message_id", "channel_receipts", ["message_id"])
    op.add_column("messages", sa.Column("channel", sa.Text(), nullable=True))
