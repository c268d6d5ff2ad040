"""Tokens name the event that holds their digest; those that are valid get an event of adoption, and
so do undecided requests that no event holds the digest of.

Repositories say when and where proposals are pushed, and changes which commit a person let go.
"""

import sqlalchemy as sa
from alembic import op

from remit.clock import SystemClock
from remit.ids import Ids, token_digest
from remit.model.text import canonical, digest_of
from remit.store.migrations import additions

revision = "0047"
down_revision = "0046"

_VALID = """SELECT id, kind, digest, expires_at, company_id, user_id, agent_id, run_id FROM tokens
    WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now) ORDER BY id"""
_COMPANY_OF_USER = """SELECT c.id FROM companies c
    LEFT JOIN memberships m ON m.company_id = c.id AND m.user_id = :user
    ORDER BY CASE WHEN m.user_id IS NULL THEN 1 ELSE 0 END, c.id LIMIT 1"""
#: Requests of a company that was imported.
_NEVER_SUBMITTED = """SELECT id, company_id, type, revision, digest, agent_id FROM approvals a
    WHERE status IN ('pending', 'revision_requested') AND NOT EXISTS (
        SELECT 1 FROM events e WHERE e.company_id = a.company_id
        AND e.resource = 'approval:' || a.id
        AND e.action IN ('approval.request', 'approval.resubmit')) ORDER BY id"""
_FIELDS = (
    *("company_id", "seq", "id", "at", "actor_kind", "actor_id", "run_id", "action", "resource"),
    *("allowed", "reason", "basis", "details", "prev_hash"),
)
_INSERT = sa.text(
    f"INSERT INTO events ({', '.join(_FIELDS)}, hash)"  # noqa: S608
    f" VALUES ({', '.join(f':{name}' for name in _FIELDS)}, :hash)"
)


def upgrade() -> None:
    additions.make(revision)
    connection = op.get_bind()
    now, ids = SystemClock().now(), Ids()

    def record(company: str, action: str, resource: str, details: dict[str, object]) -> str:
        """Append an event of Remit itself to a company's chain; returns its id."""
        head = connection.execute(
            sa.text("SELECT seq, hash FROM event_heads WHERE company_id = :company"),
            {"company": company},
        ).one()
        event = {
            "company_id": company,
            "seq": head.seq + 1,
            "id": ids.new(),
            "at": now,
            "actor_kind": "system",
            "actor_id": "",
            "run_id": None,
            "action": action,
            "resource": resource,
            "allowed": True,
            "reason": "system",
            "basis": "rule:system",
            "details": canonical(details),
            "prev_hash": head.hash,
        }
        event["hash"] = digest_of({name: event[name] for name in _FIELDS})
        connection.execute(_INSERT, event)
        connection.execute(
            sa.text("UPDATE event_heads SET seq = :seq, hash = :hash WHERE company_id = :company"),
            {"seq": event["seq"], "hash": event["hash"], "company": company},
        )
        return str(event["id"])

    for token in connection.execute(sa.text(_VALID), {"now": now}).mappings().all():
        company = (
            token["company_id"]
            or connection.execute(sa.text(_COMPANY_OF_USER), {"user": token["user_id"]}).scalar()
        )
        if company is None:
            continue
        names = ("kind", "digest", "expires_at", "user_id", "agent_id", "run_id")
        about = {name: token[name] for name in names}
        about["digest"] = token_digest(token["digest"])
        event = record(company, "token.adopt", f"token:{token['id']}", about)
        connection.execute(
            sa.text("UPDATE tokens SET event_id = :event WHERE id = :token"),
            {"event": event, "token": token["id"]},
        )
    for request in connection.execute(sa.text(_NEVER_SUBMITTED)).mappings().all():
        record(
            request["company_id"],
            "approval.adopt",
            f"approval:{request['id']}",
            {
                "type": request["type"],
                "revision": request["revision"],
                "digest": request["digest"],
                "agent": request["agent_id"],
            },
        )
