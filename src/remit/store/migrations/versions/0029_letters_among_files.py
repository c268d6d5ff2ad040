"""Which files are the texts of letters, so that lists of files need not go through the mail."""

from alembic import op

from remit.store.migrations import additions

revision = "0029"
down_revision = "0028"

_LETTERS = (
    "UPDATE files SET letter = {yes} WHERE unlisted AND (description = 'Message' OR description"
    " LIKE 'Message: %') AND id IN (SELECT body_file_id FROM messages)"
)


def upgrade() -> None:
    additions.make(revision)
    sqlite = op.get_bind().dialect.name == "sqlite"
    op.execute(_LETTERS.format(yes=1 if sqlite else "true"))
