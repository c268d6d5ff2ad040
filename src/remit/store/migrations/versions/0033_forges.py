"""Forges: requests for changes, what is said about them there, and issues that become outcomes."""

from remit.store.migrations import additions

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    additions.make(revision)
