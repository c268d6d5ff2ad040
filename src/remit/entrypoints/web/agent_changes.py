"""Looking before an agent is updated, or ended with everybody below it."""

from __future__ import annotations

from starlette.responses import Response
from starlette.routing import Route

from remit.entrypoints.web.site import Done, Site, Visit
from remit.services import agents, updating


def routes(site: Site) -> list[Route]:
    return [
        site.page("/agents/{agent}/update", show_update),
        site.action("/agents/{agent}/update", update, show_update),
        site.page("/agents/{agent}/terminate", show_ending),
        site.action("/agents/{agent}/terminate", end, show_ending),
    ]


async def show_update(visit: Visit) -> Response:
    one = await visit.ask(agents.show, agent=visit.argument("agent"))
    visit.enter(one["company_id"])
    seen = await visit.ask(updating.preview, agent=one["id"])
    return await visit.show("agent_update.html", one=one, seen=seen)


async def update(visit: Visit) -> Done:
    done = await visit.do(updating.update, agent=visit.argument("agent"))
    if done["approval"] is not None:
        return Done(f"/approvals/{done['approval']['id']}", "It waits for a decision.")
    said = f"{done['name']} takes over its set-up; it is at revision {done['revision']}."
    return Done(f"/agents/{done['id']}", said)


async def show_ending(visit: Visit) -> Response:
    one = await visit.ask(agents.show, agent=visit.argument("agent"))
    visit.enter(one["company_id"])
    seen = await visit.ask(agents.preview_terminate, agent=one["id"], subtree=True)
    return await visit.show("agent_ending.html", one=one, seen=seen)


async def end(visit: Visit) -> Done:
    done = await visit.do(agents.terminate, agent=visit.argument("agent"), subtree=True)
    count = len(done["agents_ended"])
    said = f"{done['name']} is terminated" + (f" with {count - 1} below it." if count > 1 else ".")
    return Done(f"/agents/{done['id']}", f"{said} Their history stays.")
