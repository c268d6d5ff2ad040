"""Signing in with a one-time link or a token, and out again."""

import contextlib
import time
from collections import OrderedDict
from typing import Final
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from remit.app import App
from remit.clock import SECOND
from remit.entrypoints import arrival, bodies
from remit.entrypoints.http.wire.caller import check_same_origin, cookie_name, session
from remit.entrypoints.web.site import Routes, Site
from remit.errors import RemitError, TooMany, Unauthenticated
from remit.ids import TokenKind, looks_like_token
from remit.services.command import Answer
from remit.services.identity import Caller, as_system
from remit.services.people import sessions

LARGEST_FORM: Final = 4096
#: Most failures of one address within the window.
MOST_FAILURES: Final = 20
WINDOW_SECONDS: Final = 60.0
MOST_ADDRESSES: Final = 10_000
_LINK: Final = f"rmt_{TokenKind.LOGIN.value}_"


def routes(site: Site) -> Routes:
    app = site.app
    attempts = Attempts()

    async def login(request: Request) -> Response:
        if request.method == "POST":
            return await redeem(request)
        # A link preview or scanner must not use up the link.
        token = request.query_params.get("token", "")
        link = token if looks_like_token(token) else None
        return site.render("login.html", token=link, problem=None, asked=bool(token))

    async def redeem(request: Request) -> Response:
        check_same_origin(request)
        who = arrival.of(request).client
        try:
            attempts.check(who)
            opened = await _opened(app, await _token(request))
        except RemitError as error:
            if isinstance(error, Unauthenticated):
                attempts.failed(who)
            return site.render("login.html", error.status, token=None, problem=error, asked=False)
        response = RedirectResponse("/", 303)
        response.set_cookie(
            cookie_name(request),
            opened["token"],
            max_age=sessions.SESSION_LASTS // SECOND,
            path="/",
            secure=arrival.of(request).expects_https,
            httponly=True,
            samesite="strict",
        )
        return response

    async def logout(request: Request) -> Response:
        check_same_origin(request)
        token = session(request)
        if token is not None:
            # Even if it had ended, the cookie is deleted.
            with contextlib.suppress(RemitError):
                await app.gate(Caller(token), sessions.end, session=token)
        response = RedirectResponse("/", 303)
        response.delete_cookie(
            cookie_name(request),
            path="/",
            secure=arrival.of(request).expects_https,
            httponly=True,
            samesite="strict",
        )
        return response

    return [
        Route("/login", login, methods=["GET", "POST"]),
        Route("/logout", logout, methods=["POST"]),
    ]


async def _opened(app: App, token: str) -> Answer:
    """Open a session: with a one-time link, or with the person's own token."""
    if token.startswith(_LINK):
        return await app.gate(as_system(), sessions.redeem, link=token)
    return await app.gate(Caller(token), sessions.open_)


class Attempts:
    """Rate limit of failed sign-ins for each address, against guessing."""

    def __init__(self) -> None:
        self._failed: OrderedDict[str, list[float]] = OrderedDict()

    def check(self, who: str) -> None:
        since = time.monotonic() - WINDOW_SECONDS
        recent = [at for at in self._failed.get(who, ()) if at > since]
        if len(recent) >= MOST_FAILURES:
            raise TooMany("There were too many attempts to sign in from your address.")

    def failed(self, who: str) -> None:
        failures = self._failed.setdefault(who, [])
        failures.append(time.monotonic())
        del failures[:-MOST_FAILURES]
        self._failed.move_to_end(who)
        if len(self._failed) > MOST_ADDRESSES:
            self._failed.popitem(last=False)


async def _token(request: Request) -> str:
    body = await bodies.whole(request.scope, request.receive, LARGEST_FORM)
    form = parse_qs(body.decode("latin-1"), max_num_fields=10)
    return form.get("token", [""])[0].strip()
