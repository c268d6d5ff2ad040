"""Signing in to the web: a single-use link opens a session that expires."""

from remit.clock import DAY, MINUTE, Micros
from remit.errors import NotFound, Unauthenticated
from remit.ids import TokenKind, token_digest
from remit.model.organisation.decision import Decision, Effect
from remit.model.organisation.principal import ActorKind, Principal, Token
from remit.services import lookup, shapes, views
from remit.services.command import Context, command, query
from remit.services.people import token_record, users
from remit.store.organisation import people

LINK_LASTS: Micros = 15 * MINUTE
SESSION_LASTS: Micros = 7 * DAY
MOST_LISTED = 100

_OWN = Decision(Effect.ALLOW, "self", "It is your own session.", "rule:self")


@command("sessions.create_link")
def create_link(ctx: Context) -> shapes.NewTokenShape:
    """Create a token that opens one session, once, for the caller."""
    allow_own(ctx)
    return users.issue(
        ctx, TokenKind.LOGIN, "login link", None, usual=LINK_LASTS, user=ctx.actor.id
    )


@command("sessions.redeem")
def redeem(ctx: Context, *, link: str) -> shapes.NewTokenShape:
    """Exchange a link for a session, once; the bearer counts as the user of the link."""
    token = ctx.tx.one(people.LOGIN_BY_DIGEST, digest=token_digest(link))
    user = token and ctx.tx.one(people.USER, user=token.user_id)
    if (
        token is None
        or not user
        or token.expires_at is None
        or ctx.now >= token.expires_at
        # If several requests bring it at the same time, one alone finds it unused.
        or not (used := ctx.tx.all(people.REVOKE_TOKEN, token=token.id))
    ):
        raise Unauthenticated(
            "This link was used already or has expired.",
            "Ask whoever sent it for a new one, sign in with a token, or run `remit open`.",
        )
    ctx.actor = Principal(ActorKind.USER, user.id, user.name, operator=user.operator)
    allow_own(ctx)
    token_record.ended(ctx, used)
    source = token.made_with and ctx.tx.one(people.TOKEN, token=token.made_with)
    return _session(ctx, source or None)


@command("sessions.open")
def open_(ctx: Context) -> shapes.NewTokenShape:
    """Open a session for the person whose token it is."""
    allow_own(ctx)
    return _session(ctx)


def _session(ctx: Context, made_with: Token | None = None) -> shapes.NewTokenShape:
    return users.issue(
        ctx,
        TokenKind.SESSION,
        "web",
        None,
        usual=SESSION_LASTS,
        made_with=made_with,
        user=ctx.actor.id,
    )


@command("sessions.end")
def end(ctx: Context, *, session: str) -> shapes.EndedSessionShape:
    """End the session that the caller is using."""
    identity = ctx.tx.one(people.IDENTITY, digest=token_digest(session))
    if identity is None or identity.user_id != ctx.actor.id:
        raise NotFound("There is no such session.")
    allow_own(ctx)
    token_record.end(ctx, people.REVOKE_BY_DIGEST, digest=identity.digest)
    ctx.record("session.end", f"user:{ctx.actor.id}", {})
    return {"ended": True}


@query("sessions.mine")
def mine(ctx: Context) -> list[shapes.OwnSessionShape]:
    """List the calling person's live sessions, newest first."""
    person(ctx)
    this = _current(ctx)
    return [
        {**views.token(token), "current": this is not None and token.id == this.id}
        for token in ctx.tx.all(people.SESSIONS_OF_USER, user=ctx.actor.id, limit=MOST_LISTED)
    ]


@command("sessions.end_one")
def end_one(ctx: Context, *, session: str) -> shapes.EndedSessionShape:
    """End one of the caller's own sessions, wherever it is open; its open pages are told."""
    allow_own(ctx)
    token = ctx.tx.one(people.TOKEN, token=session)
    if (
        token is None
        or token.kind is not TokenKind.SESSION
        or token.user_id != ctx.actor.id
        or not token_record.end(ctx, people.REVOKE_TOKEN, token=token.id)
    ):
        raise NotFound("There is no such session.", "It may have ended already.")
    ctx.record("session.end", f"user:{ctx.actor.id}", {"session": token.id})
    return {"id": token.id, "ended": True}


@command("sessions.end_others")
def end_others(ctx: Context) -> shapes.EndedSessionsShape:
    """End every session of the caller but the calling one, and revoke unused links."""
    allow_own(ctx)
    this = _current(ctx)
    kept = this.id if this is not None else ""
    gone = token_record.end(ctx, people.REVOKE_OTHER_SESSIONS, user=ctx.actor.id, kept=kept)
    sessions = [token.kind for token in gone].count(TokenKind.SESSION)
    ctx.record("session.end", f"user:{ctx.actor.id}", {"others": sessions})
    return {"ended": sessions}


def _current(ctx: Context) -> Token | None:
    """Return the token of the call."""
    if ctx.caller is None or ctx.caller.system:
        return None
    return ctx.tx.one(people.TOKEN_BY_DIGEST, digest=token_digest(ctx.caller.token))


def person(ctx: Context) -> None:
    if ctx.actor.kind is not ActorKind.USER:
        raise NotFound("Only people sign in.", "Use the agent's token directly.")


def allow_own(ctx: Context) -> None:
    """Allow what concerns only the calling person; recorded in the first company that they are
    in."""
    person(ctx)
    companies = ctx.tx.all(people.COMPANIES_OF_USER, user=ctx.actor.id, after="", limit=1)
    ctx.enter(lookup.only(companies, "company").id)
    ctx.allow_by_rule(_OWN)
