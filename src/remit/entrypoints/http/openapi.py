"""What /openapi.json says beyond what FastAPI finds out by itself."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from remit.entrypoints.http.content import FileBody

_PUBLIC = frozenset({"/health"})
_BYTES = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
_ERROR = {
    "type": "object",
    "required": ["error", "code", "nextStep"],
    "properties": {
        "error": {"type": "string", "description": "One sentence."},
        "code": {"type": "string", "description": "Stable; programs may branch on it."},
        "nextStep": {"type": "string", "description": "What the caller can do."},
        "decision": {
            "type": "object",
            "description": "Why authority said no.",
            "required": ["effect", "reason", "sentence", "basis"],
            "properties": {
                name: {"type": "string"} for name in ("effect", "reason", "sentence", "basis")
            },
        },
    },
}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "A repeat under the same key gets the first answer again.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
}
_JSON_ANSWER: dict[str, Any] = {"application/json": {"schema": {}}}
_ETAG = {"ETag": {"description": '"version:hash"', "schema": {"type": "string"}}}


def describe(api: FastAPI) -> None:
    """Build the document when it is first asked for."""

    def document() -> dict[str, Any]:
        if api.openapi_schema is None:
            found = get_openapi(title=api.title, version=api.version, routes=api.routes)
            api.openapi_schema = _complete(found)
        return api.openapi_schema

    api.openapi = document  # type: ignore[method-assign]  # the way FastAPI documents


def _complete(document: dict[str, Any]) -> dict[str, Any]:
    for path, operations in _plain().items():
        document["paths"].setdefault(path, {}).update(operations)
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["Error"] = _ERROR
    schemas["FileBody"] = FileBody.model_json_schema()
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    components["responses"] = {"Error": {"description": "It did not work.", "content": error}}
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer"},
        "session": {"type": "apiKey", "in": "cookie", "name": "remit_session"},
    }
    document["security"] = [{"token": []}, {"session": []}]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = {"$ref": "#/components/responses/Error"}
            if path in _PUBLIC:
                operation["security"] = []
            if method != "get":
                operation.setdefault("parameters", []).append(_KEY)
    return document


def _plain() -> dict[str, Any]:
    """The routes that FastAPI does not see."""
    return {
        "/api/files/{id}/content": {
            "get": {
                "tags": ["files"],
                "summary": "Read File",
                "operationId": "read_file",
                "parameters": [
                    _in_path("id"),
                    {
                        "name": "version",
                        "in": "query",
                        "schema": {"type": "integer", "minimum": 1, "maximum": 2**31 - 1},
                    },
                    {
                        "name": "at",
                        "in": "query",
                        "description": "What it said at this time (ISO 8601).",
                        "schema": {"type": "string"},
                    },
                ],
                "responses": {
                    "200": {
                        "description": "The bytes",
                        "headers": _ETAG,
                        "content": {**_BYTES, "text/plain": {"schema": {"type": "string"}}},
                    }
                },
            },
            "put": {
                "tags": ["files"],
                "summary": "Write File",
                "operationId": "write_file",
                "parameters": [
                    _in_path("id"),
                    {
                        "name": "If-Match",
                        "in": "header",
                        "required": True,
                        "description": 'The ETag last read: "version:hash"',
                        "schema": {"type": "string"},
                    },
                ],
                "requestBody": {"required": True, "content": _BYTES},
                "responses": {
                    "200": {
                        "description": "The new version",
                        "headers": _ETAG,
                        "content": _JSON_ANSWER,
                    }
                },
            },
        },
        "/api/companies/{companyId}/files": {
            "post": {
                "tags": ["files"],
                "summary": "Create File",
                "description": "JSON for text; any other type is the content itself.",
                "operationId": "create_file",
                "parameters": [
                    _in_path("companyId"),
                    _in_query("description", {"type": "string", "maxLength": 2000}),
                    _in_query("unlisted", {"type": "boolean"}),
                ],
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/FileBody"}},
                        **_BYTES,
                    },
                },
                "responses": {
                    "201": {
                        "description": "The new file",
                        "headers": _ETAG,
                        "content": _JSON_ANSWER,
                    }
                },
            }
        },
    }


def _in_path(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _in_query(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "in": "query",
        "description": "Only when the content is not JSON.",
        "schema": schema,
    }
