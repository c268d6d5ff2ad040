"""Secrets, MCP servers besides Remit's own, and repositories over HTTP, and webhooks of forges.

Not declared: the routes use the vault and the copies on this machine, or start a server, whose
fields are one argument of the verb. The value of a secret is accepted, and never returned.
"""

import asyncio
from dataclasses import asdict
from importlib import import_module
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from remit.app import App
from remit.entrypoints import bodies
from remit.entrypoints.http.wire import field_types
from remit.entrypoints.http.wire.caller import caller
from remit.entrypoints.http.wire.fields import Body, CompanyId, Id, Reference, new_router
from remit.entrypoints.http.wire.json_document import reply
from remit.entrypoints.http.wire.paging import Paged, by_id
from remit.errors import BadInput
from remit.model.connections.secret import source_name
from remit.services.connections import mcp_servers, secrets
from remit.services.identity import as_system

#: Larger calls are refused; the next regular poll finds the same news.
LARGEST_HOOK: Final = 5 << 20
ChangeId = Annotated[str, Path(alias="id", min_length=1, max_length=200)]
RepoName = Annotated[str, Path(alias="name", min_length=1, max_length=64)]


class SecretBody(Body):
    name: Reference
    source: Annotated[
        str | None, Field(description="env, file, command, or what a plugin adds.", max_length=40)
    ] = None
    #: A variable, the path of a file, or a command as a list; on the instance's machine.
    place: field_types.SecretPlace | list[field_types.SecretPlace] | None = None
    #: Instead of both: the value itself, which the instance keeps in a file of its own.
    value: field_types.SecretValue | None = None


def secret_router(app: App) -> APIRouter:
    routes = new_router("secrets", "/api")
    in_company = "/companies/{companyId}/secrets"

    @routes.get(in_company)
    async def list_secrets(request: Request, company: CompanyId, page: Paged) -> Response:
        """Where each is found, and whether it can be had on the machine that answers."""
        registered = await app.gate(
            caller(request),
            secrets.listing,
            company=company,
            after=page.after_id(),
            limit=page.limit,
        )
        rows = [
            {**secrets.view(secret), "usable": problem is None, "problem": problem}
            for secret, problem in zip(
                registered, await app.vault.problems(registered), strict=True
            )
        ]
        return page.reply(rows, by_id)

    @routes.post(in_company, status_code=201)
    async def set_secret(request: Request, company: CompanyId, body: SecretBody) -> Response:
        """Register where a secret is found, or give its value; again, to change it."""
        who = caller(request)
        allowed = await app.gate(who, secrets.may_change, company=company, name=body.name)
        wanted: dict[str, Any] = {"company": allowed["company_id"], "name": body.name}
        if body.value is None:
            if body.source is None or body.place is None:
                raise BadInput("Give source and place, or value.", "Say where it is found.")
            app.vault.check_source(source_name(body.source))
            answer = await app.gate(
                who, secrets.put, **wanted, source=body.source, place=body.place
            )
            return reply(await app.vault.settled(answer), 201)
        if body.source is not None or body.place is not None:
            raise BadInput("Give source and place, or value.", "Not all of them.")
        answer = await app.vault.put(
            who, company=wanted["company"], name=body.name, value=body.value
        )
        return reply(answer, 201)

    @routes.delete(in_company + "/{id}")
    async def remove_secret(request: Request, company: CompanyId, name: Id) -> Response:
        return reply(await app.vault.remove(caller(request), company=company, name=name))

    return routes


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


def mcp_server_router(app: App) -> APIRouter:
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


def repo_router(app: App) -> APIRouter:
    routes = new_router("repos", "/api")
    in_company = "/companies/{companyId}/repos"

    @routes.delete(in_company + "/{name}")
    async def remove_repo(request: Request, company: CompanyId, name: RepoName) -> Response:
        """Remove a repository and every capability on it."""
        return reply(await app.repos.remove(caller(request), company=company, name=name))

    @routes.post(in_company + "/{name}/sync")
    async def sync_repo(request: Request, company: CompanyId, name: RepoName) -> Response:
        """Fetch it now on this machine, and check that all of it is there."""
        return reply(await app.repos.sync(caller(request), company=company, name=name))

    @routes.get(in_company + "/{name}/lendable")
    async def list_lendable(
        request: Request,
        company: CompanyId,
        name: RepoName,
        folder: Annotated[str, Query(max_length=1000)] = "",
        ref: Annotated[str | None, Query(max_length=200)] = None,
    ) -> Response:
        """Skills, commands and agents in it that can be lent to an agent, in base64 by path."""
        files = await app.repos.lendable(
            caller(request), company=company, name=name, ref=ref, folder=folder
        )
        return reply(files)

    @routes.get("/changes/{id}/diff", tags=["changes"])
    async def diff_change(request: Request, change: ChangeId) -> Response:
        """Changed files and lines of a change, up to a limit; control characters are escaped."""
        return reply(asdict(await app.reviews.diff(caller(request), change)))

    return routes


def hooks(app: App) -> APIRouter:
    """Router of forges' webhooks, which are signed and only cause an earlier poll."""
    routes = new_router("hooks", "/api", public=True)

    # The format is the forge's own, so the route is not in /openapi.json.
    @routes.post("/hooks/{repo}", status_code=202, include_in_schema=False)
    async def take_hook(request: Request, repo: str) -> Response:
        """Something happened at the forge of a repository."""
        sent = await bodies.whole(request.scope, request.receive, LARGEST_HOOK)
        await app.forges.rung(app.gate, repo, request.headers, sent)
        return Response(status_code=202)

    return routes
