"""JSON on the wire: limits of what is accepted, and views in camelCase."""

import sys
from collections.abc import AsyncIterator, Mapping
from functools import lru_cache
from typing import Any, Final

import orjson
from starlette.responses import Response, StreamingResponse

from remit.entrypoints import bodies
from remit.entrypoints.http.wire.problems import Malformed, UnknownType
from remit.errors import BadInput
from remit.model.organisation.agent_spec import DOCUMENTS

#: Deepest nesting that is accepted.
DEEPEST: Final = 64
#: The largest integer that every database and every JSON reader can hold.
LARGEST_NUMBER: Final = 2**63 - 1
JSON: Final = "application/json"
#: Keys and entries of a response that are serialised on the event loop: some 10 ms.
MOST_AT_ONCE: Final = 20_000

#: Containers, which are walked. Most values of a long list are none, and cost no call each.
_HOLDERS: Final = (dict, list)
#: Keys of free documents, whose own keys are kept.
_THEIRS: Final = frozenset(
    {
        *("details", "permissions", *(field.name for field in DOCUMENTS)),
        *("payload", "result", "configuration", "was", "now", "prices"),
        *("env", "secret_env", "headers", "secret_headers"),
    }
)
#: Keys whose camelCase is irregular.
_SPELLED: Final = {"chat_llm_provider": "chatLLMProvider", "chat_llm_model": "chatLLMModel"}


class _TooLarge(Exception):
    """More keys and entries than are serialised on the event loop."""


def read(body: bytes) -> Any:
    """Parse a body; BadInput for values that no database could store.

    Its time grows with the body; see `bodies.apart`.
    """
    bodies.check_values(body)
    try:
        value = orjson.loads(body)
    except ValueError as error:
        why = str(error).encode("utf-8", "backslashreplace").decode()[:120]
        raise Malformed(f"The body is not valid JSON ({why}).") from None
    _check(value)
    return value


def check_type(headers: Mapping[str, str]) -> None:
    """Refuse a charset other than UTF-8, and compression. The media type is ignored, because
    programs send JSON under many."""
    _, _, parameters = headers.get("content-type", "").partition(";")
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        charset = value.strip().strip('"').lower()
        if name.strip().lower() == "charset" and charset not in ("utf-8", "utf8", "us-ascii"):
            raise UnknownType(f"JSON in {charset[:40]!r} is not taken.", "Send it in UTF-8.")
    packed = headers.get("content-encoding", "identity").strip().lower()
    if packed != "identity":
        raise UnknownType(f"A body packed with {packed[:40]!r} is not taken.", "Send it as it is.")


def write(value: Any) -> bytes:
    return orjson.dumps(value)


def reply(view: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """JSON response in camelCase. A large one is serialised in a thread, off the event loop."""
    try:
        shown = _camel(view, [MOST_AT_ONCE])
    except _TooLarge:
        return StreamingResponse(_written_apart(view), status, headers, JSON)
    return Response(write(shown), status, headers, JSON)


async def _written_apart(view: Any) -> AsyncIterator[bytes]:
    yield await bodies.in_thread(lambda: write(camel(view)))


def camel(view: Any) -> Any:
    """Convert keys to camelCase, except within free documents."""
    return _camel(view, [sys.maxsize])


def _camel(view: Any, left: list[int]) -> Any:
    """Like `camel`, but raise `_TooLarge` for more keys and entries than are left."""
    if isinstance(view, list):
        _count(view, left)
        return [_camel(entry, left) for entry in view]
    if not isinstance(view, dict):
        return view
    _count(view, left)
    return {
        camel_key(key): (_theirs if key in _THEIRS else _camel)(value, left)
        if isinstance(value, _HOLDERS)
        else value
        for key, value in view.items()
    }


def _theirs(view: Any, left: list[int]) -> Any:
    """Return a free document as it is, with its entries counted."""
    waiting = [view]
    while waiting:
        entry = waiting.pop()
        _count(entry, left)
        inner = entry.values() if isinstance(entry, dict) else entry
        waiting += [holder for holder in inner if isinstance(holder, _HOLDERS)]
    return view


def _count(holder: dict[str, Any] | list[Any], left: list[int]) -> None:
    left[0] -= len(holder)
    if left[0] < 0:
        raise _TooLarge


@lru_cache(maxsize=512)
def camel_key(key: str) -> str:
    if key in _SPELLED:
        return _SPELLED[key]
    head, *rest = key.split("_")
    return head + "".join(part.capitalize() for part in rest)


def _check(value: Any) -> None:
    """Refuse too large numbers and too deep nesting; without recursion, which the depth could
    exhaust."""
    level = [value]
    for _ in range(DEEPEST):
        inner: list[Any] = []
        for entry in level:
            if isinstance(entry, dict):
                inner.extend(entry.values())
            elif isinstance(entry, list):
                inner.extend(entry)
            elif isinstance(entry, int | float) and abs(entry) > LARGEST_NUMBER:
                raise BadInput("The body has a number that is too large.")
        if not inner:
            return
        level = inner
    raise BadInput(f"The body is nested deeper than {DEEPEST} levels.")
