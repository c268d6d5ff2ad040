"""The content that a call which waits for approval would write, for whoever decides about it.

An agent wrote these bytes, so a browser must never treat them as a page of Remit's.
"""

from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from remit.app import App
from remit.entrypoints.http.routes.files import HARMLESS, pieces
from remit.entrypoints.http.wire.caller import caller
from remit.entrypoints.http.wire.fields import Id, new_router
from remit.services.governance import approvals

_BYTES: Final[dict[str, Any]] = {"application/octet-stream": {}}


def router(app: App) -> APIRouter:
    routes = new_router("approvals", "/api")

    # Not declared: its answer is bytes.
    @routes.get(
        "/approvals/{id}/content",
        response_class=Response,
        responses={200: {"description": "The bytes", "content": _BYTES}},
    )
    async def read_approval_content(request: Request, approval: Id) -> Response:
        """The content that a call which waits for approval would write."""
        library = app.library
        stored = await app.gate(caller(request), approvals.content, approval=approval)
        stream = await library.run(library.blobs.open, stored["file_id"], stored["sha256"])
        name = f'attachment; filename="{stored["sha256"][:12]}"'
        return StreamingResponse(
            pieces(library, stream),
            headers={**HARMLESS, "Content-Disposition": name},
            media_type="application/octet-stream",
        )

    return routes
