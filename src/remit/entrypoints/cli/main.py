"""`remit`: the command line, and the one place where errors become exit codes."""

import os
import sys
from collections.abc import Sequence
from contextlib import closing
from importlib import import_module

import click

from remit import version
from remit.entrypoints.cli import failures
from remit.entrypoints.cli.failures import DONE, FAILED, INTERRUPTED, USAGE
from remit.entrypoints.cli.options import Group
from remit.entrypoints.cli.overview import ADVICE, ALIASES, BY_NAME, COMMANDS
from remit.entrypoints.cli.session import Session


class Root(Group):
    """Root group, which imports a command only when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(BY_NAME)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002
        cmd_name: str,
    ) -> click.Command | None:
        entry = BY_NAME.get(cmd_name)
        if entry is None:
            return None
        module = import_module(f"remit.entrypoints.cli.commands.{entry.module}")
        command = vars(module).get(cmd_name.replace("-", "_")) or vars(module)[f"{cmd_name}_"]
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name in ALIASES:
            return super().resolve_command(ctx, [*ALIASES[name], *args[1:]])
        if name in ADVICE and name not in BY_NAME:
            raise click.UsageError(f"There is no command {name!r} here: {ADVICE[name]}.", ctx)
        if name not in BY_NAME and not name.startswith("-"):
            raise click.NoSuchCommand(name, possibilities=[*BY_NAME, *ALIASES], ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)  # first: they are what people look for
        click.Command.format_options(self, ctx, formatter)

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002
        formatter: click.HelpFormatter,
    ) -> None:
        for title, section in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(name, entry.help) for name, entry in section.items()])


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(f"remit {version.current()}")
        ctx.exit()


@click.group(
    cls=Root,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
@click.pass_context
def cli(context: click.Context) -> None:
    """Run a company of agents, and see what they did and why they could.

    `remit` alone shows where things stand. Begin with `remit demo`, or with `remit up`.
    """
    if context.invoked_subcommand is None:
        from remit.entrypoints.cli.commands.instance import standing

        standing.show(context.ensure_object(Session))


def main() -> None:
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Carry out a command line; print any error, and return the exit code."""
    if "_REMIT_COMPLETE" in os.environ:
        cli.main([*arguments], "remit")
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    session = Session()
    try:
        with closing(session):
            code = _carry_out(arguments, session)
        sys.stdout.flush()
    except BrokenPipeError:
        code = DONE  # the reader has what it wanted
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Exception as error:
        if os.environ.get("REMIT_DEBUG") and not isinstance(error, click.UsageError):
            raise
        # After a wrong argument, options to the right of it were not read.
        as_json = session.as_json or "--json" in arguments
        code = failures.tell(failures.of(error, arguments), as_json=as_json)
    try:
        sys.stdout.flush()
    except OSError:
        # Output that cannot be written now cannot be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _open_closed_streams() -> None:
    """Replace standard streams that the parent process closed by /dev/null."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115


def _carry_out(arguments: Sequence[str], session: Session) -> int:
    try:
        with cli.make_context("remit", [*arguments], obj=session) as context:
            return int(cli.invoke(context) or DONE)
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        if session.as_json:
            raise
        print(error.format_message(), file=sys.stderr)
        return USAGE
    except click.Abort as error:
        # A prompt turns Ctrl-C and the end of its input into this.
        print(file=sys.stderr)
        return INTERRUPTED if isinstance(error.__context__, KeyboardInterrupt) else FAILED


if __name__ == "__main__":
    main()
