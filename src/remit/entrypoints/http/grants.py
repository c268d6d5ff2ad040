"""Capabilities over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from remit.app import App
from remit.entrypoints.http import described
from remit.entrypoints.http.caller import caller
from remit.entrypoints.http.document import reply
from remit.entrypoints.http.fields import Body, CompanyId, Id, Reference, new_router
from remit.entrypoints.http.paging import Paged, by_id
from remit.services import grants


class Wish(Body):
    """A capability somebody is to have."""

    resource: Reference
    level: described.Access
    mode: described.Mode | None = None
    scope: Reference | None = None
    expires_at: described.Moment | None = None

    def as_wish(self) -> dict[str, Any]:
        return self.model_dump()


class GrantBody(Wish):
    #: The agent that receives it.
    to: Reference


def router(app: App) -> APIRouter:
    routes = new_router("grants", "/api")
    in_company = "/companies/{companyId}/grants"

    @routes.get(in_company)
    async def list_grants(
        request: Request,
        company: CompanyId,
        page: Paged,
        agent: Annotated[Reference | None, Query()] = None,
        unused: bool = False,
        derived: bool = False,
    ) -> Response:
        """With `derived` and one agent, also what follows from the tree and has no grant."""
        rows = await app.gate(
            caller(request),
            grants.listing,
            company=company,
            agent=agent,
            unused=unused,
            derived=derived,
            after=page.after_id(),
            limit=page.limit,
        )
        # What follows from the tree comes before the first page and has no id to go on at.
        return page.reply(rows, by_id if rows and rows[-1]["id"] else None)

    @routes.post(in_company, status_code=201)
    async def give_grant(request: Request, company: CompanyId, body: GrantBody) -> Response:
        view = await app.gate(
            caller(request),
            grants.give,
            company=company,
            to=body.to,
            resource=body.resource,
            level=body.level,
            mode=body.mode or "allow",
            scope=body.scope,
            expires_at=body.expires_at,
        )
        return reply(view, 201)

    @routes.delete(in_company + "/{id}")
    async def revoke_grant_in_company(request: Request, company: CompanyId, grant: Id) -> Response:
        return reply(await app.gate(caller(request), grants.revoke, grant=grant, company=company))

    @routes.delete("/grants/{id}")
    async def revoke_grant(request: Request, grant: Id) -> Response:
        """Takes everything along that was passed on from it."""
        return reply(await app.gate(caller(request), grants.revoke, grant=grant))

    return routes
