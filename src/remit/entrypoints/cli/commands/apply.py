"""`remit apply`: make a company what a file says."""

from __future__ import annotations

import json
import sys
import tomllib
from datetime import date, time
from pathlib import Path
from typing import Any

import click

from remit.entrypoints.cli import output, setup_note
from remit.entrypoints.cli.options import Command, Session, pass_session
from remit.errors import BadInput

_LARGEST = 4 * 1024 * 1024
_SIGNS = {"create": "+", "change": "~", "unchanged": " "}


@click.command(cls=Command)
@click.argument("file", metavar="FILE|-")
@click.option("--dry-run", is_flag=True, help="Only tell what would change.")
@pass_session
def apply(session: Session, file: str, dry_run: bool) -> None:
    """Make a company what a file says.

    The file is TOML or JSON. All of it is applied, or nothing; what it does not mention is left
    alone.
    """
    body = {"document": read(file), "dryRun": dry_run}
    answer = session.client.send("POST", session.under_company("apply"), body)
    session.show(answer, lambda one: _draw(one, dry_run))


def read(file: str) -> dict[str, Any]:
    """The document in a file; dates become text, as the API has them."""
    if file.endswith((".yaml", ".yml")):
        raise BadInput("YAML files are not read.", "Write it as TOML or JSON.")
    raw = sys.stdin.buffer.read(_LARGEST + 1) if file == "-" else Path(file).read_bytes()
    if len(raw) > _LARGEST:
        raise BadInput(f"{file} is larger than {_LARGEST >> 20} MiB.", "Split it.")
    try:
        text = raw.decode()
        is_json = file.endswith(".json") or (file == "-" and text.lstrip().startswith("{"))
        found = _plain(json.loads(text) if is_json else tomllib.loads(text))
    except (UnicodeDecodeError, json.JSONDecodeError, tomllib.TOMLDecodeError, RecursionError) as e:
        raise BadInput(f"{file} cannot be read ({e}).", "Correct the file.") from e
    if not isinstance(found, dict):
        raise BadInput(f"{file} must hold an object.", "Write sections such as [[agents]].")
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value.isoformat() if isinstance(value, date | time) else value


def _draw(answer: dict[str, Any], dry_run: bool) -> None:
    for entry in answer["plan"]:
        output.say(f"{_SIGNS[entry['action']]} {entry['kind']} {entry['name']}")
        for change in entry["changes"]:
            was, now = (json.dumps(change[key], ensure_ascii=False) for key in ("was", "now"))
            output.say(f"    {change['path']}: {was} → {now}")
    for one in answer["tokens"]:
        output.say(f"  token of {one['agent']} for {one['adapterType']}: {one['token']}")
    if answer["tokens"]:
        output.say("  They are not shown again.")
    for one in answer.get("warnings", ()):
        setup_note.warn(one["agent"], one)
    created, changed = answer["created"], answer["changed"]
    if not created and not changed:
        output.say("There is nothing to do.")
    elif dry_run:
        output.say(f"{created} to create, {changed} to change, {answer['unchanged']} unchanged.")
    else:
        output.say(f"{created} created, {changed} changed, {answer['unchanged']} unchanged.")
