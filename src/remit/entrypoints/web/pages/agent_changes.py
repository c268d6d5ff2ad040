"""Previews before an agent is updated, or terminated with everybody below it."""

from typing import Any

from remit.entrypoints.web.site import Done, Page, Routes, Site, Visit
from remit.services.hiring import agent_update
from remit.services.organisation import agents


def routes(site: Site) -> Routes:
    return [
        *site.form("/agents/{agent}/update", show_update, update),
        *site.form("/agents/{agent}/terminate", show_ending, end),
    ]


def _agent(visit: Visit) -> dict[str, Any]:
    agent = visit.ask(agents.show, agent=visit.argument("agent"))
    visit.enter(agent["company_id"])
    return agent


async def show_update(visit: Visit) -> Page:
    seen = await visit.do(agent_update.preview, agent=visit.argument("agent"))
    return await visit.look(
        lambda visit: visit.show("agent_update.html", one=_agent(visit), seen=seen)
    )


async def update(visit: Visit) -> Done:
    done = await visit.do(agent_update.update, agent=visit.argument("agent"))
    if done["approval"] is not None:
        return Done(f"/approvals/{done['approval']['id']}", "It waits for a decision.")
    message = f"{done['name']} takes over its set-up; it is at revision {done['revision']}."
    return Done(f"/agents/{done['id']}", message)


async def show_ending(visit: Visit) -> Page:
    seen = await visit.do(agents.preview_terminate, agent=visit.argument("agent"), subtree=True)
    return await visit.look(
        lambda visit: visit.show("agent_ending.html", one=_agent(visit), seen=seen)
    )


async def end(visit: Visit) -> Done:
    done = await visit.do(agents.terminate, agent=visit.argument("agent"), subtree=True)
    count = len(done["agents_ended"])
    message = f"{done['name']} is terminated" + (
        f" with {count - 1} below it." if count > 1 else "."
    )
    return Done(
        f"/agents/{done['id']}", f"{message} {'Their' if count > 1 else 'Its'} history stays."
    )
