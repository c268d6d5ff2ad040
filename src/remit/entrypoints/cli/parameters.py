"""Parameter types of commands: references to things, whole numbers, JSON and texts from files."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from remit.entrypoints.cli.session import Session, View


class Named(click.types.StringParamType):
    """Parameter type of a name or an id that is sent as it is, with shell completion by the kinds
    of things that it can name."""

    def __init__(self, *kinds: str) -> None:
        self.kinds = kinds

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG002  the base class gives it
        incomplete: str,
    ) -> list[CompletionItem]:
        # Not needed to run a command.
        from remit.entrypoints.cli.completing import complete

        return complete(ctx, self.kinds, incomplete)


class Reference(Named):
    """Parameter type of a reference: a name, a partial id or an agent; the command gets the id."""

    def __init__(
        self, find: str | Callable[[Session, str], str], metavar: str = "", *kinds: str
    ) -> None:
        super().__init__(*(kinds or (("agent",) if "AGENT" in metavar else ())))
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


class Whole(click.IntRange):
    """Parameter type of a whole number in a range."""

    name = "integer"  # an error names the type by it


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
    "approval": Reference("commands.work.approval.approval_id", "ID|AGENT", "approval"),
    "job": Reference("commands.work.run.job_id", "ID"),
    "question": Reference("commands.mail.question.question_id", "ID|AGENT"),
    "run": Reference("drawing.run_view.run_id", "ID|AGENT"),
    "schedule": Reference("session.bare_id", "ID"),
    "message": Reference("drawing.letters.message_id", "MESSAGE"),
    "file": Reference("commands.work.kb.file_id", "FILE_ID"),
    "outcome": Reference("drawing.outcome_view.outcome_id", "ID", "outcome", "agent"),
}
AGENT, MESSAGE, OUTCOME = (REFERENCES[kind] for kind in ("agent", "message", "outcome"))
#: Names and ids that the command itself looks up, or sends as they are.
ADAPTER, AGENT_NAME = Named("adapter"), Named("agent")
APPROVAL_NAME, OUTCOME_NAME = Named("approval"), Named("outcome", "agent")
#: An agent, or the board.
BOSS: Final = Reference(
    lambda session, text: text if text == "board" else session.agent_id(text), "AGENT"
)
JSON, TEXT = Inline(json_object), Inline(text_or_file)
