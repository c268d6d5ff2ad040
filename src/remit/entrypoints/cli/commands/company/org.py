"""`remit org`: the tree of agents, and reorganisations of it while agents work."""

from typing import Any

import click

from remit.entrypoints.cli.commands.company import agent
from remit.entrypoints.cli.commands.company.hiring import json_object
from remit.entrypoints.cli.drawing import reorganisation
from remit.entrypoints.cli.drawing.reorganisation import carry_out, dry_run_option
from remit.entrypoints.cli.options import Group, Session, pass_session
from remit.ids import normalise


@click.group(cls=Group)
def org() -> None:
    """The tree of agents, and changes to it.

    Each change tells whose authority over what it gives and takes, and can be undone.
    """


org.add_command(agent.tree)


@org.command("insert-layer")
@click.argument("name")
@click.argument("agents", metavar="AGENT...", nargs=-1, required=True)
@click.option("--role", help="Such as pm or cto.")
@click.option("--title", help="Title, such as Head of Sales.")
@click.option("--adapter", help="How it is executed.")
@click.option("--config", metavar="JSON", help="Settings of the adapter.")
@click.option("--purpose", metavar="TEXT", help="The outcome it is responsible for.")
@dry_run_option
@pass_session
def insert_layer(
    session: Session,
    /,
    name: str,
    agents: tuple[str, ...],
    adapter: str | None,
    config: str | None,
    dry_run: bool,
    **given: str | None,
) -> None:
    """Put a new agent between agents and the boss they share."""
    operation: dict[str, Any] = {
        "op": "insertLayer",
        "name": name,
        "agents": [session.agent_id(agent) for agent in agents],
        "adapterType": adapter,
        "adapterConfig": None if config is None else json_object(config),
        **given,
    }
    carry_out(session, dry_run, operations=[operation])


@org.command("remove-layer")
@click.argument("agent")
@dry_run_option
@pass_session
def remove_layer(session: Session, agent: str, dry_run: bool) -> None:
    """Take an agent out; its boss gets its reports and its open outcomes."""
    operation = {"op": "removeLayer", "agent": session.agent_id(agent)}
    carry_out(session, dry_run, operations=[operation])


@org.command()
@click.argument("agent")
@click.argument("boss", metavar="BOSS|board")
@dry_run_option
@pass_session
def move(session: Session, agent: str, boss: str, dry_run: bool) -> None:
    """Give an agent another boss; it brings along everybody below it."""
    reorganisation.move(session, agent, boss, dry_run)


@org.command()
@click.argument("agent")
@click.option("--user", metavar="NAME", help="The person who takes the seat.")
@click.option("--adapter", help="Or the program that does.")
@click.option("--config", metavar="JSON", help="Settings of the adapter.")
@dry_run_option
@pass_session
def seat(
    session: Session,
    agent: str,
    user: str | None,
    adapter: str | None,
    config: str | None,
    dry_run: bool,
) -> None:
    """Put a person or a program into an agent's seat; all else stays as it is."""
    if (user is None) == (adapter is None):
        raise click.UsageError("Give either --user or --adapter.")
    if user is not None and config is not None:
        raise click.UsageError("A person takes no --config.")
    operation: dict[str, Any] = {"op": "seat", "agent": session.agent_id(agent)}
    if user is not None:
        operation["user"] = user
    else:
        operation["adapterType"] = adapter
        operation["adapterConfig"] = {} if config is None else json_object(config)
    carry_out(session, dry_run, operations=[operation])


@org.command()
@click.argument("event")
@dry_run_option
@pass_session
def undo(session: Session, event: str, dry_run: bool) -> None:
    """Take a change back, unless what it touched was changed since."""
    carry_out(session, dry_run, undo=normalise(event.removeprefix("event:")))
