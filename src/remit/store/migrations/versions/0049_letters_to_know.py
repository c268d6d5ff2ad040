"""Letters to know, the outcome of a letter, and when the provider of a closed account is asked."""

from remit.store.migrations import additions

revision = "0049"
down_revision = "0048"


def upgrade() -> None:
    additions.make(revision)
