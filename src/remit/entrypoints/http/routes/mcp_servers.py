"""MCP servers besides Remit's own, over HTTP. Not declared: the fields of a body are one argument
of the verb, and a test starts the server."""

import asyncio
from importlib import import_module
from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import Field

from remit.app import App
from remit.entrypoints.http.wire import field_types
from remit.entrypoints.http.wire.caller import caller
from remit.entrypoints.http.wire.fields import Body, CompanyId, Id, Reference, new_router
from remit.entrypoints.http.wire.json_document import reply
from remit.services.connections import mcp_servers
from remit.services.identity import as_system


class ServerBody(Body):
    name: Reference
    command: Annotated[
        list[field_types.Setting] | None,
        Field(description="A program on the instance's machine, or else:"),
    ] = None
    url: Annotated[
        field_types.ServerUrl | None, Field(description="An address that speaks MCP over HTTP.")
    ] = None
    #: Of a program.
    env: dict[str, field_types.Setting] | None = None
    secret_env: Annotated[
        dict[str, field_types.Setting] | None,
        Field(description="By name of a secret, or a text with one in braces."),
    ] = None
    #: Of an address.
    headers: dict[str, field_types.Setting] | None = None
    secret_headers: Annotated[
        dict[str, field_types.Setting] | None, Field(description="Such as Bearer {github-token}.")
    ] = None
    inject: Annotated[
        bool, Field(description="Give the variables to agents' own programs, too: not safe.")
    ] = False
    replace: Annotated[bool, Field(description="It may be there already.")] = False


def router(app: App) -> APIRouter:
    routes = new_router("mcp-servers", "/api")
    in_company = "/companies/{companyId}/mcp-servers"

    @routes.post(in_company, status_code=201)
    async def add_mcp_server(request: Request, company: CompanyId, body: ServerBody) -> Response:
        """Agents use it once they are granted `mcp_server:<name>`."""
        view = await app.gate(
            caller(request),
            mcp_servers.add,
            company=company,
            name=body.name,
            definition=body.model_dump(exclude={"name", "replace"}),
            replace=body.replace,
        )
        return reply(view, 201)

    @routes.post(in_company + "/{id}/test")
    async def test_mcp_server(request: Request, company: CompanyId, name: Id) -> Response:
        """Start it, see which tools it offers, and end it."""
        allowed = await app.gate(caller(request), mcp_servers.try_out, company=company, name=name)
        server = await app.gate(
            as_system(), mcp_servers.find, company=allowed["company_id"], name=allowed["name"]
        )
        # Imported now, because it takes a second and hardly anybody needs it.
        upstream = await asyncio.to_thread(import_module, "remit.entrypoints.mcp.upstream")
        trial = await upstream.try_out(app, server)
        return reply({"name": server.name, "version": server.version, **trial})

    return routes
