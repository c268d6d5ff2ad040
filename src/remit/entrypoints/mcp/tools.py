"""The tools every agent has: always listed; the operation inside is what is refused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from remit.app import App
from remit.entrypoints.mcp import capability_tools, kb_tools, mail_tools, outcome_tools
from remit.entrypoints.mcp.registry import Tool
from remit.services import users, waiting
from remit.services.identity import Caller


def build_tools(app: App) -> Callable[[str], Awaitable[Sequence[Tool]]]:
    """What the bearer of a token can call: everything; what is inside is decided there."""
    every = tuple(
        tool
        for tools in (kb_tools, outcome_tools, mail_tools, capability_tools)
        for tool in tools.build(app)
    )

    async def tools(_token: str) -> Sequence[Tool]:
        return every

    return tools


def build_listed(
    app: App, tools: Callable[[str], Awaitable[Sequence[Tool]]]
) -> Callable[[str], Awaitable[Sequence[Tool]]]:
    """What the bearer of a token is told of: what each agent needs, and no more."""

    async def listed(token: str) -> Sequence[Tool]:
        with_ends = await app.gate(Caller(token), waiting.has_loose_ends)
        return [tool for tool in await tools(token) if with_ends or not tool.for_loose_ends]

    return listed


def build_authenticate(app: App) -> Callable[[str], Awaitable[None]]:
    """Refuses tokens that are not known, before a request is looked at any further."""

    async def authenticate(token: str) -> None:
        await app.gate(Caller(token), users.me)

    return authenticate
