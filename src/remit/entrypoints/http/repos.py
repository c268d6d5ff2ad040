"""Repositories over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from remit.app import App
from remit.entrypoints.http import described
from remit.entrypoints.http.caller import caller
from remit.entrypoints.http.document import reply
from remit.entrypoints.http.fields import Body, CompanyId, new_router
from remit.entrypoints.http.paging import Paged, by_id
from remit.model.repo import LONGEST_REF, LONGEST_URL
from remit.services import repos

RepoName = Annotated[str, Path(alias="name", min_length=1, max_length=64)]


class RepoBody(Body):
    name: described.Name
    url: Annotated[str, described.text(LONGEST_URL)]
    #: The branch, tag or commit to clone when none is asked for.
    ref: Annotated[str, described.text(LONGEST_REF)] | None = None
    username: str | None = None
    #: The name of the secret that opens it, not its value.
    secret: str | None = None


def router(app: App) -> APIRouter:
    routes = new_router("repos", "/api")
    in_company = "/companies/{companyId}/repos"

    @routes.get(in_company)
    async def list_repos(request: Request, company: CompanyId, page: Paged) -> Response:
        """All of them for people; for an agent those that it may clone."""
        rows = await app.gate(
            caller(request),
            repos.listing,
            company=company,
            after=page.after_id(),
            limit=page.limit,
        )
        return page.reply(rows, by_id)

    @routes.post(in_company, status_code=201)
    async def add_repo(request: Request, company: CompanyId, body: RepoBody) -> Response:
        """By a board member who is an operator: it is fetched by the instance's machine."""
        view = await app.gate(caller(request), repos.add, company=company, **body.model_dump())
        return reply(view, 201)

    @routes.delete(in_company + "/{name}")
    async def remove_repo(request: Request, company: CompanyId, name: RepoName) -> Response:
        """Takes every capability on it along."""
        return reply(await app.repos.remove(caller(request), company=company, name=name))

    @routes.post(in_company + "/{name}/sync")
    async def sync_repo(request: Request, company: CompanyId, name: RepoName) -> Response:
        """Fetch it now on this machine, and check that all of it is there."""
        return reply(await app.repos.sync(caller(request), company=company, name=name))

    return routes
