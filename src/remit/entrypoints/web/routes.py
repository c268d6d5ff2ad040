"""All pages, one module for each."""

from __future__ import annotations

from starlette.routing import Route

from remit.app import App
from remit.entrypoints.http.stream import Announcer
from remit.entrypoints.web import (
    account,
    agent,
    approvals,
    company,
    company_levels,
    company_settings,
    events,
    file,
    files,
    halt,
    hire,
    home,
    inbox,
    live,
    org,
    org_change,
    outcome,
    outcomes,
    runs,
    signin,
)
from remit.entrypoints.web.site import Site

_PAGES = (
    home,
    company,
    company_levels,
    company_settings,
    account,
    org,
    org_change,
    agent,
    halt,
    hire,
    approvals,
    outcomes,
    outcome,
    files,
    file,
    inbox,
    runs,
    events,
    signin,
)


def build(app: App, announcer: Announcer) -> list[Route]:
    site = Site(app)
    found = [route for page in _PAGES for route in page.routes(site)]
    return [site.static(), *live.routes(app, announcer), *found]
