"""Statements about capabilities."""

from __future__ import annotations

from sqlalchemy import Boolean, and_, exists, insert, literal, or_, select, true, update
from sqlalchemy import bindparam as bind

from remit.model.grant import Grant
from remit.store.agents import BELOW_AGENT
from remit.store.statement import Statement, change, columns, into, scalar
from remit.store.tables import grants

_all = columns(grants, Grant)
_live = and_(
    grants.c.revoked_at.is_(None),
    or_(grants.c.expires_at.is_(None), grants.c.expires_at > bind("now")),
)

INSERT_GRANT = change(insert(grants))
GRANT_ANYWHERE = Statement(select(*_all).where(grants.c.id == bind("grant")), into(Grant))
GRANTS_BY_PREFIX = Statement(
    select(*_all)
    .where(
        grants.c.company_id == bind("company"),
        grants.c.id >= bind("low"),
        grants.c.id < bind("high"),
    )
    .limit(2),
    into(Grant),
)
#: What one agent holds on one resource.
HELD = Statement(
    select(*_all).where(
        grants.c.holder_id == bind("holder"),
        grants.c.kind == bind("kind"),
        grants.c.resource_id == bind("resource"),
        grants.c.revoked_at.is_(None),
    ),
    into(Grant),
)
#: What one agent has passed on of one resource.
GIVEN = Statement(
    select(*_all).where(
        grants.c.granted_by_agent == bind("granter"),
        grants.c.kind == bind("kind"),
        grants.c.resource_id == bind("resource"),
        grants.c.revoked_at.is_(None),
    ),
    into(Grant),
)
#: Everything that one agent has passed on.
GIVEN_BY = Statement(
    select(*_all)
    .where(grants.c.granted_by_agent == bind("granter"), grants.c.revoked_at.is_(None))
    .order_by(grants.c.id),
    into(Grant),
)
SET_SOURCE = change(
    update(grants)
    .where(grants.c.id == bind("grant"))
    .values(
        parent_id=bind("new_parent"),
        granted_by_agent=bind("new_agent"),
        granted_by_user=bind("new_user"),
    )
)
HELD_OF_KIND = Statement(
    select(*_all).where(
        grants.c.holder_id == bind("holder"),
        grants.c.kind == bind("kind"),
        grants.c.revoked_at.is_(None),
    ),
    into(Grant),
)
HELD_BY = Statement(
    select(*_all)
    .where(grants.c.holder_id == bind("holder"), grants.c.id > bind("after"), _live)
    .order_by(grants.c.id)
    .limit(bind("limit")),
    into(Grant),
)
#: What an agent and everybody below it hold.
HELD_BELOW_AGENT = Statement(
    select(*_all).where(grants.c.holder_id.in_(select(BELOW_AGENT.c.id)), _live), into(Grant)
)
LIVE_IN_COMPANY = Statement(
    select(*_all)
    .where(grants.c.company_id == bind("company"), grants.c.id > bind("after"), _live)
    .order_by(grants.c.id)
    .limit(bind("limit")),
    into(Grant),
)
#: What was live at a past time. Revocation takes effect at its own time, so it is excluded.
LIVE_AT = Statement(
    select(*_all)
    .where(
        grants.c.company_id == bind("company"),
        grants.c.id > bind("after"),
        or_(bind("any_holder", type_=Boolean) == true(), grants.c.holder_id == bind("holder")),
        grants.c.created_at <= bind("at"),
        or_(grants.c.revoked_at.is_(None), grants.c.revoked_at > bind("at")),
        or_(grants.c.expires_at.is_(None), grants.c.expires_at > bind("at")),
    )
    .order_by(grants.c.id)
    .limit(bind("limit")),
    into(Grant),
)
_child = grants.alias("child")
#: Given, never used and not passed on either. What came with authorship was not given.
_unused = (
    select(*_all)
    .where(
        grants.c.company_id == bind("company"),
        grants.c.id > bind("after"),
        grants.c.used_at.is_(None),
        grants.c.mode != literal("deny"),
        or_(grants.c.granted_by_agent.is_not(None), grants.c.granted_by_user.is_not(None)),
        ~exists().where(_child.c.parent_id == grants.c.id),
        _live,
    )
    .order_by(grants.c.id)
    .limit(bind("limit"))
)
UNUSED = Statement(_unused, into(Grant))
UNUSED_BY = Statement(_unused.where(grants.c.holder_id == bind("holder")), into(Grant))
MARK_USED = change(update(grants).where(grants.c.id == bind("grant")).values(used_at=bind("now")))

_first = (
    select(grants.c.id)
    .where(grants.c.id == bind("grant"), grants.c.revoked_at.is_(None))
    .cte("doomed", recursive=True)
)
_doomed = _first.union(
    select(grants.c.id).where(grants.c.parent_id == _first.c.id, grants.c.revoked_at.is_(None))
)
#: Revoke a grant and everything that rests on it.
REVOKE_WITH_DERIVED = Statement(
    update(grants)
    .where(grants.c.id.in_(select(_doomed.c.id)))
    .values(revoked_at=bind("now"))
    .returning(grants.c.id),
    scalar,
)
_scoped = (
    select(grants.c.id)
    .where(grants.c.scope_id == bind("outcome"), grants.c.revoked_at.is_(None))
    .cte("doomed", recursive=True)
)
_all_scoped = _scoped.union(
    select(grants.c.id).where(grants.c.parent_id == _scoped.c.id, grants.c.revoked_at.is_(None))
)
#: Revoke whatever was meant to last as long as an outcome, and everything that rests on it.
REVOKE_SCOPED_TO = Statement(
    update(grants)
    .where(grants.c.id.in_(select(_all_scoped.c.id)))
    .values(revoked_at=bind("now"))
    .returning(grants.c.id),
    scalar,
)

_scoped_held = (
    select(grants.c.id)
    .where(
        grants.c.scope_id == bind("outcome"),
        grants.c.holder_id == bind("holder"),
        grants.c.revoked_at.is_(None),
    )
    .cte("doomed", recursive=True)
)
_all_scoped_held = _scoped_held.union(
    select(grants.c.id).where(
        grants.c.parent_id == _scoped_held.c.id, grants.c.revoked_at.is_(None)
    )
)
#: Revoke what one agent holds as long as an outcome lasts, and everything that rests on it.
REVOKE_SCOPED_TO_OF = Statement(
    update(grants)
    .where(grants.c.id.in_(select(_all_scoped_held.c.id)))
    .values(revoked_at=bind("now"))
    .returning(grants.c.id),
    scalar,
)

_held_scoped = (
    select(grants.c.id)
    .where(
        grants.c.holder_id == bind("holder"),
        grants.c.scope_id.is_not(None),
        grants.c.revoked_at.is_(None),
    )
    .cte("doomed", recursive=True)
)
_all_held_scoped = _held_scoped.union(
    select(grants.c.id).where(
        grants.c.parent_id == _held_scoped.c.id, grants.c.revoked_at.is_(None)
    )
)
#: Revoke whatever an agent held for some outcome, and everything that rests on it.
REVOKE_SCOPED_OF = Statement(
    update(grants)
    .where(grants.c.id.in_(select(_all_held_scoped.c.id)))
    .values(revoked_at=bind("now"))
    .returning(grants.c.id),
    scalar,
)
