"""What a letter of Remit is about and whether it is only to know, the outcome of a letter, whether
a run called other tools than Remit's, and when the provider of a closed account is asked."""

from remit.store.migrations import additions

revision = "0049"
down_revision = "0047"


def upgrade() -> None:
    additions.make(revision)
