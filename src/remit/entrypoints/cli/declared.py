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
from remit.entrypoints.cli.options import LIMITED, Command, Group
from remit.entrypoints.cli.parameters import JSON, REFERENCES
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
        # Not needed for help, and slow.
        from remit.entrypoints.cli.client import with_query

        address, values = _asked(session, entry, arguments)
        target = with_query(address, values["query"])
        body = values["body"] if entry["has_body"] else None
        answer = session.client.send(entry["method"], target, body)

        def show(view: View) -> None:
            if session.verbose or not entry["said"]:
                (group.draw or _draw)(session, view)
            else:
                line = cells.filled(session, view, entry["said"])
                output.say(output.shortened(output.timed(line)))
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
    callback = list_ if entry["is_list"] else carry_out
    return Command(
        entry["name"],
        callback=callback,
        params=parameters,
        help=entry["help"],
        examples=entry["examples"],
    )


def _draw(_: Session, answer: View) -> None:
    output.fields(
        {name: value for name, value in answer.items() if not isinstance(value, list | dict)}
    )


def _parameter(parameter: Mapping[str, Any]) -> click.Parameter:
    name, kind, words = parameter["name"], parameter.get("kind"), parameter.get("words")
    more: dict[str, Any] = {"type": click.INT if kind == "int" else click.STRING}
    if kind == "dict":
        more = {"type": JSON, "metavar": "JSON|@FILE"}
    elif reference := REFERENCES.get(parameter.get("of", "")):
        more = {"type": reference, "metavar": reference.metavar}
    if parameter.get("required"):
        return click.Argument([name], **{"metavar": name.upper(), **more})
    spelled = name.replace("_", "-")
    usage = f"--{spelled}"
    if parameter.get("flag"):
        more = {"is_flag": True}
    elif kind == "bool":
        usage, more = f"--{spelled}/--no-{spelled}", {"default": None}
    elif words:
        more = {"type": click.Choice(words)}
    else:
        more["multiple"] = parameter.get("many", False)
    return click.Option([name, usage], help=parameter.get("help"), **more)


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
