"""Whether answers are what /openapi.json says they are. Every client of the tests looks."""

from __future__ import annotations

import functools
import http.client
import json
import re
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import jsonschema_rs

_JSON = "application/json"
#: An address or a head that is too long is refused by the server itself.
_BEFORE_ANY_OPERATION = (414, 431)
#: The description is the same for every instance of a process, so it is asked for once.
_found: list[Described] = []


class Operation(NamedTuple):
    path: re.Pattern[str]
    responses: dict[str, Any]


class Described:
    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        # What is all words comes before what has a place for an id.
        paths = sorted(document["paths"].items(), key=lambda entry: entry[0].count("{"))
        #: By the method and by how many parts the path has: thousands of answers are looked at.
        self._alike: dict[tuple[str, int], list[Operation]] = {}
        for path, operations in paths:
            for method, operation in operations.items():
                alike = self._alike.setdefault((method.upper(), path.count("/")), [])
                alike.append(Operation(_pattern(path), operation["responses"]))

    def check(self, method: str, target: str, status: int, body: bytes) -> None:
        """Of what is in the description: the status is one of those, the body has that shape."""
        path = urlsplit(target).path
        alike = self._alike.get((method, path.count("/")), ())
        operation = next((candidate for candidate in alike if candidate.path.fullmatch(path)), None)
        if operation is None:
            return
        if status in _BEFORE_ANY_OPERATION:
            return
        answer = operation.responses.get(str(status)) or operation.responses.get(
            f"{status // 100}XX"
        )
        assert answer is not None, f"{method} {path} does not say that it answers {status}"
        content = self._resolved(answer).get("content", {})
        if _JSON in content:
            self._validator(json.dumps(content[_JSON]["schema"])).validate(json.loads(body))

    def _resolved(self, answer: dict[str, Any]) -> dict[str, Any]:
        target: Any = answer
        if "$ref" in answer:
            target = self._document
            for part in answer["$ref"].removeprefix("#/").split("/"):
                target = target[part]
        resolved: dict[str, Any] = target
        return resolved

    @functools.cache  # noqa: B019  as few as there are operations, and one description
    def _validator(self, schema: str) -> Any:
        known = {"components": {"schemas": self._document["components"]["schemas"]}}
        return jsonschema_rs.validator_for({**json.loads(schema), **known})


def check(url: str, method: str, target: str, status: int, kind: str, body: bytes) -> None:
    if kind.startswith(_JSON) and target.startswith("/api/"):
        if not _found:
            _found.append(Described(_fetched(url)))
        _found[0].check(method, target, status, body)


def _fetched(url: str) -> dict[str, Any]:
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=30)
    connection.request("GET", "/openapi.json")
    document: dict[str, Any] = json.loads(connection.getresponse().read())
    connection.close()
    return document


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(
        "".join("[^/]+" if part[:1] == "{" else re.escape(part) for part in _parts(path))
    )


def _parts(path: str) -> list[str]:
    return re.split(r"({\w+})", path)
