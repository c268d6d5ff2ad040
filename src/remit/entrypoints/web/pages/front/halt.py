"""Stop and go: the button and the banner of every page."""

from __future__ import annotations

from starlette.routing import Route

from remit.entrypoints.web.pages.company import entered
from remit.entrypoints.web.pages.front import home
from remit.entrypoints.web.site import OWN_ADDRESS, Done, Site, Undo, Visit
from remit.model.text import plural
from remit.services.organisation import halts


def routes(site: Site) -> list[Route]:
    return site.forms("/companies/{company_id}", home.show, stop=stop, go=go)


async def stop(visit: Visit) -> Done:
    here = await visit.look(entered)
    halt = await visit.do(
        halts.stop, company=here, agent=visit.form.maybe("agent"), note=visit.form.text("note")
    )
    what = halt["agent"] or "The company"
    ended = f" {plural(halt['runs_ended'], 'run')} ended." if halt["runs_ended"] else ""
    undo = Undo(f"/companies/{here}/go", {"agent": visit.form.text("agent")}, "Resume")
    return Done(_back(visit), f"{what} is stopped.{ended}", undo)


async def go(visit: Visit) -> Done:
    here = await visit.look(entered)
    halt = await visit.do(halts.go, company=here, agent=visit.form.maybe("agent"))
    return Done(_back(visit), f"{halt['agent'] or 'The company'} is resumed.")


def _back(visit: Visit) -> str:
    """Address of the page that the form was on."""
    back = visit.form.text("back")
    return visit.link(back) if OWN_ADDRESS.fullmatch(back) else "/"
