"""The tools: everybody's, and those that are listed for whom they are of use.

Whatever is listed, the operation inside is what is refused.
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

#: Of the JSON that tools are described in, roughly.
CHARACTERS_PER_TOKEN = 4
#: How many people who could decide are looking at a company.
Attached = Callable[[str], int]


def build_tools(app: App, attached: Attached = lambda _: 0) -> dict[str, Tool]:
    """All tools by name; each decides for itself what it allows its caller."""
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
    """Tools that the bearer of a token is told of: those that each agent needs, and no more; `more`
    are tools of other servers."""

    async def listed(token: str) -> Sequence[Tool]:
        offers = await app.gate(Caller(token), overview.offered)
        ours = [tool for tool in tools.values() if tool.offer in offers]
        return [*ours, *(await more(token) if more is not None else ())]

    return listed


def base_size(app: App) -> tuple[int, int]:
    """How many tools every agent is told of, and about how many tokens that takes."""
    base = [tool for tool in build_tools(app).values() if not tool.offer]
    listed = [[tool.name, tool.description, schema_of(tool)] for tool in base]
    return len(base), len(json.dumps(listed, separators=(",", ":"))) // CHARACTERS_PER_TOKEN
