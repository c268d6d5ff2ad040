"""Waits of a desk, and one time per agent at which it is asked about what it left alone.

Nudges were times of outcomes until now; they become one time of their owner, and so does the first
of the reviews that are planned. Waits that are open keep the outcomes that they hold up.
"""

from alembic import op

from remit.store.migrations import additions

revision = "0055"
down_revision = "0054"

_TIMED = "status = 'open' AND look_at IS NOT NULL AND look_for IN ('nudge', 'review')"
_LOOK = f"""
    UPDATE agent_leases SET
    look_at = (
        SELECT min(look_at) FROM outcomes WHERE owner_id = agent_leases.agent_id AND {_TIMED}
    ),
    look_for = (
        SELECT look_for FROM outcomes WHERE owner_id = agent_leases.agent_id AND {_TIMED}
        ORDER BY look_at, id LIMIT 1
    )
"""  # noqa: S608 - of constants
_NUDGED = "UPDATE outcomes SET look_at = NULL, look_for = NULL WHERE look_for = 'nudge'"


def upgrade() -> None:
    additions.make(revision)
    op.execute(_LOOK)
    op.execute(_NUDGED)
