"""Changes that agents propose to repositories, and levels of repositories.

Whoever held a repository could clone it: that is `read` now, the lowest of three levels, so what
was allowed, asked about or denied stays so.
"""

from alembic import op

from remit.store.migrations import additions

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    additions.make(revision)
    op.execute("UPDATE grants SET level = 1 WHERE kind = 'repo'")
