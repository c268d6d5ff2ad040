"""The tool for repositories."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from remit.app import App
from remit.entrypoints.mcp.arguments import Arguments
from remit.entrypoints.mcp.registry import Tool
from remit.errors import BadInput
from remit.services import repos
from remit.services.identity import Caller


class CloneArguments(Arguments):
    # Every agent reads this in every conversation, so what the names say is not said again.
    name: Annotated[str | None, Field(max_length=64)] = None
    ref: Annotated[str | None, Field(max_length=200)] = None
    dir: Annotated[str | None, Field(max_length=4096)] = None


def build(app: App) -> tuple[Tool, ...]:
    async def repo_clone(token: str, given: CloneArguments) -> dict[str, Any]:
        caller = Caller(token)
        if given.name is None:
            if given.ref is not None or given.dir is not None:
                raise BadInput("Which repository?", "Give its name; without all, they are listed.")
            found = await app.gate(caller, repos.listing, company=None, limit=repos.MOST_REPOS)
            shown = ("name", "url", "ref", "mode")
            return {"repos": [{key: one[key] for key in shown if key in one} for one in found]}
        return await app.repos.clone(caller, name=given.name, ref=given.ref, place=given.dir)

    return (
        Tool(
            "repo_clone",
            "Copy a repository to your workspace; without name, list them.",
            CloneArguments,
            repo_clone,
        ),
    )
