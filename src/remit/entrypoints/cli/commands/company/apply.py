"""`remit apply`: bring a company to the state that a file declares."""

import json
import sys
from functools import partial
from pathlib import Path

import click

from remit.entrypoints import declared_text
from remit.entrypoints.cli.commands.company import hiring
from remit.entrypoints.cli.commands.company.acceptance import agree, draw_reach
from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Command, option
from remit.entrypoints.cli.session import Session, View
from remit.errors import BadInput

_SIGNS = {"create": "+", "change": "~", "unchanged": " "}


@click.command(cls=Command)
@click.argument("file", metavar="FILE|-")
@option("--dry-run", "Only tell what would change.")
@option("--yes", "Do not ask for confirmation.")
@option("--digest TEXT", "Accept what was shown with this digest, and nothing else.")
def apply(session: Session, file: str, dry_run: bool, yes: bool, digest: str | None) -> None:
    """Apply a file that describes a company.

    The file is TOML or JSON. All of it is applied, or nothing; what it does not mention is left
    alone. Where the company would run, reach or be lent more than before, that is shown, and you
    are asked.
    """
    target, body = session.under_company("apply"), {"document": read(file)}
    plan = session.client.send("POST", target, {**body, "dryRun": True})
    if dry_run or not (plan["created"] or plan["changed"]):
        plan["dryRun"] = dry_run
        session.show(plan, lambda view: _draw(view, dry_run))
        return
    if plan["entries"] and digest is None and not yes:
        show = partial(_draw, plan, dry_run=True)
        agree(session, "apply", show, "Apply the file and accept this?")
    answer = session.client.send("POST", target, {**body, "accepted": digest or plan["digest"]})
    session.show(answer, lambda view: _draw(view, dry_run))


def read(file: str) -> View:
    """Read the document of a TOML or JSON file; dates become text, as in the API."""
    if file.endswith((".yaml", ".yml")):
        raise BadInput("YAML files are not read.", "Write it as TOML or JSON.")
    raw = (
        sys.stdin.buffer.read(declared_text.LARGEST + 1) if file == "-" else Path(file).read_bytes()
    )
    if len(raw) > declared_text.LARGEST:
        raise BadInput(f"{file} is larger than {declared_text.LARGEST >> 20} MiB.", "Split it.")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"{file} cannot be read ({error}).", "Correct the file.") from error
    is_json = file.endswith(".json") or (file == "-" and text.lstrip().startswith("{"))
    return declared_text.read(text, file, is_json=is_json)


def _draw(answer: View, dry_run: bool) -> None:
    for entry in answer["plan"]:
        output.say(f"{_SIGNS[entry['action']]} {entry['kind']} {entry['name']}")
        for change in entry["changes"]:
            was, now = (json.dumps(change[key], ensure_ascii=False) for key in ("was", "now"))
            output.say(f"    {change['path']}: {was} → {now}")
    if dry_run and answer["entries"]:
        output.say("With this the company would run, reach and be lent:")
        draw_reach(answer)
        output.say(f"Digest: {answer['digest']}")
    else:
        for sentence in answer["leftOut"]:
            output.say(f"Left out: {sentence}.")
    for token in answer["tokens"]:
        output.say(f"  token of {token['agent']} for {token['adapterType']}: {token['token']}")
    if answer["tokens"]:
        output.say("  They are not shown again.")
    for warning in answer.get("warnings", ()):
        hiring.warn(warning["agent"], warning)
    created, changed = answer["created"], answer["changed"]
    if not created and not changed:
        output.say("There is nothing to do.")
    else:
        create, change = ("to create", "to change") if dry_run else ("created", "changed")
        output.say(f"{created} {create}, {changed} {change}, {answer['unchanged']} unchanged.")
