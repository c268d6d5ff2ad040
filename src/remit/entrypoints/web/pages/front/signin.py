"""Signing in with a one-time link or a token, and out again."""

import contextlib
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
from remit.errors import RemitError
from remit.ids import TokenKind, looks_like_token
from remit.services.command import Answer
from remit.services.identity import Caller, as_system
from remit.services.people import sessions

LARGEST_FORM: Final = 4096
_LINK: Final = f"rmt_{TokenKind.LOGIN.value}_"


def routes(site: Site) -> Routes:
    app = site.app

    async def login(request: Request) -> Response:
        if request.method == "POST":
            return await redeem(request)
        # A link preview or scanner must not use up the link.
        token = request.query_params.get("token", "")
        link = token if looks_like_token(token) else None
        return site.render("login.html", token=link, problem=None, asked=bool(token))

    async def redeem(request: Request) -> Response:
        check_same_origin(request)
        try:
            opened = await _opened(app, await _token(request))
        except RemitError as error:
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


async def _token(request: Request) -> str:
    body = await bodies.whole(request.scope, request.receive, LARGEST_FORM)
    form = parse_qs(body.decode("latin-1"), max_num_fields=10)
    return form.get("token", [""])[0].strip()
