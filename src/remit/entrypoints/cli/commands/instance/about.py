"""`remit help`, `remit version` and `remit completion`: the command line about itself."""

import click
from click.shell_completion import get_completion_class

from remit import version as versions
from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Command
from remit.entrypoints.cli.session import Session


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


@click.command(cls=Command)
def version(session: Session) -> None:
    """Print the version."""
    session.show(
        {"version": versions.current()}, lambda answer: output.say(f"remit {answer['version']}")
    )


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion(_: Session, shell: str) -> None:
    """Print the completion script for a shell.

    \b
    bash  eval "$(remit completion bash)"           in ~/.bashrc
    zsh   eval "$(remit completion zsh)"            in ~/.zshrc
    fish  remit completion fish | source            in ~/.config/fish/config.fish
    """
    completion_class = get_completion_class(shell)
    assert completion_class is not None, "click completes in all of them"
    root = click.get_current_context().find_root().command
    script = completion_class(root, {}, "remit", "_REMIT_COMPLETE")
    # Not `source()`, which would start a bash to learn its version.
    print(script.source_template % script.source_vars())
