"""Background jobs wait for a closed account, and a question may be carried by several letters: to
whom it was put, reminders of it, and to whom it was passed on."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"

ID = sa.String(length=36).with_variant(sa.String(length=36, collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("jobs", sa.Column("held_by", ID, nullable=True))
    carrying = sa.text("question_id IS NOT NULL")
    op.create_index(
        "ix_messages_question_id",
        "messages",
        ["question_id"],
        sqlite_where=carrying,
        postgresql_where=carrying,
    )
