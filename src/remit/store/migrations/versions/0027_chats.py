"""Chats: linked accounts, receivers of channels, what came in, what Remit shows, and buttons."""

from remit.store.migrations import additions

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    additions.make(revision)
