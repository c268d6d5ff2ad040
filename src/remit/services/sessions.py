"""Signing in to the web: a one-time link opens a session that ends by itself."""

from __future__ import annotations

from remit.clock import DAY, MINUTE, Micros
from remit.errors import NotFound, Unauthenticated
from remit.ids import TokenKind, token_digest
from remit.model.decision import Decision, Effect
from remit.model.principal import ActorKind, Principal
from remit.services import lookup, users
from remit.services.command import Answer, Context, command
from remit.store import people

LINK_LASTS: Micros = 15 * MINUTE
SESSION_LASTS: Micros = 7 * DAY

_OWN = Decision(Effect.ALLOW, "self", "It is your own session.", "rule:self")


@command
def create_link(ctx: Context) -> Answer:
    """A token that opens one session, once, for the user who asks."""
    _own_company(ctx)
    return users.issue(ctx, TokenKind.LOGIN, "login link", ctx.now + LINK_LASTS, user=ctx.actor.id)


@command
def redeem(ctx: Context, *, link: str) -> Answer:
    """Exchange a link for a session; whoever holds the link is its user, once."""
    found = ctx.tx.one(people.LOGIN_BY_DIGEST, digest=token_digest(link))
    user = found and ctx.tx.one(people.USER, user=found.user_id)
    if (
        found is None
        or not user
        or found.expires_at is None
        or ctx.now >= found.expires_at
        # Of several who come with it at the same moment, one finds it unused.
        or not ctx.tx.run(people.REVOKE_TOKEN, token=found.id, now=ctx.now)
    ):
        raise Unauthenticated(
            "This login link was used already or has expired.", "Run `remit open` for a new one."
        )
    ctx.actor = Principal(ActorKind.USER, user.id, user.name, operator=user.operator)
    _own_company(ctx)
    return users.issue(ctx, TokenKind.SESSION, "web", ctx.now + SESSION_LASTS, user=ctx.actor.id)


@command
def end(ctx: Context, *, session: str) -> Answer:
    """End the session that the caller is using."""
    found = ctx.tx.one(people.IDENTITY, digest=token_digest(session))
    if found is None or found.user_id != ctx.actor.id:
        raise NotFound("There is no such session.")
    _own_company(ctx)
    ctx.tx.run(people.REVOKE_BY_DIGEST, digest=found.digest, now=ctx.now)
    ctx.record("session.end", f"user:{ctx.actor.id}", {})
    return {"ended": True}


def _own_company(ctx: Context) -> None:
    """Signing in concerns the person, so it is recorded in the first company they are in."""
    if ctx.actor.kind is not ActorKind.USER:
        raise NotFound("Only people sign in.", "Use the agent's token directly.")
    mine = ctx.tx.all(people.COMPANIES_OF_USER, user=ctx.actor.id, after="", limit=1)
    ctx.enter(lookup.only(mine, "company").id)
    ctx.accept_rule(_OWN)
