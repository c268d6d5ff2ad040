"""A person's own tokens: to sign in with once the session is over."""

from typing import Annotated, Final

from remit.clock import DAY
from remit.errors import BadInput, NotFound
from remit.ids import TokenKind
from remit.model.text import LONGEST_LABEL
from remit.services import shapes, views
from remit.services.command import Context, command, query
from remit.services.fields import Help, Range, Reference, Text
from remit.services.people import sessions, users
from remit.services.surfaces import AsRoute
from remit.store.organisation import people

USUAL_DAYS: Final = 90
MOST_DAYS: Final = 366


@command("tokens.create", AsRoute("POST /me/tokens", "create_own_token", 201))
def create(
    ctx: Context,
    *,
    label: Annotated[str, Text(LONGEST_LABEL, empty=True, one_line=True)] = "",
    days: Annotated[int, Range(1, MOST_DAYS), Help("How long it is good.")] | None = None,
) -> shapes.NewTokenShape:
    """A token of one's own, which is in this answer and nowhere else. Without `days` it is good for
    90, or as long as what you came with; it never lasts longer than that."""
    if days is not None and not 1 <= days <= MOST_DAYS:
        raise BadInput(f"days must be from 1 to {MOST_DAYS}.", "Choose another time.")
    sessions.allow_own(ctx)
    until = None if days is None else ctx.now + days * DAY
    return users.issue(ctx, TokenKind.USER, label, until, usual=USUAL_DAYS * DAY, user=ctx.actor.id)


@query("tokens.listing", AsRoute("GET /me/tokens", "list_own_tokens", page="id"))
def listing(ctx: Context) -> list[shapes.TokenShape]:
    """One's own tokens and invitations; never the tokens themselves."""
    sessions.person(ctx)
    return [views.token(token) for token in ctx.tx.all(people.USER_TOKENS, user=ctx.actor.id)]


@command("tokens.revoke", AsRoute("DELETE /me/tokens/{tokenId}", "revoke_own_token"))
def revoke(ctx: Context, *, token: Annotated[str, Reference("token")]) -> shapes.RevokedShape:
    """End a token of one's own, and the sessions that were opened with it."""
    sessions.allow_own(ctx)
    token_row = ctx.tx.one(people.TOKEN, token=token)
    if (
        token_row is None
        or token_row.user_id != ctx.actor.id
        or token_row.kind not in (TokenKind.USER, TokenKind.LOGIN)
        or not users.revoke(ctx, token_row)
    ):
        raise NotFound("There is no such token.", "It may have ended already.")
    return {"id": token_row.id, "revoked": True}
