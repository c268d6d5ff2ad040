"""Documents made from the declarations: the reference of all tools, routes and commands, that of
the hiring skill, the page of all settings, and the table of declared commands that the command line
reads.

`python -m remit.entrypoints.reference` writes them again; a test fails while one is out of date.
"""

import asyncio
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import click

from remit.app import App
from remit.entrypoints import configuration_page
from remit.entrypoints.cli.declared import TABLE
from remit.entrypoints.cli.main import cli
from remit.entrypoints.cli.overview import OVERVIEW
from remit.entrypoints.declared import chosen, declared, for_people
from remit.entrypoints.http.server.asgi import build_asgi
from remit.entrypoints.mcp.registry import Tool, schema_of
from remit.entrypoints.mcp.tools.listing import build_tools
from remit.services.fields import Field
from remit.services.surfaces import AsCommand, AsRoute
from remit.settings import load

PLACE = Path(__file__).parent.parent / "skills/remit-create-agent/references/api-reference.md"
WHOLE = Path(__file__).parents[3] / "docs/reference.md"

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
#: Parts of paths that make a route one of hiring.
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

_HEAD = """# {}

Made by `python -m remit.entrypoints.reference`. Keys with * are required.
"""
_HTTP = """
## HTTP

At `$REMIT_URL` with `Authorization: Bearer $REMIT_TOKEN`. Errors:
`{"error": sentence, "code", "nextStep"}`. An `Idempotency-Key` header makes a repeat safe.
"""


def reference(document: Mapping[str, Any], tools: Sequence[Tool]) -> str:
    """Return the reference of hiring: the parts of an OpenAPI document and of the tools."""
    known = {tool.name: tool for tool in tools}
    listed = [known[name] for name in TOOLS if name in known]
    return _text("API reference", _tools(listed), _routes(document, ROUTES))


def whole(document: Mapping[str, Any], tools: Sequence[Tool]) -> str:
    """Return the reference of all tools, routes and commands."""
    return _text("Reference", _tools(tools), _routes(document, ("/",)), _commands())


def _text(title: str, *parts: Iterable[str]) -> str:
    return "\n".join([_HEAD.format(title), *chain(*parts)]).rstrip() + "\n"


def _tools(tools: Sequence[Tool]) -> Iterator[str]:
    if tools:
        yield from ("## Tools of the MCP server `remit`", "")
    for tool in tools:
        yield from (f"### {tool.name}", "", tool.description, *_fields(schema_of(tool), {}), "")


def _routes(document: Mapping[str, Any], parts: Sequence[str]) -> Iterator[str]:
    yield from (_HTTP.strip(), "")
    for path, operations in sorted(document["paths"].items()):
        if any(part in path for part in parts):
            for method, operation in operations.items():
                yield from (*_route(f"{method.upper()} {path}", operation, document), "")


def _commands() -> Iterator[str]:
    yield from ("## Commands", "")
    for name, command in _each("remit", cli):
        arguments = [
            argument.make_metavar(click.Context(command))
            for argument in command.params
            if isinstance(argument, click.Argument)
        ]
        yield from (f"### {' '.join([name, *arguments])}", "", command.get_short_help_str(200))
        for parameter in command.params:
            if isinstance(parameter, click.Option) and parameter.expose_value:
                names = ", ".join(
                    f"`{opt}`" for opt in (*parameter.opts, *parameter.secondary_opts)
                )
                yield f"- {names} {parameter.help or ''}".rstrip()
        yield ""


def _each(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command)
    for part in command.list_commands(context):
        inner = command.get_command(context, part)
        if inner is not None and not inner.hidden:
            yield from _each(f"{name} {part}", inner)


def _route(title: str, operation: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {title}"
    yield ""
    text = operation.get("description") or operation.get("summary") or ""
    yield " ".join(text.split())
    definitions = document.get("components", {}).get("schemas", {})
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "query":
            schema, required = parameter.get("schema", {}), parameter.get("required", False)
            field, name = {**schema, **parameter}, f"?{parameter['name']}"
            yield _field(name, field, _resolved(schema, definitions), required=required)
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
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
    choices = [choice for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
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
    """Return the OpenAPI document and the tools of a new instance."""
    async with App(load({"REMIT_HOME": str(home)})) as app:
        return build_asgi(app).api.openapi(), list(build_tools(app).values())


def commands() -> str:
    """Return the table of declared commands by group, as JSON for the command line."""
    table: dict[str, list[dict[str, Any]]] = {}
    for verb, surface in declared(AsCommand):
        group, name = surface.name.split()
        routes = [route for route in verb.surfaces if isinstance(route, AsRoute)]
        # The route in the named company first; the other is for any company.
        routes.sort(key=lambda route: "{companyId}" not in route.path)
        hidden = {*surface.without, *routes[0].without, "company"}
        if routes[0].page:
            hidden |= {"after", "before", "limit"}
        parameters = [_parameter(field, surface, routes[0]) for field in chosen(verb, hidden)]
        entry = {
            "name": name,
            "help": surface.words or verb.words,
            "said": surface.said,
            "examples": surface.examples,
            "method": routes[0].method,
            "paths": [route.path for route in routes],
            "is_list": bool(routes[0].page),
            "has_body": any(parameter["in"] == "body" for parameter in parameters),
            "parameters": sorted(parameters, key=lambda parameter: parameter["in"] != "path"),
        }
        table.setdefault(group, []).append(entry)
    # One command a line, so that a change is one line of a diff.
    groups = (
        f'"{group}": [\n' + ",\n".join(map(json.dumps, entries)) + "\n]"
        for group, entries in sorted(table.items())
    )
    return "{\n" + ",\n".join(groups) + "\n}\n"


def overview() -> str:
    """Return the first line of each command's help as JSON, for the overview."""
    context = click.Context(cli)
    lines = {}
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        lines[name] = (command.help or "").partition("\n")[0]
    return json.dumps(lines, indent=0) + "\n"


#: Keys that are always written; others only if they are set.
_ALWAYS = ("name", "field", "in")


def _parameter(field: Field, surface: AsCommand, route: AsRoute) -> dict[str, Any]:
    inner = field.entries or field
    in_path = route.in_path.get(field.name)
    name = surface.spelled.get(field.name) or (in_path if in_path == "id" else field.name)
    described = {
        "name": name,
        "field": route.called(field.name),
        "in": "path" if in_path else "query" if route.method in ("GET", "DELETE") else "body",
        "required": field.required or in_path is not None,
        "many": field.entries is not None,
        "kind": inner.kind.__name__,
        "flag": field.kind is bool and not field.optional,
        "words": list(inner.words),
        "of": inner.reference.kind if inner.reference else "",
        "help": for_people(field),
    }
    return {key: value for key, value in described.items() if value or key in _ALWAYS}


def write() -> tuple[dict[str, Any], Sequence[Tool]]:
    """Write all generated documents; return the OpenAPI document and the tools."""
    TABLE.write_text(commands())  # first: the reference reads it
    OVERVIEW.write_text(overview())
    with tempfile.TemporaryDirectory(prefix="remit-reference-") as home:
        offered = asyncio.run(collect(Path(home)))
    PLACE.write_text(reference(*offered))
    WHOLE.write_text(whole(*offered))
    configuration_page.PLACE.write_text(configuration_page.page())
    return offered


if __name__ == "__main__":
    write()
