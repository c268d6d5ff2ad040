"""Signing in with a one-time link, and out again."""

from __future__ import annotations

import contextlib
from typing import Final
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from remit.clock import SECOND
from remit.entrypoints import bodies
from remit.entrypoints.http.caller import COOKIE, check_same_origin, session
from remit.entrypoints.web.site import Site
from remit.errors import RemitError
from remit.ids import looks_like_token
from remit.services import sessions
from remit.services.identity import Caller, as_system

LARGEST_FORM: Final = 4096


def routes(site: Site) -> list[Route]:
    app = site.app
    https = (app.settings.url or "").startswith("https:")

    async def login(request: Request) -> Response:
        if request.method == "POST":
            return await redeem(request)
        # Programs that look at links before people do must not use the link up.
        token = request.query_params.get("token", "")
        return site.render(
            "login.html", token=token if looks_like_token(token) else None, problem=None
        )

    async def redeem(request: Request) -> Response:
        check_same_origin(request)
        try:
            opened = await app.gate(as_system(), sessions.redeem, link=await _token(request))
        except RemitError as error:
            return site.render("login.html", error.status, token=None, problem=error)
        response = RedirectResponse("/", 303)
        response.set_cookie(
            COOKIE,
            opened["token"],
            max_age=sessions.SESSION_LASTS // SECOND,
            path="/",
            secure=https or request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        return response

    async def logout(request: Request) -> Response:
        check_same_origin(request)
        token = session(request)
        if token is not None:
            # Even when it had ended already, the browser may forget it.
            with contextlib.suppress(RemitError):
                await app.gate(Caller(token), sessions.end, session=token)
        response = RedirectResponse("/", 303)
        response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
        return response

    return [
        Route("/login", login, methods=["GET", "POST"]),
        Route("/logout", logout, methods=["POST"]),
    ]


async def _token(request: Request) -> str:
    body = await bodies.whole(request.scope, request.receive, LARGEST_FORM)
    form = parse_qs(body.decode("latin-1"), max_num_fields=10)
    return form.get("token", [""])[0]
