"""Files: the list, the search, and a form for a new one."""

from typing import Any, Final

from remit.entrypoints.web.site import Done, Page, Routes, Site, Visit
from remit.services.knowledge import files

PAGE: Final = 50
#: Largest text in a form, chosen so that it fits in any encoding.
LARGEST_TEXT: Final = 200 * 1024


def routes(site: Site) -> Routes:
    return site.form("/files", show, create)


async def show(visit: Visit) -> Page:
    words = visit.argument("query").strip()[:500]
    if words and visit.argument("inside"):
        page = await visit.look(lambda visit: _containing(visit, words))
        for file in page["files"]:  # an excerpt is a read access, which is recorded
            await visit.site.app.gate(visit.who, files.read, file=file["id"])
        more = visit.link("/files", query=words, inside="1", before=page["before"])
        return _page(visit, words, page["files"], more if page["before"] else "")
    return await visit.look(lambda visit: _listed(visit, words))


def _listed(visit: Visit, words: str) -> Page:
    letters = bool(visit.argument("letters"))
    rows = visit.ask(
        files.browse,
        company=visit.company_id,
        words=words,
        letters=letters,
        before=visit.before_id,
        limit=PAGE,
    )
    full = len(rows) == PAGE
    more = (
        visit.link("/files", before=rows[-1]["id"], letters="1" if letters else "") if full else ""
    )
    return _page(visit, words, rows, "" if words else more, best=full and bool(words))


def _containing(visit: Visit, words: str) -> dict[str, Any]:
    return visit.ask(
        files.containing, company=visit.company_id, words=words, before=visit.before_id
    )


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
