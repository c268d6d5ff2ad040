"""The instance over HTTP, for its operators: diagnosis of its machine, and backups.

Not declared: each route reads or changes files of this machine.
"""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Request, Response
from starlette.responses import FileResponse

from remit import threads
from remit.app import App
from remit.entrypoints import arrival, outside_check
from remit.entrypoints.http.wire.caller import caller
from remit.entrypoints.http.wire.fields import new_router
from remit.entrypoints.http.wire.json_document import reply
from remit.errors import Conflict
from remit.runtime import diagnosis
from remit.services.identity import Caller
from remit.services.people import instance

BackupName = Annotated[str, Path(alias="name", min_length=1, max_length=100)]
_BINARY: Final = "application/octet-stream"
_BYTES: Final[dict[str, Any]] = {_BINARY: {"schema": {"type": "string", "format": "binary"}}}
_HEADERS: Final = {"Content-Security-Policy": "sandbox; default-src 'none'"}


async def examined(app: App, request: Request, who: Caller) -> list[diagnosis.Finding]:
    """Findings of `remit doctor` on the machine of the instance, and about the way of the request,
    for an operator."""
    await app.gate(who, instance.may_operate, what="doctor")
    checks = (*diagnosis.CHECKS, outside_check.look)
    findings = await threads.CHECKS.run(diagnosis.look, app.settings, checks)
    way = arrival.of(request)
    if way.doubt is None:
        safe = "over TLS" if way.is_encrypted else "on this machine"
        return [*findings, diagnosis.Finding("this request", "ok", f"came {safe}")]
    return [*findings, diagnosis.Finding("this request", "warn", *way.doubt)]


async def backup_file(app: App, request: Request, who: Caller, name: str) -> Response:
    """Return a backup as a download, unless somebody on the way could read it."""
    await app.gate(who, instance.may_operate, what="backups")
    if doubt := arrival.of(request).doubt:
        raise Conflict(
            f"A backup holds everything, so it is not sent. {doubt.sentence}",
            f"{doubt.next_step} Or copy it on the machine from {app.backups.folder}.",
        )
    path = await app.backups.take(who, name)
    return FileResponse(path, filename=path.name, media_type=_BINARY, headers=_HEADERS)


def router(app: App) -> APIRouter:
    routes = new_router("instance", "/api/instance")

    @routes.get("/doctor")
    async def examine_instance(request: Request) -> Response:
        """Each thing that was looked at, whether it is good, and what to do if not."""
        return reply(
            [finding._asdict() for finding in await examined(app, request, caller(request))]
        )

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
        """The file; over TLS, as a proxy that is believed says, or on the machine itself."""
        return await backup_file(app, request, caller(request), name)

    @routes.delete("/backups/{name}")
    async def remove_backup(request: Request, name: BackupName) -> Response:
        return reply(await app.backups.remove(caller(request), name))

    return routes
