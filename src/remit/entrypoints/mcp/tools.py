"""The tools every agent has: always listed; the operation inside is what is refused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from remit.app import App
from remit.entrypoints.mcp import capability_tools, kb_tools
from remit.entrypoints.mcp.registry import Tool
from remit.services import users
from remit.services.identity import Caller


def build_tools(app: App) -> Callable[[str], Awaitable[Sequence[Tool]]]:
    """The tools for the bearer of a token."""
    base = (*kb_tools.build(app), *capability_tools.build(app))

    async def tools(_token: str) -> Sequence[Tool]:
        return base

    return tools


def build_authenticate(app: App) -> Callable[[str], Awaitable[None]]:
    """Refuses tokens that are not known, before a request is looked at any further."""

    async def authenticate(token: str) -> None:
        await app.gate(Caller(token), users.me)

    return authenticate
