"""Routes of the verbs that declare one (`AsRoute`), and their part of /openapi.json.

They are plain routes: their models are built from the declaration at the first request, so that a
start does not wait for it.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
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
from remit.ids import END_OF_IDS
from remit.services import fields, shapes
from remit.services.context import Context
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
        arguments, wrong = _checked(
            self.parameters, {**request.query_params, **request.path_params}
        )
        if self.body is not None:
            json_document.check_type(request.headers)
            body = await bodies.whole(request.scope, request.receive)
            values, more = await bodies.apart(len(body), _read, body, self.body, self._clearable)
            arguments, wrong = arguments | values, wrong + more
        if wrong:
            raise RequestValidationError(wrong)
        if self.surface.page:
            return await self._page(request, arguments)
        preview = arguments.pop(_DRY_RUN.name, False)
        verb = verb_named(self.surface.preview) if preview else self.verb
        if not self.surface.as_seen:
            answer = await self._app.library.call(who, verb, **arguments)
            return json_document.reply(answer, self.surface.status)
        seen = SeenAgent(who)
        changed = await self._app.library.call(seen.caller, verb, **arguments)
        beside = {key: changed[key] for key in self._beside if key in changed}
        return json_document.reply({**seen.view, **beside}, self.surface.status)

    async def _page(self, request: Request, arguments: dict[str, Any]) -> Response:
        page = paging.Page(request, arguments["limit"], arguments.pop("cursor", None))
        if "limit" not in self.verb.fields:
            del arguments["limit"]
            rows = await self._app.library.call(caller(request), self.verb, **arguments)
            by = self.surface.page
            return page.cut(rows) if by == "id" else page.after(rows, lambda row: row[by])
        newest_first = self.verb.fields.get("before")
        if newest_first is None:
            arguments["after"] = page.after_id()
        elif newest_first.kind is int:
            arguments["before"] = page.before_number(paging.LARGEST)
        else:
            arguments["before"] = page.after_id(END_OF_IDS)
        rows = await self._app.library.call(caller(request), self.verb, **arguments)
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
        outside = {field.name for field in self._in_address}
        inside = [field for field in self._chosen if field.name not in outside]
        inside += [_DRY_RUN] if self.surface.preview and _DRY_RUN.name not in outside else []
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
            _needed(field) if field.name in self.surface.needs else field
            for field in chosen(self.verb, {*self.surface.without, *turned})
        ]

    @cached_property
    def _in_address(self) -> list[fields.Field]:
        place = self.surface.in_path
        without_body = self.surface.method in ("GET", "DELETE")
        parameters = [_needed(self.verb.fields[name]) for name in place]
        parameters += [field for field in self._chosen if without_body and field.name not in place]
        parameters += [_DRY_RUN] if without_body and self.surface.preview else []
        return [*parameters, *_PAGE] if self.surface.page else parameters

    @cached_property
    def _clearable(self) -> set[str]:
        return {
            field.name
            for field in self._chosen
            if any(isinstance(mark, fields.Cleared) for mark in field.marks)
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
        operation: dict[str, Any] = {
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
            operation["requestBody"] = {
                "required": _has_required(self.body),
                "content": {json_document.JSON: {"schema": reference}},
            }
        return operation


def _needed(field: fields.Field) -> fields.Field:
    return replace(field, optional=False, default=inspect.Parameter.empty)


class SeenAgent:
    """The agent that a call changes, with all fields that the caller may see.

    It is read in the transaction of the call, after it.
    """

    def __init__(self, who: Caller) -> None:
        self.caller = replace(who, on_answer=self._look)
        self.view: Mapping[str, Any] = {}

    def _look(self, ctx: Context, answer: Any) -> None:
        changed = answer.get("agent", answer)  # a hire answers with the agent and its request
        # A repeated answer may be about an agent that is gone or no longer visible.
        self.view = {key: changed[key] for key in ("id", "company_id", "name", "role", "status")}
        self.view = overview.agent.body(ctx, agent=changed["id"])


def _checked(
    kind: type[BaseModel], values: Any, clearable: Collection[str] = ()
) -> tuple[dict[str, Any], list[Any]]:
    """Validated values by parameter, and the errors of the model."""
    try:
        checked = kind.model_validate(values)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_context=False)[:MOST_REPORTED]
        return {}, [{**problem, "loc": ("body", *problem["loc"])} for problem in wrong]
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
    return any(field.is_required() for field in kind.model_fields.values())


def _in_body(field: fields.Field) -> Any:
    """Type of a field in a body, where a flag must be a JSON boolean."""
    return StrictBool if field.kind is bool else _lax(field)


def _lax(field: fields.Field) -> Any:
    """Lenient type of a field. Texts and words are only described: they always reach the verb,
    which explains what is wrong. Times are checked, since a verb takes an empty one for none."""
    if field.words:
        return Annotated[str, WithJsonSchema(dict(described.words(*field.words).schema))]
    if field.entries is not None:
        return Annotated[list[_in_body(field.entries)], Field(max_length=field.most)]  # type: ignore[misc]
    if field.reference is not None:
        return Reference
    if field.moment:
        return described.Moment
    if isinstance(field.text, fields.PlainName):
        return described.Name
    if field.text is not None:
        written = described.text(field.text.longest, empty=field.text.empty)
        return Annotated[str, WithJsonSchema(dict(written.schema))]
    if field.range is not None:
        return Annotated[int, Field(ge=field.range.least, le=field.range.most)]
    return field.kind
