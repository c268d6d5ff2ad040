"""Error responses: one shape, for all errors and all routes.

{"error": "<sentence>", "code": "<stable>", "nextStep": "<what to do>", …facts}
"""

import logging
from collections.abc import Mapping
from typing import Any

import orjson
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match

from remit.entrypoints.http.wire.json_document import camel
from remit.entrypoints.http.wire.problems import Malformed, NoSuchMethod
from remit.errors import BadInput, NotFound, NoToken, RemitError, Unauthenticated, Unavailable
from remit.ids import random_name

log = logging.getLogger(__name__)

_REPORTED_AT_ONCE = 3
_LONGEST_MESSAGE = 300


def answer(error: RemitError, headers: Mapping[str, str] | None = None) -> Response:
    body = {
        **camel(error.details),
        "error": error.sentence,
        "code": error.reason,
        "nextStep": error.step,
    }
    if error.what:
        body["what"] = error.what
    more = dict(headers or {})
    if isinstance(error, Unauthenticated):
        more["WWW-Authenticate"] = challenge(error)
    if error.status == Unavailable.status:
        more.setdefault("Retry-After", "1")
    return Response(_dump(body), error.status, more, "application/json")


def challenge(error: Unauthenticated) -> str:
    """Return the challenge of RFC 6750; for a token that was refused, it names the token."""
    return "Bearer" if isinstance(error, NoToken) else 'Bearer error="invalid_token"'


def internal(error: BaseException) -> Response:
    return answer(unexpected(error))


def unexpected(error: BaseException) -> RemitError:
    """Log an unexpected error, and return one with only a reference for the caller."""
    reference = random_name()[:8]
    log.error("a request failed (reference %s)", reference, exc_info=error)
    return RemitError(
        f"Something went wrong on our side (reference {reference}).",
        "Try once more; if it happens again, report the reference.",
        code="internal",
    )


async def on_remit_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, RemitError)
    return answer(error)


async def on_unexpected(_: Request, error: Exception) -> Response:
    if isinstance(error, ClientDisconnect):
        return Response(status_code=400)  # the client has gone; this is not a defect
    return internal(error)


async def on_invalid(_: Request, error: Exception) -> Response:
    """Answer to a request that FastAPI found invalid, with the path to the mistake."""
    assert isinstance(error, RequestValidationError)
    # By sentence, because a union repeats itself: the next step, if its check says one.
    problems: dict[str, str | None] = {}
    for problem in error.errors():
        step = problem.get("ctx", {}).get("step")
        problems[f"{_path(problem['loc'])}: {_what(problem)}"] = step
    shown = list(problems)[:_REPORTED_AT_ONCE]
    more = f"; and {len(problems) - len(shown)} more" if len(problems) > len(shown) else ""
    step = problems[shown[0]] if len(problems) == 1 else None
    return answer(BadInput("; ".join(shown) + more + ".", step))


async def on_http_error(request: Request, error: Exception) -> Response:
    """Answer to a request that routing refused: no such address, or not that method."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        allowed = _methods(request)
        sentence = f"{request.method[:20]} is not possible here, only {', '.join(allowed)}."
        return answer(NoSuchMethod(sentence), {"Allow": ", ".join(allowed)})
    if error.status_code == 404:
        return answer(NotFound("There is no such address.", "See /openapi.json for those we have."))
    return answer(Malformed(str(error.detail)))


def _methods(request: Request) -> list[str]:
    """Return the methods of all routes that match the path; Starlette has those of the first only.

    A literal path (`/agents/me`) is not mixed with one with a parameter in its place.
    """
    allowed: dict[bool, set[str]] = {}
    for route in request.app.router.routes:
        match, _ = route.matches(request.scope)
        if match is not Match.NONE:
            general = "{" in getattr(route, "path", "")
            allowed.setdefault(general, set()).update(getattr(route, "methods", None) or ())
    methods = allowed.get(False) or allowed.get(True) or set()
    return sorted(methods | ({"HEAD"} if "GET" in methods else set()))


def _path(location: tuple[str | int, ...]) -> str:
    parts = [str(part) for part in location]
    where, names = parts[0], parts[1:]
    shown = ".".join(part.encode("unicode_escape").decode("ascii")[:60] for part in names[:8])
    return shown or where


def _what(problem: Mapping[str, Any]) -> str:
    if problem["type"] == "missing":
        return "is required"
    plain = str(problem["msg"]).removeprefix("Value error, ").removeprefix("Input ").rstrip(".")
    printable = plain.encode("utf-8", "backslashreplace").decode()
    return printable[:1].lower() + printable[1:_LONGEST_MESSAGE]


def _dump(body: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(body)
    except TypeError:
        # A lone surrogate that a caller sent and a sentence repeats.
        text = str(body["error"]).encode("utf-8", "backslashreplace").decode()
        return orjson.dumps({**body, "error": text})
