"""`remit`: the table of commands, and the one place where errors become exit codes."""

import json
import os
import sys
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple

import click

from remit import version
from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Group
from remit.entrypoints.cli.session import Session
from remit.errors import Conflict, NotAnId, NotFound, RemitError

DONE, FAILED, USAGE, NOT_FOUND, CONFLICT, UNREACHABLE, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130


class Entry(NamedTuple):
    """Module of a command and its line in the overview, so that the overview imports no command."""

    module: str
    help: str


#: By section: modules, and the commands in each.
_SECTIONS: Final = {
    "Instance": (
        ("instance.lifecycle", "up serve worker down status"),
        ("instance.top", "top"),
        ("instance.lifecycle", "open"),
        ("instance.doctor", "doctor"),
        ("instance.simulate", "demo"),
        ("instance.login", "login"),
        ("instance.about", "version"),
    ),
    "Company": (
        ("company.company", "company"),
        ("company.halt", "stop go"),
        ("company.apply", "apply"),
        ("company.user", "user"),
        ("company.agent", "agent"),
        ("work.approval", "approve reject"),
        ("company.org", "org"),
        ("work.outcome", "outcome"),
        ("work.kb", "kb"),
        ("company.grant", "grant"),
        ("work.approval", "approval"),
        ("work.run", "run job"),
        ("company.account", "account"),
        ("company.adapter", "adapter"),
        ("connections.mcp", "mcp"),
        ("connections.secret", "secret"),
        ("work.change", "change"),
        ("connections.repo", "folder repo"),
    ),
    "Mail": (
        ("mail.mail", "send reply cancel inbox read revive needs-you"),
        ("mail.notify", "notify"),
        ("mail.bind", "bind"),
        ("mail.link", "link"),
        ("mail.confirm", "confirm"),
        ("mail.question", "question"),
        ("mail.schedule", "schedule"),
    ),
    "Record": (("work.event", "event why as-of"),),
    "Backups": (("instance.backup", "backup restore"),),
    "This command line": (("instance.about", "help completion"),),
    "Trying out": (("instance.simulate", "simulate"),),
    "Agents' side": (("connections.mcp", "mcp-stdio"),),
}
#: By kind of thing, the command that lists those that the caller can see.
_LISTS: Final = {
    **{
        what: f"{what} list"
        for what in (
            *("agent", "approval", "change", "company", "event", "grant", "job", "outcome"),
            *("question", "run", "schedule", "user"),
        )
    },
    "file": "kb list",
    "message": "inbox --all",
}
#: The first line of each command's help, in a generated file like the declared commands.
OVERVIEW: Final = Path(__file__).with_name("overview.json")
_HELP: Final = json.loads(OVERVIEW.read_text())
COMMANDS: Final[dict[str, dict[str, Entry]]] = {
    section: {
        name: Entry(module, _HELP.get(name, ""))
        for module, names in modules
        for name in names.split()
    }
    for section, modules in _SECTIONS.items()
}
#: Names from other programs, and the commands that they stand for here.
ALIASES: dict[str, tuple[str, ...]] = {
    "ls": ("agent", "list"),
    "ps": ("run", "list"),
    "logs": ("run", "tail"),
    "companies": ("company", "list"),
    "files": ("kb", "list"),
}
#: Nouns whose plural is an alias of `list`, as in other programs: `remit agents`.
_LISTED = (
    *("agent", "run", "outcome", "approval", "event", "user", "question", "job", "grant"),
    *("schedule", "secret", "repo", "folder", "change", "account", "adapter"),
)
ALIASES |= {f"{noun}s": (noun, "list") for noun in _LISTED}
#: Names from other programs that may mean several commands here.
ADVICE = {
    "rm": "`remit agent terminate NAME` ends an agent, `remit outcome close ID` an outcome",
    "kill": "`remit agent stop NAME` ends what an agent is doing, `remit run cancel ID` a run",
    "get": "`remit agent show NAME` shows an agent; others have `show`, too",
    "create": "`remit agent create NAME` makes an agent, `remit outcome create` an outcome",
    "hire": "`remit agent hire NAME` asks for an agent, `remit agent create NAME` makes one",
    "tail": "`remit run tail NAME` follows a run, `remit event tail` the record",
    "init": "`remit up` makes what it needs and runs it",
    "budget": "`remit agent budget` shows what agents may spend, `remit agent set NAME` changes it",
    "start": "`remit up` runs the instance, `remit agent start NAME` lets an agent work again",
}
ADVICE |= dict.fromkeys(("delete", "remove"), ADVICE["rm"])
ADVICE |= dict.fromkeys(("show", "describe", "inspect"), ADVICE["get"])
ADVICE |= dict.fromkeys(("budgets", "spend"), ADVICE["budget"])
ADVICE |= dict.fromkeys(("new", "add"), ADVICE["create"])
_BY_NAME = {name: entry for section in COMMANDS.values() for name, entry in section.items()}


class Root(Group):
    """Root group, which imports a command only when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_BY_NAME)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002
        cmd_name: str,
    ) -> click.Command | None:
        entry = _BY_NAME.get(cmd_name)
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
        if name in ADVICE and name not in _BY_NAME:
            raise click.UsageError(f"There is no command {name!r} here: {ADVICE[name]}.", ctx)
        if name not in _BY_NAME and not name.startswith("-"):
            raise click.NoSuchCommand(name, possibilities=[*_BY_NAME, *ALIASES], ctx=ctx)
        return super().resolve_command(ctx, args)

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


@click.group(cls=Root, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """Run a company of agents, and see what they did and why they could.

    Begin with `remit up`, or with `remit demo`.
    """


def main() -> None:
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Carry out a command line; print any error as a sentence, and return the exit code."""
    if "_REMIT_COMPLETE" in os.environ:
        cli.main(arguments, "remit")
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        code = _carry_out(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        code = DONE  # the reader has what it wanted
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Exception as error:
        if os.environ.get("REMIT_DEBUG"):
            raise
        code = _explain(error)
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


def _carry_out(arguments: list[str]) -> int:
    try:
        with (
            closing(Session()) as session,
            cli.make_context("remit", arguments, obj=session) as context,
        ):
            return int(cli.invoke(context) or DONE)
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message(), file=sys.stderr)
        return USAGE
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "remit"
        output.error(error.format_message().replace("\n", " "), f"See `{where} --help`.")
        return USAGE
    except click.Abort as error:
        # A prompt turns Ctrl-C and the end of its input into this.
        print(file=sys.stderr)
        return INTERRUPTED if isinstance(error.__context__, KeyboardInterrupt) else FAILED


def _step(error: RemitError) -> str:
    """The next step, which names the list of the kind of thing that was not found."""
    listed = _LISTS.get(error.what)
    if listed and isinstance(error, NotFound) and error.step == NotFound.next_step:
        return f"See `remit {listed}`."
    return error.step


def _explain(error: Exception) -> int:
    if isinstance(error, RemitError):
        output.error(error.sentence, _step(error))
        if error.reason == "unreachable":
            return UNREACHABLE
        if isinstance(error, NotFound):
            return NOT_FOUND
        if isinstance(error, NotAnId) or error.reason == "ambiguous":
            return USAGE
        return CONFLICT if isinstance(error, Conflict) else FAILED
    if isinstance(error, click.ClickException):
        output.error(error.format_message(), "Correct it and try again.")
        return FAILED
    if isinstance(error, OSError):
        about = f"{error.filename}: " if error.filename else ""
        output.error(f"{about}{error.strerror or error}.", "Make that possible and try again.")
        return FAILED
    if isinstance(error, UnicodeEncodeError):
        output.error("An argument is not valid UTF-8.", "Write it in UTF-8.")
        return FAILED
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    output.error(
        f"Something unexpected happened ({what[:300]}).",
        "Run it again with REMIT_DEBUG=1 to see where, and report it.",
    )
    return FAILED


if __name__ == "__main__":
    main()
