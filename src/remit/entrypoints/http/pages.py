"""The first page: what awaits you, your companies, and what happens in them.

Rendered here and readable without scripts. Templates escape whatever they show.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from remit.app import App
from remit.entrypoints.http.caller import session
from remit.errors import Unauthenticated
from remit.services import agents, companies, events, files, users, waiting
from remit.services.identity import Caller

MOST_COMPANIES: Final = 20
MOST_AGENTS: Final = 1000
NEWEST: Final = 10
MOST_AWAITING: Final = 20

_HERE: Final = Path(__file__).parent
_templates = Environment(
    loader=FileSystemLoader(_HERE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


@dataclass
class Seat:
    """An agent on the page, with those who report to it."""

    agent: dict[str, Any]
    reports: list[Seat] = field(default_factory=list)


@dataclass
class Section:
    """What the page shows of a company."""

    company: dict[str, Any]
    roots: list[Seat]
    files: list[dict[str, Any]]
    #: None when the person has a say in a part only, and the record is of the whole.
    events: list[dict[str, Any]] | None
    #: How those who act are called, by what the record has of them.
    names: dict[str, str]


def routes(app: App) -> list[Route]:
    css = (_HERE / "static" / "remit.css").read_bytes()

    async def index(request: Request) -> Response:
        token = session(request)
        if token is None:
            return page("welcome.html")
        who = Caller(token)
        try:
            me = await app.gate(who, users.me)
        except Unauthenticated:
            return page("welcome.html")
        found = await app.gate(who, companies.listing, limit=MOST_COMPANIES)
        sections = [await _section(app, who, me, company) for company in found]
        awaits = await app.gate(who, waiting.needs_you)
        names = {company["id"]: company["name"] for company in found}
        return page(
            "index.html",
            me=me,
            sections=sections,
            awaits=awaits,
            companies=names,
            most_awaiting=MOST_AWAITING,
        )

    async def stylesheet(_: Request) -> Response:
        return Response(
            css, media_type="text/css", headers={"Cache-Control": "public, max-age=3600"}
        )

    return [
        Route("/", index, methods=["GET"]),
        Route("/static/remit.css", stylesheet, methods=["GET"]),
    ]


def page(template: str, status: int = 200, **values: Any) -> HTMLResponse:
    # Not "no-referrer": with it, a browser on plain HTTP hides the origin of our own forms.
    return HTMLResponse(
        _templates.get_template(template).render(values),
        status,
        {"Referrer-Policy": "same-origin"},
    )


async def _section(app: App, who: Caller, me: dict[str, Any], company: dict[str, Any]) -> Section:
    own: dict[str, Any] = {"company": company["id"]}
    record = None
    if company["scope_agent_id"] is None:  # asking in vain would be on record as a refusal
        record = await app.gate(who, events.listing, **own, limit=NEWEST)
    staff = await app.gate(who, agents.listing, **own, limit=MOST_AGENTS)
    names = {f"agent:{agent['id']}": f"agent:{agent['name']}" for agent in staff}
    names[f"user:{me['id']}"] = f"user:{me['name']}"
    return Section(
        company,
        _tree(staff),
        await app.gate(who, files.browse, **own, limit=NEWEST),
        record,
        names,
    )


def _tree(found: list[dict[str, Any]]) -> list[Seat]:
    """The agents under their bosses; one whose boss is not shown stands at the top."""
    seats = {agent["id"]: Seat(agent) for agent in found}
    below: dict[str | None, list[Seat]] = defaultdict(list)
    for seat in seats.values():
        boss = seat.agent["reports_to"]
        below[boss if boss in seats else None].append(seat)
    for boss, reports in below.items():
        if boss is not None:
            seats[boss].reports = reports
    return below[None]
