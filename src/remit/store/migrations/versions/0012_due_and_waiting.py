"""Outcomes are due when there is news, and wait while what was raised about them is undecided.

What is undecided when this comes was raised before anybody could say about what: it concerns
everything that its agent could work on. Whatever else can be worked on is looked at once; as a
company may have hundreds of such outcomes, these looks are spread over an hour.
"""

import json

import sqlalchemy as sa
from alembic import op

from remit.clock import HOUR, SystemClock
from remit.ids import Ids

revision = "0012"
down_revision = "0011"

ID = sa.String(length=36).with_variant(sa.String(length=36, collation="C"), "postgresql")
TIME = sa.BigInteger()
_IDS = Ids()

_ACTIONABLE = (
    "FROM outcomes o WHERE o.status = 'open' AND o.open_prereqs = 0 AND o.kind = 'work'"
    " AND NOT o.perpetual AND (o.deferred_until IS NULL OR o.deferred_until <= :now)"
    " AND NOT EXISTS (SELECT 1 FROM agents h WHERE h.id = o.id AND h.status = 'pending_approval')"
)
#: What agents asked and nobody has decided: the agent, of what kind, which one, who is awaited.
_UNDECIDED = {
    "question": "SELECT agent_id, id, to_agent_id, created_at FROM questions WHERE status = 'open'",
    "approval": "SELECT requested_by_agent_id, id, routed_to_agent_id, created_at FROM approvals"
    " WHERE status = 'pending' AND requested_by_agent_id IS NOT NULL",
}
_REQUESTS = (
    "SELECT id, company_id, request, address, created_at FROM messages WHERE request IS NOT NULL"
)


def upgrade() -> None:
    _columns()
    _tables()
    connection = op.get_bind()
    now = SystemClock().now()
    _put_off(connection)
    _wait_for_what_is_undecided(connection, now)
    _look_once(connection, now)


def _count(name: str, kind: type[sa.Integer] = sa.Integer) -> sa.Column[int]:
    return sa.Column(name, kind(), nullable=False, server_default="0")


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean(), nullable=False, server_default=sa.false())


def _columns() -> None:
    op.add_column("outcomes", _count("open_waits"))
    op.add_column("outcomes", _count("news", sa.BigInteger))
    op.add_column("outcomes", _count("seen", sa.BigInteger))
    op.add_column("outcomes", sa.Column("look_at", TIME, nullable=True))
    op.add_column("outcomes", sa.Column("look_for", sa.Text(), nullable=True))
    op.add_column("outcomes", _count("reviews"))
    op.drop_index("ix_outcomes_deferred_until", "outcomes")
    is_new = sa.text("status = 'open' AND (news > seen OR kind = 'inbox')")
    op.create_index(
        "ix_outcomes_news",
        "outcomes",
        ["status", "open_prereqs", "owner_id"],
        sqlite_where=is_new,
        postgresql_where=is_new,
    )
    is_dated = sa.text("status = 'open' AND look_at IS NOT NULL")
    op.create_index(
        "ix_outcomes_look_at",
        "outcomes",
        ["look_at"],
        sqlite_where=is_dated,
        postgresql_where=is_dated,
    )
    op.add_column("runs", sa.Column("occasion", sa.Text(), nullable=True))
    op.add_column("runs", sa.Column("outcome_ids", sa.Text(), nullable=False, server_default="[]"))
    op.add_column("runs", _count("shown", sa.BigInteger))
    op.add_column("runs", _flag("goes_on"))
    op.add_column("messages", _flag("expects_reply"))
    op.add_column(
        "companies",
        sa.Column("review_hours", sa.Text(), nullable=False, server_default="1, 4, 24"),
    )
    op.execute("UPDATE agent_leases SET idle_runs = 0")
    op.add_column("agent_leases", _count("spared"))


def _tables() -> None:
    op.create_table(
        "waits",
        sa.Column("id", ID, nullable=False),
        sa.Column("company_id", ID, nullable=False),
        sa.Column("agent_id", ID, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject_id", ID, nullable=False),
        sa.Column("awaited_agent_id", ID, nullable=True),
        sa.Column("awaited_user_id", ID, nullable=True),
        sa.Column("since", TIME, nullable=False),
        sa.Column("reminders", sa.Integer(), server_default="0", nullable=False),
        sa.Column("remind_at", TIME, nullable=True),
        sa.CheckConstraint(
            "kind IN ('question', 'approval', 'capability', 'reply', 'submission')",
            name=op.f("ck_waits_kind"),
        ),
        sa.ForeignKeyConstraint(
            ["agent_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_waits_agent_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["awaited_agent_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_waits_awaited_agent_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["awaited_user_id"], ["users.id"], name=op.f("fk_waits_awaited_user_id")
        ),
        sa.ForeignKeyConstraint(["company_id"], ["companies.id"], name=op.f("fk_waits_company_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_waits")),
        sa.UniqueConstraint("id", "company_id", name=op.f("uq_waits_id_company_id")),
        sa.UniqueConstraint("kind", "subject_id", name=op.f("uq_waits_kind_subject_id")),
    )
    op.create_index("ix_waits_agent_id", "waits", ["agent_id", "id"])
    op.create_index("ix_waits_awaited_agent_id", "waits", ["awaited_agent_id", "id"])
    op.create_index("ix_waits_company_id", "waits", ["company_id", "id"])
    dated = sa.text("remind_at IS NOT NULL")
    op.create_index(
        "ix_waits_remind_at", "waits", ["remind_at"], sqlite_where=dated, postgresql_where=dated
    )
    op.create_table(
        "wait_outcomes",
        sa.Column("company_id", ID, nullable=False),
        sa.Column("wait_id", ID, nullable=False),
        sa.Column("outcome_id", ID, nullable=False),
        sa.ForeignKeyConstraint(
            ["company_id"], ["companies.id"], name=op.f("fk_wait_outcomes_company_id")
        ),
        sa.ForeignKeyConstraint(
            ["wait_id", "company_id"],
            ["waits.id", "waits.company_id"],
            name=op.f("fk_wait_outcomes_wait_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["outcome_id", "company_id"],
            ["outcomes.id", "outcomes.company_id"],
            name=op.f("fk_wait_outcomes_outcome_id_company_id"),
        ),
        sa.PrimaryKeyConstraint("wait_id", "outcome_id", name=op.f("pk_wait_outcomes")),
    )
    op.create_index("ix_wait_outcomes_outcome_id", "wait_outcomes", ["outcome_id"])
    op.create_table(
        "submissions",
        sa.Column("id", ID, nullable=False),
        sa.Column("company_id", ID, nullable=False),
        sa.Column("outcome_id", ID, nullable=False),
        sa.Column("agent_id", ID, nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("evidence", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("verdict_note", sa.Text(), nullable=True),
        sa.Column("judged_by", sa.Text(), nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("ended_at", TIME, nullable=True),
        sa.CheckConstraint(
            "status IN ('open', 'accepted', 'returned', 'withdrawn')",
            name=op.f("ck_submissions_status"),
        ),
        sa.ForeignKeyConstraint(
            ["agent_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_submissions_agent_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["outcome_id", "company_id"],
            ["outcomes.id", "outcomes.company_id"],
            name=op.f("fk_submissions_outcome_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["company_id"], ["companies.id"], name=op.f("fk_submissions_company_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_submissions")),
        sa.UniqueConstraint("id", "company_id", name=op.f("uq_submissions_id_company_id")),
    )
    is_open = sa.text("status = 'open'")
    op.create_index(
        "uq_submissions_open",
        "submissions",
        ["outcome_id"],
        unique=True,
        sqlite_where=is_open,
        postgresql_where=is_open,
    )
    op.create_index("ix_submissions_outcome_id", "submissions", ["outcome_id", "id"])


def _put_off(connection: sa.Connection) -> None:
    connection.execute(
        sa.text(
            "UPDATE outcomes SET look_at = deferred_until, look_for = 'deferral'"
            " WHERE status = 'open' AND deferred_until IS NOT NULL"
        )
    )


def _wait_for_what_is_undecided(connection: sa.Connection, now: int) -> None:
    for kind, statement in _UNDECIDED.items():
        for agent, subject, awaited, since in connection.execute(sa.text(statement)).all():
            _wait(connection, now, kind, agent, subject, awaited, since)
    for message, _, request, address, since in connection.execute(sa.text(_REQUESTS)).all():
        asked = json.loads(request)
        if "grant" not in asked:
            awaited = address.removeprefix("agent:") if address.startswith("agent:") else None
            _wait(connection, now, "capability", asked["agent"], message, awaited, since)


def _wait(
    connection: sa.Connection,
    now: int,
    kind: str,
    agent: str,
    subject: str,
    awaited: str | None,
    since: int,
) -> None:
    """Have an agent wait for something, with everything that it could work on."""
    named = {"agent": agent, "now": now}
    found = connection.execute(
        sa.text("SELECT company_id, status FROM agents WHERE id = :agent"), named
    ).one_or_none()
    if found is None or found.status == "terminated":
        return
    wait = {
        "id": _IDS.new(),
        "company": found.company_id,
        "agent": agent,
        "kind": kind,
        "subject": subject,
        "awaited": awaited,
        "since": since,
    }
    connection.execute(
        sa.text(
            "INSERT INTO waits (id, company_id, agent_id, kind, subject_id, awaited_agent_id, since)"
            " VALUES (:id, :company, :agent, :kind, :subject, :awaited, :since)"
        ),
        wait,
    )
    concerned = list(
        connection.execute(
            sa.text(f"SELECT o.id {_ACTIONABLE} AND o.owner_id = :agent"), named
        ).scalars()
    )
    for outcome in concerned:
        connection.execute(
            sa.text(
                "INSERT INTO wait_outcomes (company_id, wait_id, outcome_id)"
                " VALUES (:company, :id, :outcome)"
            ),
            {**wait, "outcome": outcome},
        )
        connection.execute(
            sa.text("UPDATE outcomes SET open_waits = open_waits + 1 WHERE id = :outcome"),
            {"outcome": outcome},
        )


def _look_once(connection: sa.Connection, now: int) -> None:
    found = list(
        connection.execute(
            sa.text(f"SELECT o.id {_ACTIONABLE} AND o.open_waits = 0 ORDER BY o.id"), {"now": now}
        ).scalars()
    )
    for number, outcome in enumerate(found):
        connection.execute(
            sa.text("UPDATE outcomes SET look_at = :at, look_for = 'review' WHERE id = :outcome"),
            {"outcome": outcome, "at": now + HOUR * number // len(found)},
        )
