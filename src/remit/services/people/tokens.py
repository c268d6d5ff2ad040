"""Tokens of people: their own, to sign in with once the session is over, and invitations.

An invitation is a link that signs a person in, once, without a shell: a token that opens one
session. Only its digest is stored. It expires, and is revoked when the person gets a part in
another company, over which its maker has no say.
"""

from typing import Annotated, Final, cast

from remit.authority import Action
from remit.clock import DAY, HOUR
from remit.errors import BadInput, Conflict, NotFound
from remit.ids import TokenKind
from remit.model.organisation.user import UserRole
from remit.model.text import LONGEST_LABEL
from remit.services import lookup, shapes, views
from remit.services.command import Context, command, query
from remit.services.fields import AgentRef, CompanyRef, Help, Name, Range, Reference, Text, UserRef
from remit.services.people import sessions, token_record, users
from remit.services.surfaces import AsRoute
from remit.services.verbs import Added
from remit.store.organisation import people

USUAL_DAYS: Final = 90
MOST_DAYS: Final = 366
LABEL: Final = people.INVITATION
USUAL_HOURS: Final = 72
MOST_HOURS: Final = 14 * 24
Hours = Annotated[int, Range(1, MOST_HOURS), Help("How long the link is good.")]


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


# ── invitations ─────────────────────────────────────────────────────────────────────────────────


@command(
    "users.invite",
    Added("hours", USUAL_HOURS),
    AsRoute("POST /companies/{companyId}/invitations", "invite_user", 201),
)
def invite(
    ctx: Context,
    *,
    company: CompanyRef,
    name: Name,
    role: Annotated[str, UserRole] = "board",
    scope: AgentRef | None = None,
    hours: Hours | None = None,
) -> shapes.InvitationShape:
    """Give a person a part in the company, and a link that signs them in if they are new here.

    Who is known already signs in as before: a link of theirs would open other companies, too.
    """
    member = users.add.body(ctx, company=company, name=name, role=role, scope=scope)
    known = users.opens_more(ctx, users.known(ctx, member["id"]))
    link = None if known else _link(ctx, member["id"], hours)
    # As everywhere, a repeat of the same request gets everything but the token.
    answer = {
        **member,
        "known": known,
        "link_id": link and link["id"],
        "expires_at": link and link["expires_at"],
        "token": None,
    }
    return cast(shapes.InvitationShape, answer)


@command(
    "users.create_link",
    AsRoute("POST /companies/{companyId}/users/{user}/links", "create_user_link", 201),
)
def create_link(
    ctx: Context, *, company: CompanyRef | None, user: UserRef, hours: Hours | None = None
) -> shapes.NewTokenShape:
    """Make a new sign-in link for a person of the company; their earlier links end."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.USER_CHANGE, on=f"user:{user}")
    person = users.member(ctx, user)
    if person.operator or users.opens_more(ctx, person):
        raise Conflict(
            "A link of theirs would also open companies that are not yours to decide about.",
            "Let them sign in with a token of their own.",
        )
    token_record.end(ctx, people.REVOKE_INVITATIONS, user=person.id)
    return _link(ctx, person.id, hours)


def _link(ctx: Context, user: str, hours: int | None) -> shapes.NewTokenShape:
    if hours is not None and not 1 <= hours <= MOST_HOURS:
        raise BadInput(f"hours must be from 1 to {MOST_HOURS}.", "Choose another time.")
    until = None if hours is None else ctx.now + hours * HOUR
    return users.issue(ctx, TokenKind.LOGIN, LABEL, until, usual=USUAL_HOURS * HOUR, user=user)


@query(
    "users.links", AsRoute("GET /companies/{companyId}/invitations", "list_invitations", page="id")
)
def links(ctx: Context, *, company: CompanyRef | None) -> list[shapes.TokenShape]:
    """The links that nobody has used yet and that are still good; never the links themselves."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.USER_READ, on="users")
    return [views.token(link) for link in ctx.tx.all(people.INVITATIONS)]
