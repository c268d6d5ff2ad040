"""`remit adapter`: the installed adapters, their settings, and a check of one."""

from typing import Any

import click

from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Group, option, stated
from remit.entrypoints.cli.parameters import ADAPTER
from remit.entrypoints.cli.session import Session, View, path

adapter = Group("adapter", help="Adapters that run agents, and their settings.")


@adapter.command("list")
def list_(session: Session) -> None:
    """List the adapters that are installed where the instance runs."""
    session.show_table(
        session.client.get(session.under_company("adapters")),
        *("type", ("description", lambda _, row: row["problem"] or row["summary"])),
        empty="No adapter is installed.",
    )


@adapter.command()
@click.argument("type_", metavar="TYPE", type=ADAPTER)
def show(session: Session, type_: str) -> None:
    """Show an adapter's settings, and what agents' tools cost in every conversation."""
    answer = session.client.get(session.under_company("adapters", type_))

    def draw(view: View) -> None:
        output.say(*view["text"].splitlines())
        tools = view["baseTools"]
        output.say("", f"Tools of every agent: {tools['count']}, about {tools['tokens']} tokens.")

    session.show(answer, draw)


@adapter.command()
@click.argument("type_", metavar="[TYPE]", required=False, type=ADAPTER)
@option("--config JSON|@FILE", "With these settings.")
@option("--agent AGENT", "As this agent is set up.")
@option("--no-try", "Only look; do not ask the model.", field="untried")
def test(session: Session, type_: str | None, config: Any, agent: str | None, untried: bool) -> int:
    """Look whether an adapter can work where the instance runs.

    If it has a model's key or address, one small request is sent there, and the answer is shown.
    """
    if (type_ is None) == (agent is None):
        raise click.UsageError("Name an adapter, or an agent with --agent.")
    if agent is not None and config is not None:
        raise click.UsageError("An agent has settings of its own; leave out --config.")
    body = stated({"tryOut": not untried, "adapterConfig": config, "agentId": agent})
    if agent is not None:
        type_ = session.client.get(path("agents", agent))["adapterType"]
    target = session.under_company("adapters", str(type_), "test-environment")
    answer = session.client.send("POST", target, body)
    parts = [part for part in (answer, answer["tried"]) if part is not None]

    def draw(_: View) -> None:
        for part in parts:
            output.say(part["sentence"])
            if part["nextStep"]:
                output.say(f"  next: {part['nextStep']}")

    session.show(answer, draw)
    failed = answer["tried"] is not None and answer["tried"]["ok"] is False
    return 0 if answer["usable"] and not failed else 1
