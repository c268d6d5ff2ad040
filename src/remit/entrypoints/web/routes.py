"""All pages, one module for each."""

from __future__ import annotations

from starlette.routing import Route

from remit.app import App
from remit.entrypoints.http.stream import Announcer
from remit.entrypoints.web import approvals, home, inbox, live, runs, signin
from remit.entrypoints.web.site import Site

_PAGES = (home, approvals, inbox, runs, signin)


def build(app: App, announcer: Announcer) -> list[Route]:
    site = Site(app)
    found = [route for page in _PAGES for route in page.routes(site)]
    return [site.static(), *live.routes(app, announcer), *found]
