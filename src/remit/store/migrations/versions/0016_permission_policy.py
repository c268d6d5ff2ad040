"""What the permission levels of a company bundle; as shipped until its board changes it."""

from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.execute("ALTER TABLE companies ADD COLUMN permission_policy TEXT DEFAULT '{}' NOT NULL")
