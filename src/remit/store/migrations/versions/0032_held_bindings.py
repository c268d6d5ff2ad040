"""Bindings that came with an import, and wait for the board to say their secret."""

from remit.store.migrations import additions

revision = "0032"
down_revision = "0030"


def upgrade() -> None:
    additions.make(revision)
