"""Stop and go: the button and the banner that every page has."""

from __future__ import annotations

import re
from typing import Final

from starlette.routing import Route

from remit.entrypoints.web import company
from remit.entrypoints.web.site import Done, Site, Visit
from remit.model.text import plural
from remit.services import halts

#: Our own pages; nothing that a browser would take for another host.
_PAGE: Final = re.compile(r"/(?:[A-Za-z0-9_-]+(?:/[A-Za-z0-9_-]+)*/?)?")


def routes(site: Site) -> list[Route]:
    return [
        site.action("/companies/{company_id}/stop", stop, company.show),
        site.action("/companies/{company_id}/go", go, company.show),
    ]


async def stop(visit: Visit) -> Done:
    here = await company.entered(visit)
    halt = await visit.do(
        halts.stop, company=here, agent=visit.form.maybe("agent"), note=visit.form.text("note")
    )
    what = halt["agent"] or "The company"
    ended = f" {plural(halt['runs_ended'], 'run')} ended." if halt["runs_ended"] else ""
    return Done(_back(visit, here), f"{what} is stopped.{ended}")


async def go(visit: Visit) -> Done:
    here = await company.entered(visit)
    halt = await visit.do(halts.go, company=here, agent=visit.form.maybe("agent"))
    return Done(_back(visit, here), f"{halt['agent'] or 'The company'} goes on.")


def _back(visit: Visit, company_id: str) -> str:
    """The page that the form was on."""
    back = visit.form.text("back")
    return visit.link(back) if _PAGE.fullmatch(back) else f"/companies/{company_id}"
