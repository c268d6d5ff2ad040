"""Which revisions of an approval somebody who may decide has seen."""

from remit.store.migrations import additions

revision = "0040"
down_revision = "0039"


def upgrade() -> None:
    additions.make(revision)
