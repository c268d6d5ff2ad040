"""All tools, and the selection that an agent is shown.

A tool that is not listed can be called, too: its operation is what authorises.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import chain

from remit.app import App
from remit.entrypoints.mcp import declared_tools
from remit.entrypoints.mcp.registry import Tool, schema_of
from remit.entrypoints.mcp.tools import (
    budget_tools,
    capability_tools,
    creation_tool,
    governance_tools,
    kb_tools,
    outcome_tools,
    repo_tools,
)
from remit.services.identity import Caller
from remit.services.screens import overview

#: Rough estimate for the JSON that describes tools.
CHARACTERS_PER_TOKEN = 4
#: Returns the number of connected people who may decide in a company.
Attached = Callable[[str], int]


def build_tools(app: App, attached: Attached = lambda _: 0) -> dict[str, Tool]:
    """Build all tools by name; each authorises its caller itself."""
    built = [
        declared_tools.build(app),
        *(tools.build(app) for tools in (kb_tools, outcome_tools, capability_tools)),
        *(tools.build(app) for tools in (repo_tools, governance_tools, budget_tools)),
        creation_tool.build(app, attached),
    ]
    every = sorted(chain.from_iterable(built), key=lambda tool: tool.name)
    return {tool.name: tool for tool in every}


def build_listed(
    app: App,
    tools: Mapping[str, Tool],
    more: Callable[[str], Awaitable[Sequence[Tool]]] | None = None,
) -> Callable[[str], Awaitable[Sequence[Tool]]]:
    """Return a function that selects the tools for the bearer of a token: those every agent needs
    and those it has a use for; `more` are tools of other servers."""

    async def listed(token: str) -> Sequence[Tool]:
        offers = await app.gate(Caller(token), overview.offered)
        ours = [tool for tool in tools.values() if tool.offer in offers]
        return [*ours, *(await more(token) if more is not None else ())]

    return listed


def base_size(app: App) -> tuple[int, int]:
    """Return the number of tools that every agent is shown, and about how many tokens they take."""
    base = [tool for tool in build_tools(app).values() if not tool.offer]
    listed = [[tool.name, tool.description, schema_of(tool)] for tool in base]
    return len(base), len(json.dumps(listed, separators=(",", ":"))) // CHARACTERS_PER_TOKEN
