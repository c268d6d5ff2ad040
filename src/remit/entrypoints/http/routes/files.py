"""The list of files over HTTP. Search results are ranked, and have no pages.

Their bytes are in `content.py`; the other routes are declared with their verbs.
"""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from remit.app import App
from remit.entrypoints.http.wire.caller import caller
from remit.entrypoints.http.wire.fields import CompanyId, new_router
from remit.entrypoints.http.wire.paging import Paged, by_id
from remit.services.knowledge import files


def router(app: App) -> APIRouter:
    routes = new_router("files", "/api")

    @routes.get("/companies/{companyId}/files")
    async def list_files(
        request: Request,
        company: CompanyId,
        page: Paged,
        query: Annotated[str, Query(max_length=500)] = "",
    ) -> Response:
        """Files that the caller may know of: the newest, or with a query the best matches."""
        rows = await app.gate(
            caller(request),
            files.browse,
            company=company,
            words=query,
            before=page.before_id(),
            limit=page.limit,
        )
        # Matches are ranked, so there is no cursor to resume at.
        return page.reply(rows, None if query.strip() else by_id)

    return routes
