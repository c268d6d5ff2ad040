"""Agents that idleness or failures switched off work again; what they have to do is looked at once.

No program puts an agent into `error` any more for that, so nothing would ever start them. They
are due one after the other within an hour: a company may have hundreds of them.
"""

import sqlalchemy as sa
from alembic import op

from remit.clock import HOUR, SystemClock

revision = "0011"
down_revision = "0010"

_STOPPED = sa.text("SELECT id FROM agents WHERE status = 'error' ORDER BY id")
_WORKS_AGAIN = sa.text("UPDATE agents SET status = 'idle' WHERE id = :agent")
_IS_DUE = sa.text(
    "UPDATE agent_leases SET wake_seq = wake_seq + 1, due_at = :due, idle_runs = 0, failures = 0,"
    " told = NULL, why = 'it was stopped, and works again' WHERE agent_id = :agent"
)


def upgrade() -> None:
    connection = op.get_bind()
    stopped = list(connection.execute(_STOPPED).scalars())
    now = SystemClock().now()
    for number, agent in enumerate(stopped):
        connection.execute(_WORKS_AGAIN, {"agent": agent})
        due = now + HOUR * number // len(stopped)
        connection.execute(_IS_DUE, {"agent": agent, "due": due})
