"""Requests find the same route among a few as among all."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.routing import Match, Route

from remit.entrypoints.http.server.places import Places
from tests.http_client import Running, serving


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("places")) as found:
        yield found


def tried(routes: list[Any], method: str, path: str) -> list[tuple[Any, Any]]:
    """The routes that fit, in their order, whole or but for the method."""
    scope = {"type": "http", "method": method, "path": path, "headers": []}
    found = [(route, route.matches(scope)[0]) for route in routes]
    return [one for one in found if one[1] is not Match.NONE]


def paths(routes: list[Any]) -> Iterator[tuple[str, str]]:
    """Each route's path with values in it, and others that are nearly so."""
    words = {part for one in routes for part in one.path.split("/") if part and "{" not in part}
    for route in routes:
        for value in ("x y", "new"):
            made = re.sub(r"\{[^}]*\}", value, route.path)
            for path in (made, f"{made}/", f"/{made}", f"{made}/{value}", made.rpartition("/")[0]):
                yield next(iter(route.methods or ["GET"])), path or "/"
    for word in sorted(words):
        yield "GET", f"/{word}"
        yield "GET", f"/api/{word}/{word}"


def test_every_path_has_the_same_routes_among_the_few(running: Running) -> None:
    router = running.instance.api.router
    places = router.middleware_stack
    assert isinstance(places, Places)
    routes = [one for one in router.routes if isinstance(one, Route)]
    assert len(routes) == len(router.routes) > 300
    count = most = 0
    for method, path in dict.fromkeys(paths(routes)):
        few = places.router({"type": "http", "path": path}).__self__.routes  # type: ignore[attr-defined]
        assert tried(few, method, path) == tried(routes, method, path), (method, path)
        count, most = count + 1, max(most, len(few) * (few is not router.routes))
    assert count > 1_500, count
    assert most <= 100, "a place with so many routes saves nothing"


def test_behind_a_proxy_that_adds_to_the_path_all_are_looked_through(running: Running) -> None:
    router = running.instance.api.router
    scope = {"type": "http", "path": "/below/health", "root_path": "/below"}
    assert isinstance(router.middleware_stack, Places)
    assert router.middleware_stack.router(scope) == router.app
