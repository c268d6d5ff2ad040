"""Index of routes by the first words of their paths, so that a request is matched with a few of
them and not with all four hundred."""

from fastapi import APIRouter
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

#: Key of the index: the number of a path's parts and the first two, or one before a parameter.
Place = tuple[int | str, ...]


class Places:
    """ASGI app that passes a request to a router of its candidate routes, or to the full router if
    its path begins like no route."""

    def __init__(self, every: APIRouter) -> None:
        self._every = every
        self._known = {place for route in every.routes if (place := _place(route))}
        #: Built on demand: all at once would slow the start.
        self._few: dict[Place, ASGIApp] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.router(scope)(scope, receive, send)

    def router(self, scope: Scope) -> ASGIApp:
        if scope["type"] != "http" or scope.get("root_path"):
            return self._every.app
        parts = scope["path"].split("/")[1:]
        for place in ((len(parts), *parts[:2]), (len(parts), *parts[:1])):
            if place in self._few:
                return self._few[place]
            if place in self._known:
                few = [route for route in self._every.routes if _may_be(route, place)]
                return self._few.setdefault(
                    place, APIRouter(routes=few, redirect_slashes=False).app
                )
        return self._every.app


def _place(route: BaseRoute) -> Place | None:
    """Return the key of a route; None if its path does not begin with a word."""
    parts = _parts(route)
    if parts is None or _is_open(parts[0]):
        return None
    return (len(parts), *[part for part in parts[:2] if not _is_open(part)])


def _may_be(route: BaseRoute, place: Place) -> bool:
    """Return whether the route may match paths with this key."""
    parts = _parts(route)
    if parts is None:
        return True
    count, *words = place
    begins = all(_is_open(part) or part == word for part, word in zip(parts, words, strict=False))
    # A key of one word is for routes with a parameter behind it.
    return len(parts) == count and begins and all(map(_is_open, parts[len(words) : 2]))


def _parts(route: BaseRoute) -> list[str] | None:
    """The parts of a route's path; None when it may have any number of them."""
    if not isinstance(route, Route) or ":path" in route.path:
        return None
    return route.path.split("/")[1:]


def _is_open(part: str) -> bool:
    return "{" in part
