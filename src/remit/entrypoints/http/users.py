"""People, their tokens and their login links over HTTP."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from remit.app import App
from remit.entrypoints.http import described
from remit.entrypoints.http.caller import caller
from remit.entrypoints.http.document import reply
from remit.entrypoints.http.fields import (
    Body,
    CompanyId,
    Expiring,
    Reference,
    TokenId,
    UserName,
    new_router,
)
from remit.entrypoints.http.paging import Paged, by_id
from remit.services import sessions, users


class UserBody(Body):
    name: described.Name
    role: described.Membership = "board"
    #: The agent whose part of the company this is about; without one, the whole.
    scope: Reference | None = None


def router(app: App) -> APIRouter:
    routes = new_router("users", "/api")
    in_company = "/companies/{companyId}/users"
    of_user = in_company + "/{user}/tokens"

    @routes.get("/me")
    async def show_caller(request: Request) -> Response:
        """Who the token says the caller is."""
        return reply(await app.gate(caller(request), users.me))

    @routes.post("/login-links", status_code=201)
    async def create_login_link(request: Request) -> Response:
        """A link that signs the calling person in to the web, once."""
        link = await app.gate(caller(request), sessions.create_link)
        base = app.settings.url or f"{request.url.scheme}://{request.url.netloc}"
        url = link["token"] and f"{base.rstrip('/')}/login?token={link['token']}"
        return reply({"url": url, "expires_at": link["expires_at"]}, 201)

    @routes.get(in_company)
    async def list_users(request: Request, company: CompanyId, page: Paged) -> Response:
        rows = await app.gate(
            caller(request),
            users.listing,
            company=company,
            after=page.after_id(),
            limit=page.limit,
        )
        return page.reply(rows, by_id)

    @routes.post(in_company, status_code=201)
    async def add_user(request: Request, company: CompanyId, body: UserBody) -> Response:
        view = await app.gate(
            caller(request),
            users.add,
            company=company,
            name=body.name,
            role=body.role,
            scope=body.scope,
        )
        return reply(view, 201)

    @routes.delete(in_company + "/{user}")
    async def remove_user(request: Request, company: CompanyId, user: UserName) -> Response:
        return reply(await app.gate(caller(request), users.remove, company=company, user=user))

    @routes.get(of_user)
    async def list_tokens(
        request: Request, company: CompanyId, user: UserName, page: Paged
    ) -> Response:
        return page.cut(await app.gate(caller(request), users.tokens, company=company, user=user))

    @routes.post(of_user, status_code=201)
    async def create_token(
        request: Request, company: CompanyId, user: UserName, body: Expiring | None = None
    ) -> Response:
        """The token is in this answer and nowhere else."""
        wanted = body or Expiring()
        view = await app.gate(
            caller(request),
            users.create_token,
            company=company,
            user=user,
            label=wanted.label,
            expires_at=wanted.expiry(),
        )
        return reply(view, 201)

    @routes.delete(of_user + "/{tokenId}")
    async def revoke_token(
        request: Request, company: CompanyId, user: UserName, token: TokenId
    ) -> Response:
        view = await app.gate(
            caller(request), users.revoke_token, company=company, user=user, token=token
        )
        return reply(view)

    return routes
