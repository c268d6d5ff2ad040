"""Answers that are kept for repeats say which version of the verb gave them."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    # Every answer there is was given by the first version.
    op.add_column("answers", sa.Column("version", sa.Integer(), nullable=False, server_default="1"))
