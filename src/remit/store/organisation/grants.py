"""Statements about capabilities."""

from sqlalchemy import and_, exists, literal, or_, select, update
from sqlalchemy import bindparam as bind
from sqlalchemy.sql import ColumnElement

from remit.model.organisation.grant import Grant, Level
from remit.store.engine.statement import Rows, Statement, if_asked, scalar
from remit.store.organisation.agents import BELOW_AGENT
from remit.store.tables import grants

_GRANTS = Rows(Grant)
_unrevoked = grants.c.revoked_at.is_(None)
#: A condition: the grant is neither revoked nor expired.
LIVE = and_(_unrevoked, or_(grants.c.expires_at.is_(None), grants.c.expires_at > bind("now")))

#: One capability by id, of any company.
GRANT_ANYWHERE = _GRANTS.one(id="grant")
#: The company's capabilities whose ids lie between two.
GRANTS_BY_PREFIX = _GRANTS.between(company_id="company", limit=20)
#: The unrevoked grants of one agent on one resource, expired ones too.
HELD = _GRANTS.find(_unrevoked, holder_id="holder", kind="kind", resource_id="resource", order=())
#: The grants that one agent has passed on of one resource.
GIVEN = _GRANTS.find(
    _unrevoked, granted_by_agent="granter", kind="kind", resource_id="resource", order=()
)
#: Everything that one agent has passed on.
GIVEN_BY = _GRANTS.find(_unrevoked, granted_by_agent="granter")
#: Grants that agents have passed on of one resource, in all companies.
PASSED_ON = _GRANTS.find(
    _unrevoked, grants.c.granted_by_agent.is_not(None), kind="kind", resource_id="resource"
)
#: Sets another source of a grant: its parent grant and its granter.
SET_SOURCE = _GRANTS.update(
    grants.c.id == bind("grant"),
    parent_id=bind("new_parent"),
    granted_by_agent=bind("new_agent"),
    granted_by_user=bind("new_user"),
)
#: An agent's capabilities on one kind of resource, expired ones too.
HELD_OF_KIND = _GRANTS.find(_unrevoked, holder_id="holder", kind="kind", order=())
#: A page of an agent's live capabilities.
HELD_BY = _GRANTS.after(LIVE, holder_id="holder")
#: A condition: the grant came with a message, to read a file or outcome until it is revoked.
_by_mail = and_(
    grants.c.kind.in_([literal("kb_file"), literal("outcome")]),
    grants.c.scope_id.is_(None),
    grants.c.level == literal(int(Level.READ)),
    grants.c.mode == literal("allow"),
)
#: A page of an agent's live capabilities without those that came by mail.
HELD_BESIDES_MAIL = _GRANTS.after(LIVE, ~_by_mail, holder_id="holder")
#: A page of an agent's live capabilities that came by mail.
HELD_BY_MAIL = _GRANTS.after(LIVE, _by_mail, holder_id="holder")
#: How many live capabilities of an agent came by mail.
COUNT_BY_MAIL = _GRANTS.count(LIVE, _by_mail, holder_id="holder")
#: The live grants of an agent and everybody below it.
HELD_BELOW_AGENT = _GRANTS.find(grants.c.holder_id.in_(select(BELOW_AGENT.c.id)), LIVE, order=())
#: A page of a company's live capabilities.
LIVE_IN_COMPANY = _GRANTS.after(LIVE, company_id="company")
#: A page of a company's live capabilities without those that came by mail.
LIVE_BESIDES_MAIL = _GRANTS.after(LIVE, ~_by_mail, company_id="company")
_live_at = (
    if_asked(grants.c.holder_id, "holder"),
    grants.c.created_at <= bind("at"),
    or_(grants.c.revoked_at.is_(None), grants.c.revoked_at > bind("at")),
    or_(grants.c.expires_at.is_(None), grants.c.expires_at > bind("at")),
)
#: A page of the grants that were live at a past time; a revocation counts from its own time on.
LIVE_AT = _GRANTS.after(*_live_at, company_id="company")
#: A page of the grants that were live at a past time and did not come by mail.
LIVE_AT_BESIDES_MAIL = _GRANTS.after(*_live_at, ~_by_mail, company_id="company")
_child = grants.alias("child")
#: Conditions: a live grant that was given, never used and never passed on. Excluded are grants that
#: came with authorship, which nobody gave, and by mail, which have no scope and may be read later.
_unused = (
    grants.c.used_at.is_(None),
    grants.c.mode != literal("deny"),
    or_(grants.c.granted_by_agent.is_not(None), grants.c.granted_by_user.is_not(None)),
    grants.c.scope_id.is_not(None),
    ~exists().where(_child.c.parent_id == grants.c.id),
    LIVE,
)
#: A page of the company's unused capabilities.
UNUSED = _GRANTS.after(*_unused, company_id="company")
#: A page of an agent's unused capabilities.
UNUSED_BY = _GRANTS.after(*_unused, company_id="company", holder_id="holder")
#: Records that a capability was used.
MARK_USED = _GRANTS.update(grants.c.id == bind("grant"), used_at=bind("now"))


def _revoke(*first: ColumnElement[bool]) -> Statement[str]:
    """Revoke the grants that meet the conditions, and all grants derived from them; returns ids."""
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


#: Revokes a capability with all that derive from it.
REVOKE_WITH_DERIVED = _revoke(grants.c.id == bind("grant"))
#: Revokes the grants that are scoped to an outcome.
REVOKE_SCOPED_TO = _revoke(grants.c.scope_id == bind("outcome"))
#: Revokes the grants of one agent that are scoped to an outcome.
REVOKE_SCOPED_TO_OF = _revoke(
    grants.c.scope_id == bind("outcome"), grants.c.holder_id == bind("holder")
)
#: Revokes the grants of an agent that are scoped to any outcome.
REVOKE_SCOPED_OF = _revoke(grants.c.holder_id == bind("holder"), grants.c.scope_id.is_not(None))
#: Revokes all grants in a company on one resource that is gone.
REVOKE_ON = _revoke(
    grants.c.company_id == bind("company"),
    grants.c.kind == bind("kind"),
    grants.c.resource_id == bind("resource"),
)
