"""Files over HTTP: their list, and their contents. Contents have plain routes, because agents spend
their time here. Agents write these bytes, so a browser must never treat them as a page of Remit's.
The other routes are declared with their verbs.
"""

from collections.abc import AsyncIterator
from typing import Annotated, Any, BinaryIO, Final, TypeVar

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field, StrictBool, ValidationError
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from remit.app import App
from remit.entrypoints import bodies
from remit.entrypoints.http.wire import field_types, json_document
from remit.entrypoints.http.wire.caller import caller
from remit.entrypoints.http.wire.fields import Body, CompanyId, new_router
from remit.entrypoints.http.wire.paging import Paged, by_id
from remit.errors import BadInput
from remit.model.work.file import LONGEST_DESCRIPTION
from remit.services.fields import LONGEST_REFERENCE
from remit.services.identity import Caller
from remit.services.knowledge import files
from remit.services.knowledge.file_contents import PIECE, Library, Source
from remit.services.record import events
from remit.store.blob_store.blobs import SMALL

HARMLESS: Final = {
    "Content-Disposition": "attachment",
    "Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "private, no-cache",
}
_BEFORE: Final = "/api/files/"
_BEHIND: Final = "/content"
Checked = TypeVar("Checked", bound=BaseModel)


class FileBody(Body):
    """A file of text, made with one JSON document."""

    description: field_types.FileDescription
    content: str
    unlisted: StrictBool = False


class CreateQuery(BaseModel):
    """Query of a file whose bytes are the body; checked with JSON, too, where the body counts."""

    description: Annotated[
        str,
        field_types.text(LONGEST_DESCRIPTION, empty=True),
        Field(description="Only when the content is not JSON."),
    ] = ""
    unlisted: Annotated[bool, Field(description="Only when the content is not JSON.")] = False


class ReadQuery(BaseModel):
    version: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    at: Annotated[
        field_types.Moment | None, Field(description="Its text at this time (ISO 8601).")
    ] = None


class ContentRoutes:
    """The routes of contents, and a shortcut to them around the routing table."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.routes = [
            Route("/api/files/{id}/content", self._content, methods=["GET", "PUT"]),
            Route("/api/companies/{companyId}/files", self._create, methods=["POST"]),
        ]

    def shortcut(self, scope: Scope) -> ASGIApp | None:
        """Handler of a request for content, found without a walk through all the routes.

        Errors are left to the guard, which answers them all.
        """
        path = scope["path"]
        if not path.startswith(_BEFORE) or not path.endswith(_BEHIND):
            return None
        file = path[len(_BEFORE) : -len(_BEHIND)]
        if not file or "/" in file or scope["method"] not in ("GET", "PUT"):
            return None
        scope["path_params"] = {"id": file}
        return self._serve

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._content(Request(scope, receive, send))
        await response(scope, receive, send)

    async def _content(self, request: Request) -> Response:
        if request.method == "PUT":
            return await _write(self._app.library, request)
        return await _read(self._app.library, request)

    async def _create(self, request: Request) -> Response:
        return await _create(self._app.library, request)


async def _read(library: Library, request: Request) -> Response:
    who, file = caller(request), request.path_params["id"]
    query = _checked(ReadQuery, request.query_params)
    version = query.version
    if query.at is not None:
        if version is not None:
            raise BadInput("version and at exclude each other.", "Give one of the two.")
        version = await library.gate(who, events.version_at, file=file, at=query.at)
    view, stream = await library.open(who, file=file, version=version)
    headers = {**HARMLESS, "ETag": _tag(view)}
    if _has(request.headers.get("if-none-match"), headers["ETag"]):
        stream.close()
        return Response(status_code=304, headers=headers)
    kind = "text/plain; charset=utf-8" if view["is_text"] else "application/octet-stream"
    if view["size"] <= SMALL:
        with stream:
            whole = await library.read_all(view, stream)
        return Response(whole, headers=headers, media_type=kind)
    headers["Content-Length"] = str(view["size"])
    return StreamingResponse(pieces(library, stream), headers=headers, media_type=kind)


async def pieces(library: Library, stream: BinaryIO) -> AsyncIterator[bytes]:
    """Yield the bytes of a stream, and close it."""
    with stream:
        while piece := await library.run(stream.read, PIECE):
            yield piece


async def _write(library: Library, request: Request) -> Response:
    who = caller(request)
    await _refuse_unknown(library, who, request)
    version, sha256 = _seen(request.headers.get("if-match"))
    view = await library.write(
        who, await _source(request), file=request.path_params["id"], version=version, sha256=sha256
    )
    return json_document.reply(view, headers={"ETag": _tag(view)})


async def _create(library: Library, request: Request) -> Response:
    """JSON for text; any other type is the content itself, described in the query."""
    who = caller(request)
    await _refuse_unknown(library, who, request)
    company, query = request.path_params["companyId"], _checked(CreateQuery, request.query_params)
    if len(company) > LONGEST_REFERENCE or not company.isprintable():
        raise BadInput("companyId: is not an id.", "List the companies.")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    source: Source
    if kind == json_document.JSON or kind.endswith("+json"):
        json_document.check_type(request.headers)
        sent = await bodies.whole(request.scope, request.receive)
        body, source = await bodies.apart(len(sent), _file_body, sent)
        description, unlisted = body.description, body.unlisted
    elif kind == "multipart/form-data":
        raise BadInput(
            "A form is not taken here.", "Send the bytes themselves, with ?description=…"
        )
    else:
        source, description, unlisted = await _source(request), query.description, query.unlisted
    view = await library.create(
        who, source, company=company, description=description, unlisted=unlisted
    )
    return json_document.reply(view, 201, {"ETag": _tag(view)})


async def _refuse_unknown(library: Library, who: Caller, request: Request) -> None:
    """Refuse an unknown token before the request is examined. With a body this is the guard's
    check, which is due at the first byte and seldom repeated for small ones."""
    incoming: bodies.Incoming | None = request.scope.get(bodies.INCOMING)
    if incoming is not None:
        await incoming.who()
    else:
        await library.gate.check(who)


async def _source(request: Request) -> Source:
    """The body as it arrives; a small one whole, which saves the library a question."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) <= SMALL:
        return await request.body()
    return request.stream().__aiter__()


def _file_body(sent: bytes) -> tuple[FileBody, bytes]:
    """Return the validated document, and the bytes of its text."""
    body = _checked(FileBody, json_document.read(sent))
    return body, body.content.encode()


def _checked(kind: type[Checked], values: Any) -> Checked:
    try:
        return kind.model_validate(values)
    except ValidationError as wrong:
        problem = wrong.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in problem["loc"]) or "body"
        what = "is required" if problem["type"] == "missing" else problem["msg"]
        raise BadInput(f"{where}: {what}.") from None


def _tag(view: dict[str, Any]) -> str:
    return f'"{view["version"]}:{view["hash"]}"'


def _has(header: str | None, tag: str) -> bool:
    """Return whether If-None-Match names this version (RFC 9110, 13.1.2)."""
    if header is None:
        return False
    tags = [entry.strip().removeprefix("W/") for entry in header.split(",")]
    return tags == ["*"] or tag in tags


def _seen(header: str | None) -> tuple[int, str]:
    """Parse If-Match: the version and hash that the caller read last."""
    if header is None:
        raise BadInput(
            "Overwriting takes the version and hash you last read, as If-Match.",
            "Send the ETag of the version you read.",
        )
    number, colon, sha256 = header.strip().strip('"').partition(":")
    if not colon or not sha256:
        raise BadInput('If-Match must be "version:hash".', "Send the ETag of the version you read.")
    if not number.isascii() or not number.isdecimal() or len(number) > 10:
        raise BadInput("version must be a positive whole number.", "See the file's history.")
    return int(number), sha256


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
