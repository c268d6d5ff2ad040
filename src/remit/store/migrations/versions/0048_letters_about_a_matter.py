"""What a letter of Remit is about, and whether a run called other tools than Remit's."""

from remit.store.migrations import additions

revision = "0048"
down_revision = "0047"


def upgrade() -> None:
    additions.make(revision)
