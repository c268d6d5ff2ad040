"""Files: the list, the search, and one file with its versions, rights and accesses; writing one."""

import re
from typing import Any, Final

from remit.entrypoints.web.site import Done, Page, Routes, Site, Visit
from remit.entrypoints.web.text import common_queries, event_text, words
from remit.errors import BadInput, Conflict
from remit.model.text_diff import Comparison, compare
from remit.services.command import Answer
from remit.services.knowledge import files
from remit.services.rights import grants
from remit.services.screens import agent_page, allowed_actions, name_lookup

#: Largest text in a form, chosen so that it fits in any encoding.
LARGEST_TEXT: Final = 200 * 1024
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
    here, changed = "/files/{file}", ("description", "unlisted")
    return [
        *site.form("/files", listing, create),
        site.page(here, show),
        *site.form(f"{here}/edit", edit, write),
        site.does(f"{here}/describe", files.describe, show, here, "Renamed.", *changed),
        site.action(f"{here}/grants", give, show),
    ]


async def listing(visit: Visit) -> Page:
    words = visit.argument("query").strip()[:500]
    if words and visit.argument("inside"):
        page = await visit.look(
            lambda visit: visit.ask(
                files.containing, company=visit.company_id, words=words, before=visit.before_id
            )
        )
        for file in page["files"]:  # an excerpt is a read access, which is recorded
            await visit.site.app.gate(visit.who, files.read, file=file["id"])
        more = visit.link("/files", query=words, inside="1", before=page["before"])
        return _page(visit, words, page["files"], more if page["before"] else "")
    return await visit.look(lambda visit: _listed(visit, words))


def _listed(visit: Visit, words: str) -> Page:
    letters = bool(visit.argument("letters"))
    rows = visit.listed(files.browse, words=words, letters=letters)
    more = visit.more("/files", rows, letters="1" if letters else "")
    return _page(visit, words, rows, "" if words else more, best=bool(words and more))


def _page(visit: Visit, words: str, rows: list[Any], more: str, *, best: bool = False) -> Page:
    return visit.show(
        "files.html",
        files=[{"excerpt": "", **row} for row in rows],
        query=words,
        inside=bool(visit.argument("inside")),
        letters=bool(visit.argument("letters")),
        best=best,
        later=bool(visit.argument("before")),
        more=more,
    )


async def create(visit: Visit) -> Done:
    file = await visit.site.app.library.create(
        visit.caller,
        typed(visit).encode(),
        company=visit.company_id,
        description=visit.form.text("description"),
        unlisted=visit.form.ticked("unlisted"),
    )
    return Done(f"/files/{file['id']}", "File created.")


def typed(visit: Visit) -> str:
    """Return the typed text with its original line ends, which browsers change to CR LF."""
    raw = (visit.form.every("text") or [""])[0].replace("\r\n", "\n")
    return raw.replace("\n", "\r\n") if visit.form.text("ends") == "crlf" else raw


async def show(visit: Visit) -> Page:
    info, may = await visit.look(_about)
    # An automatic refresh reads nothing: the access log has who looked, not how long.
    quiet = bool(visit.argument("quiet")) or visit.problem is not None
    content: dict[str, Any] = {"shown": False}
    if may["read"] and not quiet:
        content = await _content(visit, info, visit.number("version"), visit.number("against"))
    return await visit.look(lambda visit: _show(visit, info, may, content, quiet=quiet))


def _show(visit: Visit, info: Any, may: Any, content: dict[str, Any], *, quiet: bool) -> Page:
    here, file = f"/files/{info['id']}", info["id"]
    versions: list[dict[str, Any]] = []
    read: list[dict[str, Any]] = []
    held: dict[str, Any] | None = None
    if may["read"]:
        before = visit.number("before") or files.LAST
        versions = visit.ask(files.history, file=file, before=before, limit=VERSIONS)
    if may["audit"]:
        before = visit.number("read_before") or files.LAST
        read = visit.ask(files.accesses, file=file, before=before, limit=ACCESSES)
        held = visit.ask(allowed_actions.holders, file=file)
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
        more_versions=visit.more(here, versions, VERSIONS, key="number"),
        accesses=event_text.counted(read, "agent_id", "user_id", "run_id", "access", "version"),
        more_accesses=visit.more(here, read, ACCESSES, place="read_before"),
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


async def _content(visit: Visit, info: Answer, version: int | None, against: int | None) -> Answer:
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
