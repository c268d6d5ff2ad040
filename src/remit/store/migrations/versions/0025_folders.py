"""Folders of workers' machines that runs are shown."""

from remit.store.migrations import additions

revision = "0025"
down_revision = "0018"


def upgrade() -> None:
    additions.make(revision)
