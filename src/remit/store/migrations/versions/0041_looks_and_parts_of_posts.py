"""Revisions of an approval that somebody who may decide has seen, and parts of long posts in chats,
each with its number and the post that has the buttons."""

from remit.store.migrations import additions

revision = "0041"
down_revision = "0039"


def upgrade() -> None:
    additions.make(revision)
