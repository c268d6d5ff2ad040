"""Errors of a command: an exit code, and a sentence with a next step, or JSON."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from typing import Any, Final, NamedTuple

import click

from remit.entrypoints.cli.drawing import output
from remit.errors import BadInput, Conflict, NotFound, RemitError, TooLarge

DONE, FAILED, USAGE, NOT_FOUND, CONFLICT, UNREACHABLE, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130

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
#: Codes of errors that are called bad input, although no argument is wrong.
_NOT_ARGUMENTS: Final = frozenset({"bad_setting", "damaged"})
#: Next steps after errors of the operating system.
_STEPS: Final = {
    errno.EACCES: "Choose another path, or get the right to use this one.",
    errno.EEXIST: "Choose another name.",
    errno.EISDIR: "Name a file, not a folder.",
    errno.ENOENT: "Check the path.",
    errno.ENOSPC: "Free disk space, then try again.",
    errno.ENOTDIR: "Check the path: a part of it is a file.",
    errno.EPERM: "Choose another path, or get the right to use this one.",
    errno.EROFS: "Choose a path on a disk that can be written.",
}
#: Similarity from which on an option is offered in place of one that does not exist.
_SIMILAR: Final = 0.7


class Failure(NamedTuple):
    """An error as a person or a program reads it."""

    sentence: str
    step: str
    #: Stable, and the one of the instance's answer if the error is its.
    code: str
    exit_code: int = FAILED
    details: Mapping[str, Any] = {}


def tell(failure: Failure, *, as_json: bool) -> int:
    """Print a failure on standard error, as JSON in the shape of HTTP if asked; return its exit
    code."""
    if as_json:
        answer = {**failure.details, "error": failure.sentence, "code": failure.code}
        print(output.as_json({**answer, "nextStep": failure.step}, one_line=True), file=sys.stderr)
    else:
        output.error(failure.sentence, failure.step)
    return failure.exit_code


def of(error: Exception, arguments: Iterable[str]) -> Failure:
    """Describe the error that a command line with these arguments ended with."""
    if isinstance(error, RemitError):
        return Failure(error.sentence, _step(error), error.reason, _exit_code(error), error.details)
    if isinstance(error, click.ClickException):
        return _of_click(error)
    if isinstance(error, OSError):
        about = f"{error.filename}: " if error.filename else ""
        sentence = f"{about}{error.strerror or error}."
        step = _STEPS.get(error.errno or 0, "Correct it and try again.")
        if error.filename and _is_named(str(error.filename), arguments):
            return Failure(sentence, step, "invalid", USAGE)
        return Failure(sentence, step, "failed")
    if isinstance(error, UnicodeEncodeError):
        return Failure("An argument is not valid UTF-8.", "Write it in UTF-8.", "invalid", USAGE)
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return Failure(
        f"Something unexpected happened ({what[:300]}).",
        "Run it again with REMIT_DEBUG=1 to see where, and report it.",
        "unexpected",
    )


def _of_click(error: click.ClickException) -> Failure:
    if not isinstance(error, click.UsageError):
        return Failure(error.format_message(), "Correct it and try again.", "failed")
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        sentence = "A command is missing."
    elif isinstance(error, click.NoSuchOption):
        near = [name for name in error.possibilities or () if _is_near(name, error.option_name)]
        meant = f" Did you mean {' or '.join(near)}?" if near else ""
        sentence = f"{error.message}{meant}"
    else:
        sentence = error.format_message().replace("\n", " ")
    where = error.ctx.command_path if error.ctx else "remit"
    return Failure(sentence, f"See `{where} --help`.", "usage", USAGE)


def _is_near(name: str, typed: str) -> bool:
    return SequenceMatcher(None, name.lstrip("-"), typed.lstrip("-")).ratio() >= _SIMILAR


def _exit_code(error: RemitError) -> int:
    if error.reason == "unreachable":
        return UNREACHABLE
    if isinstance(error, NotFound):
        return NOT_FOUND
    if isinstance(error, BadInput):
        is_argument = error.reason not in _NOT_ARGUMENTS and not isinstance(error, TooLarge)
        return USAGE if is_argument else FAILED
    if error.reason == "ambiguous":
        return USAGE
    return CONFLICT if isinstance(error, Conflict) else FAILED


def _step(error: RemitError) -> str:
    """The next step, which names the list of the kind of thing that was not found."""
    listed = _LISTS.get(error.what)
    if listed and isinstance(error, NotFound) and error.step == NotFound.next_step:
        return f"See `remit {listed}`."
    return error.step


def _is_named(file: str, arguments: Iterable[str]) -> bool:
    """Return whether an argument names the file, alone or as in `--config=@FILE`."""
    wanted = os.path.abspath(file)
    return any(
        wanted == os.path.abspath(text.removeprefix("@"))
        for argument in arguments
        for text in (argument, argument.partition("=")[2])
        if text
    )
