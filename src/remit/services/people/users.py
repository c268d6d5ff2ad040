"""People: who has a part in a company, and their tokens."""

from typing import Annotated

from remit.authority import Action
from remit.clock import Micros, from_iso, moment
from remit.errors import AlreadyExists, BadInput, Conflict, NotFound
from remit.ids import (
    AgentId,
    CompanyId,
    RunId,
    TokenId,
    TokenKind,
    UserId,
    is_id,
    new_token,
    token_digest,
)
from remit.model.organisation.principal import Principal, Token
from remit.model.organisation.user import Membership, User, UserRole
from remit.model.text import LONGEST_LABEL, name_key
from remit.services import lookup, shapes, views
from remit.services.command import Context, command, query
from remit.services.fields import AgentRef, CompanyRef, Help, Moment, Name, Reference, Text, UserRef
from remit.services.people import handed_out, token_record
from remit.services.surfaces import AsCommand, AsRoute
from remit.services.verbs import preview_of
from remit.store.messaging import chat, notices
from remit.store.organisation import agents as agent_statements
from remit.store.organisation import people
from remit.store.organisation.people import Member

_ALL = 100_000


@command("users.add", AsRoute("POST /companies/{companyId}/users", "add_user", 201))
def add(
    ctx: Context,
    *,
    company: CompanyRef,
    name: Name,
    role: Annotated[str, UserRole] = "board",
    scope: AgentRef | None = None,
) -> shapes.MemberShape:
    """Give a person a part in the company; a new person is made when the name is new."""
    part = UserRole(role)
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.USER_CHANGE, on=f"user:{name}")
    assert ctx.company is not None
    scope_id = lookup.agent(ctx, scope).id if scope else None
    user = ctx.tx.one(people.USER_BY_NAME, name_key=name_key(name))
    if user is None:
        user = new_user(ctx, name, operator=False)
    elif ctx.tx.one(people.MEMBERSHIP, user=user.id) is not None:
        raise AlreadyExists(f"{user.name} has a part in this company already.")
    else:
        # An invitation from another company must not open this one.
        token_record.end(ctx, people.REVOKE_INVITATIONS, user=user.id)
        # Nothing comes back that they had here before, such as a seat.
        _end_part(ctx, user)
    membership = add_member(ctx, ctx.company, user.id, part, scope_id)
    ctx.record(
        "user.add", f"user:{user.id}", {"name": user.name, "role": part.value, "scope": scope_id}
    )
    return views.member(
        Member(user.id, user.name, part, membership.scope_agent_id, ctx.company, ctx.now)
    )


def add_member(
    ctx: Context, company: str, user: str, role: UserRole, scope: str | None
) -> Membership:
    place = None if scope is None else AgentId(scope)
    membership = Membership(CompanyId(company), UserId(user), role, place, ctx.now)
    ctx.tx.add(membership)
    return membership


def opens_more(ctx: Context, user: User) -> bool:
    """Return whether a person's tokens give access to more than the caller, as board of this
    company, decides about."""
    if user.id == ctx.actor.id:
        return False
    if user.operator:
        return True
    mine = {
        company.id
        for company in ctx.tx.all(people.COMPANIES_OF_USER, user=ctx.actor.id, after="", limit=_ALL)
        if (part := ctx.tx.one(people.MEMBERSHIP, company=company.id, user=ctx.actor.id))
        is not None
        and part.role is UserRole.BOARD
        and part.scope_agent_id is None
    }
    theirs = ctx.tx.all(people.COMPANIES_OF_USER, user=user.id, after="", limit=_ALL)
    return any(company.id not in mine for company in theirs)


def known(ctx: Context, user: str) -> User:
    return ctx.tx.existing(people.USER, user=user)


def new_user(ctx: Context, name: str, *, operator: bool) -> User:
    user = User(UserId(ctx.ids.new()), name, operator, ctx.now)
    ctx.tx.add(user, name_key=name_key(name))
    return user


@query(
    "users.listing",
    AsRoute("GET /companies/{companyId}/users", "list_users", page="id"),
    AsCommand("user list"),
)
def listing(
    ctx: Context, *, company: CompanyRef | None, after: str = "", limit: int = 100
) -> list[shapes.MemberShape]:
    """List the people of the company."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.USER_READ, on="users")
    return [views.member(person) for person in ctx.tx.all(people.MEMBERS, after=after, limit=limit)]


@query("users.me", AsRoute("GET /me", "show_caller"))
def me(ctx: Context) -> shapes.CallerShape:
    """The caller, as the token says."""
    return _caller(ctx.actor)


_caller = views.view_of(Principal, shapes.CallerShape)


@command(
    "users.remove",
    AsRoute(
        "DELETE /companies/{companyId}/users/{user}",
        "remove_user",
        preview="users.preview_removal",
    ),
)
def remove(ctx: Context, *, company: CompanyRef | None, user: UserRef) -> shapes.LeaverShape:
    """Take away a person's part in the company: seats, linked accounts and the keys of agents that
    they made end with it, and their own tokens when it was the last. Links and
    tokens that they made for others and nobody uses yet end as well; `handedOut` names these, and
    those in use, which stay."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.USER_CHANGE, on=f"user:{user}")
    person = member(ctx, user)
    if ctx.tx.one(people.OTHER_BOARD_MEMBERS, user=person.id) is None:
        raise Conflict(
            "The company would be left without a board.", "Add another board member first."
        )
    credentials = handed_out.by(ctx, person)
    handed_out.end_unused(ctx, credentials)
    ctx.tx.run(people.DELETE_MEMBERSHIP, user=person.id)
    seats = _end_part(ctx, person)
    keys = _end_keys(ctx, person)
    if not ctx.tx.all(people.COMPANIES_OF_USER, user=person.id, after="", limit=1):
        token_record.end_of(ctx, user=person.id)
    about = {
        "name": person.name,
        "seats": seats,
        "keys_of": keys,
        "handed_out_ended": [each.reference for each in credentials if each.ends],
        "handed_out_kept": [each.reference for each in credentials if not each.ends],
    }
    ctx.record("user.remove", f"user:{person.id}", about)
    return {
        "id": person.id,
        "name": person.name,
        "removed": True,
        "seats": [*map(str, seats)],
        "keys_of": [*map(str, keys)],
        "handed_out": [each.view(person.name) for each in credentials],
        "dry_run": False,
    }


preview_removal = preview_of("users.preview_removal", remove)


@query("users.handed_out")
def list_handed_out(
    ctx: Context, *, company: CompanyRef, user: UserRef
) -> list[shapes.HandedOutShape]:
    """Return the links and tokens that a person made for others, and whether each would end with
    their membership."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.USER_READ, on=f"user:{user}")
    person = member(ctx, user)
    return [each.view(person.name) for each in handed_out.by(ctx, person)]


def _end_part(ctx: Context, person: User) -> list[AgentId]:
    """End everything that a person had in the company besides the membership: seats with their
    keys, linked accounts, ways of being told. Returns the agents whose seats are vacant now."""
    seats = ctx.tx.all(agent_statements.SEATS_OF, user=person.id)
    for seat in seats:
        token_record.end_of(ctx, agent=seat)
    ctx.tx.run(agent_statements.VACATE_SEATS, user=person.id)
    ctx.tx.run(chat.REVOKE_ACCOUNTS_IN, user=person.id)
    ctx.tx.run(notices.DELETE_HOOK, user=person.id)
    ctx.tx.run(notices.DELETE_RULES, user=person.id)
    return list(seats)


def _end_keys(ctx: Context, person: User) -> list[AgentId]:
    """Revoke the keys of agents that a person made, and may have kept. Returns these agents."""
    agents = sorted(set(ctx.tx.all(people.KEYED_BY, user=person.id)))
    token_record.end(ctx, people.REVOKE_KEYS_MADE_BY, user=person.id)
    return agents


@command(
    "users.create_token",
    AsRoute("POST /companies/{companyId}/users/{user}/tokens", "create_token", 201),
)
def create_token(
    ctx: Context,
    *,
    company: CompanyRef | None,
    user: UserRef,
    label: Annotated[str, Text(LONGEST_LABEL, empty=True, one_line=True)] = "",
    expires_at: Annotated[Moment, Help("ISO 8601; default: that of your own token, or never.")]
    | None = None,
) -> shapes.NewTokenShape:
    """A token for a person, which is in this answer and nowhere else. Only board members over the
    company hand them out."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.USER_CHANGE, on=f"user:{user}")
    person = member(ctx, user)
    if person.operator and person.id != ctx.actor.id:
        raise Conflict(
            "An operator's tokens open every company.", "Let the operator make it themselves."
        )
    if opens_more(ctx, person):
        raise Conflict(
            "Their tokens also open companies that are not yours to decide about.",
            "Let them make it themselves, or somebody who is board of all of these.",
        )
    until = None if expires_at is None else from_iso(expires_at)
    return issue(ctx, TokenKind.USER, label, until, user=person.id)


@command(
    "users.revoke_token",
    AsRoute("DELETE /companies/{companyId}/users/{user}/tokens/{tokenId}", "revoke_token"),
)
def revoke_token(
    ctx: Context,
    *,
    company: CompanyRef | None,
    token: Annotated[str, Reference("token")],
    user: UserRef | None = None,
) -> shapes.RevokedShape:
    """End a person's token; when `user` is named, only if it is theirs."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.USER_CHANGE, on=f"token:{token}")
    token_row = ctx.tx.one(people.TOKEN, token=token)
    wanted = member(ctx, user).id if user is not None else None
    if (
        token_row is None
        or token_row.user_id is None
        or (wanted is not None and wanted != token_row.user_id)
        or ctx.tx.one(people.MEMBERSHIP, user=token_row.user_id) is None
    ):
        raise NotFound("There is no such token.")
    if opens_more(ctx, known(ctx, token_row.user_id)):
        # Otherwise the board here could lock others out of their own companies.
        raise Conflict(
            "The token also opens companies that are not yours to decide about.",
            "Remove the person from this company, or let them end it themselves.",
        )
    revoke(ctx, token_row)
    return {"id": token_row.id, "revoked": True}


@query(
    "users.tokens",
    AsRoute("GET /companies/{companyId}/users/{user}/tokens", "list_tokens", page="id"),
)
def tokens(ctx: Context, *, company: CompanyRef | None, user: UserRef) -> list[shapes.TokenShape]:
    """Tokens of a person, as far as they are this company's to decide about."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.USER_READ, on=f"user:{user}")
    person = member(ctx, user)
    if opens_more(ctx, person):
        return []
    return [views.token(token) for token in ctx.tx.all(people.USER_TOKENS, user=person.id)]


def revoke(ctx: Context, token: Token) -> bool:
    """Revoke a token and the sessions that were opened with it. Tokens that were made with it stay,
    so that a new one can replace an old one."""
    ended = token_record.end(ctx, people.REVOKE_TOKEN, token=token.id)
    token_record.end(ctx, people.REVOKE_OPENED_WITH, token=token.id, user=token.user_id)
    if not ended:
        ctx.record("token.revoke", f"token:{token.id}", {"user_id": token.user_id})
    return bool(ended)


def origin(ctx: Context) -> Token | None:
    """Return the token that a person called with, or the one that their session was opened with if
    that is known; None for Remit itself."""
    if ctx.caller is None or ctx.caller.system:
        return None
    if ctx.caller.account is not None:
        raise NotFound("Tokens are made where one signed in.", "Use the web or the CLI.")
    token = ctx.tx.existing(people.TOKEN_BY_DIGEST, digest=token_digest(ctx.caller.token))
    if token.kind is not TokenKind.SESSION or token.made_with is None:
        return token
    return ctx.tx.existing(people.TOKEN, token=token.made_with)


def issue(
    ctx: Context,
    kind: TokenKind,
    label: str,
    expires_at: Micros | None,
    *,
    usual: Micros | None = None,
    made_with: Token | None = None,
    user: str | None = None,
    agent: str | None = None,
    run: str | None = None,
) -> shapes.NewTokenShape:
    """Create a token. Its bearer sees it once; the database stores its digest.

    It expires no later than the token that it is made with. Without `expires_at` it lasts for
    `usual`, or as long as that token.
    """
    made_with = made_with or origin(ctx)
    latest = made_with.expires_at if made_with is not None else None
    if expires_at is None:
        wanted = None if usual is None else ctx.now + usual
        expires_at = min((end for end in (wanted, latest) if end is not None), default=None)
    elif expires_at <= ctx.now:
        raise BadInput("The expiry lies in the past.", "Choose a later time, or none.")
    elif latest is not None and expires_at > latest:
        raise BadInput(
            f"Your token ends at {moment(latest)}, and tokens made with it no later.",
            "Ask for no time, or an earlier one; or sign in with what lasts longer, such as a new "
            "link from the board.",
        )
    token_id, secret = TokenId(ctx.ids.new()), new_token(kind)
    token = Token(
        token_id,
        kind,
        label,
        ctx.now,
        expires_at,
        company_id=CompanyId(ctx.company or "") if agent is not None else None,
        user_id=UserId(user) if user is not None else None,
        agent_id=AgentId(agent) if agent is not None else None,
        run_id=RunId(run) if run is not None else None,
        made_with=made_with.id if made_with is not None else None,
    )
    token_record.add(ctx, token, secret)
    ctx.secrets["token"] = secret
    # A repeat of the same request gets everything but the token, which is shown once.
    return _issued(token, user_id=user, agent_id=agent, token=None)


_issued = views.view_of(Token, shapes.NewTokenShape, supplied=("user_id", "agent_id", "token"))


def member(ctx: Context, text: str) -> User:
    name = text.removeprefix("user:")
    if is_id(name):
        user = ctx.tx.one(people.USER, user=name)
    else:
        user = ctx.tx.one(people.USER_BY_NAME, name_key=name_key(name))
    if user is None or (ctx.tx.one(people.MEMBERSHIP, user=user.id) is None):
        raise NotFound.of("user")
    return user
