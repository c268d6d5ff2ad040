"""Committer for the agents of a company, and the key that signs commits."""

from remit.store.migrations import additions

revision = "0037"
down_revision = "0035"


def upgrade() -> None:
    additions.make(revision)
