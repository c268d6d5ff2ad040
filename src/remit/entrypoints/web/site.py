"""The frame of every page: its visitor, the current company, and rendering.

A page is a function of a `Visit`. It runs within one read transaction, so that all its queries, and
those of the frame, see one snapshot. Rendering comes after. A change is a form: its function makes
the change and returns a message, or the page is shown again with the error and everything that was
typed.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import inspect
import json
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
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
from remit.entrypoints import arrival
from remit.entrypoints.http.wire.caller import check_same_origin, session
from remit.entrypoints.http.wire.error_answers import unexpected
from remit.entrypoints.web.forms import Form, read_form
from remit.entrypoints.web.live import MOST_COMPANIES, position
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

COMPANY_COOKIE: Final = "remit_company"
SAID_COOKIE: Final = "remit_said"
LONGEST_SAID: Final = 300
#: Addresses of this site; none that a browser would take for another host.
OWN_ADDRESS: Final = re.compile(r"/(?:[A-Za-z0-9_-]+(?:/[A-Za-z0-9_-]+)*/?)?")
MOST_KEYS: Final = 100
#: Rows of a list on one page.
MOST_ROWS: Final = 50

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
    #: Loaded by the first `look`.
    me: dict[str, Any] = field(default_factory=dict)
    companies: list[dict[str, Any]] = field(default_factory=list)
    #: The current company; None for a visitor with a part in none.
    company: dict[str, Any] | None = None
    #: The error of the form that was just sent, and the form as typed.
    problem: RemitError | None = None
    form: Form = field(default_factory=Form)
    #: Halts of the current company; None until the frame of the page is loaded.
    halted: list[dict[str, Any]] | None = None
    #: Position of the record at the snapshot; the stream compares with it.
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
        """Return whether the visitor is on the board of the company or of a part of it."""
        return self.company is not None and self.company.get("role") == "board"

    @property
    def whole(self) -> bool:
        """Return whether the visitor sees the whole company, not only a part."""
        return self.company is not None and self.part is None

    @property
    def caller(self) -> Caller:
        """Return a caller with the form's idempotency key: a repeated form has no second effect."""
        return Caller(self.who.token, self.form.key)

    def argument(self, name: str, default: str = "") -> str:
        """Return a path or query parameter."""
        return str(
            self.request.path_params.get(name) or self.request.query_params.get(name, default)
        )

    def number(self, name: str, digits: int = 9) -> int | None:
        """Return a parameter as a number; None for any other text."""
        text = self.argument(name)
        plain = text.isascii() and text.isdecimal() and len(text) <= digits
        return int(text) if plain else None

    @property
    def before_id(self) -> str:
        """Return where a list with the newest first is resumed."""
        return self.argument("before") or END_OF_IDS

    async def look(self, work: Callable[[Visit], T]) -> T:
        """Run queries on one snapshot; for a page also those of the frame."""

        def load(ask: Ask) -> T:
            self._ask = ask
            if not self.me:
                self.me = ask(users.me)
                self.companies = ask(companies.listing, limit=MOST_COMPANIES)
                self.company = self._chosen()
                if here := self.request.path_params.get("company_id"):
                    self.company = self._own(here) or ask(companies.show, company=here)
            answer = work(self)
            if isinstance(answer, Page):
                self.awaits()
                here = self.company
                self.halted = ask(halts.listing, company=here["id"]) if here else []
                self.position = position(ask(companies.positions))
            return answer

        try:
            return await self.site.app.gate.together(self.who, load)
        finally:
            self._ask = None

    def ask(self, verb: Verb[P, R], *args: P.args, **arguments: P.kwargs) -> R:
        """Run a query on the snapshot of `look`."""
        assert self._ask is not None, "only what is loaded by `look` can ask"
        return self._ask(verb, *args, **arguments)

    async def do(self, verb: Verb[P, R], *args: P.args, **arguments: P.kwargs) -> R:
        """Run a verb in its own transaction; repeated forms have no second effect, by their key."""
        return await self.site.app.gate(self.caller, verb, *args, **arguments)

    def _chosen(self) -> dict[str, Any] | None:
        """Return the company in the query, or the last one, or the first."""
        request, own = self.request, self.companies
        for wanted in (request.query_params.get("company"), request.cookies.get(COMPANY_COOKIE)):
            for company in own:
                if wanted and wanted in (company["id"], company["name"]):
                    return company
        return own[0] if own else None

    def _own(self, company_id: str) -> dict[str, Any] | None:
        return next((company for company in self.companies if company["id"] == company_id), None)

    def enter(self, company_id: str) -> None:
        """Make a company of the visitor the current one."""
        self.company = self._own(company_id) or self.company

    def link(self, path: str, **query: object) -> str:
        """Return an address that keeps the current company, for other visitors, too."""
        parameters = {name: str(value) for name, value in query.items() if value not in (None, "")}
        if len(self.companies) > 1 and self.company is not None:
            parameters["company"] = self.company["id"]
        return f"{path}?{urlencode(parameters)}" if parameters else path

    def more(
        self,
        path: str,
        rows: Sequence[Mapping[str, Any]],
        most: int = MOST_ROWS,
        *,
        key: str = "id",
        place: str = "before",
        **query: object,
    ) -> str:
        """Return the address of the page after `rows`, empty if these are fewer than `most`; `key`
        of the last row is its parameter `place`."""
        return self.link(path, **query, **{place: rows[-1][key]}) if len(rows) == most else ""

    def kept(self, texts: Mapping[str, str]) -> dict[str, str]:
        """Return texts of a form: as typed if it failed, else as given."""
        typed = self.form.fields if self.problem is not None else {}
        return {name: self.form.text(name) if name in typed else texts[name] for name in texts}

    def listed(self, verb: Verb[..., list[T]], **filters: Any) -> list[T]:
        """Return a page of the company's rows of a kind, with the newest first."""
        here = {"company": self.company_id, "before": self.before_id, "limit": MOST_ROWS}
        return self.ask(verb, **here, **filters)

    def awaits(self) -> list[dict[str, Any]]:
        """Return all items that await the visitor; queried once."""
        if self._awaits is None:
            self._awaits = self.ask(needs_you.listing) if self.companies else []
        return self._awaits

    @property
    def awaiting_keys(self) -> str:
        """Keys of items that await the visitor, for the script that notifies of new ones."""
        newest = (self._awaits or [])[-MOST_KEYS:]
        return " ".join(f"{item['kind']}:{item['id']}" for item in newest)

    @property
    def part(self) -> str | None:
        """Return the agent at the top of the visitor's part of the company; None for the whole."""
        return (self.company or {}).get("scope_agent_id")

    @property
    def back(self) -> str:
        """Return the address of this page, for forms in the frame."""
        return self.request.url.path if self.request.method == "GET" else ""

    def show(self, template: str, /, **values: Any) -> Page:
        return Page(template, values)


@dataclass(frozen=True)
class Page:
    """Template and values of a page; rendered after its snapshot has ended."""

    template: str
    values: dict[str, Any]


@dataclass(frozen=True)
class Undo:
    """The form that undoes a change, offered beside its message."""

    address: str
    fields: dict[str, str] = field(default_factory=dict)
    text: str = "Undo"


@dataclass(frozen=True)
class Done:
    """Result of a form: message, address to redirect to, and how to undo it."""

    address: str
    said: str = ""
    undo: Undo | None = None

    def as_cookie(self) -> str:
        kept: dict[str, Any] = {"said": self.said[:LONGEST_SAID]}
        if self.undo is not None:
            kept["undo"] = asdict(self.undo)
        return quote(json.dumps(kept))


def _flash(request: Request) -> dict[str, Any] | None:
    """Read the message of the form before this page; anything malformed is ignored."""
    try:
        kept = json.loads(unquote(request.cookies.get(SAID_COOKIE, "")))
        undo = kept.get("undo")
        if undo and not OWN_ADDRESS.fullmatch(undo["address"]):
            undo = None
        return {"said": str(kept["said"]), "undo": undo and Undo(**undo)}
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


Routes = list[Route]
Shown = Page | Response
#: A page with more than queries is a coroutine, and calls `look` itself.
Show = Callable[[Visit], Shown] | Callable[[Visit], Coroutine[Any, Any, Shown]]
#: Returns what it did, or a page if it only computed something from the form.
Act = Callable[[Visit], Awaitable[Done | Shown]]


def alone(visit: Visit) -> Shown:
    """Show the error of a form that is on no page of its own."""
    assert visit.problem is not None
    raise visit.problem


@functools.cache
def _static() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(STATIC.iterdir())}


@functools.cache
def _packed(name: str) -> bytes:
    """Return a static file, compressed; compression is safe, since it has no secrets."""
    return gzip.compress(_static()[name], mtime=0)


@functools.cache
def _templates(edition: str) -> Environment:
    """Return the template environment, shared by all instances of a process."""
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(words.FILTERS)
    environment.globals.update(
        edition=edition,
        new_key=lambda: f"web-{random_name()}",
        plural=plural,
        actions_everywhere=ACTIONS,
    )
    return environment


class _Elsewhere(Route):
    """Catch-all route for all addresses except those of programs."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["path"].startswith(("/api/", "/mcp", "/static/")):
            return Match.NONE, {}
        matched = super().matches(scope)
        return matched if matched[0] is Match.FULL else (Match.NONE, {})


class Site:
    """All pages of an instance."""

    def __init__(self, app: App) -> None:
        self.app = app
        self._static = _static()
        #: Digest of all static files, so that browsers may cache them for ever.
        self.edition = hashlib.sha256(b"".join(self._static.values())).hexdigest()[:12]
        self._templates = _templates(self.edition)

    def render(self, template: str, status: int = 200, /, **values: Any) -> HTMLResponse:
        return HTMLResponse(self._templates.get_template(template).render(values), status, _HEADERS)

    def page(self, path: str, show: Show) -> Route:
        """Route of a page for visitors who are signed in."""

        async def answer(request: Request) -> Response:
            strangers = 200 if path == "/" else 401
            return await self._serve(request, lambda visit: self._shown(visit, show), strangers)

        return Route(path, answer, methods=["GET"])

    def form(self, path: str, show: Show, act: Act) -> Routes:
        """Routes of a page with one form, which is sent to the page's own address."""
        return [self.page(path, show), self.action(path, act, show)]

    def forms(self, path: str, show: Show, **acts: Act) -> Routes:
        """Routes of several forms on a page; each is sent to its name below the page's address."""
        return [
            self.action(f"{path}/{name.replace('_', '-')}", act, show) for name, act in acts.items()
        ]

    def answered(self, path: str, act: Act, again: Show, back: str) -> Routes:
        """Routes of a form that answers with a page, once; a later GET of its address is redirected
        to `back`."""

        def leave(visit: Visit) -> Response:
            return RedirectResponse(visit.link(back.format_map(visit.request.path_params)), 303)

        return [self.page(path, leave), self.action(path, act, again)]

    def action(self, path: str, act: Act, again: Show) -> Route:
        """Route of a form; `again` shows the form's page if it fails."""

        async def done(visit: Visit) -> Response:
            failing: Show = alone
            try:
                await visit.look(lambda _: None)  # identify the visitor and the company
                failing = again
                visit.form = await read_form(visit.request)
                done = await act(visit)
                if not isinstance(done, Done):
                    return await self._answered(visit, done)
            except RemitError as error:
                visit.problem = error
                return await self._shown(visit, failing)
            except Exception as error:
                return self._trouble(error)
            response = RedirectResponse(done.address, 303)
            if done.said:
                response.set_cookie(
                    SAID_COOKIE,
                    done.as_cookie(),
                    max_age=60,
                    path="/",
                    secure=arrival.of(visit.request).expects_https,
                    httponly=True,
                    samesite="strict",
                )
            return response

        async def answer(request: Request) -> Response:
            check_same_origin(request)
            return await self._serve(request, done, 401)

        return Route(path, answer, methods=["POST"])

    def does(
        self, path: str, verb: Verb[..., Any], again: Show, back: str, message: str, *fields: str
    ) -> Route:
        """Route of a form that calls a verb with the parameters of its address and those `fields`.

        `back` and `message` are filled in with keys of the answer and parameters of the address.
        """

        async def act(visit: Visit) -> Done:
            place = visit.request.path_params
            on = {"company" if name == "company_id" else name: place[name] for name in place}
            answer = await visit.do(verb, **on, **visit.form.arguments(verb, fields))
            known = {**answer, **place}
            return Done(back.format_map(known), message.format_map(known))

        return self.action(path, act, again)

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
                    **_HEADERS,  # a service worker has the policy of its script
                    **({"Content-Encoding": "gzip"} if packs else {}),
                    "Vary": "Accept-Encoding",
                    "Cache-Control": "public, max-age=31536000, immutable"
                    if lasting
                    else "public, max-age=60",
                },
            )

        return Route("/static/{name}", answer, methods=["GET"])

    def anything_else(self) -> Route:
        """Route of all other addresses: a page for browsers, JSON for programs."""

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
        """Respond with a page, or with its error; raise if the visitor is unknown."""
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
                COMPANY_COOKIE,
                visit.company["id"],
                path="/",
                secure=arrival.of(visit.request).expects_https,
                httponly=True,
                samesite="strict",
            )
        return response

    def _trouble(self, error: Exception) -> Response:
        problem = unexpected(error)
        return self.render("trouble.html", problem.status, problem=problem)
