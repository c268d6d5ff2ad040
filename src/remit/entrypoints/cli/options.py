"""Options of commands, and the groups and commands that take them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import click

from remit.entrypoints.cli.parameters import ADAPTER, AGENT, JSON, OUTCOME, TEXT, Reference, Whole
from remit.entrypoints.cli.session import Cell, Session, View, path

F = TypeVar("F", bound=Callable[..., Any])


def _store(attribute: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def callback(context: click.Context, _: click.Parameter, value: Any) -> None:
        if value:  # otherwise keep the value given further left
            setattr(context.ensure_object(Session), attribute, value)

    return callback


#: Attribute of the session, names and settings of each option that every command takes.
_SHARED: Final[tuple[tuple[str, list[str], View], ...]] = (
    ("as_json", ["--json"], {"is_flag": True, "help": "Print JSON."}),
    (
        *("verbose", ["-v", "--verbose"]),
        {"is_flag": True, "help": "After a change, show all fields of the result."},
    ),
    (
        *("company_option", ["--company"]),
        {"metavar": "NAME|ID", "help": "The company, if you have several."},
    ),
    ("url_option", ["--url"], {"metavar": "URL", "help": "The instance."}),
    ("token_option", ["--token"], {"metavar": "TOKEN", "help": "Your token."}),
)


def shared_options() -> list[click.Parameter]:
    return [
        click.Option(names, expose_value=False, callback=_store(attribute), **more)
        for attribute, names, more in _SHARED
    ]


#: Types of options by what their help shows them to take; the rest are texts.
_TAKEN: Final[Mapping[str, Any]] = {
    "ADAPTER": ADAPTER,
    "AGENT": AGENT,
    "INTEGER": click.INT,
    "JSON": JSON,
    "JSON|@FILE": JSON,
    "OUTCOME": OUTCOME,
    "TEXT|@FILE": TEXT,
    "yes|no": click.BOOL,
}


def option(usage: str, words: str = "", *, field: str = "", **more: Any) -> Callable[[F], F]:
    """Declare an option in the form of its help: `--role TEXT`, `--role board|observer` for one of
    several words, `--to NAME…` if it can be repeated, or `--yes` for a flag. The command gets it
    as `field`, which is usually that of a request."""
    *names, last = usage.split(", ")
    last, _, taken = last.partition(" ")
    if taken.endswith("…") and not taken.endswith(",…"):
        taken, more["multiple"] = taken.removesuffix("…"), True
    if not taken:
        more = {"is_flag": True} | more if "/" not in last and "type" not in more else more
    elif "type" in more or taken in _TAKEN or not taken.replace("|", "").islower():
        more = {"type": _TAKEN.get(taken), "metavar": taken} | more
    else:
        more["type"] = click.Choice(taken.split("|"))
    return click.option(*names, last, *filter(None, [field]), help=words or None, **more)


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return several options as one decorator, in the order of the help."""

    def add(command: F) -> F:
        for each in reversed(options):
            command = each(command)
        return command

    return add


class Command(click.Command):
    """A command that takes the shared options: its function gets the session of these options
    first, and ids in place of references.

    Its help ends with `examples`, command lines with a remark after #. One that is `forgiving`
    works with wrong settings, too, and says what is wrong.
    """

    def __init__(
        self, *args: Any, examples: Sequence[str] = (), forgiving: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(shared_options())
        self.examples = examples
        self.is_forgiving = forgiving

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        if self.examples:
            lines = [example.partition("  # ") for example in self.examples]
            width = max(len(command) for command, _, _ in lines)
            with formatter.section("Examples"):
                for command, _, remark in lines:
                    line = f"{command.ljust(width)}  # {remark}" if remark else command
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")

    def invoke(self, ctx: click.Context) -> Any:
        session = ctx.ensure_object(Session)
        if self.is_forgiving:
            session.forgive()
        for param in self.params:
            if isinstance(param.type, Reference) and param.name is not None:
                ctx.params[param.name] = param.type.found(session, ctx.params[param.name])
        assert self.callback is not None
        return ctx.invoke(self.callback, session, **ctx.params)


def stated(options: Mapping[str, Any]) -> View:
    """Return the options that were given, without those that were left out."""
    return {name: value for name, value in options.items() if value not in (None, ())}


#: Verbs from other programs, and the verbs that they stand for here.
VERBS = {
    "ls": ("list",),
    **dict.fromkeys(("get", "describe", "inspect", "view"), ("show",)),
    **dict.fromkeys(("create", "add", "new"), ("create", "add")),
    "edit": ("update", "set"),
}
#: Commands that end something: never guessed from an alias, only listed.
_ENDING = ("terminate", "close", "revoke", "remove", "cancel", "purge")
_ENDED = frozenset({"rm", "delete", "del", "remove", "destroy", "kill"})


class Group(click.Group):
    """A noun with its verbs; the shared options may stand before a verb, too."""

    command_class = Command
    #: Draws the whole answer of a declared command; more lines to print after its sentence.
    draw: Callable[[Session, View], None] | None = None
    more: Callable[[View], Iterable[str]] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        #: Tables of declared lists: the cells of a row, and the sentence for an empty list.
        self.tables: dict[str, tuple[tuple[Cell, ...], str]] = {}
        self.params.extend(shared_options())
        self._complete = False

    def rows(self, command: str, *row: Cell, empty: str) -> None:
        self.tables[command] = (row, empty)

    def shows(
        self, reference: Reference, draw: Callable[[Session, View], None], words: str
    ) -> None:
        """Add `show`: one thing by a reference, which is resolved to an id."""

        @self.command("show", help=words)
        @click.argument("id_", metavar=reference.metavar, type=reference)
        def show(session: Session, id_: str) -> None:
            answer = session.client.get(path(f"{self.name}s", id_))
            session.show(answer, lambda view: draw(session, view))

    def list_commands(self, ctx: click.Context) -> list[str]:
        self._add_declared()
        return super().list_commands(ctx)

    def _add_declared(self) -> None:
        """Add the commands that verbs declare, on the first look-up."""
        if not self._complete:
            from remit.entrypoints.cli.declared import commands_of

            for command in commands_of(self):
                self.add_command(command)
            self._complete = True

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        self._add_declared()
        for name in (cmd_name, *VERBS.get(cmd_name, ())):
            command = super().get_command(ctx, name)
            if command is not None:
                return command
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        self._add_declared()
        if args[0] in _ENDED and args[0] not in self.commands:
            meant = [f"`{ctx.command_path} {verb}`" for verb in _ENDING if verb in self.commands]
            if meant:
                raise click.UsageError(
                    f"There is no {args[0]!r} here, but {' and '.join(meant)}.", ctx
                )
        name, command, rest = super().resolve_command(ctx, args)
        return (command.name if command else name), command, rest


LIMITED: Final[View] = {
    "type": Whole(min=0),
    "default": 1000,
    "show_default": True,
    "help": "The most to list; 0 for all.",
}
limit_option = click.option("--limit", **LIMITED)
