"""`remit help COMMAND`: the same text as `remit COMMAND --help`."""

import click

from remit.entrypoints.cli.options import Command, Session


@click.command("help", cls=Command)
@click.argument("words", metavar="[COMMAND]...", nargs=-1)
def help_(_: Session, words: tuple[str, ...]) -> None:
    """Explain a command."""
    here = click.get_current_context().find_root()
    rest = [*words]
    while rest:
        if not isinstance(here.command, click.Group):
            raise click.UsageError(f"{here.command_path} has no commands of its own.")
        name, command, rest = here.command.resolve_command(here, rest)
        assert command is not None, "what is not found was refused"
        here = click.Context(command, here, name)
    print(here.get_help())
