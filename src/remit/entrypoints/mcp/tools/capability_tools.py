"""The tool that passes a capability on, by name or for a message's request."""

from typing import Annotated, Any

from pydantic import Field

from remit.app import App
from remit.entrypoints.mcp.arguments import Repeatable, tool
from remit.entrypoints.mcp.registry import KEY, Tool
from remit.errors import BadInput
from remit.services.identity import Caller
from remit.services.rights import capability_requests, grants


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
    level: Annotated[
        str | None,
        Field(description="none, read, write, use; repo: read, propose, merge", max_length=10),
    ] = None
    scope: Annotated[
        str | None, Field(description="Outcome it ends with; default: the mandate", max_length=64)
    ] = None
    expires_at: Annotated[str | None, Field(description="ISO 8601", max_length=40)] = None
    paths: Annotated[
        list[Annotated[str, Field(max_length=200)]] | None,
        Field(description="repo: only these, such as src/**", max_length=50),
    ] = None
    branches: Annotated[
        list[Annotated[str, Field(max_length=200)]] | None, Field(max_length=50)
    ] = None


def build(app: App) -> tuple[Tool, ...]:
    async def capability_grant(caller: Caller, arguments: GrantArguments) -> dict[str, Any]:
        """Pass on a capability you hold, or less of it, to a report."""
        if arguments.request is not None:
            request = arguments.request
            return await app.gate(caller, capability_requests.grant_request, request=request)
        if arguments.to is None or arguments.resource is None or arguments.level is None:
            raise BadInput("to, resource and level are required.", "Name all three, or a request.")
        grant = arguments.model_dump(exclude={"request", KEY})
        return await app.gate(caller, grants.give, company=None, **grant)

    return (tool(capability_grant),)
