"""Proofs of posts that only this instance can check."""

from remit.store.migrations import additions

revision = "0043"
down_revision = "0039"


def upgrade() -> None:
    additions.make(revision)
