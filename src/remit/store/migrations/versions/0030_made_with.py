"""Origin of each token, so that it ends no later than that. Of older tokens it is not known."""

from remit.store.migrations import additions

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    additions.make(revision)
