"""Tools of the knowledge base that transfer contents, or return a part of a file's view."""

import base64
import binascii
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, Literal

from pydantic import Field

from remit.app import App
from remit.entrypoints import bodies
from remit.entrypoints.mcp.arguments import Arguments, FileRef, Repeatable, tool
from remit.entrypoints.mcp.registry import Tool
from remit.errors import BadInput, RemitError, TooLarge
from remit.runtime.runs import conditions, workspace
from remit.services.command import Ask
from remit.services.connections import folders
from remit.services.execution import runs
from remit.services.identity import Caller
from remit.services.knowledge import files

#: Most bytes returned inline. More would only fill a model's context.
MOST_INLINE = 1024 * 1024
#: The most bytes that one listing copies into a workspace.
MOST_COPIED = 32 * 1024 * 1024
MOST_LISTED = 500
_CONTROLS: Final = bytes({*range(32), 127} - set(b"\t\n\r"))


class ListArguments(Arguments):
    limit: Annotated[int, Field(ge=1, le=MOST_LISTED)] = 100
    after: Annotated[str, Field(max_length=36)] = ""


class BrowseArguments(Arguments):
    query: Annotated[str, Field(description="Words; empty lists the newest", max_length=500)] = ""
    limit: Annotated[int, Field(ge=1, le=MOST_LISTED)] = 50


class ReadArguments(Arguments):
    id: FileRef
    version: Annotated[int | None, Field(ge=1)] = None


class _Content(Repeatable):
    path: Annotated[
        str | None, Field(description="File in your workspace to import", max_length=4096)
    ] = None
    content: Annotated[str | None, Field(description="Or the content itself")] = None
    encoding: Literal["utf-8", "base64"] = "utf-8"


class CreateArguments(_Content):
    description: Annotated[str, Field(max_length=2000)]
    unlisted: Annotated[bool, Field(description="Known only to those who may read it")] = False


class WriteArguments(_Content):
    id: FileRef
    version: Annotated[int, Field(description="The version you last read", ge=0)]
    hash: Annotated[str, Field(description="Its hash", max_length=64)]


def build(app: App) -> tuple[Tool, ...]:
    library = app.library

    async def kb_list(caller: Caller, arguments: ListArguments) -> dict[str, Any]:
        """Files you can read or write, with a local copy."""

        def look(ask: Ask) -> tuple[list[dict[str, Any]], str | None]:
            page = ask(files.listing, company=None, after=arguments.after, limit=arguments.limit)
            return page, ask(runs.workspace)

        page, folder = await app.gate.together(caller, look)
        room = MOST_COPIED if folder else 0
        listed = []
        for file in page:
            path = None
            if folder and file["size"] <= room:
                path = await copy(caller, file, folder)
                room -= file["size"]
            listed.append(
                {
                    "id": file["id"],
                    "description": file["description"],
                    "version": file["version"],
                    "level": file["level"],
                    "path": path,
                }
            )
        return {"files": listed}

    async def copy(caller: Caller, file: dict[str, Any], folder: str) -> str | None:
        """Return the path of a read-only copy in the run's workspace, made once per version; None
        if the right to the file has ended."""
        name = f"{file['id']}.v{file['version']}"
        place = Path(folder, ".kb", name)
        if not await library.run(os.path.lexists, place):
            try:
                _, stream = await library.open(
                    caller, file=file["id"], version=file["version"], access="copy"
                )
            except RemitError:
                return None  # the right to it ended meanwhile
            with stream:
                return str(await library.run(workspace.materialise, folder, name, stream))
        return str(place)

    async def kb_browse(caller: Caller, arguments: BrowseArguments) -> dict[str, Any]:
        """Search all files you may know of by description. Files you can read: kb_list."""
        page = await app.gate(
            caller, files.browse, company=None, words=arguments.query, limit=arguments.limit
        )
        return {
            "files": [
                {"id": file["id"], "description": file["description"], "level": file["level"]}
                for file in page
            ]
        }

    async def kb_read(caller: Caller, arguments: ReadArguments) -> dict[str, Any]:
        """Read a file, or an old version of it."""
        view, stream = await library.open(caller, file=arguments.id, version=arguments.version)
        with stream:
            answer: dict[str, Any] = {
                "id": view["id"],
                "version": view["version"],
                "hash": view["hash"],
            }
            if view["version"] != view["current_version"]:
                answer["current_version"] = view["current_version"]
            if view["size"] > MOST_INLINE:
                folder = await app.gate(caller, runs.workspace)
                if not folder:
                    raise TooLarge(
                        f"The file has {view['size']} bytes.",
                        f"Get it from /api/files/{view['id']}/content over HTTP.",
                    )
                name = f"{view['id']}.v{view['version']}"
                place = await library.run(workspace.materialise, folder, name, stream)
                return {**answer, "content": None, "path": str(place)}
            content = await library.read_all(view, stream)
        # A file that is mostly control characters is no text to a model, and each of them takes six
        # characters of JSON, which would block other requests.
        if view["is_text"] and len(content.translate(None, _CONTROLS)) * 2 >= len(content):
            return {**answer, "content": content.decode()}
        return {**answer, "content": base64.b64encode(content).decode(), "encoding": "base64"}

    async def kb_create(caller: Caller, arguments: CreateArguments) -> dict[str, Any]:
        """Keep something in a new file, from content or from a workspace path. To change a file:
        kb_write."""
        async with source(caller, arguments) as content:
            view = await library.create(
                caller,
                content,
                company=None,
                description=arguments.description,
                unlisted=arguments.unlisted,
            )
        return _stored(view)

    async def kb_write(caller: Caller, arguments: WriteArguments) -> dict[str, Any]:
        """Write a new version of a file; pass the version and hash that kb_read showed."""
        async with source(caller, arguments) as content:
            view = await library.write(
                caller, content, file=arguments.id, version=arguments.version, sha256=arguments.hash
            )
        return _stored(view)

    @asynccontextmanager
    async def source(caller: Caller, arguments: _Content) -> AsyncIterator[bytes | BinaryIO]:
        """Context manager: the new content, from the call itself or from the run's workspace."""
        if (arguments.path is None) == (arguments.content is None):
            raise BadInput("Give either path or content.", "Use one of the two.")
        if arguments.content is not None:
            size = len(arguments.content)
            yield await bodies.apart(size, _decoded, arguments.content, arguments.encoding)
            return
        folder, lasting = await app.gate.together(
            caller, lambda ask: (ask(runs.workspace), ask(folders.of_run))
        )
        if folder is None:
            raise BadInput("Only a run has a workspace.", "Send the content itself.")
        home, path = app.settings.home, arguments.path
        with await library.run(conditions.open_in_run, home, folder, lasting, path) as stream:
            yield stream

    return (
        tool(kb_list),
        tool(kb_browse),
        tool(kb_read),
        tool(kb_create),
        tool(kb_write),
    )


def _stored(view: dict[str, Any]) -> dict[str, Any]:
    return {"id": view["id"], "version": view["version"], "hash": view["hash"]}


def _decoded(content: str, encoding: str) -> bytes:
    if encoding == "utf-8":
        return content.encode()
    try:
        return base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        raise BadInput("content is not base64.", "Encode it, or leave encoding out.") from None
