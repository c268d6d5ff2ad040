"""Tables after v0.1.0: halts, waits, submissions, accounts, wishes, notices and limits.

- Agents that idleness or failures switched off work again: no program puts an agent into `error`
  for that any more, so nothing would ever start them.
- An undecided question, approval or request was raised before anybody could say about what: it
  concerns everything that its agent could work on, which waits for it. Whatever else can be worked
  on is looked at once.
- Letters of people that no agent has taken up become open wishes. Letters that died of three
  failures stay dead: whose fault these were is not known. `remit revive --all` brings them back.
- What an agent took in a month becomes what it took on the first day of that month: the sum of the
  month stays right, and no day since has a row yet.

A company may have hundreds of agents and outcomes that are due now: they are spread over an hour.
"""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

from remit.clock import HOUR, SystemClock
from remit.ids import Ids
from remit.store.migrations import additions

revision = "0018"
down_revision = "0008"

_IDS = Ids()

_ACTIONABLE = (
    "FROM outcomes o WHERE o.status = 'open' AND o.open_prereqs = 0 AND o.kind = 'work'"
    " AND NOT o.perpetual AND (o.deferred_until IS NULL OR o.deferred_until <= :now)"
    " AND NOT EXISTS (SELECT 1 FROM agents h WHERE h.id = o.id AND h.status = 'pending_approval')"
)
#: Undecided requests of agents: the agent, which one, who is awaited, since when.
_UNDECIDED = {
    "question": "SELECT agent_id, id, to_agent_id, created_at FROM questions WHERE status = 'open'",
    "approval": "SELECT requested_by_agent_id, id, routed_to_agent_id, created_at FROM approvals"
    " WHERE status = 'pending' AND requested_by_agent_id IS NOT NULL",
}
_REQUESTS = "SELECT id, request, address, created_at FROM messages WHERE request IS NOT NULL"
_LIVING = "SELECT company_id FROM agents WHERE id = :agent AND status <> 'terminated'"
_WAIT = (
    "INSERT INTO waits (id, company_id, agent_id, kind, subject_id, awaited_agent_id, since)"
    " VALUES (:id, :company, :agent, :kind, :subject, :awaited, :since)"
)
_PUT_OFF = (
    "UPDATE outcomes SET look_at = deferred_until, look_for = 'deferral'"
    " WHERE status = 'open' AND deferred_until IS NOT NULL"
)
_IS_DUE = (
    "UPDATE agent_leases SET wake_seq = wake_seq + 1, due_at = :due, idle_runs = 0, failures = 0,"
    " told = NULL, why = 'it was stopped, and works again' WHERE agent_id = :agent"
)
_UNREAD = (
    "INSERT INTO wishes (message_id, company_id, user_id, agent_id, status, look_at, created_at)"
    " SELECT m.id, m.company_id, m.sender_user_id, d.agent_id, 'open', :at, m.created_at"
    " FROM messages m JOIN deliveries d ON d.message_id = m.id"
    " JOIN agents a ON a.id = d.agent_id"
    " WHERE m.sender_kind = 'user' AND a.adapter_type <> 'human'"
    " AND d.status IN ('deferred', 'queued', 'leased')"
)


def upgrade() -> None:
    op.drop_index("ix_outcomes_deferred_until", "outcomes")
    op.drop_index("ix_agent_leases_due", "agent_leases")
    op.execute("ALTER TABLE spending RENAME COLUMN month TO day")
    additions.make(revision)
    now = SystemClock().now()
    _start_the_stopped(now)
    _execute("UPDATE agent_leases SET idle_runs = 0")
    _execute(_PUT_OFF)
    _wait_for_what_is_undecided(now)
    _look_once(now)
    _execute(_UNREAD, at=now + HOUR)


def _execute(statement: str, **given: object) -> Any:
    return op.get_bind().execute(sa.text(statement), given)


def _start_the_stopped(now: int) -> None:
    stopped = _execute("SELECT id FROM agents WHERE status = 'error' ORDER BY id").scalars().all()
    for number, agent in enumerate(stopped):
        _execute("UPDATE agents SET status = 'idle' WHERE id = :agent", agent=agent)
        _execute(_IS_DUE, agent=agent, due=now + HOUR * number // len(stopped))


def _wait_for_what_is_undecided(now: int) -> None:
    for kind, statement in _UNDECIDED.items():
        for agent, subject, awaited, since in _execute(statement).all():
            _wait(now, kind, agent, subject=subject, awaited=awaited, since=since)
    for message, request, address, since in _execute(_REQUESTS).all():
        asked = json.loads(request)
        if "grant" not in asked:
            awaited = address.removeprefix("agent:") if address.startswith("agent:") else None
            _wait(now, "capability", asked["agent"], subject=message, awaited=awaited, since=since)


def _wait(now: int, kind: str, agent: str, **about: object) -> None:
    """Have an agent wait for something, with everything that it could work on."""
    company = _execute(_LIVING, agent=agent).scalar()
    if company is None:
        return
    wait = _IDS.new()
    _execute(_WAIT, id=wait, company=company, agent=agent, kind=kind, **about)
    _execute(
        "INSERT INTO wait_outcomes (company_id, wait_id, outcome_id)"
        f" SELECT o.company_id, :wait, o.id {_ACTIONABLE} AND o.owner_id = :agent",
        wait=wait,
        agent=agent,
        now=now,
    )
    _execute(
        "UPDATE outcomes SET open_waits = open_waits + 1"
        " WHERE id IN (SELECT outcome_id FROM wait_outcomes WHERE wait_id = :wait)",
        wait=wait,
    )


def _look_once(now: int) -> None:
    due = f"SELECT o.id {_ACTIONABLE} AND o.open_waits = 0 ORDER BY o.id"
    outcomes = _execute(due, now=now).scalars().all()
    for number, outcome in enumerate(outcomes):
        _execute(
            "UPDATE outcomes SET look_at = :at, look_for = 'review' WHERE id = :outcome",
            outcome=outcome,
            at=now + HOUR * number // len(outcomes),
        )
