"""People: who has a part in a company, and their tokens."""

from __future__ import annotations

from typing import Any, cast

from remit.authority import Action
from remit.clock import Micros
from remit.errors import AlreadyExists, BadInput, Conflict, NotFound
from remit.ids import TokenId, TokenKind, UserId, is_id, new_token, token_digest
from remit.model.text import LONGEST_LABEL, clean_line, clean_name, name_key
from remit.model.user import Membership, User, UserRole
from remit.services import lookup, shapes, views
from remit.services.command import Answer, Context, command, query
from remit.store import agents as agent_statements
from remit.store import people
from remit.store.people import Member

_ALL = 100_000


@command("users.add")
def add(
    ctx: Context, *, company: str, name: object, role: object = "board", scope: str | None = None
) -> Answer:
    """Give a person a part in the company; a new person is made when the name is new."""
    name = clean_name(name)
    try:
        part = UserRole(role)  # type: ignore[arg-type]  # anything else is the error we report
    except ValueError:
        raise BadInput("role must be board or observer.", "Choose one of the two.") from None
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.USER_CHANGE, on=f"user:{name}")
    assert ctx.company is not None
    scope_id = lookup.agent(ctx, scope).id if scope else None
    user = ctx.tx.one(people.USER_BY_NAME, name_key=name_key(name))
    if user is None:
        user = new_user(ctx, name, operator=False)
    elif ctx.tx.one(people.MEMBERSHIP, company=ctx.company, user=user.id) is not None:
        raise AlreadyExists(f"{user.name} has a part in this company already.")
    membership = add_member(ctx, ctx.company, user.id, part, scope_id)
    ctx.record(
        "user.add", f"user:{user.id}", {"name": user.name, "role": part.value, "scope": scope_id}
    )
    return views.member(
        Member(user.id, user.name, part, membership.scope_agent_id, ctx.company, ctx.now)
    )


@command("users.invite")
def invite(
    ctx: Context, *, company: str, name: object, role: object = "board", scope: str | None = None
) -> Answer:
    """Give a person a part in the company, and a first token if they are new here.

    Who is known already has tokens of their own, which open other companies, too.
    """
    member = add.body(ctx, company=company, name=name, role=role, scope=scope)
    known = _opens_more(ctx, _require(ctx, member["id"]))
    if not known:
        issue(ctx, TokenKind.USER, "first token", None, user=member["id"])
    # As everywhere, a repeat of the same request gets everything but the token.
    return {**member, "known": known, "token": None}


def add_member(
    ctx: Context, company: str, user: str, role: UserRole, scope: str | None
) -> Membership:
    ctx.tx.run(
        people.INSERT_MEMBERSHIP,
        company_id=company,
        user_id=user,
        role=role.value,
        scope_agent_id=scope,
        created_at=ctx.now,
    )
    membership = ctx.tx.one(people.MEMBERSHIP, company=company, user=user)
    assert membership is not None
    return membership


def _opens_more(ctx: Context, user: User) -> bool:
    """Whether a person's tokens open more than the caller, who is board of this company, could."""
    if user.id == ctx.actor.id:
        return False
    if user.operator:
        return True
    mine = {
        one.id
        for one in ctx.tx.all(people.COMPANIES_OF_USER, user=ctx.actor.id, after="", limit=_ALL)
        if (part := ctx.tx.one(people.MEMBERSHIP, company=one.id, user=ctx.actor.id)) is not None
        and part.role is UserRole.BOARD
        and part.scope_agent_id is None
    }
    theirs = ctx.tx.all(people.COMPANIES_OF_USER, user=user.id, after="", limit=_ALL)
    return any(one.id not in mine for one in theirs)


def _require(ctx: Context, user: str) -> User:
    found = ctx.tx.one(people.USER, user=user)
    assert found is not None
    return found


def new_user(ctx: Context, name: str, *, operator: bool) -> User:
    user = User(UserId(ctx.ids.new()), name, operator, ctx.now)
    ctx.tx.run(
        people.INSERT_USER,
        id=user.id,
        name=name,
        name_key=name_key(name),
        operator=operator,
        created_at=ctx.now,
    )
    return user


@query("users.listing")
def listing(
    ctx: Context, *, company: str | None, after: str = "", limit: int = 100
) -> list[dict[str, Any]]:
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.USER_READ, on="users")
    return [
        views.member(found)
        for found in ctx.tx.all(people.MEMBERS, company=ctx.company, after=after, limit=limit)
    ]


@query("users.me")
def me(ctx: Context) -> dict[str, Any]:
    """Who the token says the caller is."""
    shown: shapes.CallerShape = {
        "kind": ctx.actor.kind.value,
        "id": ctx.actor.id,
        "name": ctx.actor.name,
        "company_id": ctx.actor.company_id,
        "run_id": ctx.actor.run_id,
        "operator": ctx.actor.operator,
    }
    return cast(dict[str, Any], shown)


@command("users.remove")
def remove(ctx: Context, *, company: str | None, user: str) -> Answer:
    """Take away a person's part in the company, and their tokens when it was the last."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.USER_CHANGE, on=f"user:{user}")
    found = member(ctx, user)
    if ctx.tx.one(people.OTHER_BOARD_MEMBERS, company=ctx.company, user=found.id) is None:
        raise Conflict(
            "The company would be left without a board.", "Add another board member first."
        )
    ctx.tx.run(people.DELETE_MEMBERSHIP, company=ctx.company, user=found.id)
    for seat in ctx.tx.all(agent_statements.SEATS_OF, company=ctx.company, user=found.id):
        # The keys they made for an agent whose seat they hold go with them.
        ctx.tx.run(people.REVOKE_TOKENS_OF, agent=seat, user=None, run=None, now=ctx.now)
    if not ctx.tx.all(people.COMPANIES_OF_USER, user=found.id, after="", limit=1):
        ctx.tx.run(people.REVOKE_TOKENS_OF, user=found.id, agent=None, run=None, now=ctx.now)
    ctx.record("user.remove", f"user:{found.id}", {"name": found.name})
    return {"id": found.id, "removed": True}


@command("users.create_token")
def create_token(
    ctx: Context, *, company: str | None, user: str, label: object = "", expires_at: Micros | None
) -> Answer:
    """A token for a person. Only board members over the company hand them out."""
    label = clean_line(label, "label", longest=LONGEST_LABEL, empty_ok=True)
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.USER_CHANGE, on=f"user:{user}")
    found = member(ctx, user)
    if found.operator and found.id != ctx.actor.id:
        raise Conflict(
            "An operator's tokens open every company.", "Let the operator make it themselves."
        )
    if _opens_more(ctx, found):
        raise Conflict(
            "Their tokens also open companies that are not yours to decide about.",
            "Let them make it themselves, or somebody who is board of all of these.",
        )
    return issue(ctx, TokenKind.USER, label, expires_at, user=found.id)


@command("users.revoke_token")
def revoke_token(
    ctx: Context, *, company: str | None, token: str, user: str | None = None
) -> Answer:
    """End a person's token; when `user` is named, only if it is theirs."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.USER_CHANGE, on=f"token:{token}")
    found = ctx.tx.one(people.TOKEN, token=token)
    wanted = member(ctx, user).id if user is not None else None
    if (
        found is None
        or found.user_id is None
        or (wanted is not None and wanted != found.user_id)
        or ctx.tx.one(people.MEMBERSHIP, company=ctx.company, user=found.user_id) is None
    ):
        raise NotFound("There is no such token.")
    if _opens_more(ctx, _require(ctx, found.user_id)):
        # Whoever is board here could otherwise shut others out of their own companies.
        raise Conflict(
            "The token also opens companies that are not yours to decide about.",
            "Remove the person from this company, or let them end it themselves.",
        )
    ctx.tx.run(people.REVOKE_TOKEN, token=found.id, now=ctx.now)
    ctx.record("token.revoke", f"token:{found.id}", {"user_id": found.user_id})
    return {"id": found.id, "revoked": True}


@query("users.tokens")
def tokens(ctx: Context, *, company: str | None, user: str) -> list[dict[str, Any]]:
    """Those of a person, as far as they are this company's to decide about."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.USER_READ, on=f"user:{user}")
    found = member(ctx, user)
    if _opens_more(ctx, found):
        return []
    return [views.token(one) for one in ctx.tx.all(people.USER_TOKENS, user=found.id)]


def issue(
    ctx: Context,
    kind: TokenKind,
    label: str,
    expires_at: Micros | None,
    *,
    user: str | None = None,
    agent: str | None = None,
    run: str | None = None,
) -> Answer:
    """Make a token; its bearer sees it once, the database never."""
    if expires_at is not None and expires_at <= ctx.now:
        raise BadInput("The expiry lies in the past.", "Choose a later time, or none.")
    token_id, secret = TokenId(ctx.ids.new()), new_token(kind)
    ctx.tx.run(
        people.INSERT_TOKEN,
        id=token_id,
        digest=token_digest(secret),
        kind=kind.value,
        company_id=ctx.company if agent is not None else None,
        user_id=user,
        agent_id=agent,
        run_id=run,
        label=label,
        created_at=ctx.now,
        expires_at=expires_at,
        revoked_at=None,
    )
    ctx.record(
        "token.create",
        f"token:{token_id}",
        {"kind": kind.value, "label": label, "agent_id": agent, "user_id": user, "run_id": run},
    )
    ctx.secrets["token"] = secret
    return {
        "id": token_id,
        "kind": kind.value,
        "label": label,
        "user_id": user,
        "agent_id": agent,
        "created_at": views.time(ctx.now),
        "expires_at": views.time(expires_at),
        # A repeat of the same request gets everything but the token, which is shown once.
        "token": None,
    }


def member(ctx: Context, text: str) -> User:
    name = text.removeprefix("user:")
    if is_id(name):
        user = ctx.tx.one(people.USER, user=name)
    else:
        user = ctx.tx.one(people.USER_BY_NAME, name_key=name_key(name))
    if user is None or (ctx.tx.one(people.MEMBERSHIP, company=ctx.company, user=user.id) is None):
        raise NotFound.of("user")
    return user
