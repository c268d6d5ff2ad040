"""Repositories over HTTP: routes that use the copy on this machine, and webhooks of forges."""

from dataclasses import asdict
from typing import Annotated, Final

from fastapi import APIRouter, Path, Request, Response

from remit.app import App
from remit.entrypoints import bodies
from remit.entrypoints.http.wire.caller import caller
from remit.entrypoints.http.wire.fields import CompanyId, new_router
from remit.entrypoints.http.wire.json_document import reply

#: Larger calls are refused; the next regular poll finds the same news.
LARGEST_HOOK: Final = 5 << 20
ChangeId = Annotated[str, Path(alias="id", min_length=1, max_length=200)]
RepoName = Annotated[str, Path(alias="name", min_length=1, max_length=64)]


def router(app: App) -> APIRouter:
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
