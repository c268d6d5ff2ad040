"""Accepting a company from outside: what it would run, reach and be lent, and the button."""

from typing import Final

from remit.entrypoints.web.site import Done, Page, Routes, Site, Visit
from remit.services.acceptance import acceptance

#: Names of the kinds of entries, in the order of the page; others follow.
KINDS: Final = {
    "program": "Programs",
    "address": "Addresses",
    "sandbox": "Sandbox",
    "key": "Keys that agents would be lent",
    "secret": "Secrets by name",
    "environment": "Variables",
    "right": "Rights",
    "schedule": "Schedules",
    "mail": "Mail that waits",
    "outcome": "Open outcomes",
    "adapter": "Adapters",
    "model": "Models",
    "channel": "Channels",
    "folder": "Folders",
    "setting": "Other settings",
}


def routes(site: Site) -> Routes:
    return site.form("/companies/{company_id}/acceptance", show, accept)


def show(visit: Visit) -> Page:
    shown = visit.ask(acceptance.show, company=visit.company_id)
    return visit.show("setup/acceptance.html", shown=shown, kinds=KINDS)


async def accept(visit: Visit) -> Done:
    digest = visit.form.text("digest")
    done = await visit.do(acceptance.accept, company=visit.company_id, digest=digest)
    return Done("/", f"{done['name']} is accepted and goes on.")
