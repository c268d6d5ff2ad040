"""One file: what it says, who wrote each version, who may and who did read it; and writing it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response
from starlette.routing import Route

from remit.entrypoints.web import asking, words
from remit.entrypoints.web.comparing import Comparison, compare
from remit.entrypoints.web.files import LARGEST_TEXT, typed
from remit.entrypoints.web.site import Done, Site, Visit
from remit.errors import BadInput, Conflict
from remit.services import choices, files, naming
from remit.services.identity import Caller

#: Of a text, what is shown on a page; the whole is there to download.
LARGEST_SHOWN: Final = 200 * 1024
VERSIONS: Final = 20
ACCESSES: Final = 25
MOST_LINKS: Final = 20
#: Texts that are not Markdown, by how their description ends or how they begin.
_OTHER: Final = re.compile(
    r"\.(txt|log|csv|tsv|json|jsonl|ya?ml|toml|ini|xml|html?|css|js|ts|py|sh|c|h|rs|go|java|sql|diff|patch)$",
    re.IGNORECASE,
)
_BEGINS: Final = ("#!", "{", "[{", "<?xml", "<!doctype", "<html", "diff --git")


def routes(site: Site) -> list[Route]:
    return [
        site.page("/files/{file}", show),
        site.page("/files/{file}/edit", edit),
        site.action("/files/{file}/edit", write, edit),
        site.action("/files/{file}/describe", describe, show),
    ]


async def show(visit: Visit) -> Response:
    info, may = await _about(visit)
    # A page that looks again by itself reads nothing: the access log says who looked, not how long.
    quiet = bool(visit.argument("quiet")) or visit.problem is not None
    version, against = _number(visit, "version"), _number(visit, "against")
    content: dict[str, Any] = {"shown": False}
    if may["read"] and not quiet:
        content = await _content(visit, info, version, against)
    versions = await _versions(visit, info) if may["read"] else []
    read = await _accesses(visit, info) if may["audit"] else []
    held: dict[str, Any] | None = None
    if may["audit"]:
        held = await visit.ask(choices.holders, file=info["id"])
    everybody = [one["agent_id"] or one["user_id"] for one in (*versions, *read)]
    if held is not None:
        everybody += [one["holder_id"] for one in held["grants"]] + [held["home_agent_id"]]
    shown = content["version"] if content["shown"] else version or _number(visit, "seen")
    return await visit.show(
        "file.html",
        file=info,
        may=may,
        content=content,
        quiet=quiet,
        view="source" if visit.argument("view") == "source" else "",
        # What is on the page already, when it only looks for what changed.
        seen=shown,
        versions=versions,
        more_versions=visit.link(f"/files/{info['id']}", before=versions[-1]["number"])
        if len(versions) == VERSIONS
        else "",
        accesses=read,
        more_accesses=visit.link(f"/files/{info['id']}", read_before=read[-1]["id"])
        if len(read) == ACCESSES
        else "",
        held=held,
        titles=await visit.ask(
            naming.titles,
            company=visit.company_id,
            resources=[f"kb_file:{one}" for one in (info.get("links") or [])[:MOST_LINKS]],
        ),
        names=await asking.names(visit, everybody),
    )


async def _about(visit: Visit) -> tuple[dict[str, Any], dict[str, Any]]:
    info = await visit.ask(files.show, file=visit.argument("file"))
    visit.enter(info["company_id"])
    return info, await visit.ask(choices.file, file=info["id"])


async def _content(
    visit: Visit, info: Mapping[str, Any], version: int | None, against: int | None
) -> dict[str, Any]:
    """What a version says, and how it is shown."""
    view, text = await _read(visit, info["id"], version)
    found: dict[str, Any] = {
        "shown": True,
        "version": view["version"],
        "size": view["size"],
        "is_text": text is not None,
        "text": text or "",
        "cut_off": view["size"] > LARGEST_SHOWN,
        "markdown": None,
        "compared": None,
        "against": None,
    }
    if text is None:
        return found
    if against is not None:
        _, other = await _read(visit, info["id"], against)
        compared: Comparison = await visit.site.app.library.run(compare, other or "", text)
        return found | {"compared": compared, "against": against}
    if visit.argument("view") != "source" and _is_markdown(info["description"], text):
        found["markdown"] = await visit.site.app.library.run(words.markdown, text)
    return found


async def _read(visit: Visit, file: str, version: int | None) -> tuple[dict[str, Any], str | None]:
    """As much of a version as a page shows; None for what is no text."""
    library = visit.site.app.library
    view, stream = await library.open(visit.who, file=file, version=version)
    with stream:
        if not view["is_text"]:
            return view, None
        raw = await library.run(stream.read, LARGEST_SHOWN)
    return view, raw.decode(errors="replace")


def _is_markdown(description: str, text: str) -> bool:
    return not _OTHER.search(description.strip()) and not text.lstrip()[:10].lower().startswith(
        _BEGINS
    )


async def _versions(visit: Visit, info: Mapping[str, Any]) -> list[dict[str, Any]]:
    return await visit.ask(
        files.history,
        file=info["id"],
        before=_number(visit, "before") or files.LAST,
        limit=VERSIONS,
    )


async def _accesses(visit: Visit, info: Mapping[str, Any]) -> list[dict[str, Any]]:
    return await visit.ask(
        files.accesses,
        file=info["id"],
        before=_number(visit, "read_before") or files.LAST,
        limit=ACCESSES,
    )


async def edit(visit: Visit) -> Response:
    """A text to be changed; after a conflict, what was typed beside what is there now."""
    info, may = await _about(visit)
    quiet = bool(visit.argument("quiet"))
    text: str | None = None
    if may["write"] and not quiet:
        if info["size"] > LARGEST_TEXT:
            raise BadInput(
                "The file is too large for a form.", "Write it with `remit kb write` instead."
            )
        view, text = await _read(visit, info["id"], None)
        info = {**info, "version": view["version"], "hash": view["hash"]}
        if text is None:
            raise BadInput("The file is no text.", "Write it with `remit kb write` instead.")
    conflict = isinstance(visit.problem, Conflict) and text is not None
    mine = typed(visit) if visit.problem is not None else text
    compared = None
    if conflict:
        compared = await visit.site.app.library.run(compare, text, mine)
    return await visit.show(
        "file_edit.html",
        file=info,
        may=may,
        quiet=quiet,
        text=text,
        mine=mine or "",
        crlf="\r\n" in (text or ""),
        conflict=conflict,
        compared=compared,
    )


async def write(visit: Visit) -> Done:
    done = await visit.site.app.library.write(
        Caller(visit.who.token, visit.form.key),
        typed(visit).encode(),
        file=visit.argument("file"),
        version=visit.form.number("version"),
        sha256=visit.form.text("hash"),
    )
    return Done(f"/files/{done['id']}", f"Version {done['version']} is written.")


async def describe(visit: Visit) -> Done:
    done = await visit.do(
        files.describe,
        file=visit.argument("file"),
        description=visit.form.text("description"),
        unlisted=visit.form.ticked("unlisted"),
    )
    return Done(f"/files/{done['id']}", "Renamed.")


def _number(visit: Visit, name: str) -> int | None:
    """A number from the address; whatever else stands there is ignored."""
    text = visit.argument(name)
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 9 else None
