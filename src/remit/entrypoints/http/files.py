"""Files over HTTP: what is known about them. Their bytes are in `content.py`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import StrictBool

from remit.app import App
from remit.entrypoints.http import described
from remit.entrypoints.http.caller import caller
from remit.entrypoints.http.document import reply
from remit.entrypoints.http.fields import Body, CompanyId, Id, new_router
from remit.entrypoints.http.paging import Paged, by_id
from remit.services import choices, files


class DescriptionBody(Body):
    description: described.FileDescription | None = None
    unlisted: StrictBool | None = None


def router(app: App) -> APIRouter:
    routes = new_router("files", "/api")

    @routes.get("/companies/{companyId}/files")
    async def list_files(
        request: Request,
        company: CompanyId,
        page: Paged,
        query: Annotated[str, Query(max_length=500)] = "",
    ) -> Response:
        """What the caller may know of: the newest, or with a query the best matches."""
        rows = await app.gate(
            caller(request),
            files.browse,
            company=company,
            words=query,
            before=page.after_id(files.END_OF_IDS),
            limit=page.limit,
        )
        # Matches are ranked, so that there is no place at which to go on.
        return page.reply(rows, None if query.strip() else by_id)

    @routes.get("/files/{id}")
    async def show_file(request: Request, file: Id) -> Response:
        return reply(await app.gate(caller(request), files.show, file=file))

    @routes.patch("/files/{id}")
    async def change_file(request: Request, file: Id, body: DescriptionBody) -> Response:
        view = await app.gate(
            caller(request),
            files.describe,
            file=file,
            description=body.description,
            unlisted=body.unlisted,
        )
        return reply(view)

    @routes.get("/files/{id}/versions")
    async def list_versions(request: Request, file: Id, page: Paged) -> Response:
        rows = await app.gate(
            caller(request),
            files.history,
            file=file,
            before=page.before_number(files.LAST),
            limit=page.limit,
        )
        return page.reply(rows, lambda row: row["number"])

    @routes.get("/files/{id}/log")
    async def list_accesses(request: Request, file: Id, page: Paged) -> Response:
        """Who read and wrote it, newest first."""
        rows = await app.gate(
            caller(request),
            files.accesses,
            file=file,
            before=page.before_number(files.LAST),
            limit=page.limit,
        )
        return page.reply(rows, by_id)

    @routes.get("/files/{id}/holders")
    async def list_holders(request: Request, file: Id) -> Response:
        """Who was given something on it, for those who may know who read it."""
        return reply(await app.gate(caller(request), choices.holders, file=file))

    return routes
