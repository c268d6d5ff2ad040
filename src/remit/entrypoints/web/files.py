"""Files: the list, the search, and a new one."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response
from starlette.routing import Route

from remit.entrypoints.web.site import Done, Site, Visit
from remit.services import files
from remit.services.identity import Caller

PAGE: Final = 50
#: What a form carries of a text, so that it fits however it is encoded.
LARGEST_TEXT: Final = 200 * 1024


def routes(site: Site) -> list[Route]:
    return [site.page("/files", show), site.action("/files", create, show)]


async def show(visit: Visit) -> Response:
    words = visit.argument("query").strip()[:500]
    found = await visit.ask(
        files.browse,
        company=visit.company_id,
        words=words,
        before=visit.argument("before") or files.END_OF_IDS,
        limit=PAGE,
    )
    full = len(found) == PAGE
    return await visit.show(
        "files.html",
        files=found,
        query=words,
        best=full and bool(words),
        later=bool(visit.argument("before")),
        more=visit.link("/files", before=found[-1]["id"]) if full and not words else "",
    )


async def create(visit: Visit) -> Done:
    made = await visit.site.app.library.create(
        Caller(visit.who.token, visit.form.key),
        typed(visit).encode(),
        company=visit.company_id,
        description=visit.form.text("description"),
        unlisted=visit.form.ticked("unlisted"),
    )
    return Done(f"/files/{made['id']}", "The file is there.")


def typed(visit: Visit) -> str:
    """A text as it was typed, with the line ends that it had before a browser changed them."""
    raw = (visit.form.every("text") or [""])[0].replace("\r\n", "\n")
    return raw.replace("\n", "\r\n") if visit.form.text("ends") == "crlf" else raw
