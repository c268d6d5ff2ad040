"""The instance over HTTP, for its operators: diagnosis of its machine, and backups.

Not declared: each route reads or changes files of this machine.
"""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Request, Response
from starlette.responses import FileResponse

from remit import threads
from remit.app import App
from remit.entrypoints.http.server.guard import host_name
from remit.entrypoints.http.wire.caller import caller
from remit.entrypoints.http.wire.fields import new_router
from remit.entrypoints.http.wire.json_document import reply
from remit.errors import Conflict
from remit.runtime import diagnosis
from remit.services.identity import Caller
from remit.services.people import instance

BackupName = Annotated[str, Path(alias="name", min_length=1, max_length=100)]
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_BINARY: Final = "application/octet-stream"
_BYTES: Final[dict[str, Any]] = {_BINARY: {"schema": {"type": "string", "format": "binary"}}}
_HEADERS: Final = {"Content-Security-Policy": "sandbox; default-src 'none'"}


async def examined(app: App, who: Caller) -> list[diagnosis.Finding]:
    """Findings of `remit doctor` on the machine of the instance, for an operator."""
    await app.gate(who, instance.may_operate, what="doctor")
    return await threads.CHECKS.run(diagnosis.look, app.settings)


def is_private(request: Request) -> bool:
    """Return whether nobody on the way can read a response: https, or from this machine to itself
    under a loopback name. Without the name it may be a proxy's request for somebody elsewhere."""
    if request.url.scheme == "https":
        return True
    peer = "" if request.client is None else request.client.host
    return peer in _LOOPBACK and host_name(request.headers.get("host", "")) in _LOOPBACK


async def backup_file(app: App, request: Request, who: Caller, name: str) -> Response:
    """Return a backup as a download, unless somebody on the way could read it."""
    if not is_private(request):
        raise Conflict(
            "A backup holds everything, so it is not sent over plain HTTP.",
            f"Use https, or copy it on the machine from {app.backups.folder}.",
        )
    path = await app.backups.take(who, name)
    return FileResponse(path, filename=path.name, media_type=_BINARY, headers=_HEADERS)


def router(app: App) -> APIRouter:
    routes = new_router("instance", "/api/instance")

    @routes.get("/doctor")
    async def examine_instance(request: Request) -> Response:
        """Each thing that was looked at, whether it is good, and what to do if not."""
        return reply([finding._asdict() for finding in await examined(app, caller(request))])

    @routes.get("/backups")
    async def list_backups(request: Request) -> Response:
        """Backups on the machine of the instance, the newest first."""
        return reply(await app.backups.listing(caller(request)))

    @routes.post("/backups", status_code=201)
    async def make_backup(request: Request) -> Response:
        """Write everything to a file there; `writing` when that takes longer than the call."""
        return reply(await app.backups.make(caller(request)), 201)

    @routes.get(
        "/backups/{name}",
        response_class=Response,
        responses={200: {"description": "A backup", "content": _BYTES}},
    )
    async def download_backup(request: Request, name: BackupName) -> Response:
        """The file; over https, or from the same machine."""
        return await backup_file(app, request, caller(request), name)

    @routes.delete("/backups/{name}")
    async def remove_backup(request: Request, name: BackupName) -> Response:
        return reply(await app.backups.remove(caller(request), name))

    return routes
