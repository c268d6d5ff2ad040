"""Fields that requests have in common, and the route that reads their bodies.

What a field may hold in the end is for the services to say. Here is only kept out what must not
get as far as a query: control characters, half characters, endless text.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, Path
from fastapi.routing import APIRoute
from pydantic import AfterValidator, BaseModel, Field
from pydantic.alias_generators import to_camel
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from remit.clock import Micros, from_iso
from remit.entrypoints.http import document
from remit.entrypoints.http.caller import caller

LONGEST_REFERENCE = 200


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("has a character that cannot stand in a name or an id")
    return text


_Printable = AfterValidator(_printable)
#: Something named by its id, the beginning of one, or its name.
Reference = Annotated[str, Field(min_length=1, max_length=LONGEST_REFERENCE), _Printable]


def _in_path(alias: str) -> Any:
    return Path(alias=alias, min_length=1, max_length=LONGEST_REFERENCE)


Id = Annotated[str, _in_path("id"), _Printable]
CompanyId = Annotated[str, _in_path("companyId"), _Printable]
UserName = Annotated[str, _in_path("user"), _Printable]
KeyId = Annotated[str, _in_path("keyId"), _Printable]
TokenId = Annotated[str, _in_path("tokenId"), _Printable]


class Body(BaseModel):
    """A body in camelCase; fields that we do not know are not ours to judge."""

    model_config = {
        "alias_generator": to_camel,
        "populate_by_name": False,
        "extra": "ignore",
    }


class Expiring(Body):
    """Something that may end by itself."""

    label: str = ""
    expires_at: Annotated[str | None, Field(description="ISO 8601; none means never.")] = None

    def expiry(self) -> Micros | None:
        return None if self.expires_at is None else from_iso(self.expires_at)


def new_router(tag: str, prefix: str = "", *, public: bool = False) -> APIRouter:
    """A router for one noun. Its functions' names are what clients generate code from."""
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        route_class=APIRoute if public else JsonRoute,
        generate_unique_id_function=lambda route: route.name,
    )


class JsonRoute(APIRoute):
    """Reads the body our way before FastAPI does, and only for who brings a token at all."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        takes_body = self.body_field is not None

        async def handler(request: Request) -> Response:
            caller(request)
            if takes_body:
                request = _Parsed(_as_json(request.scope), request.receive)
                await request.json()
            return await handle(request)

        return handler


def _as_json(scope: Scope) -> Scope:
    """Whatever type the body declares, JSON is what it has to be here."""
    headers = [(name, value) for name, value in scope["headers"] if name != b"content-type"]
    return {**scope, "headers": [*headers, (b"content-type", document.JSON.encode())]}


class _Parsed(Request):
    """A request whose JSON is what `document.read` accepts."""

    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            body = await self.body()
            self._json = document.read(body) if body else None
        return self._json
