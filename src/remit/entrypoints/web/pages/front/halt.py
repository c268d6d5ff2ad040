"""Stop and go: the button and the banner of every page."""

from remit.entrypoints.web.pages.front import home
from remit.entrypoints.web.site import OWN_ADDRESS, Done, Routes, Site, Undo, Visit
from remit.model.text import plural
from remit.services.organisation import halts


def routes(site: Site) -> Routes:
    return site.forms("/companies/{company_id}", home.show, stop=stop, go=go)


async def stop(visit: Visit) -> Done:
    here = visit.company_id
    fields = visit.form.arguments(halts.stop, ("agent", "note"))
    halt = await visit.do(halts.stop, company=here, **fields)
    what = halt["agent"] or "The company"
    ended = f" {plural(halt['runs_ended'], 'run')} ended." if halt["runs_ended"] else ""
    undo = Undo(f"/companies/{here}/go", {"agent": visit.form.text("agent")}, "Resume")
    return Done(_back(visit), f"{what} is stopped.{ended}", undo)


async def go(visit: Visit) -> Done:
    halt = await visit.do(halts.go, company=visit.company_id, agent=visit.form.maybe("agent"))
    return Done(_back(visit), f"{halt['agent'] or 'The company'} is resumed.")


def _back(visit: Visit) -> str:
    """Address of the page that the form was on."""
    back = visit.form.text("back")
    return visit.link(back) if OWN_ADDRESS.fullmatch(back) else "/"
