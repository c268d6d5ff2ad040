"""The digest of the files that a run changed, if it did not end well."""

from remit.store.migrations import additions

revision = "0054"
down_revision = "0051"


def upgrade() -> None:
    additions.make(revision)
