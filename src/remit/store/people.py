"""Statements about companies, users, memberships and tokens."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import bindparam as bind
from sqlalchemy import delete, exists, insert, literal, or_, select, true, update

from remit.clock import Micros
from remit.ids import AgentId, CompanyId, RunId, UserId
from remit.model.company import Company
from remit.model.principal import Token
from remit.model.user import Membership, User, UserRole
from remit.store.statement import Statement, change, columns, counted, into, scalar
from remit.store.tables import (
    agents,
    companies,
    event_heads,
    halts,
    memberships,
    runs,
    tokens,
    users,
)

# Companies

INSERT_COMPANY = change(insert(companies))
CHANGE_COMPANY = change(
    update(companies)
    .where(companies.c.id == bind("company"))
    .values(
        name_key=bind("new_key"),
        **{
            column.name: bind(f"new_{column.name}")
            for column in columns(companies, Company)
            if column.name not in ("id", "created_at")
        },
    )
)
COMPANY = Statement(
    select(*columns(companies, Company)).where(companies.c.id == bind("company")), into(Company)
)
COMPANY_BY_NAME = Statement(
    select(*columns(companies, Company)).where(companies.c.name_key == bind("name_key")),
    into(Company),
)
#: The companies a user has a part in.
COMPANIES_OF_USER = Statement(
    select(*columns(companies, Company))
    .join(memberships, memberships.c.company_id == companies.c.id)
    .where(memberships.c.user_id == bind("user"), companies.c.id > bind("after"))
    .order_by(companies.c.id)
    .limit(bind("limit")),
    into(Company),
)
POSITIONS_OF_USER = Statement(
    select(event_heads.c.company_id, event_heads.c.seq)
    .join(memberships, memberships.c.company_id == event_heads.c.company_id)
    .where(memberships.c.user_id == bind("user")),
    counted,
)
ALL_COMPANIES = Statement(select(companies.c.id).order_by(companies.c.id), scalar)
INSERT_HEAD = change(insert(event_heads))

# Users

INSERT_USER = change(insert(users))
USER = Statement(select(*columns(users, User)).where(users.c.id == bind("user")), into(User))
USER_BY_NAME = Statement(
    select(*columns(users, User)).where(users.c.name_key == bind("name_key")), into(User)
)
FIRST_OPERATOR = Statement(
    select(*columns(users, User)).where(users.c.operator == true()).order_by(users.c.id).limit(1),
    into(User),
)
ANY_USER = Statement(select(users.c.id).limit(1), scalar)

# Memberships

INSERT_MEMBERSHIP = change(insert(memberships))
DELETE_MEMBERSHIP = change(
    delete(memberships).where(
        memberships.c.company_id == bind("company"), memberships.c.user_id == bind("user")
    )
)
MEMBERSHIP = Statement(
    select(*columns(memberships, Membership)).where(
        memberships.c.company_id == bind("company"), memberships.c.user_id == bind("user")
    ),
    into(Membership),
)
#: Other board members over the whole company, so that the last one cannot be removed.
OTHER_BOARD_MEMBERS = Statement(
    select(memberships.c.user_id)
    .where(
        memberships.c.company_id == bind("company"),
        memberships.c.user_id != bind("user"),
        memberships.c.role == literal("board"),
        memberships.c.scope_agent_id.is_(None),
    )
    .limit(1),
    scalar,
)


@dataclass(frozen=True, slots=True)
class Member:
    user_id: UserId
    name: str
    role: UserRole
    scope_agent_id: AgentId | None
    company_id: CompanyId
    created_at: Micros


MEMBERS = Statement(
    select(
        users.c.id,
        users.c.name,
        memberships.c.role,
        memberships.c.scope_agent_id,
        memberships.c.company_id,
        memberships.c.created_at,
    )
    .join(memberships, memberships.c.user_id == users.c.id)
    .where(memberships.c.company_id == bind("company"), users.c.id > bind("after"))
    .order_by(users.c.id)
    .limit(bind("limit")),
    into(Member),
)

# Tokens

INSERT_TOKEN = change(insert(tokens))


@dataclass(frozen=True, slots=True)
class Identity:
    """A token with all that identifying its bearer takes, in one look-up."""

    digest: str
    kind: str
    expires_at: Micros | None
    revoked_at: Micros | None
    company_id: CompanyId | None
    agent_id: AgentId | None
    agent_name: str | None
    agent_status: str | None
    run_id: RunId | None
    run_status: str | None
    workspace: str | None
    user_id: UserId | None
    user_name: str | None
    operator: bool | None
    #: Whether anything in its company is stopped.
    some_halt: bool


IDENTITY = Statement(
    select(
        tokens.c.digest,
        tokens.c.kind,
        tokens.c.expires_at,
        tokens.c.revoked_at,
        tokens.c.company_id,
        tokens.c.agent_id,
        agents.c.name,
        agents.c.status,
        tokens.c.run_id,
        runs.c.status,
        runs.c.workspace,
        tokens.c.user_id,
        users.c.name,
        users.c.operator,
        exists().where(halts.c.company_id == tokens.c.company_id),
    )
    .select_from(
        tokens.outerjoin(agents, agents.c.id == tokens.c.agent_id)
        .outerjoin(runs, runs.c.id == tokens.c.run_id)
        .outerjoin(users, users.c.id == tokens.c.user_id)
    )
    .where(tokens.c.digest == bind("digest")),
    into(Identity),
)
LOGIN_BY_DIGEST = Statement(
    select(*columns(tokens, Token)).where(
        tokens.c.digest == bind("digest"), tokens.c.kind == literal("login")
    ),
    into(Token),
)
TOKEN = Statement(select(*columns(tokens, Token)).where(tokens.c.id == bind("token")), into(Token))
AGENT_KEYS = Statement(
    select(*columns(tokens, Token))
    .where(tokens.c.agent_id == bind("agent"), tokens.c.kind == literal("agent"))
    .order_by(tokens.c.id),
    into(Token),
)
USER_TOKENS = Statement(
    select(*columns(tokens, Token))
    .where(tokens.c.user_id == bind("user"), tokens.c.kind == literal("user"))
    .order_by(tokens.c.id),
    into(Token),
)
REVOKE_TOKEN = change(
    update(tokens)
    .where(tokens.c.id == bind("token"), tokens.c.revoked_at.is_(None))
    .values(revoked_at=bind("now"))
)
REVOKE_BY_DIGEST = change(
    update(tokens)
    .where(tokens.c.digest == bind("digest"), tokens.c.revoked_at.is_(None))
    .values(revoked_at=bind("now"))
)
REVOKE_TOKENS_OF = change(
    update(tokens)
    .where(
        or_(
            tokens.c.agent_id == bind("agent"),
            tokens.c.user_id == bind("user"),
            tokens.c.run_id == bind("run"),
        ),
        tokens.c.revoked_at.is_(None),
    )
    .values(revoked_at=bind("now"))
)

# Sessions

#: A person's sessions that are still good, newest first.
SESSIONS_OF_USER = Statement(
    select(*columns(tokens, Token))
    .where(
        tokens.c.user_id == bind("user"),
        tokens.c.kind == literal("session"),
        tokens.c.revoked_at.is_(None),
        tokens.c.expires_at > bind("now"),
    )
    .order_by(tokens.c.id.desc())
    .limit(bind("limit")),
    into(Token),
)
TOKEN_BY_DIGEST = Statement(
    select(*columns(tokens, Token)).where(tokens.c.digest == bind("digest")), into(Token)
)
#: Every session but one, and every link that could open another.
REVOKE_OTHER_SESSIONS = Statement(
    update(tokens)
    .where(
        tokens.c.user_id == bind("user"),
        tokens.c.kind.in_([literal("session"), literal("login")]),
        tokens.c.id != bind("kept"),
        tokens.c.revoked_at.is_(None),
    )
    .values(revoked_at=bind("now"))
    .returning(tokens.c.kind),
    scalar,
)
