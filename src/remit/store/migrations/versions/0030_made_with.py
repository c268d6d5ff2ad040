"""What a token was made with, so that it ends no later. Of those of before nobody knows."""

from remit.store.migrations import additions

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    additions.make(revision)
