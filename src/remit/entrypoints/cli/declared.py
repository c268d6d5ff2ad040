"""Commands of the verbs that declare one (`AsCommand`).

Importing the verbs would take ten times as long as a command does. So their declarations are kept
in `declared.json`, which `python -m remit.entrypoints.reference` writes again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import click

from remit.entrypoints.cli.drawing import cells, output
from remit.entrypoints.cli.options import JSON, LIMITED, REFERENCES, Command, Group
from remit.entrypoints.cli.session import Session, View, path

TABLE: Final = Path(__file__).with_name("declared.json")


def commands_of(group: Group) -> Iterator[Command]:
    for entry in _table().get(str(group.name), ()):
        yield _command(entry, group)


@cache
def _table() -> dict[str, list[View]]:
    table: dict[str, list[View]] = json.loads(TABLE.read_text())
    return table


def _command(entry: Mapping[str, Any], group: Group) -> Command:
    def carry_out(session: Session, /, **arguments: Any) -> None:
        answer = _ask(session, entry, arguments)

        def show(view: View) -> None:
            if session.verbose or not entry["said"]:
                (group.draw or _draw)(session, view)
            else:
                output.say(output.shortened(cells.filled(session, view, entry["said"])))
            if group.more is not None:
                output.say(*group.more(view))

        session.show(answer, show)

    def list_(session: Session, /, limit: int, **arguments: Any) -> None:
        address, values = _asked(session, entry, arguments)
        row, empty = group.tables[entry["name"]]
        rows = session.listed(address, limit, **values["query"])
        session.show_table(rows, *row, empty=empty)

    parameters = [_parameter(parameter) for parameter in entry["parameters"]]
    if entry["is_list"]:
        parameters.append(click.Option(["--limit"], **LIMITED))
        return Command(entry["name"], callback=list_, params=parameters, help=entry["help"])
    return Command(entry["name"], callback=carry_out, params=parameters, help=entry["help"])


def _draw(_: Session, answer: View) -> None:
    output.fields(
        {name: value for name, value in answer.items() if not isinstance(value, list | dict)}
    )


def _parameter(parameter: Mapping[str, Any]) -> click.Parameter:
    kind: click.ParamType[Any] = click.INT if parameter.get("kind") == "int" else click.STRING
    metavar = None
    if parameter.get("kind") == "dict":
        kind, metavar = JSON, "JSON|@FILE"
    elif reference := REFERENCES.get(parameter.get("of", "")):
        kind, metavar = reference, reference.metavar
    if parameter.get("required"):
        return click.Argument(
            [parameter["name"]], type=kind, metavar=metavar or parameter["name"].upper()
        )
    name = parameter["name"].replace("_", "-")
    declared = [parameter["name"], f"--{name}"]
    if parameter.get("flag"):
        return click.Option(declared, is_flag=True, help=parameter.get("help"))
    if parameter.get("kind") == "bool":
        declared = [parameter["name"], f"--{name}/--not-{name}"]
        return click.Option(declared, default=None, help=parameter.get("help"))
    if parameter.get("words"):
        return click.Option(
            declared, type=click.Choice(parameter["words"]), help=parameter.get("help")
        )
    many = parameter.get("many", False)
    return click.Option(
        declared, type=kind, multiple=many, metavar=metavar, help=parameter.get("help")
    )


def _ask(session: Session, entry: Mapping[str, Any], arguments: Mapping[str, Any]) -> View:
    """Send a command's arguments to the route of its verb."""
    # Not needed for help, and slow.
    from remit.entrypoints.cli.client import with_query

    address, values = _asked(session, entry, arguments)
    body = values["body"] if entry["has_body"] else None
    answer: View = session.client.send(entry["method"], with_query(address, values["query"]), body)
    return answer


def _asked(
    session: Session, entry: Mapping[str, Any], arguments: Mapping[str, Any]
) -> tuple[str, dict[str, View]]:
    """Return the route's path, and the arguments by the place where they go: path, query or
    body."""
    values: dict[str, View] = {"path": {}, "query": {}, "body": {}}
    for parameter in entry["parameters"]:
        value = arguments[parameter["name"]]
        if value is not None and value != () and not (value is False and parameter.get("flag")):
            values[parameter["in"]][parameter["field"]] = value
    places = entry["paths"]
    target = places[0] if session.is_company_named else places[-1]
    if "{companyId}" in target:
        values["path"]["companyId"] = session.company["id"]
    segments = [
        str(values["path"][part[1:-1]]) if part.startswith("{") else part
        for part in target.strip("/").split("/")
    ]
    return path(*segments), values
