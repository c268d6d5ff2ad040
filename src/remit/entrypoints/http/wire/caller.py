"""The caller: the bearer token of the request, or the session cookie of a browser."""

from typing import Final

from starlette.requests import Request
from starlette.types import Scope

from remit.entrypoints import arrival
from remit.entrypoints.http.wire.problems import CrossSite
from remit.errors import NoToken, Unauthenticated
from remit.ids import RUN_TOKEN, TokenKind
from remit.services.command import checked_key
from remit.services.identity import Caller

COOKIE: Final = "remit_session"
_SESSION: Final = f"rmt_{TokenKind.SESSION.value}_"
_RUN: Final = RUN_TOKEN.encode()
_LOOKING: Final = frozenset({"GET", "HEAD", "OPTIONS"})


def caller(request: Request) -> Caller:
    """Return the caller by the Authorization header, or else by the session cookie."""
    token, from_cookie = presented(request)
    company = request.query_params.get("companyId") if request.scope["query_string"] else None
    if request.method in _LOOKING:
        return Caller(token, company=company)
    if from_cookie:
        check_same_origin(request)
    key = request.headers.get("idempotency-key")
    return Caller(token, None if key is None else checked_key(key), company=company)


def cookie_name(request: Request) -> str:
    """Return the name of the session's cookie. With the prefix, a browser takes it over TLS alone,
    and from this very host, so that no neighbour in the same domain can plant a session."""
    return f"__Host-{COOKIE}" if arrival.of(request).expects_https else COOKIE


def session(request: Request) -> str | None:
    """Return the session token of the cookie. Any other token there is ignored: it does not expire
    by itself, and a page could be made to carry it."""
    token = request.cookies.get(cookie_name(request)) or ""
    return token if token.startswith(_SESSION) else None


def token_in(header: str) -> str:
    """Parse the token of an Authorization header. All code that reads tokens uses this: with two
    parsers, one token could be checked and another accepted. So only HTTP's blanks are stripped,
    not all of Unicode's."""
    scheme, _, token = header.partition(" ")
    token = token.strip(" \t")
    if scheme.lower() != "bearer" or not token:
        raise NoToken("The Authorization header is not a bearer token.")
    return token


def run_tokens(scope: Scope) -> list[str]:
    """The tokens of runs in the Authorization headers of a request."""
    if scope["type"] != "http":
        return []
    return [
        token_in(value.decode("latin-1"))
        for name, value in scope["headers"]
        if name == b"authorization" and _RUN in value
    ]


def bearer(token: str) -> str:
    """Return a token for calls; refuse a browser's session, so that a leaked one opens less."""
    if token.startswith(_SESSION):
        raise Unauthenticated(
            "A session of a browser is not a token for calls.",
            "Make one with `remit user token NAME`.",
        )
    return token


def check_same_origin(request: Request) -> None:
    """Refuse a change by a browser that does not come from a page of this instance."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        if site == "same-origin":
            return
    else:
        # Over plain HTTP a browser sends Origin alone.
        if arrival.of(request).is_own(request.headers.get("origin", "")):
            return
    raise CrossSite("The request did not come from a page of this instance.")


def presented(request: Request) -> tuple[str, bool]:
    """Return the request's token, and whether it is a cookie that a browser sends by itself."""
    header = request.headers.get("authorization")
    if header is not None:
        return bearer(token_in(header)), False
    cookie = session(request)
    if cookie is None:
        raise NoToken("This request carries no token.")
    return cookie, True
