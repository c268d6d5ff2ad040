"""Checks that Remit runs on what is proposed to repositories."""

from remit.store.migrations import additions

revision = "0035"
down_revision = "0033"


def upgrade() -> None:
    additions.make(revision)
