"""Routes of the verbs that declare one (`AsRoute`), and their part of /openapi.json.

They are plain routes: their models are built from the declaration at the first request, so that a
start does not wait for it.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any, Final, get_type_hints

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field, StrictBool, ValidationError, WithJsonSchema
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from remit.app import App
from remit.entrypoints import bodies
from remit.entrypoints.declared import chosen, declared, model
from remit.entrypoints.http.wire import field_types as described
from remit.entrypoints.http.wire import json_document, paging
from remit.entrypoints.http.wire.caller import caller
from remit.entrypoints.http.wire.fields import (
    MOST_REPORTED,
    Body,
    Reference,
    in_address,
    without_null,
)
from remit.errors import RemitError
from remit.ids import END_OF_IDS
from remit.services import fields, shapes
from remit.services.identity import Caller
from remit.services.screens import overview
from remit.services.surfaces import AsRoute
from remit.services.verbs import Verb, verb_named

_PAGE: Final = (
    fields.Field("limit", int, (fields.Range(1, paging.MOST),), default=paging.DEFAULT),
    fields.Field(
        "cursor",
        str,
        (fields.Help("From the Link of the page before."), fields.Reference("")),
        optional=True,
        default=None,
    ),
)
_DRY_RUN: Final = fields.Field(
    "dry_run", bool, (fields.Help("Only say what would change."),), default=False
)


def routes(app: App) -> list[DeclaredRoute]:
    return [DeclaredRoute(app, verb, surface) for verb, surface in declared(AsRoute)]


def words_first(route: BaseRoute) -> list[bool]:
    """Sort key of routes: `/agents/me` comes before `/agents/{id}`."""
    return [part.startswith("{") for part in getattr(route, "path", "").split("/")]


class DeclaredRoute(Route):
    def __init__(self, app: App, verb: Verb[..., Any], surface: AsRoute) -> None:
        self.verb = verb
        self.surface = surface
        self._app = app
        super().__init__(
            f"/api{surface.path}", self._answer, methods=[surface.method], name=surface.operation
        )

    async def _answer(self, request: Request) -> Response:
        who = caller(request)
        asked, wrong = _checked(self.parameters, {**request.query_params, **request.path_params})
        if self.body is not None:
            json_document.check_type(request.headers)
            body = await bodies.whole(request.scope, request.receive)
            said, more = await bodies.apart(len(body), _read, body, self.body, self._clearable)
            asked, wrong = asked | said, wrong + more
        if wrong:
            raise RequestValidationError(wrong)
        if self.surface.page:
            return await self._page(request, asked)
        preview = asked.pop(_DRY_RUN.name, False)
        verb = verb_named(self.surface.preview) if preview else self.verb
        answer = await self._app.library.call(who, verb, **asked)
        if self.surface.as_seen:
            answer = await self._as_seen(who, answer)
        return json_document.reply(answer, self.surface.status)

    async def _as_seen(self, who: Caller, changed: Any) -> Any:
        beside = {key: changed[key] for key in self._beside if key in changed}
        return {**await whole(self._app, who, changed), **beside}

    async def _page(self, request: Request, asked: dict[str, Any]) -> Response:
        page = paging.Page(request, asked["limit"], asked.pop("cursor", None))
        if "limit" not in self.verb.fields:
            del asked["limit"]
            rows = await self._app.library.call(caller(request), self.verb, **asked)
            by = self.surface.page
            return page.cut(rows) if by == "id" else page.after(rows, lambda row: row[by])
        newest_first = self.verb.fields.get("before")
        if newest_first is None:
            asked["after"] = page.after_id()
        elif newest_first.kind is int:
            asked["before"] = page.before_number(paging.LARGEST)
        else:
            asked["before"] = page.after_id(END_OF_IDS)
        rows = await self._app.library.call(caller(request), self.verb, **asked)
        return page.reply(rows, lambda row: row[self.surface.page])

    @cached_property
    def parameters(self) -> type[BaseModel]:
        """Model of the parameters in the address: path and query."""
        return model(
            self.operation_name("Parameters"),
            BaseModel,
            self._in_address,
            _lax,
            self.surface.called,
        )

    @cached_property
    def body(self) -> type[BaseModel] | None:
        outside = {one.name for one in self._in_address}
        inside = [one for one in self._chosen if one.name not in outside]
        inside += [_DRY_RUN] if self.surface.preview else []
        if not inside:
            return None
        return model(self.operation_name("Body"), Body, inside, _in_body, self.surface.called)

    @property
    def answer(self) -> Any:
        """The type of the answer, as the verb has it."""
        return get_type_hints(self.verb.body, include_extras=True)["return"]

    @cached_property
    def _beside(self) -> list[str]:
        """Fields of the verb's answer besides those of an agent."""
        own = get_type_hints(shapes.AgentShape).keys()
        return [key for key in get_type_hints(self.answer) if key not in own]

    @property
    def words(self) -> str:
        return self.surface.words or self.verb.words

    def operation_name(self, suffix: str) -> str:
        return self.surface.operation.title().replace("_", "") + suffix

    @cached_property
    def _chosen(self) -> list[fields.Field]:
        turned = {"after", "before", "limit"} if self.surface.page else set()
        return [
            _needed(one) if one.name in self.surface.needs else one
            for one in chosen(self.verb, {*self.surface.without, *turned})
        ]

    @cached_property
    def _in_address(self) -> list[fields.Field]:
        place = self.surface.in_path
        looking = self.surface.method in ("GET", "DELETE")
        found = [_needed(self.verb.fields[name]) for name in place]
        found += [one for one in self._chosen if looking and one.name not in place]
        return [*found, *_PAGE] if self.surface.page else found

    @cached_property
    def _clearable(self) -> set[str]:
        return {
            one.name
            for one in self._chosen
            if any(isinstance(mark, fields.Cleared) for mark in one.marks)
        }

    def body_schema(self) -> dict[str, dict[str, Any]]:
        """The schemas of its body, by name."""
        if self.body is None:
            return {}
        schema = self.body.model_json_schema(ref_template="#/components/schemas/{model}")
        return {**schema.pop("$defs", {}), self.body.__name__: without_null(schema)}

    def described(self) -> dict[str, Any]:
        """The operation as /openapi.json has it."""
        surface = self.surface
        found: dict[str, Any] = {
            "tags": [surface.tag],
            "summary": surface.operation.replace("_", " ").title(),
            "description": self.words,
            "operationId": surface.operation,
            "parameters": in_address(self.parameters, surface.in_path.values()),
            "responses": {
                str(surface.status): {
                    "description": "Successful Response",
                    "content": {json_document.JSON: {}},
                }
            },
        }
        if self.body is not None:
            reference = {"$ref": f"#/components/schemas/{self.body.__name__}"}
            found["requestBody"] = {
                "required": _has_required(self.body),
                "content": {json_document.JSON: {"schema": reference}},
            }
        return found


def _needed(one: fields.Field) -> fields.Field:
    return replace(one, optional=False, default=inspect.Parameter.empty)


async def whole(app: App, who: Caller, changed: dict[str, Any]) -> dict[str, Any]:
    """Return a changed agent with all fields that the caller may see."""
    try:
        return await app.gate(Caller(who.token), overview.agent, agent=changed["id"])
    except RemitError:
        # A repeated answer may be about an agent that is gone or no longer visible.
        return {key: changed[key] for key in ("id", "company_id", "name", "role", "status")}


def _checked(
    kind: type[BaseModel], given: Any, clearable: Collection[str] = ()
) -> tuple[dict[str, Any], list[Any]]:
    """Validated values by parameter, and the errors of the model."""
    try:
        checked = kind.model_validate(given)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_context=False)[:MOST_REPORTED]
        return {}, [{**one, "loc": ("body", *one["loc"])} for one in wrong]
    cleared = {
        name: ""
        for name in checked.model_fields_set
        if getattr(checked, name) is None and name in clearable
    }
    return checked.model_dump(exclude_none=True) | cleared, []


def _read(
    body: bytes, kind: type[BaseModel], clearable: Collection[str]
) -> tuple[dict[str, Any], list[Any]]:
    if not body and _has_required(kind):
        return {}, [{"type": "missing", "loc": ("body",), "msg": ""}]
    return _checked(kind, json_document.read(body) if body else {}, clearable)


def _has_required(kind: type[BaseModel]) -> bool:
    return any(one.is_required() for one in kind.model_fields.values())


def _in_body(one: fields.Field) -> Any:
    """Type of a field in a body, where a flag must be a JSON boolean."""
    return StrictBool if one.kind is bool else _lax(one)


def _lax(one: fields.Field) -> Any:
    """Lenient type of a field. Texts and words are only described: they always reach the verb,
    which explains what is wrong. Times are checked, since a verb takes an empty one for none."""
    if one.words:
        return Annotated[str, WithJsonSchema(dict(described.words(*one.words).schema))]
    if one.entries is not None:
        return Annotated[list[_in_body(one.entries)], Field(max_length=one.most)]  # type: ignore[misc]
    if one.reference is not None:
        return Reference
    if one.moment:
        return described.Moment
    if isinstance(one.text, fields.PlainName):
        return described.Name
    if one.text is not None:
        written = described.text(one.text.longest, empty=one.text.empty)
        return Annotated[str, WithJsonSchema(dict(written.schema))]
    if one.range is not None:
        return Annotated[int, Field(ge=one.range.least, le=one.range.most)]
    return one.kind
