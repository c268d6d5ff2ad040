"""The reference of the hiring skill, made from the tools and routes that there are.

`python -m remit.entrypoints.reference` writes it again; a test fails while it is out of date.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from remit.app import App
from remit.entrypoints.http.asgi import build_asgi
from remit.entrypoints.mcp.registry import Tool, input_schema
from remit.entrypoints.mcp.tools import build_tools
from remit.services import agents
from remit.services.identity import Caller
from remit.settings import load

PLACE = Path(__file__).parent.parent / "skills/remit-create-agent/references/api-reference.md"

TOOLS = (
    "adapter_docs",
    "agent_configurations",
    "hire_agent",
    "create_agent",
    "approval_view",
    "approval_comment",
    "approval_resubmit",
    "propose_config",
)
#: A route belongs to hiring when its path has one of these.
ROUTES = (
    "/llms/agent-configuration",
    "/agent-configurations",
    "/agents/me",
    "/agents/{id}/configuration",
    "/agents/{id}/config-revisions",
    "/agents/{id}/permissions",
    "/agent-hires",
    "/approvals",
)

_HEAD = """# API reference

Made by `python -m remit.entrypoints.reference`. Keys with * are required.
"""
_HTTP = """
## HTTP

At `$REMIT_URL` with `Authorization: Bearer $REMIT_TOKEN`. Errors:
`{"error": sentence, "code", "nextStep"}`. An `Idempotency-Key` header makes a repeat safe.
"""


def reference(document: Mapping[str, Any], tools: Sequence[Tool]) -> str:
    """The text for an OpenAPI document and a list of tools."""
    lines = [_HEAD]
    known = {tool.name: tool for tool in tools}
    listed = [known[name] for name in TOOLS if name in known]
    if listed:
        lines += ["## Tools of the MCP server `remit`", ""]
    for tool in listed:
        schema = input_schema(tool.arguments)
        lines += [f"### {tool.name}", "", tool.description, *_fields(schema, {}), ""]
    lines += [_HTTP.strip(), ""]
    for path, operations in sorted(document["paths"].items()):
        if any(part in path for part in ROUTES):
            for method, operation in operations.items():
                lines += [*_route(f"{method.upper()} {path}", operation, document), ""]
    return "\n".join(lines).rstrip() + "\n"


def _route(title: str, operation: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {title}"
    yield ""
    text = operation.get("description") or operation.get("summary") or ""
    yield " ".join(text.split())
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "query":
            schema = parameter.get("schema", {})
            yield _field(f"?{parameter['name']}", {**schema, **parameter}, schema, required=False)
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    definitions = document.get("components", {}).get("schemas", {})
    yield from _fields(_resolved(body.get("schema", {}), definitions), definitions)


def _fields(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Iterator[str]:
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        if name != "idempotency_key":
            yield _field(name, field, _resolved(field, definitions), required=name in required)


def _field(
    name: str, field: Mapping[str, Any], schema: Mapping[str, Any], *, required: bool
) -> str:
    description = " ".join((field.get("description") or "").split())
    star = "*" if required else ""
    return f"- `{name}`{star} {_kind(schema)}{f': {description}' if description else ''}"


def _resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" in schema:
        return _resolved(definitions.get(schema["$ref"].rpartition("/")[2], {}), definitions)
    choices = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    if len(choices) == 1:
        return _resolved(choices[0], definitions)
    return schema


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(map(str, schema["enum"]))
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    words = {"string": "text", "integer": "number", "boolean": "true/false"}
    kind = str(schema.get("type", "value"))
    return words.get(kind, kind)


async def collect(home: Path) -> tuple[dict[str, Any], Sequence[Tool]]:
    """What an instance offers to somebody who may hire and has reports: its root agent."""
    async with App(load({"REMIT_HOME": str(home)})) as app:
        await app.first_start()
        board = Caller(app.settings.board_token_file.read_text().strip())
        [root] = await app.gate(board, agents.listing, company=None)
        # Some tools are for those who have reports.
        await app.gate(board, agents.create, company=None, name="report", reports_to=root["id"])
        key = await app.gate(board, agents.create_key, agent=root["id"])
        tools = await build_tools(app)(key["token"])
        return build_asgi(app).api.openapi(), tools


def current() -> str:
    """The reference as it should be now."""
    with tempfile.TemporaryDirectory(prefix="remit-reference-") as home:
        return reference(*asyncio.run(collect(Path(home))))


if __name__ == "__main__":
    PLACE.write_text(current())
