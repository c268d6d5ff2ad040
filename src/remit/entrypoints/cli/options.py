"""Options that every command shares, and the session that they describe."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem

from remit import settings as settings_module
from remit.entrypoints.cli import process
from remit.entrypoints.cli.address import is_loopback, path
from remit.entrypoints.cli.drawing import cells, output
from remit.errors import BadInput, NotFound, RemitError, Unauthenticated
from remit.ids import is_id, is_part_of, looks_like_id, several
from remit.model.text import name_key
from remit.settings import DEFAULT_HOST, DEFAULT_PORT, Settings

if TYPE_CHECKING:
    from remit.entrypoints.cli.client import Client

F = TypeVar("F", bound=Callable[..., Any])

#: An answer of the instance, or an entry of one.
View = dict[str, Any]
#: A key of the answer; or a title, a colon and a template with keys in braces, which may be
#: missing; or a title and a function that returns the text. A key may have a format of
#: `drawing.cells`, as in `since: {createdAt:when}`.
Cell = str | tuple[str, Callable[["Session", View], object]]

#: How many entries a list shows unless told otherwise.
LIMIT = 1000


class Session:
    """The options in force, and the connection to their instance, opened when needed."""

    def __init__(self) -> None:
        self.as_json = False
        self.verbose = False
        self.company_option: str | None = None
        self.url_option: str | None = None
        self.token_option: str | None = None
        self._open = ExitStack()

    def close(self) -> None:
        self._open.close()

    def connect(self, token: str | None) -> Client:
        """A connection that ends with the command."""
        # Imported here because it is a fifth of what `--help` would take.
        from remit.entrypoints.cli.client import Client

        return self._open.enter_context(closing(Client(self.url, token)))

    @cached_property
    def settings(self) -> Settings:
        return settings_module.load()

    @cached_property
    def url(self) -> str:
        address = self.url_option or self.settings.url or process.holder(self.settings).url
        return (address or f"http://{DEFAULT_HOST}:{DEFAULT_PORT}").rstrip("/")

    @cached_property
    def token(self) -> str | None:
        return self.token_option or os.environ.get("REMIT_TOKEN") or self._kept_token()

    def _kept_token(self) -> str | None:
        """Return the token stored for this address; it is never sent to another address."""
        stored = settings_module.load({"REMIT_HOME": str(self.settings.home)})
        belongs = stored.url.rstrip("/") == self.url if stored.url else self.is_local
        if stored.token and belongs:
            return stored.token
        if self.is_local:
            with suppress(OSError, UnicodeDecodeError):
                return self.settings.board_token_file.read_text().strip() or None
        return None

    @cached_property
    def is_local(self) -> bool:
        return is_loopback(self.url)

    @cached_property
    def client(self) -> Client:
        """Authenticated connection; refused if there is no token."""
        if self.token is None:
            self.anonymous.get("/health")  # if no instance answers, that error comes first
            raise Unauthenticated(
                f"There is no token for {self.url}.",
                "Run `remit login --url URL`, or set REMIT_TOKEN.",
            )
        return self.connect(self.token)

    @cached_property
    def anonymous(self) -> Client:
        return self.connect(None)

    @cached_property
    def company(self) -> View:
        """The company that was named, or the only one there is."""
        named = self.company_option or self.settings.company
        companies = list(self.client.each(path("companies")))
        if named is None and len(companies) == 1:
            return dict(companies[0])
        names = ", ".join(company["name"] for company in companies) or "none"
        if named is None:
            if not companies:
                raise NotFound("You have no part in a company.", "Ask its board to add you.")
            raise BadInput(f"You have several companies: {names}.", "Say which with --company.")
        return pick(companies, named, "company", f"You have: {names}.")

    @property
    def is_company_named(self) -> bool:
        return bool(self.company_option or self.settings.company)

    def under_company(self, *segments: str) -> str:
        return path("companies", self.company["id"], *segments)

    def agent_id(self, text: str) -> str:
        """An agent by name, id or beginning of one, in the company in force."""
        name = text.removeprefix("agent:")
        if is_id(name) or not self.is_company_named:
            return name  # the instance looks it up in the only company of the caller
        agent = pick(self.agents, name, "agent", "See `remit agent list`.")
        return str(agent["id"])

    def agent_id_ever(self, text: str) -> str:
        """Like `agent_id`, terminated agents included."""
        name = text.removeprefix("agent:")
        if is_id(name) or not self.is_company_named:
            return name
        named = self.agent_named(name)
        if named is None:
            named = pick(self.agents_ever, name, "agent", "See `remit agent list --all`.")
        return str(named["id"])

    def agent_named(self, name: str) -> View | None:
        """Agent with this name, or the last one that had it: names of terminated agents may be
        reused."""
        key = name_key(name.removeprefix("agent:"))
        named = [agent for agent in self.agents_ever if name_key(agent["name"]) == key]
        return max(
            named, key=lambda agent: (agent["status"] != "terminated", agent["id"]), default=None
        )

    @cached_property
    def agents_ever(self) -> list[View]:
        """The agents of the company, terminated ones included."""
        return list(self.client.each(self.under_company("agents"), terminated="true"))

    @cached_property
    def agent_name(self) -> Callable[[str], str]:
        """Function that returns the name of any agent, or its id; each name is fetched once."""

        @cache
        def name(id_: str) -> str:
            try:
                return str(self.client.get(path("agents", id_))["name"])
            except RemitError:
                return id_

        return name

    @cached_property
    def agents(self) -> list[View]:
        return list(self.client.each(self.under_company("agents")))

    @cached_property
    def names(self) -> dict[str, str]:
        """Agents and users by id, as far as the caller may know them."""
        known: dict[str, str] = {}
        with suppress(RemitError):
            known |= {agent["id"]: agent["name"] for agent in self.agents}
        return known | {user["id"]: user["name"] for user in self.visible("users")}

    def visible(self, *segments: str, most: int | None = None) -> list[View]:
        """Return things of the company; none if the caller may not see them, or if the instance
        cannot be asked."""
        try:
            return list(self.client.each(self.under_company(*segments), most))
        except RemitError:
            return []

    def forget(self) -> None:
        """Drop the cached agents and names."""
        for known in ("agents", "agents_ever", "agent_name", "names"):
            self.__dict__.pop(known, None)

    def listed(self, target: str, limit: int, **query: object) -> list[View]:
        """Fetch a list up to the limit, 0 for all; note it if there is more."""
        entries = list(self.client.each(target, limit + 1 if limit else None, **query))
        if limit and len(entries) > limit:
            output.note(f"Only the first {limit} are shown; --limit 0 shows all.")
        return entries[:limit] if limit else entries

    def done(self, answer: Any, sentences: Iterable[str], draw: Callable[[Any], None]) -> None:
        """Print the result of a change: its sentences or, with --json or --verbose, the whole
        answer."""
        if self.as_json or self.verbose:
            self.show(answer, draw)
        else:
            output.say(*sentences)

    def change(
        self, method: str, target: str, body: Mapping[str, Any] | None = None, *, tells: str
    ) -> None:
        """Send a change and print a sentence with values of the answer; or JSON, if asked."""
        answer = self.client.send(method, target, body)
        self.show(answer, lambda view: output.say(cells.filled(self, view, tells)))

    def confirm(self, command: str, ask: Callable[[], str], nothing: str) -> None:
        """Ask before an irreversible change; raise unless the answer is yes. --json cannot ask."""
        if self.as_json:
            raise click.UsageError(f"{command} with --json needs --yes.")
        if not click.confirm(ask(), err=True):
            raise BadInput(nothing, "Repeat it with --yes if you are sure.")

    def show(self, answer: Any, draw: Callable[[Any], None]) -> None:
        """Print an answer: as JSON if asked, otherwise drawn for a person."""
        if self.as_json:
            print(output.as_json(answer))
        else:
            draw(answer)

    def show_table(self, answer: Sequence[View], *row: Cell, empty: str) -> None:
        """Print a list: as JSON if asked, otherwise a row for each entry."""
        self.show(answer, lambda rows: cells.table(self, rows, *row, empty=empty))


def pick(candidates: Iterable[View], text: str, what: str, step: str, called: str = "name") -> View:
    """Return the one entry with this name, or else the one whose id or short id begins with the
    text."""
    entries = list(candidates)
    key = name_key(text)
    named = [
        entry
        for entry in entries
        if key in (entry["id"], name_key(entry.get(called) or "")) and key
    ]
    if not named and looks_like_id(text):
        named = [entry for entry in entries if is_part_of(entry["id"], text)]
    if not named:
        raise NotFound(f"There is no {what} {text[:100]!r} here.", step)
    if len(named) > 1:
        ids = [f"{entry['id']} ({output.clean(entry.get(called) or '')[:60]})" for entry in named]
        raise several(f"Several match {text[:100]!r}", ids)
    return named[0]


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


class AgentName(click.types.StringParamType):
    """Parameter type of an agent's name, with shell completion."""

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG002  the base class gives it
        incomplete: str,
    ) -> list[CompletionItem]:
        session = ctx.find_object(Session) or Session()
        try:
            names = sorted(agent["name"] for agent in session.agents)
        except Exception:  # an error is reported when the command runs, not now
            return []
        finally:
            session.close()
        key = name_key(incomplete)
        return [CompletionItem(name) for name in names if name_key(name).startswith(key)]


class Reference(AgentName):
    """Parameter type of a reference: a name, a partial id or an agent; the command gets the id."""

    def __init__(self, find: str | Callable[[Session, str], str], metavar: str = "") -> None:
        #: A function, or its path below `cli`, which is imported on use and not for the help.
        self.find = find
        self.metavar = metavar

    def found(self, session: Session, reference: Any) -> Any:
        """Resolve a name, a partial id or a tuple of them to ids."""
        if reference is None:
            return None
        if isinstance(reference, tuple):
            return tuple(self.found(session, text) for text in reference)
        if callable(self.find):
            return self.find(session, reference)
        module, _, name = self.find.rpartition(".")
        resolver_module = import_module(f"remit.entrypoints.cli.{module}")
        return getattr(resolver_module, name)(session, reference)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        by_agent = "AGENT" in self.metavar
        return super().shell_complete(ctx, param, incomplete) if by_agent else []


class Inline(click.ParamType[Any]):
    """Parameter type of a value on the command line, or in the file that `@PATH` names."""

    name = "text"

    def __init__(self, read: Callable[[str, str], Any]) -> None:
        self._read = read

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,  # noqa: ARG002  the base class gives it
    ) -> Any:
        return self._read(value, param.opts[0] if param is not None else "")


def json_object(text: str, option: str) -> View:
    try:
        document = json.loads(text_or_file(text, option))
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise click.BadParameter("it must be a JSON object", param_hint=option)
    return document


def text_or_file(text: str, option: str) -> str:
    """Return the text, or the content of the file that `@PATH` names."""
    if not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).read_text()
    except UnicodeDecodeError:
        raise click.BadParameter("the file is not UTF-8 text", param_hint=option) from None


def command_words(command: str) -> list[str]:
    """Split a command into its program and arguments, as a shell does."""
    try:
        return shlex.split(command)
    except ValueError as error:
        raise click.UsageError(f"--command: {error}.") from None


#: References by the kind of thing, as verbs declare it: the resolver, and the name in the help.
REFERENCES: Final = {
    "account": Reference("commands.company.account.account_id", "NAME"),
    "agent": Reference(Session.agent_id, "AGENT"),
    "approval": Reference("commands.work.approval.approval_id", "ID|AGENT"),
    "job": Reference("commands.work.run.job_id", "ID"),
    "question": Reference("commands.mail.question.question_id", "ID|AGENT"),
    "run": Reference("drawing.run_view.run_id", "ID|AGENT"),
    "schedule": Reference("references.bare_id", "ID"),
    "message": Reference("drawing.letters.message_id", "MESSAGE"),
    "file": Reference("commands.work.kb.file_id", "FILE_ID"),
    "outcome": Reference("drawing.outcome_view.outcome_id", "ID"),
}
AGENT, MESSAGE, OUTCOME = (REFERENCES[kind] for kind in ("agent", "message", "outcome"))
#: A name that is sent as it is.
AGENT_NAME: Final = AgentName()
#: An agent, or the board.
BOSS: Final = Reference(
    lambda session, text: text if text == "board" else session.agent_id(text), "AGENT"
)
JSON, TEXT = Inline(json_object), Inline(text_or_file)


#: Types of options by what their help shows them to take; the rest are texts.
_TAKEN: Final[Mapping[str, Any]] = {
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


class Command(click.Command):
    """A command that takes the shared options: its function gets the session of these options
    first, and ids in place of references."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(shared_options())

    def invoke(self, ctx: click.Context) -> Any:
        session = ctx.ensure_object(Session)
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
    "type": click.IntRange(min=0),
    "default": LIMIT,
    "show_default": True,
    "help": "The most to list; 0 for all.",
}
limit_option = click.option("--limit", **LIMITED)
