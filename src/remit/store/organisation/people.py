"""Statements about companies, users, memberships and tokens."""

from dataclasses import dataclass, fields

from sqlalchemy import ColumnElement, and_, exists, insert, literal, or_, select, true, update
from sqlalchemy import bindparam as bind

from remit.clock import Micros
from remit.ids import AgentId, CompanyId, EventId, RunId, TokenId, TokenKind, UserId
from remit.model.organisation.company import Company
from remit.model.organisation.principal import Token
from remit.model.organisation.user import Membership, User, UserRole
from remit.store.engine.statement import (
    Rows,
    Statement,
    change,
    columns,
    counted,
    into,
    new,
    values_of,
)
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

_COMPANIES = Rows(Company)
_USERS = Rows(User)
_MEMBERSHIPS = Rows(Membership, "user_id")
_TOKENS = Rows(Token)
_unrevoked = tokens.c.revoked_at.is_(None)

# Companies

#: Stores the name and settings of a company.
CHANGE_COMPANY = _COMPANIES.update(
    companies.c.id == bind("company"),
    name_key=bind("new_key"),
    **new(*(field.name for field in fields(Company) if field.name not in ("id", "created_at"))),
)
#: One company by id.
COMPANY = _COMPANIES.one(id="company").keep()
#: One company by name.
COMPANY_BY_NAME = _COMPANIES.one(name_key="name_key")
#: The companies a user has a part in.
COMPANIES_OF_USER = _COMPANIES.find(
    memberships.c.user_id == bind("user"),
    companies.c.id > bind("after"),
    join=(memberships, memberships.c.company_id == companies.c.id),
    limit=bind("limit"),
)
#: The place of the newest event in each company of a person.
POSITIONS_OF_USER = Statement(
    select(event_heads.c.company_id, event_heads.c.seq)
    .join(memberships, memberships.c.company_id == event_heads.c.company_id)
    .where(memberships.c.user_id == bind("user")),
    counted,
)
#: The ids of all companies.
ALL_COMPANIES = values_of(companies.c.id, order=[companies.c.id])
#: Inserts the head of a new company's event chain.
INSERT_HEAD = change(insert(event_heads))

# Users

#: One person by id.
USER = _USERS.keyed(id="user")
#: One person by name.
USER_BY_NAME = _USERS.one(name_key="name_key")
#: The first operator of the instance.
FIRST_OPERATOR = _USERS.find(users.c.operator == true(), limit=1)
#: The id of any user, if there is one yet.
ANY_USER = _USERS.any()

# Memberships

#: Ends a person's part in a company.
DELETE_MEMBERSHIP = _MEMBERSHIPS.delete(company_id="company", user_id="user")
#: A person's part in a company.
MEMBERSHIP = _MEMBERSHIPS.keyed(company_id="company", user_id="user")
#: A person's parts in companies.
MEMBERSHIPS_OF_USER = _MEMBERSHIPS.find(
    user_id="user", order=[memberships.c.company_id], limit=bind("limit")
)
#: Another board member over the whole company, if there is one; the last cannot be removed.
OTHER_BOARD_MEMBERS = _MEMBERSHIPS.any(
    memberships.c.user_id != bind("user"),
    memberships.c.role == literal("board"),
    memberships.c.scope_agent_id.is_(None),
    company_id="company",
)


@dataclass(frozen=True, slots=True)
class Member:
    user_id: UserId
    name: str
    role: UserRole
    scope_agent_id: AgentId | None
    company_id: CompanyId
    created_at: Micros


#: A page of the people with a part in a company.
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


@dataclass(frozen=True, slots=True)
class Identity:
    """A token joined with everything needed to identify its bearer."""

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
    #: Whether its company has any halt.
    some_halt: bool
    event_id: EventId | None


#: A token and its bearer, in one row.
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
        tokens.c.event_id,
    )
    .select_from(
        tokens.outerjoin(agents, agents.c.id == tokens.c.agent_id)
        .outerjoin(runs, runs.c.id == tokens.c.run_id)
        .outerjoin(users, users.c.id == tokens.c.user_id)
    )
    .where(tokens.c.digest == bind("digest")),
    into(Identity),
)
#: A login link by its digest.
LOGIN_BY_DIGEST = _TOKENS.one(tokens.c.kind == literal("login"), digest="digest")
#: One token by id.
TOKEN = _TOKENS.one(id="token")
#: All keys of an agent.
AGENT_KEYS = _TOKENS.find(tokens.c.kind == literal("agent"), agent_id="agent")
#: The agents of a company that have a key that was not revoked.
KEYED_AGENTS = values_of(
    tokens.c.agent_id,
    tokens.c.kind == literal("agent"),
    _unrevoked,
    company_id="company",
    order=[tokens.c.agent_id],
    distinct=True,
)
#: The label of login links that invite another person.
INVITATION = "invitation"
_invitation = and_(tokens.c.kind == literal("login"), tokens.c.label == literal(INVITATION))
#: All tokens of a person, and the invitations that were sent to them.
USER_TOKENS = _TOKENS.find(or_(tokens.c.kind == literal("user"), _invitation), user_id="user")
#: The valid invitations of a company's members.
INVITATIONS = _TOKENS.find(
    _invitation,
    _unrevoked,
    tokens.c.expires_at > bind("now"),
    memberships.c.company_id == bind("company"),
    join=(memberships, memberships.c.user_id == tokens.c.user_id),
    order=[tokens.c.id],
)


@dataclass(frozen=True, slots=True)
class Ended:
    """A token that was revoked just now."""

    id: TokenId
    kind: TokenKind
    user_id: UserId | None
    agent_id: AgentId | None
    run_id: RunId | None


def _revoking(*where: ColumnElement[bool]) -> Statement[Ended]:
    """Revoke the tokens that meet the conditions and were not revoked before; returns them."""
    return Statement(
        update(tokens)
        .where(*where, _unrevoked)
        .values(revoked_at=bind("now"))
        .returning(*columns(tokens, Ended)),
        into(Ended),
    )


_opened = tokens.c.kind.in_([literal("session"), literal("login")])
#: Ends the invitations of a person.
REVOKE_INVITATIONS = _revoking(_invitation, tokens.c.user_id == bind("user"))
#: Revokes one token by id.
REVOKE_TOKEN = _revoking(tokens.c.id == bind("token"))
#: Revokes the sessions and login links that a person opened with a token.
REVOKE_OPENED_WITH = _revoking(
    tokens.c.made_with == bind("token"), tokens.c.user_id == bind("user"), _opened
)
#: Revokes one token by its digest.
REVOKE_BY_DIGEST = _revoking(tokens.c.digest == bind("digest"))
#: Revokes all tokens of an agent or a person.
REVOKE_TOKENS_OF = _revoking(
    or_(tokens.c.agent_id == bind("agent"), tokens.c.user_id == bind("user"))
)
#: Revokes the token of a run.
REVOKE_RUN_TOKEN = _TOKENS.revoke(tokens.c.run_id == bind("run"))


@dataclass(frozen=True, slots=True)
class Opening:
    """A token that opens something now, with what its event has to say of it."""

    id: TokenId
    kind: TokenKind
    digest: str
    expires_at: Micros | None
    company_id: CompanyId | None
    user_id: UserId | None
    agent_id: AgentId | None
    run_id: RunId | None
    event_id: EventId | None


_valid = and_(_unrevoked, or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > bind("now")))
#: A page of all valid tokens.
VALID = _TOKENS.after(_valid)
#: A page of the valid tokens of a company's agents, of its members and of operators.
OPENING = Statement(
    select(*columns(tokens, Opening))
    .where(
        _valid,
        or_(
            tokens.c.company_id == bind("company"),
            tokens.c.user_id.in_(
                select(memberships.c.user_id).where(memberships.c.company_id == bind("company"))
            ),
            tokens.c.user_id.in_(select(users.c.id).where(users.c.operator == true())),
        ),
        tokens.c.id > bind("after"),
    )
    .order_by(tokens.c.id)
    .limit(bind("limit")),
    into(Opening),
)
_theirs = tokens.alias("theirs")
#: The company's agents with a valid key that a person made.
KEYED_BY = values_of(
    tokens.c.agent_id,
    tokens.c.company_id == bind("company"),
    tokens.c.agent_id.is_not(None),
    tokens.c.run_id.is_(None),
    _unrevoked,
    tokens.c.made_with.in_(select(_theirs.c.id).where(_theirs.c.user_id == bind("user"))),
)
#: Revokes the keys of the company's agents that a person made.
REVOKE_KEYS_MADE_BY = _revoking(
    tokens.c.company_id == bind("company"),
    tokens.c.agent_id.is_not(None),
    tokens.c.run_id.is_(None),
    tokens.c.made_with.in_(select(_theirs.c.id).where(_theirs.c.user_id == bind("user"))),
)
#: The valid links, tokens and sessions that a person made for other members of a company.
HANDED_OUT = _TOKENS.find(
    tokens.c.user_id != bind("user"),
    tokens.c.user_id.in_(
        select(memberships.c.user_id).where(memberships.c.company_id == bind("company"))
    ),
    _valid,
    tokens.c.made_with.in_(select(_theirs.c.id).where(_theirs.c.user_id == bind("user"))),
    order=[tokens.c.id],
)
#: All tokens and sessions that a person ever had.
EVER_OF_USER = _TOKENS.find(
    tokens.c.kind.in_([literal("user"), literal("session")]),
    user_id="user",
    order=[tokens.c.id],
)

# Sessions

#: A person's valid sessions, newest first.
SESSIONS_OF_USER = _TOKENS.find(
    tokens.c.kind == literal("session"),
    _unrevoked,
    tokens.c.expires_at > bind("now"),
    user_id="user",
    order=[tokens.c.id.desc()],
    limit=bind("limit"),
)
#: One token by its digest.
TOKEN_BY_DIGEST = _TOKENS.one(digest="digest")
#: Revokes all sessions of a person except one, and all login links.
REVOKE_OTHER_SESSIONS = _revoking(
    tokens.c.user_id == bind("user"), _opened, tokens.c.id != bind("kept")
)
