"""`remit org`: the tree of agents, and reorganisations of it while agents work."""

import click

from remit.entrypoints.cli.commands.company import agent
from remit.entrypoints.cli.drawing import reorganisation
from remit.entrypoints.cli.drawing.reorganisation import carry_out, dry_run_option
from remit.entrypoints.cli.options import Group, option, stated
from remit.entrypoints.cli.parameters import AGENT, BOSS
from remit.entrypoints.cli.session import Session
from remit.ids import normalise

agent_argument = click.argument("agent", type=AGENT)


@click.group(cls=Group)
def org() -> None:
    """The tree of agents, and changes to it.

    Each change lists the authority that anybody gains or loses by it, and can be undone.
    """


org.add_command(agent.tree)


@org.command(
    "insert-layer",
    examples=(
        "remit org insert-layer editor writer --role pm",
        "remit org insert-layer editor writer researcher --dry-run",
    ),
)
@click.argument("name")
@click.argument("agents", metavar="AGENT...", nargs=-1, required=True, type=AGENT)
@option("--role TEXT", "Such as pm or cto.")
@option("--title TEXT", "Title, such as Head of Sales.")
@option("--adapter ADAPTER", "How it is executed.", field="adapterType")
@option("--config JSON", "Settings of the adapter.", field="adapterConfig")
@option("--purpose TEXT", "The outcome it is responsible for.")
@dry_run_option
def insert_layer(session: Session, /, dry_run: bool, **options: object) -> None:
    """Put a new agent between agents and the boss they share."""
    carry_out(session, dry_run, operations=[{"op": "insertLayer", **options}])


@org.command("remove-layer")
@agent_argument
@dry_run_option
def remove_layer(session: Session, agent: str, dry_run: bool) -> None:
    """Take an agent out; its boss gets its reports and its open outcomes."""
    carry_out(session, dry_run, operations=[{"op": "removeLayer", "agent": agent}])


@org.command(
    examples=(
        "remit org move writer ceo",
        "remit org move writer board --dry-run",
    ),
)
@agent_argument
@click.argument("boss", metavar="BOSS|board", type=BOSS)
@dry_run_option
def move(session: Session, agent: str, boss: str, dry_run: bool) -> None:
    """Give an agent another boss; it brings along everybody below it."""
    reorganisation.move(session, agent, boss, dry_run)


@org.command()
@agent_argument
@option("--user NAME", "The person who takes the seat.")
@option("--adapter ADAPTER", "Or the program that does.", field="adapterType")
@option("--config JSON", "Settings of the adapter.", field="adapterConfig")
@dry_run_option
def seat(session: Session, /, dry_run: bool, **options: object) -> None:
    """Put a person or a program into an agent's seat; all else stays as it is."""
    if (options["user"] is None) == (options["adapterType"] is None):
        raise click.UsageError("Give either --user or --adapter.")
    if options["user"] is None:
        options["adapterConfig"] = options["adapterConfig"] or {}
    elif options["adapterConfig"] is not None:
        raise click.UsageError("A person takes no --config.")
    carry_out(session, dry_run, operations=[{"op": "seat", **stated(options)}])


@org.command()
@click.argument("event")
@dry_run_option
def undo(session: Session, event: str, dry_run: bool) -> None:
    """Take a change back, unless what it touched was changed since."""
    carry_out(session, dry_run, undo=normalise(event.removeprefix("event:")))
