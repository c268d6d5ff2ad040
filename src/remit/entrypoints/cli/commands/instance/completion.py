"""`remit completion`: shell completion of the command line."""

import click

from remit.entrypoints.cli.options import Command, Session

SHELLS = ("bash", "zsh", "fish")


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(SHELLS))
def completion(_: Session, shell: str) -> None:
    """Print the completion script for a shell.

    \b
    bash  eval "$(remit completion bash)"           in ~/.bashrc
    zsh   eval "$(remit completion zsh)"            in ~/.zshrc
    fish  remit completion fish | source            in ~/.config/fish/config.fish
    """
    from click.shell_completion import get_completion_class

    completion_class = get_completion_class(shell)
    assert completion_class is not None, "click completes in all of them"
    script = completion_class(
        click.get_current_context().find_root().command, {}, "remit", "_REMIT_COMPLETE"
    )
    # Not `source()`, which would start a bash to learn its version.
    print(script.source_template % script.source_vars())
