"""Statements about capabilities."""

from __future__ import annotations

from sqlalchemy import Boolean, and_, exists, insert, literal, or_, select, true, update
from sqlalchemy import bindparam as bind
from sqlalchemy.sql import ColumnElement

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
    .limit(20),
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
#: Given, never used and not passed on either. What came with authorship was not given, and what
#: came by mail (it ends with no outcome) is there to be read some time.
_unused = (
    select(*_all)
    .where(
        grants.c.company_id == bind("company"),
        grants.c.id > bind("after"),
        grants.c.used_at.is_(None),
        grants.c.mode != literal("deny"),
        or_(grants.c.granted_by_agent.is_not(None), grants.c.granted_by_user.is_not(None)),
        grants.c.scope_id.is_not(None),
        ~exists().where(_child.c.parent_id == grants.c.id),
        _live,
    )
    .order_by(grants.c.id)
    .limit(bind("limit"))
)
UNUSED = Statement(_unused, into(Grant))
UNUSED_BY = Statement(_unused.where(grants.c.holder_id == bind("holder")), into(Grant))
MARK_USED = change(update(grants).where(grants.c.id == bind("grant")).values(used_at=bind("now")))


def _revoke(*first: ColumnElement[bool]) -> Statement[str]:
    """Revoke the live grants that this says, and everything that rests on them."""
    start = (
        select(grants.c.id)
        .where(*first, grants.c.revoked_at.is_(None))
        .cte("doomed", recursive=True)
    )
    doomed = start.union(
        select(grants.c.id).where(grants.c.parent_id == start.c.id, grants.c.revoked_at.is_(None))
    )
    return Statement(
        update(grants)
        .where(grants.c.id.in_(select(doomed.c.id)))
        .values(revoked_at=bind("now"))
        .returning(grants.c.id),
        scalar,
    )


REVOKE_WITH_DERIVED = _revoke(grants.c.id == bind("grant"))
#: What was meant to last as long as an outcome.
REVOKE_SCOPED_TO = _revoke(grants.c.scope_id == bind("outcome"))
#: The same, of one agent only.
REVOKE_SCOPED_TO_OF = _revoke(
    grants.c.scope_id == bind("outcome"), grants.c.holder_id == bind("holder")
)
#: Whatever an agent held for some outcome.
REVOKE_SCOPED_OF = _revoke(grants.c.holder_id == bind("holder"), grants.c.scope_id.is_not(None))
#: Whatever anybody in a company holds on one thing that is gone.
REVOKE_ON = _revoke(
    grants.c.company_id == bind("company"),
    grants.c.kind == bind("kind"),
    grants.c.resource_id == bind("resource"),
)
