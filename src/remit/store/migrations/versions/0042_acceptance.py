"""Companies from outside, which are halted until a person accepts them."""

from remit.store.migrations import additions

revision = "0042"
down_revision = "0041"


def upgrade() -> None:
    additions.make(revision)
