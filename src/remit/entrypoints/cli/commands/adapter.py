"""`remit adapter`: what runs agents here, how it is configured, and whether it can work."""

from __future__ import annotations

from typing import Any

import click

from remit.entrypoints.cli import output
from remit.entrypoints.cli.commands.hiring import json_object
from remit.entrypoints.cli.options import Group, Session, pass_session


@click.group(cls=Group)
def adapter() -> None:
    """What runs agents, and how it is configured."""


@adapter.command("list")
@pass_session
def list_(session: Session) -> None:
    """List the adapters that are installed where the instance runs."""
    found = session.client.get(session.under_company("adapters"))

    def draw(adapters: list[dict[str, Any]]) -> None:
        rows = [(one["type"], one["problem"] or one["summary"]) for one in adapters]
        output.table(("type", "description"), rows, empty="No adapter is installed.")

    session.show(found, draw)


@adapter.command()
@click.argument("type_", metavar="TYPE")
@pass_session
def show(session: Session, type_: str) -> None:
    """Show an adapter's settings, and what agents' tools cost in every conversation."""
    found = session.client.get(session.under_company("adapters", type_))

    def draw(one: dict[str, Any]) -> None:
        output.say(*one["text"].splitlines())
        tools = one["baseTools"]
        output.say("", f"Tools of every agent: {tools['count']}, about {tools['tokens']} tokens.")

    session.show(found, draw)


@adapter.command()
@click.argument("type_", metavar="TYPE")
@click.option("--config", metavar="JSON|@FILE", help="With these settings.")
@pass_session
def test(session: Session, type_: str, config: str | None) -> int:
    """Look whether an adapter can work where the instance runs."""
    body = {} if config is None else {"adapterConfig": json_object(config, "--config")}
    target = session.under_company("adapters", type_, "test-environment")
    found = session.client.send("POST", target, body)

    def draw(one: dict[str, Any]) -> None:
        output.say(one["sentence"])
        if one["nextStep"]:
            output.say(f"  next: {one['nextStep']}")

    session.show(found, draw)
    return 0 if found["usable"] else 1
