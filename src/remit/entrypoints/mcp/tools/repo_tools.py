"""The tools for repositories."""

from typing import Annotated, Any

from pydantic import Field

from remit.app import App
from remit.entrypoints.mcp.arguments import Arguments, Repeatable, tool
from remit.entrypoints.mcp.registry import Tool
from remit.errors import BadInput
from remit.model.connections.change import LONGEST_DESCRIPTION, LONGEST_TITLE
from remit.model.text import clean_line, clean_text
from remit.services.connections import repos
from remit.services.identity import Caller


class CloneArguments(Arguments):
    # No descriptions: every agent pays for them in every conversation, and the names suffice.
    name: Annotated[str | None, Field(max_length=64)] = None
    ref: Annotated[str | None, Field(max_length=200)] = None
    dir: Annotated[str | None, Field(max_length=4096)] = None


class ProposeArguments(Repeatable):
    name: Annotated[str, Field(max_length=64)]
    branch: Annotated[str, Field(description="Of your copy, with your commits", max_length=200)]
    title: Annotated[str, Field(min_length=1, max_length=LONGEST_TITLE)]
    description: Annotated[str, Field(max_length=LONGEST_DESCRIPTION)] = ""
    dir: Annotated[str | None, Field(description="Of your copy", max_length=4096)] = None
    target: Annotated[
        str | None, Field(description="Branch it goes into; default: the usual", max_length=200)
    ] = None
    outcome_id: Annotated[str | None, Field(max_length=64)] = None


def build(app: App) -> tuple[Tool, ...]:
    async def repo_propose(caller: Caller, arguments: ProposeArguments) -> dict[str, Any]:
        """Propose the commits on a branch of your copy as a change; Remit pushes it."""
        return await app.proposals.propose(
            caller,
            name=arguments.name,
            branch=arguments.branch,
            title=clean_line(arguments.title, "title", longest=LONGEST_TITLE),
            description=clean_text(
                arguments.description, "description", longest=LONGEST_DESCRIPTION, empty_ok=True
            ),
            place=arguments.dir,
            target=arguments.target,
            outcome=arguments.outcome_id,
        )

    async def repo_clone(caller: Caller, arguments: CloneArguments) -> dict[str, Any]:
        """Copy a repository to your workspace; without name, list them."""
        if arguments.name is None:
            if arguments.ref is not None or arguments.dir is not None:
                raise BadInput("Which repository?", "Give its name; without all, they are listed.")
            listing = await app.gate(caller, repos.listing, company=None, limit=repos.MOST_REPOS)
            shown = ("name", "url", "ref", "mode")
            return {"repos": [{key: repo[key] for key in shown if key in repo} for repo in listing]}
        return await app.repos.clone(
            caller, name=arguments.name, ref=arguments.ref, place=arguments.dir
        )

    return (
        tool(repo_clone),
        tool(repo_propose, offer="changes"),
    )
