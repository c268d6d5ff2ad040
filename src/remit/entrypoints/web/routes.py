"""Routes of all pages, one module for each page."""

from starlette.routing import Route

from remit.app import App
from remit.entrypoints.http.server.stream import Announcer
from remit.entrypoints.web import live
from remit.entrypoints.web.pages import (
    account,
    agent,
    approvals,
    changes,
    company_settings,
    confirmations,
    events,
    files,
    hire,
    inbox,
    org,
    org_change,
    outcome,
    outcomes,
    runs,
)
from remit.entrypoints.web.pages.front import design, halt, home, search, signin
from remit.entrypoints.web.pages.setup import (
    acceptance,
    checklist,
    connections,
    machine,
    pushing,
    running,
)
from remit.entrypoints.web.pages.setup import files as setup_files
from remit.entrypoints.web.site import Site

_PAGES = (
    acceptance,
    checklist,
    machine,
    pushing,
    setup_files,
    home,
    company_settings,
    account,
    org,
    org_change,
    agent,
    halt,
    hire,
    approvals,
    confirmations,
    changes,
    outcomes,
    outcome,
    files,
    inbox,
    runs,
    events,
    design,
    search,
    signin,
)


def build(app: App, announcer: Announcer) -> list[Route]:
    site = Site(app)
    routes = [route for page in _PAGES for route in page.routes(site)]
    for noun in (*connections.ALL, *running.ALL):
        routes += noun.routes(site)
    return [site.static(), *live.routes(app, announcer), *routes, site.anything_else()]
