"""/openapi.json, completed with what FastAPI cannot derive."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from remit.entrypoints.http.declared_routes import DeclaredRoute
from remit.entrypoints.http.routes.files import CreateQuery, FileBody, ReadQuery
from remit.entrypoints.http.wire import json_document, response_types
from remit.entrypoints.http.wire.fields import in_address
from remit.model.organisation.decision import Effect
from remit.services.command import LONGEST_KEY
from remit.services.fields import LONGEST_REFERENCE

_PUBLIC = frozenset({"/health"})
_BYTES = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
_ERROR = {
    "type": "object",
    "required": ["error", "code", "nextStep"],
    "properties": {
        "error": {"type": "string", "description": "One sentence."},
        "code": {"type": "string", "description": "Stable; programs may branch on it."},
        "nextStep": {"type": "string", "description": "Next step of the caller."},
        "what": {
            "type": "string",
            "description": "Kind of the thing that was not found by its id.",
        },
        "decision": {
            "type": "object",
            "description": "Why authority said no.",
            "required": ["effect", "reason", "sentence", "basis"],
            "properties": {
                "effect": {"type": "string", "enum": [effect.value for effect in Effect]},
                **{name: {"type": "string"} for name in ("reason", "sentence", "basis")},
            },
        },
    },
}
#: Errors of every operation; each has the same shape.
_ERRORS = {
    "400": "The request cannot be read.",
    "401": "No token, or one that is not valid.",
    "403": "The caller is not permitted; `decision` says why.",
    "404": "It does not exist, or the caller may not know that it exists.",
    "405": "The path does not take this method.",
    "408": "The body did not arrive in time.",
    "409": "The state does not allow it, or changed since it was read.",
    "413": "The body is too large.",
    "415": "The encoding of the body is not supported.",
    "421": "The host name is not one of the instance.",
    "422": "A value in the request is invalid; the sentence names it.",
    "429": "Too many wrong tokens from this address; `Retry-After` says how long to wait.",
    "5XX": "Unavailable now, unsupported by this installation, or an internal error.",
}
_OF_BODIES = frozenset({"408", "413", "415"})
_OF_PUBLIC = ("400", "405", "421", "5XX")
_COMPANY = {
    "name": "companyId",
    "in": "query",
    "description": "Where an agent's name is looked up, for who is in several companies.",
    "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_REFERENCE},
}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "A repeat under the same key gets the first answer again.",
    "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY},
}
_JSON_ANSWER: dict[str, Any] = {"application/json": {"schema": {}}}
_ETAG = {"ETag": {"description": '"version:hash"', "schema": {"type": "string"}}}


def describe(api: FastAPI) -> None:
    """Make FastAPI build the completed document at its first request."""

    def described() -> dict[str, Any]:
        if api.openapi_schema is None:
            document = get_openapi(title=api.title, version=api.version, routes=api.routes)
            own = [route for route in api.routes if isinstance(route, DeclaredRoute)]
            api.openapi_schema = _complete(document, own)
        return api.openapi_schema

    api.openapi = described  # type: ignore[method-assign]  # the way FastAPI documents


def _complete(whole: dict[str, Any], own: Sequence[DeclaredRoute]) -> dict[str, Any]:
    for path, operations in _plain().items():
        whole["paths"].setdefault(path, {}).update(operations)
    for route in own:
        method = route.surface.method.lower()
        whole["paths"].setdefault(route.path, {})[method] = route.described()
    components = whole.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["Error"] = _ERROR
    schemas["FileBody"] = FileBody.model_json_schema()
    for route in own:
        schemas |= route.body_schema()
    answers = response_types.ANSWERS | {route.surface.operation: route.answer for route in own}
    shapes = response_types.components(answers.values())
    assert not schemas.keys() & shapes.keys(), "a body and an answer have one name"
    schemas |= shapes
    error = {json_document.JSON: {"schema": {"$ref": "#/components/schemas/Error"}}}
    components["responses"] = {
        f"Error{status}": {"description": meaning, "content": error}
        for status, meaning in _ERRORS.items()
    }
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer"},
        "session": {"type": "apiKey", "in": "cookie", "name": "remit_session"},
    }
    whole["security"] = [{"token": []}, {"session": []}]
    for path, operations in whole["paths"].items():
        for method, operation in operations.items():
            _say_answers(method, operation, answers, public=path in _PUBLIC)
            if path in _PUBLIC:
                operation["security"] = []
            if method != "get":
                operation.setdefault("parameters", []).append(_KEY)
            if path.startswith("/api/agents/{id}"):
                operation["parameters"].append(_COMPANY)
    return whole


def _say_answers(
    method: str, operation: dict[str, Any], answers: Mapping[str, Any], *, public: bool
) -> None:
    responses = operation["responses"]
    for status, response in responses.items():
        content = response.get("content", {})
        if status.startswith("2") and json_document.JSON in content:
            kind = answers[operation["operationId"]]
            content[json_document.JSON] = {"schema": response_types.schema_of(kind)}
    responses.pop("422", None)
    for status in _OF_PUBLIC if public else _ERRORS:
        if method != "get" or status not in _OF_BODIES:
            responses[status] = {"$ref": f"#/components/responses/Error{status}"}


def _plain() -> dict[str, Any]:
    """Operations of the plain routes, which FastAPI does not describe."""
    text = {"text/plain": {"schema": {"type": "string"}}}
    file_body = {"application/json": {"schema": {"$ref": "#/components/schemas/FileBody"}}}
    seen = {
        "name": "If-Match",
        "in": "header",
        "required": True,
        "description": 'The ETag last read: "version:hash"',
        "schema": {"type": "string", "maxLength": LONGEST_REFERENCE},
    }
    unchanged = {"description": "The version that `If-None-Match` names.", "headers": _ETAG}
    return {
        "/api/files/{id}/content": {
            "get": {
                **_operation("Read File", [_in_path("id"), *in_address(ReadQuery)]),
                "responses": {"200": _answer("The bytes", _BYTES | text), "304": unchanged},
            },
            "put": {
                **_operation("Write File", [_in_path("id"), seen]),
                "requestBody": {"required": True, "content": _BYTES},
                "responses": {"200": _answer("The new version", _JSON_ANSWER)},
            },
        },
        "/api/companies/{companyId}/files": {
            "post": {
                **_operation("Create File", [_in_path("companyId"), *in_address(CreateQuery)]),
                "description": "JSON for text; any other type is the content itself.",
                "requestBody": {"required": True, "content": file_body | _BYTES},
                "responses": {"201": _answer("The new file", _JSON_ANSWER)},
            }
        },
    }


def _operation(summary: str, parameters: list[dict[str, Any]]) -> dict[str, Any]:
    operation = summary.lower().replace(" ", "_")
    about = {"tags": ["files"], "summary": summary, "operationId": operation}
    return {**about, "parameters": parameters}


def _answer(description: str, content: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": description, "headers": _ETAG, "content": dict(content)}


def _in_path(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": _COMPANY["schema"]}
