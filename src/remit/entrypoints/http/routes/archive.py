"""Export, import and the outcome graph of a company over HTTP."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import StreamingResponse

from remit.app import App
from remit.entrypoints import svg
from remit.entrypoints.http.wire.caller import caller
from remit.entrypoints.http.wire.fields import CompanyId, new_router
from remit.entrypoints.http.wire.json_document import reply
from remit.errors import BadInput
from remit.services.fields import LONGEST_REFERENCE
from remit.services.work import outcome_walks

TAR: Final = "application/x-tar"
_BYTES: Final[dict[str, Any]] = {TAR: {"schema": {"type": "string", "format": "binary"}}}
_SANDBOX: Final = "sandbox; default-src 'none'; frame-ancestors 'none'"
#: Agents write the titles in it, so a browser must never treat the drawing as a page of Remit's.
_DRAWING: Final = {
    "Content-Security-Policy": f"{_SANDBOX}; style-src 'unsafe-inline'",
    "Cache-Control": "private, no-cache",
}

Root = Annotated[str | None, Query(max_length=LONGEST_REFERENCE, description="Only what is below.")]


def router(app: App) -> APIRouter:
    routes = new_router("archive", "/api/companies")

    @routes.get(
        "/{companyId}/export",
        response_class=Response,
        responses={200: {"description": "A tar", "content": _BYTES}},
    )
    async def export_company(request: Request, company: CompanyId) -> Response:
        """The whole company as a tar of readable text. That it was taken is recorded."""
        outline = await app.archive.export(caller(request), company)
        headers = {
            "Content-Disposition": 'attachment; filename="company.tar"',
            "Content-Length": str(outline.size),
            "Content-Security-Policy": _SANDBOX,
        }
        return StreamingResponse(app.archive.stream(outline), headers=headers, media_type=TAR)

    @routes.post(
        "/import",
        status_code=201,
        openapi_extra={"requestBody": {"required": True, "content": _BYTES}},
    )
    async def import_company(
        request: Request, name: Annotated[str | None, Query(max_length=200)] = None
    ) -> Response:
        """Make a company from an export, under the ids it had; its board is the caller."""
        who = caller(request)
        await app.gate.check(who)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in (TAR, "application/octet-stream", ""):
            raise BadInput("The body must be a tar.", f"Send it as {TAR}.")
        source = request.stream().__aiter__()
        return reply(await app.archive.import_(who, source, name=name), 201)

    @routes.get("/{companyId}/outcomes/graph.json")
    async def outcome_graph(request: Request, company: CompanyId, root: Root = None) -> Response:
        """The outcomes of the company, or those below one, with what connects them."""
        return reply(
            await app.gate(caller(request), outcome_walks.drawing, company=company, root=root)
        )

    @routes.get(
        "/{companyId}/outcomes/graph.svg",
        response_class=Response,
        responses={200: {"description": "A drawing", "content": {"image/svg+xml": {}}}},
    )
    async def draw_outcomes(request: Request, company: CompanyId, root: Root = None) -> Response:
        """The same as a drawing."""
        shown = await app.gate(caller(request), outcome_walks.drawing, company=company, root=root)
        drawing = await app.library.run(svg.draw, shown)
        return Response(drawing, headers=_DRAWING, media_type="image/svg+xml")

    return routes
