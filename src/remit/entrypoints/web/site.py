"""What every page shares: who looks, at which company, and how it is put on paper.

A page is a function of a `Visit`. What changes something is a form: its function does it and says
what was done, and the page is shown again, with whatever was typed when it could not be done.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar
from urllib.parse import quote, unquote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from remit.app import App
from remit.entrypoints.http.answers import unexpected
from remit.entrypoints.http.caller import check_same_origin, session
from remit.entrypoints.web import words
from remit.entrypoints.web.forms import Form, read_form
from remit.errors import NotFound, RemitError, Unauthenticated
from remit.ids import random_name
from remit.model.text import plural
from remit.services import companies, halts, needs_you, users
from remit.services.command import Verb
from remit.services.identity import Caller

P = ParamSpec("P")
R = TypeVar("R")
log = logging.getLogger(__name__)

MOST_COMPANIES: Final = 100
COMPANY_COOKIE: Final = "remit_company"
SAID_COOKIE: Final = "remit_said"
LONGEST_SAID: Final = 300
MOST_KEYS: Final = 100

_HERE: Final = Path(__file__).parent
_STATIC: Final = _HERE / "static"
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    # Not "no-referrer": with it, a browser on plain HTTP hides the origin of our own forms.
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Opener-Policy": "same-origin",
}


@dataclass
class Visit:
    """One request of somebody who is signed in."""

    site: Site
    request: Request
    who: Caller
    me: dict[str, Any]
    companies: list[dict[str, Any]]
    #: The company that is looked at; None for somebody who has a part in none.
    company: dict[str, Any] | None
    #: Why what was just tried could not be done, and what was typed.
    problem: RemitError | None = None
    form: Form = field(default_factory=Form)
    _awaits: list[dict[str, Any]] | None = None

    @property
    def company_id(self) -> str:
        if self.company is None:
            raise NotFound("You have no part in any company of this instance.")
        return str(self.company["id"])

    @property
    def decides(self) -> bool:
        """Whether the visitor is of the board, of the whole company or of a part."""
        return self.company is not None and self.company.get("role") == "board"

    @property
    def whole(self) -> bool:
        """Whether the visitor sees the whole company, not only a part."""
        return self.company is not None and self.company.get("scope_agent_id") is None

    def argument(self, name: str, default: str = "") -> str:
        """From the address."""
        return str(
            self.request.path_params.get(name) or self.request.query_params.get(name, default)
        )

    async def ask(self, verb: Verb[P, R], *args: P.args, **given: P.kwargs) -> R:
        return await self.site.app.gate(self.who, verb, *args, **given)

    async def do(self, verb: Verb[P, R], *args: P.args, **given: P.kwargs) -> R:
        """Once, however often the form is sent."""
        return await self.site.app.gate(Caller(self.who.token, self.form.key), verb, *args, **given)

    def enter(self, company_id: str) -> None:
        """Look at the company that something belongs to."""
        for one in self.companies:
            if one["id"] == company_id:
                self.company = one

    def link(self, path: str, **query: object) -> str:
        """An address that leads the same visitor, and others, to the same company."""
        given = {name: str(value) for name, value in query.items() if value not in (None, "")}
        if len(self.companies) > 1 and self.company is not None:
            given["company"] = self.company["id"]
        return f"{path}?{urlencode(given)}" if given else path

    async def awaits(self) -> list[dict[str, Any]]:
        """Everything that awaits the visitor; looked for once."""
        if self._awaits is None:
            self._awaits = await self.ask(needs_you.listing) if self.companies else []
        return self._awaits

    async def halted(self) -> list[dict[str, Any]]:
        """What is stopped in the company that is looked at."""
        if self.company is None:
            return []
        return await self.ask(halts.listing, company=self.company["id"])

    @property
    def awaiting_keys(self) -> str:
        """What awaits the visitor, for the script that tells of what is new."""
        found = (self._awaits or [])[-MOST_KEYS:]
        return " ".join(f"{item['kind']}:{item['id']}" for item in found)

    @property
    def stops(self) -> str:
        """The top of what the visitor may stop; empty for the whole company."""
        return str((self.company or {}).get("scope_agent_id") or "")

    @property
    def back(self) -> str:
        """This page, for a form that is on every page."""
        return self.request.url.path if self.request.method == "GET" else ""

    async def show(self, template: str, /, **values: Any) -> Response:
        awaits = await self.awaits()
        halted = await self.halted()
        response = self.site.render(
            template,
            self.problem.status if self.problem is not None else 200,
            visit=self,
            me=self.me,
            company=self.company,
            awaiting=len(awaits),
            halted=halted,
            flash=unquote(self.request.cookies.get(SAID_COOKIE, "")),
            **values,
        )
        if self.request.cookies.get(SAID_COOKIE):
            response.delete_cookie(SAID_COOKIE, path="/")
        if self.company is not None:
            response.set_cookie(
                COMPANY_COOKIE, self.company["id"], path="/", httponly=True, samesite="strict"
            )
        return response


@dataclass(frozen=True)
class Done:
    """What a form did, and where to look at it."""

    address: str
    said: str = ""


Show = Callable[[Visit], Awaitable[Response]]
#: Answers what it did; or a page, when it only worked something out with what was typed.
Act = Callable[[Visit], Awaitable[Done | Response]]


@functools.cache
def _static() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(_STATIC.iterdir())}


@functools.cache
def _templates(edition: str) -> Environment:
    """Compiled once, however many instances a process has."""
    found = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(words.FILTERS)
    found.globals.update(edition=edition, new_key=lambda: f"web-{random_name()}", plural=plural)
    return found


class Site:
    """All pages of an instance."""

    def __init__(self, app: App) -> None:
        self.app = app
        self._static = _static()
        #: Changes whenever a file does, so that browsers may keep them for ever.
        self.edition = hashlib.sha256(b"".join(self._static.values())).hexdigest()[:12]
        self._templates = _templates(self.edition)

    def render(self, template: str, status: int = 200, /, **values: Any) -> HTMLResponse:
        return HTMLResponse(self._templates.get_template(template).render(values), status, _HEADERS)

    def page(self, path: str, show: Show) -> Route:
        """A page for who is signed in."""

        async def answer(request: Request) -> Response:
            visit = await self._visit(request)
            if visit is None:
                return self.render("welcome.html", 200 if path == "/" else 401)
            try:
                return await show(visit)
            except RemitError as error:
                return await self._problem(visit, error)
            except Exception as error:
                return self._trouble(error)

        return Route(path, answer, methods=["GET"])

    def action(self, path: str, act: Act, again: Show) -> Route:
        """What a form does; `again` shows the page that it is on when it cannot be done."""

        async def answer(request: Request) -> Response:
            check_same_origin(request)
            visit = await self._visit(request)
            if visit is None:
                return self.render("welcome.html", 401)
            try:
                visit.form = await read_form(request)
                done = await act(visit)
            except RemitError as error:
                visit.problem = error
                try:
                    return await again(visit)
                except RemitError as worse:
                    return await self._problem(visit, worse)
                except Exception as worse:
                    return self._trouble(worse)
            except Exception as error:
                return self._trouble(error)
            if isinstance(done, Response):
                return done
            response = RedirectResponse(done.address, 303)
            if done.said:
                response.set_cookie(
                    SAID_COOKIE,
                    quote(done.said[:LONGEST_SAID]),
                    max_age=60,
                    path="/",
                    httponly=True,
                    samesite="strict",
                )
            return response

        return Route(path, answer, methods=["POST"])

    def static(self) -> Route:
        types = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}

        async def answer(request: Request) -> Response:
            name = request.path_params["name"]
            content = self._static.get(name)
            if content is None:
                return Response("There is no such file.", 404, media_type="text/plain")
            lasting = request.query_params.get("v") == self.edition
            return Response(
                content,
                media_type=types[name.rpartition(".")[2]],
                headers={
                    **_HEADERS,  # a worker has the policy that its script came with
                    "Cache-Control": "public, max-age=31536000, immutable"
                    if lasting
                    else "public, max-age=60",
                },
            )

        return Route("/static/{name}", answer, methods=["GET"])

    async def _visit(self, request: Request) -> Visit | None:
        token = session(request)
        if token is None:
            return None
        who = Caller(token)
        try:
            me = await self.app.gate(who, users.me)
            found = await self.app.gate(who, companies.listing, limit=MOST_COMPANIES)
        except Unauthenticated:
            return None
        return Visit(self, request, who, me, found, _chosen(request, found))

    def _trouble(self, error: Exception) -> Response:
        problem = unexpected(error)
        return self.render("trouble.html", problem.status, problem=problem)

    async def _problem(self, visit: Visit, error: RemitError) -> Response:
        visit.problem = error
        with contextlib.suppress(RemitError):
            return await visit.show("problem.html")
        return self.render("trouble.html", error.status, problem=error)


def _chosen(request: Request, found: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The company that the address names, or that was looked at last, or the first."""
    for wanted in (request.query_params.get("company"), request.cookies.get(COMPANY_COOKIE)):
        for one in found:
            if wanted and wanted in (one["id"], one["name"]):
                return one
    return found[0] if found else None
