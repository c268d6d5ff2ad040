"""Tools for what an agent may do, and what it lets its reports do."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from remit.app import App
from remit.entrypoints.mcp.arguments import Arguments, Repeatable
from remit.entrypoints.mcp.registry import Tool
from remit.errors import BadInput
from remit.services import capability_requests, grants
from remit.services.identity import Caller


class ListArguments(Arguments):
    agent: Annotated[
        str | None, Field(description="A report of yours instead of you", max_length=80)
    ] = None
    limit: Annotated[int, Field(ge=1, le=500)] = 100
    after: Annotated[str, Field(description="Id of the last one seen", max_length=36)] = ""


class GrantArguments(Repeatable):
    request: Annotated[
        str | None, Field(description="Message that asks for it; then nothing else", max_length=64)
    ] = None
    to: Annotated[
        str | None, Field(description="agent:<name> or id of your report", max_length=80)
    ] = None
    resource: Annotated[str | None, Field(description="Such as kb_file:<id>", max_length=120)] = (
        None
    )
    level: Annotated[str | None, Field(description="none, read, write or use", max_length=10)] = (
        None
    )
    scope: Annotated[
        str | None,
        Field(description="Outcome it ends with; default: the mandate", max_length=64),
    ] = None
    expires_at: Annotated[str | None, Field(description="ISO 8601", max_length=40)] = None


class RefuseArguments(Repeatable):
    request: Annotated[str, Field(description="Message that asks for it", max_length=64)]
    why: Annotated[str, Field(max_length=10_000)]


class RevokeArguments(Repeatable):
    id: Annotated[str, Field(description="Grant id", max_length=64)]


def build(app: App) -> tuple[Tool, ...]:
    async def capability_list(token: str, arguments: ListArguments) -> dict[str, Any]:
        found = await app.gate(
            Caller(token),
            grants.listing,
            company=None,
            agent=arguments.agent,
            derived=True,
            after=arguments.after,
            limit=arguments.limit,
        )
        return {"capabilities": found}

    async def capability_grant(token: str, arguments: GrantArguments) -> dict[str, Any]:
        caller = Caller(token, arguments.idempotency_key)
        if arguments.request is not None:
            asked = arguments.request
            return await app.gate(caller, capability_requests.grant_request, request=asked)
        if arguments.to is None or arguments.resource is None or arguments.level is None:
            raise BadInput("to, resource and level are required.", "Name all three, or a request.")
        return await app.gate(
            caller,
            grants.give,
            company=None,
            to=arguments.to,
            resource=arguments.resource,
            level=arguments.level,
            scope=arguments.scope,
            expires_at=arguments.expires_at,
        )

    async def capability_refuse(token: str, arguments: RefuseArguments) -> dict[str, Any]:
        return await app.gate(
            Caller(token, arguments.idempotency_key),
            capability_requests.refuse_request,
            request=arguments.request,
            why=arguments.why,
        )

    async def capability_revoke(token: str, arguments: RevokeArguments) -> dict[str, Any]:
        return await app.gate(
            Caller(token, arguments.idempotency_key), grants.revoke, grant=arguments.id
        )

    return (
        Tool(
            "capability_list",
            "What you hold, and why you hold it.",
            ListArguments,
            capability_list,
        ),
        Tool(
            "capability_grant",
            "Pass on a capability you hold, or less of it, to a report.",
            GrantArguments,
            capability_grant,
            mutates=True,
        ),
        Tool(
            "capability_refuse",
            "Refuse what a report asked for; it learns why.",
            RefuseArguments,
            capability_refuse,
            mutates=True,
            offer="reports",
        ),
        Tool(
            "capability_revoke",
            "Take back what you granted, or give up what you hold.",
            RevokeArguments,
            capability_revoke,
            mutates=True,
        ),
    )
