"""Bundles of changes are kept apart from other files, those of before that was so, too.

A change names the bundle of its newest revision; those of earlier ones are in the record.
"""

from alembic import op

revision = "0038"
down_revision = "0037"

_BUNDLES = (
    "UPDATE files SET letter = {yes} WHERE unlisted AND kind = 'file' AND letter = {no}"
    " AND id IN (SELECT bundle_id FROM changes"
    " UNION SELECT {bundle} FROM events WHERE action = 'change.propose' AND allowed)"
)
_SQLITE = {"yes": "1", "no": "0", "bundle": "json_extract(details, '$.bundle')"}
_POSTGRESQL = {"yes": "true", "no": "false", "bundle": "details::json ->> 'bundle'"}


def upgrade() -> None:
    engine = op.get_bind().dialect.name
    op.execute(_BUNDLES.format(**(_SQLITE if engine == "sqlite" else _POSTGRESQL)))
