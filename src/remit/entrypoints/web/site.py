"""The frame of every page: its visitor, the company that is looked at, and rendering.

A page is a function of a `Visit`. It runs within one read transaction: all that it asks, and all
that stands around every page, is true at the same moment. Rendering comes after. What changes
something is a form: its function does it and says what was done, and the page is shown again, with
whatever was typed when it could not be done.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import inspect
import json
import re
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar, cast
from urllib.parse import quote, unquote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Match, Route
from starlette.types import Scope

from remit.app import App
from remit.entrypoints.http.wire.caller import check_same_origin, session
from remit.entrypoints.http.wire.error_answers import unexpected
from remit.entrypoints.web.forms import Form, read_form
from remit.entrypoints.web.live import position
from remit.entrypoints.web.text import words
from remit.entrypoints.web.text.actions import ACTIONS
from remit.errors import NotFound, RemitError, Unauthenticated
from remit.ids import END_OF_IDS, random_name
from remit.model.text import plural
from remit.services.command import Ask, Verb
from remit.services.identity import Caller
from remit.services.organisation import halts
from remit.services.people import companies, users
from remit.services.screens import needs_you

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

MOST_COMPANIES: Final = 100
COMPANY_COOKIE: Final = "remit_company"
SAID_COOKIE: Final = "remit_said"
LONGEST_SAID: Final = 300
#: Our own addresses; nothing that a browser would take for another host.
OWN_ADDRESS: Final = re.compile(r"/(?:[A-Za-z0-9_-]+(?:/[A-Za-z0-9_-]+)*/?)?")
MOST_KEYS: Final = 100

_HERE: Final = Path(__file__).parent
STATIC: Final = _HERE / "static"
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
    #: Found out by the first `look`.
    me: dict[str, Any] = field(default_factory=dict)
    companies: list[dict[str, Any]] = field(default_factory=list)
    #: The company that is looked at; None for somebody who has a part in none.
    company: dict[str, Any] | None = None
    #: Why what was just tried could not be done, and what was typed.
    problem: RemitError | None = None
    form: Form = field(default_factory=Form)
    #: Halts of the company that is looked at; with the rest of the frame of a page.
    halted: list[dict[str, Any]] | None = None
    #: How far the record was when the page was loaded; the stream tells when it is further.
    position: int = 0
    _awaits: list[dict[str, Any]] | None = None
    _ask: Ask | None = None

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

    @property
    def caller(self) -> Caller:
        """For what changes something: once, however often the form is sent."""
        return Caller(self.who.token, self.form.key)

    def argument(self, name: str, default: str = "") -> str:
        """From the address."""
        return str(
            self.request.path_params.get(name) or self.request.query_params.get(name, default)
        )

    def number(self, name: str, digits: int = 9) -> int | None:
        """A number from the address; whatever else stands there is ignored."""
        text = self.argument(name)
        plain = text.isascii() and text.isdecimal() and len(text) <= digits
        return int(text) if plain else None

    @property
    def before_id(self) -> str:
        """Where a list goes on that begins with the newest."""
        return self.argument("before") or END_OF_IDS

    async def look(self, work: Callable[[Visit], T]) -> T:
        """Load something on one snapshot; a page with what stands around every page."""

        def load(ask: Ask) -> T:
            self._ask = ask
            if not self.me:
                self.me = ask(users.me)
                self.companies = ask(companies.listing, limit=MOST_COMPANIES)
                self.company = _chosen(self.request, self.companies)
            found = work(self)
            if isinstance(found, Page):
                self.awaits()
                here = self.company
                self.halted = ask(halts.listing, company=here["id"]) if here else []
                self.position = position(ask(companies.positions))
            return found

        try:
            return await self.site.app.gate.together(self.who, load)
        finally:
            self._ask = None

    def ask(self, verb: Verb[P, R], *args: P.args, **given: P.kwargs) -> R:
        """A query, on the snapshot of `look`."""
        assert self._ask is not None, "only what is loaded by `look` can ask"
        return self._ask(verb, *args, **given)

    async def do(self, verb: Verb[P, R], *args: P.args, **given: P.kwargs) -> R:
        """In a transaction of its own; once, however often the form is sent."""
        return await self.site.app.gate(self.caller, verb, *args, **given)

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

    def awaits(self) -> list[dict[str, Any]]:
        """Everything that awaits the visitor; looked for once."""
        if self._awaits is None:
            self._awaits = self.ask(needs_you.listing) if self.companies else []
        return self._awaits

    @property
    def awaiting_keys(self) -> str:
        """Keys of items that await the visitor, for the script that notifies of new ones."""
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

    def show(self, template: str, /, **values: Any) -> Page:
        return Page(template, values)


@dataclass(frozen=True)
class Page:
    """Template and values of a page; it is rendered when its snapshot is over."""

    template: str
    values: dict[str, Any]


@dataclass(frozen=True)
class Undo:
    """The form that takes back what was just done, offered beside what is said about it."""

    address: str
    fields: dict[str, str] = field(default_factory=dict)
    text: str = "Undo"


@dataclass(frozen=True)
class Done:
    """Result of a form: what was done, where to look at it, and how it is taken back."""

    address: str
    said: str = ""
    undo: Undo | None = None

    def as_cookie(self) -> str:
        kept: dict[str, Any] = {"said": self.said[:LONGEST_SAID]}
        if self.undo is not None:
            kept["undo"] = asdict(self.undo)
        return quote(json.dumps(kept))


def _flash(request: Request) -> dict[str, Any] | None:
    """Message about what was done before this page; nothing that is not ours."""
    try:
        kept = json.loads(unquote(request.cookies.get(SAID_COOKIE, "")))
        undo = kept.get("undo")
        if undo and not OWN_ADDRESS.fullmatch(undo["address"]):
            undo = None
        return {"said": str(kept["said"]), "undo": undo and Undo(**undo)}
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


Shown = Page | Response
#: A page that needs more than queries waits for it, and looks by itself.
Show = Callable[[Visit], Shown] | Callable[[Visit], Coroutine[Any, Any, Shown]]
#: Answers what it did; or a page, when it only worked something out with what was typed.
Act = Callable[[Visit], Awaitable[Done | Shown]]


@functools.cache
def _static() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(STATIC.iterdir())}


@functools.cache
def _packed(name: str) -> bytes:
    """A file as it goes over a slow line; nothing in it is anybody's secret."""
    return gzip.compress(_static()[name], mtime=0)


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
    found.globals.update(
        edition=edition,
        new_key=lambda: f"web-{random_name()}",
        plural=plural,
        actions_everywhere=ACTIONS,
    )
    return found


class _Elsewhere(Route):
    """All addresses but those that are for programs."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["path"].startswith(("/api/", "/mcp", "/static/")):
            return Match.NONE, {}
        found = super().matches(scope)
        return found if found[0] is Match.FULL else (Match.NONE, {})


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
            strangers = 200 if path == "/" else 401
            return await self._serve(request, lambda visit: self._shown(visit, show), strangers)

        return Route(path, answer, methods=["GET"])

    def form(self, path: str, show: Show, act: Act) -> list[Route]:
        """A page with one form, which is sent to the address of the page."""
        return [self.page(path, show), self.action(path, act, show)]

    def forms(self, path: str, show: Show, **acts: Act) -> list[Route]:
        """The forms of the page at an address; each is sent below it, to its name."""
        return [
            self.action(f"{path}/{name.replace('_', '-')}", act, show) for name, act in acts.items()
        ]

    def answered(self, path: str, act: Act, again: Show, back: Show) -> list[Route]:
        """A form that answers with a page; who asks for that address later is led `back`."""
        return [self.page(path, back), self.action(path, act, again)]

    def action(self, path: str, act: Act, again: Show) -> Route:
        """Route of a form; `again` shows the page that it is on when it cannot be done."""

        async def done(visit: Visit) -> Response:
            await visit.look(lambda _: None)  # who it is
            try:
                visit.form = await read_form(visit.request)
                done = await act(visit)
                if not isinstance(done, Done):
                    return await self._answered(visit, done)
            except RemitError as error:
                visit.problem = error
                return await self._shown(visit, again)
            except Exception as error:
                return self._trouble(error)
            response = RedirectResponse(done.address, 303)
            if done.said:
                response.set_cookie(
                    SAID_COOKIE,
                    done.as_cookie(),
                    max_age=60,
                    path="/",
                    httponly=True,
                    samesite="strict",
                )
            return response

        async def answer(request: Request) -> Response:
            check_same_origin(request)
            return await self._serve(request, done, 401)

        return Route(path, answer, methods=["POST"])

    def static(self) -> Route:
        types = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}

        async def answer(request: Request) -> Response:
            name = request.path_params["name"]
            content = self._static.get(name)
            if content is None:
                return Response("There is no such file.", 404, media_type="text/plain")
            lasting = request.query_params.get("v") == self.edition
            packs = "gzip" in request.headers.get("accept-encoding", "")
            return Response(
                _packed(name) if packs else content,
                media_type=types[name.rpartition(".")[2]],
                headers={
                    **_HEADERS,  # a worker has the policy that its script came with
                    **({"Content-Encoding": "gzip"} if packs else {}),
                    "Vary": "Accept-Encoding",
                    "Cache-Control": "public, max-age=31536000, immutable"
                    if lasting
                    else "public, max-age=60",
                },
            )

        return Route("/static/{name}", answer, methods=["GET"])

    def anything_else(self) -> Route:
        """For a browser an address that does not exist is a page, too; programs get JSON."""

        def missing(_: Visit) -> Shown:
            raise NotFound("There is no page at this address.", "Search for what you want.")

        async def answer(request: Request) -> Response:
            if "text/html" not in request.headers.get("accept", ""):
                raise HTTPException(404)
            return await self._serve(request, lambda visit: self._shown(visit, missing), 404)

        return _Elsewhere("/{path:path}", answer, methods=["GET"])

    async def _serve(
        self, request: Request, work: Callable[[Visit], Awaitable[Response]], strangers: int
    ) -> Response:
        token = session(request)
        try:
            if token is not None:
                return await work(Visit(self, request, Caller(token)))
        except Unauthenticated:
            pass  # the session is over
        return self.render("welcome.html", strangers)

    async def _shown(self, visit: Visit, show: Show) -> Response:
        """A page, or the problem with it; raises if it is not known who looks."""
        try:
            if inspect.iscoroutinefunction(show):
                return await self._answered(visit, await show(visit))
            load = cast(Callable[[Visit], Shown], show)
            return await self._answered(visit, await visit.look(load))
        except RemitError as error:
            if isinstance(error, Unauthenticated) and not visit.me:
                raise
            visit.problem = problem = error
        except Exception as error:
            return self._trouble(error)
        try:
            return await self._answered(visit, visit.show("problem.html"))
        except RemitError:
            return self.render("trouble.html", problem.status, problem=problem)

    async def _answered(self, visit: Visit, shown: Shown) -> Response:
        if isinstance(shown, Response):
            return shown
        if visit.halted is None:
            await visit.look(lambda _: shown)
        return await self.app.library.run(self._rendered, visit, shown)

    def _rendered(self, visit: Visit, page: Page) -> Response:
        response = self.render(
            page.template,
            visit.problem.status if visit.problem is not None else 200,
            visit=visit,
            me=visit.me,
            company=visit.company,
            awaiting=len(visit._awaits or ()),
            halted=visit.halted,
            flash=_flash(visit.request),
            **page.values,
        )
        if visit.request.cookies.get(SAID_COOKIE):
            response.delete_cookie(SAID_COOKIE, path="/")
        if visit.company is not None:
            response.set_cookie(
                COMPANY_COOKIE, visit.company["id"], path="/", httponly=True, samesite="strict"
            )
        return response

    def _trouble(self, error: Exception) -> Response:
        problem = unexpected(error)
        return self.render("trouble.html", problem.status, problem=problem)


def _chosen(request: Request, found: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The company that the address names, or that was looked at last, or the first."""
    for wanted in (request.query_params.get("company"), request.cookies.get(COMPANY_COOKIE)):
        for one in found:
            if wanted and wanted in (one["id"], one["name"]):
                return one
    return found[0] if found else None
