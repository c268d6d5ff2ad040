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

from remit.entrypoints.cli.address import path
from remit.entrypoints.cli.drawing import cells, output
from remit.entrypoints.cli.options import (
    JSON,
    LIMITED,
    REFERENCES,
    Command,
    Group,
    Session,
)

TABLE: Final = Path(__file__).with_name("declared.json")
View = dict[str, Any]


def commands_of(group: Group) -> Iterator[Command]:
    for entry in _table().get(str(group.name), ()):
        yield _command(entry, group)


@cache
def _table() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = json.loads(TABLE.read_text())
    return found


def _command(entry: Mapping[str, Any], group: Group) -> Command:
    def carry_out(session: Session, /, **given: Any) -> None:
        answer = _ask(session, entry, given)

        def show(one: View) -> None:
            if session.verbose or not entry["said"]:
                (group.draw or _draw)(session, one)
            else:
                output.say(output.shortened(cells.filled(session, one, entry["said"])))
            if group.more is not None:
                output.say(*group.more(one))

        session.show(answer, show)

    def list_(session: Session, /, limit: int, **given: Any) -> None:
        address, values = _asked(session, entry, given)
        row, empty = group.tables[entry["name"]]
        rows = session.listed(address, limit, **values["query"])
        session.show_table(rows, *row, empty=empty)

    parameters = [_parameter(one) for one in entry["parameters"]]
    if entry["is_list"]:
        parameters.append(click.Option(["--limit"], **LIMITED))
        return Command(entry["name"], callback=list_, params=parameters, help=entry["help"])
    return Command(entry["name"], callback=carry_out, params=parameters, help=entry["help"])


def _draw(_: Session, answer: View) -> None:
    output.fields({name: one for name, one in answer.items() if not isinstance(one, list | dict)})


def _parameter(one: Mapping[str, Any]) -> click.Parameter:
    kind: click.ParamType[Any] = click.INT if one.get("kind") == "int" else click.STRING
    metavar = None
    if one.get("kind") == "dict":
        kind, metavar = JSON, "JSON|@FILE"
    elif reference := REFERENCES.get(one.get("of", "")):
        kind, metavar = reference, reference.metavar
    if one.get("required"):
        return click.Argument([one["name"]], type=kind, metavar=metavar or one["name"].upper())
    name = one["name"].replace("_", "-")
    declared = [one["name"], f"--{name}"]
    if one.get("flag"):
        return click.Option(declared, is_flag=True, help=one.get("help"))
    if one.get("kind") == "bool":
        declared = [one["name"], f"--{name}/--not-{name}"]
        return click.Option(declared, default=None, help=one.get("help"))
    if one.get("words"):
        return click.Option(declared, type=click.Choice(one["words"]), help=one.get("help"))
    many = one.get("many", False)
    return click.Option(declared, type=kind, multiple=many, metavar=metavar, help=one.get("help"))


def _ask(session: Session, entry: Mapping[str, Any], given: Mapping[str, Any]) -> View:
    """Send a command's arguments to the route of its verb."""
    # Not needed for help, and slow.
    from remit.entrypoints.cli.client import with_query

    address, values = _asked(session, entry, given)
    body = values["body"] if entry["has_body"] else None
    found: View = session.client.send(entry["method"], with_query(address, values["query"]), body)
    return found


def _asked(
    session: Session, entry: Mapping[str, Any], given: Mapping[str, Any]
) -> tuple[str, dict[str, View]]:
    """Return the route's path, and the arguments by the place where they go: path, query or
    body."""
    values: dict[str, dict[str, Any]] = {"path": {}, "query": {}, "body": {}}
    for one in entry["parameters"]:
        value = given[one["name"]]
        if value is not None and value != () and not (value is False and one.get("flag")):
            values[one["in"]][one["field"]] = value
    places = entry["paths"]
    target = places[0] if session.is_company_named else places[-1]
    if "{companyId}" in target:
        values["path"]["companyId"] = session.company["id"]
    segments = [
        str(values["path"][part[1:-1]]) if part.startswith("{") else part
        for part in target.strip("/").split("/")
    ]
    return path(*segments), values
