"""Whether runs are told the instructions of their folder, and what agents are lent."""

from remit.store.migrations import additions

revision = "0046"
down_revision = "0043"


def upgrade() -> None:
    additions.make(revision)
