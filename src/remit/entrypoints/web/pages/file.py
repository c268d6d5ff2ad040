"""One file: its content, versions, rights and accesses; and editing it."""

import re
from collections.abc import Mapping
from typing import Any, Final

from remit.entrypoints.web.pages.files import LARGEST_TEXT, typed
from remit.entrypoints.web.site import Done, Page, Routes, Site, Visit
from remit.entrypoints.web.text import common_queries, event_text, words
from remit.entrypoints.web.text.text_diff import Comparison, compare
from remit.errors import BadInput, Conflict
from remit.services.knowledge import files
from remit.services.rights import grants
from remit.services.screens import agent_page, allowed_actions, name_lookup

#: Most of a text that is shown; the whole can be downloaded.
LARGEST_SHOWN: Final = 200 * 1024
VERSIONS: Final = 20
ACCESSES: Final = 25
MOST_LINKS: Final = 20
MOST_STAFF: Final = 300
#: Texts that are no Markdown, by the end of their description or their first characters.
_OTHER: Final = re.compile(
    r"\.(txt|log|csv|tsv|json|jsonl|ya?ml|toml|ini|xml|html?|css|js|ts|py|sh|c|h|rs|go|java|sql|diff|patch)$",
    re.IGNORECASE,
)
_BEGINS: Final = ("#!", "{", "[{", "<?xml", "<!doctype", "<html", "diff --git")


def routes(site: Site) -> Routes:
    here = "/files/{file}"
    return [
        site.page(here, show),
        *site.form(f"{here}/edit", edit, write),
        *site.forms(here, show, describe=describe, grants=give),
    ]


async def show(visit: Visit) -> Page:
    info, may = await visit.look(_about)
    # An automatic refresh reads nothing: the access log has who looked, not how long.
    quiet = bool(visit.argument("quiet")) or visit.problem is not None
    content: dict[str, Any] = {"shown": False}
    if may["read"] and not quiet:
        content = await _content(visit, info, visit.number("version"), visit.number("against"))
    return await visit.look(lambda visit: _show(visit, info, may, content, quiet=quiet))


def _show(visit: Visit, info: Any, may: Any, content: dict[str, Any], *, quiet: bool) -> Page:
    versions = _versions(visit, info) if may["read"] else []
    read = _accesses(visit, info) if may["audit"] else []
    held: dict[str, Any] | None = None
    if may["audit"]:
        held = visit.ask(allowed_actions.holders, file=info["id"])
    everybody = [entry["agent_id"] or entry["user_id"] for entry in (*versions, *read)]
    if held is not None:
        everybody += [grant["holder_id"] for grant in held["grants"]] + [held["home_agent_id"]]
        everybody += [(grant["granted_by"] or "").partition(":")[2] for grant in held["grants"]]
    seen = visit.number("version") or visit.number("seen")
    return visit.show(
        "file.html",
        file=info,
        may=may,
        content=content,
        quiet=quiet,
        view="source" if visit.argument("view") == "source" else "",
        # The version that is on the page already when it only checks for changes.
        seen=content["version"] if content["shown"] else seen,
        versions=versions,
        more_versions=visit.link(f"/files/{info['id']}", before=versions[-1]["number"])
        if len(versions) == VERSIONS
        else "",
        accesses=event_text.counted(read, "agent_id", "user_id", "run_id", "access", "version"),
        more_accesses=visit.link(f"/files/{info['id']}", read_before=read[-1]["id"])
        if len(read) == ACCESSES
        else "",
        held=held,
        staff=[
            (agent["name"], agent["role"])
            for agent in visit.ask(agent_page.roster, company=visit.company_id, limit=MOST_STAFF)
        ]
        if held is not None and visit.decides
        else [],
        titles=visit.ask(
            name_lookup.titles,
            company=visit.company_id,
            resources=[f"kb_file:{link}" for link in (info.get("links") or [])[:MOST_LINKS]],
        ),
        names=common_queries.names(visit, everybody),
    )


def _about(visit: Visit) -> tuple[dict[str, Any], dict[str, Any]]:
    info = visit.ask(files.show, file=visit.argument("file"))
    visit.enter(info["company_id"])
    return info, visit.ask(allowed_actions.file, file=info["id"])


async def _content(
    visit: Visit, info: Mapping[str, Any], version: int | None, against: int | None
) -> dict[str, Any]:
    """Content of a version, and the form in which it is shown."""
    view, text = await _read(visit, info["id"], version)
    content: dict[str, Any] = {
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
        return content
    if against is not None:
        _, other = await _read(visit, info["id"], against)
        compared: Comparison = await visit.site.app.library.run(compare, other or "", text)
        return content | {"compared": compared, "against": against}
    if visit.argument("view") != "source" and _is_markdown(info["description"], text):
        content["markdown"] = await visit.site.app.library.run(words.markdown, text)
    return content


async def _read(visit: Visit, file: str, version: int | None) -> tuple[dict[str, Any], str | None]:
    """Read as much of a version as a page shows; None if it is no text."""
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


def _versions(visit: Visit, info: Mapping[str, Any]) -> list[dict[str, Any]]:
    before = visit.number("before") or files.LAST
    return visit.ask(files.history, file=info["id"], before=before, limit=VERSIONS)


def _accesses(visit: Visit, info: Mapping[str, Any]) -> list[dict[str, Any]]:
    before = visit.number("read_before") or files.LAST
    return visit.ask(files.accesses, file=info["id"], before=before, limit=ACCESSES)


async def edit(visit: Visit) -> Page:
    """Show the editor; after a conflict, with the typed text compared to the current one."""
    page = await visit.look(lambda visit: visit.show("file_edit.html", about=_about(visit)))
    info, may = page.values.pop("about")
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
    page.values.update(
        file=info,
        may=may,
        quiet=quiet,
        text=text,
        mine=mine or "",
        crlf="\r\n" in (text or ""),
        conflict=conflict,
        compared=compared,
    )
    return page


async def write(visit: Visit) -> Done:
    done = await visit.site.app.library.write(
        visit.caller,
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


async def give(visit: Visit) -> Done:
    """Grant an agent access to the file."""
    info = await visit.do(files.show, file=visit.argument("file"))
    await visit.do(
        grants.give,
        company=info["company_id"],
        to=visit.form.text("agent"),
        resource=f"kb_file:{info['id']}",
        level=visit.form.text("level") or "read",
        mode=visit.form.text("mode") or "allow",
        expires_at=visit.form.maybe("expires_at"),
    )
    return Done(f"/files/{info['id']}", f"Granted to {visit.form.text('agent')}.")
