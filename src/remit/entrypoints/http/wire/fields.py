"""Common fields of requests, and the route classes that read their bodies.

Services validate the values. Here only text is refused that must not reach a query: control
characters, lone surrogates, endless text.
"""

from collections.abc import Callable, Collection, Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, Path
from fastapi._compat import ModelField
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import AfterValidator, BaseModel, Field
from pydantic.alias_generators import to_camel
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import compile_path
from starlette.types import Receive, Scope

from remit.clock import Micros, from_iso
from remit.entrypoints import bodies
from remit.entrypoints.http.wire import field_types, json_document
from remit.entrypoints.http.wire.caller import caller
from remit.services.fields import LONGEST_REFERENCE

#: Most errors that are reported of one body.
MOST_REPORTED = 100


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


class Body(BaseModel):
    """Request body in camelCase; unknown fields are ignored. Types are strict: a text is not taken
    for a number or a flag, which JSON has itself."""

    model_config = {
        "alias_generator": to_camel,
        "populate_by_name": False,
        "extra": "ignore",
        "strict": True,
    }


class Expiring(Body):
    """Body with a label and an optional expiry."""

    label: field_types.Label = ""
    expires_at: Annotated[
        field_types.Moment | None, Field(description="ISO 8601; none means never.")
    ] = None

    def expiry(self) -> Micros | None:
        return None if self.expires_at is None else from_iso(self.expires_at)


def in_address(kind: type[BaseModel], in_path: Collection[str] = ()) -> list[dict[str, Any]]:
    """Parameters of an operation, from the model that checks them; what is not in the path is in
    the query."""
    schema = kind.model_json_schema()
    return [
        {
            "name": name,
            "in": "path" if name in in_path else "query",
            "required": name in schema.get("required", ()),
            **({"description": field.pop("description")} if "description" in field else {}),
            "schema": field,
        }
        for name, field in without_null(schema).get("properties", {}).items()
    ]


def without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Remove null defaults from the fields of a schema."""
    for field in schema.get("properties", {}).values():
        if field.get("default", "") is None:
            del field["default"]
    return schema


def new_router(tag: str, prefix: str = "", *, public: bool = False) -> APIRouter:
    """Return a router for one noun. The names of its functions are the operation ids of clients."""
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        route_class=LateRoute if public else JsonRoute,
        generate_unique_id_function=lambda route: route.name,
    )


class LateRoute(APIRoute):
    """Route that is built at its first use: building all at once would take half of a start."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        self._given: dict[str, Any] | None = options
        # Enough to match a request with it.
        self.path, self.endpoint, self.methods = path, endpoint, set(options["methods"])
        self.path_regex, self.path_format, self.param_convertors = compile_path(path)

    def __getattr__(self, name: str) -> Any:
        """Build the route at the first look-up of an attribute that it does not have yet."""
        options = self.__dict__.get("_given")
        if options is None:
            raise AttributeError(name)
        self._given = None
        super().__init__(self.path, self.endpoint, **options)
        return getattr(self, name)


class JsonRoute(LateRoute):
    """Route that refuses a request without a token, and parses the body in place of FastAPI."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        field = self.body_field

        async def handler(request: Request) -> Response:
            caller(request)
            if field is not None:
                json_document.check_type(request.headers)
                body = await bodies.whole(request.scope, request.receive)
                value = await bodies.apart(len(body), _read, body, field)
                request = _Parsed(_as_json(request.scope), request.receive, bool(body), value)
            return await handle(request)

        return handler


def _read(body: bytes, field: ModelField) -> Any:
    """Parse a body. A large one is also validated here, off the event loop: FastAPI validates it
    again, which takes no time for a valid one."""
    if not body:
        return None
    value = json_document.read(body)
    if len(body) > bodies.SMALL:
        _, wrong = field.validate(value, {}, loc=("body",))
        if wrong:
            raise RequestValidationError(wrong[:MOST_REPORTED])
    return value


def _as_json(scope: Scope) -> Scope:
    """Declare the body as JSON, whatever type the client declared."""
    headers = [(name, value) for name, value in scope["headers"] if name != b"content-type"]
    return {**scope, "headers": [*headers, (b"content-type", json_document.JSON.encode())]}


class _Parsed(Request):
    """Request with its parsed JSON, whose bytes are not kept."""

    def __init__(self, scope: Scope, receive: Receive, has_body: bool, value: Any) -> None:
        super().__init__(scope, receive)
        self._body = b"{}" if has_body else b""
        self._json = value
