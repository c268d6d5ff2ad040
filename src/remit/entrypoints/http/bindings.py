"""Bindings of agents to channels, over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field, StrictBool

from remit.app import App
from remit.entrypoints.http.caller import caller
from remit.entrypoints.http.document import reply
from remit.entrypoints.http.fields import Body, CompanyId, Id, Reference, new_router
from remit.entrypoints.http.paging import Paged, by_id
from remit.services import bindings


class BindingBody(Body):
    agent: Reference
    adapter_type: Annotated[
        str, Field(description="The kind of channel, such as webhook.", max_length=40)
    ]
    adapter_config: Annotated[
        dict[str, Any], Field(description="As the channel's documentation says.")
    ] = {}  # noqa: RUF012  pydantic copies it
    replace: Annotated[
        StrictBool, Field(description="It may be there already; it gets a new token.")
    ] = False


def router(app: App) -> APIRouter:
    routes = new_router("bindings", "/api")
    in_company = "/companies/{companyId}/bindings"

    @routes.get("/companies/{companyId}/channels")
    async def list_channels(request: Request, company: CompanyId) -> Response:
        """The kinds of channels that are installed, and how bindings to them are configured."""
        return reply(await app.gate(caller(request), bindings.channels, company=company))

    @routes.get(in_company)
    async def list_bindings(
        request: Request,
        company: CompanyId,
        page: Paged,
        agent: Annotated[Reference | None, Query()] = None,
    ) -> Response:
        """Of the company, or of one agent; never their tokens."""
        rows = await app.gate(
            caller(request),
            bindings.listing,
            company=company,
            agent=agent,
            after=page.after_id(),
            limit=page.limit,
        )
        return page.reply(rows, by_id)

    @routes.post(in_company, status_code=201)
    async def add_binding(request: Request, company: CompanyId, body: BindingBody) -> Response:
        """The answer has the token, once; the outside shows it at `POST /api/channels/:kind`."""
        view = await app.gate(
            caller(request),
            bindings.add,
            company=company,
            agent=body.agent,
            kind=body.adapter_type,
            config=body.adapter_config,
            replace=body.replace,
        )
        return reply(view, 201)

    @routes.delete(in_company + "/{id}")
    async def remove_binding(request: Request, company: CompanyId, binding: Id) -> Response:
        """Its token opens nothing any more; what has not gone out awaits a person."""
        return reply(
            await app.gate(caller(request), bindings.remove, company=company, binding=binding)
        )

    return routes
