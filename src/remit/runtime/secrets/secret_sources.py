"""Sources of secret values: the environment, a file, a command, or a plugin.

A plugin names a class under the entry point group `remit.secrets`. The class has a `source`, by
which secrets refer to it, and `async def read(self, place: str) -> str`.
"""

import asyncio
import inspect
import json
import logging
import os
import re
import stat
from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any, ClassVar

from remit.errors import Unavailable
from remit.model.connections.secret import BUILT_IN, LONGEST_VALUE
from remit.runtime.child_process import end_child, start_child
from remit.runtime.sandbox.sandbox_policy import tie_to_parent

log = logging.getLogger(__name__)

GROUP = "remit.secrets"
#: Time limit of a source; a command may need the network for its answer.
COMMAND_SECONDS = 30.0

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_NEXT = "Correct it with `remit secret set`, or what it refers to."


def cannot(sentence: str, step: str = _NEXT) -> Unavailable:
    """Return the error for a value that cannot be read; the sentence never reveals any of it."""
    return Unavailable(sentence, step, code="secret")


class Source(ABC):
    """A source of secret values, such as files or commands."""

    source: ClassVar[str]

    @abstractmethod
    async def read(self, place: str) -> str:
        """Read the value at a place, or raise an error with the reason why it cannot be read."""


class Environment(Source):
    """A variable of this process."""

    source = "env"

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables

    async def read(self, place: str) -> str:
        value = self._variables.get(place)
        if not value:
            raise cannot(
                f"The variable {place} is not set for this process.",
                "Set it where Remit is started, and start Remit again.",
            )
        return value


class File(Source):
    """A file that only this user can read."""

    source = "file"

    async def read(self, place: str) -> str:
        return await asyncio.to_thread(self._read, place)

    def _read(self, place: str) -> str:
        try:
            # Neither through a link nor blocking on a pipe.
            opened = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise cannot(f"The file {place} cannot be read ({error.strerror}).") from None
        try:
            status = os.fstat(opened)
            if not stat.S_ISREG(status.st_mode):
                raise cannot(f"{place} is not an ordinary file.")
            if status.st_uid != os.geteuid():
                raise cannot(
                    f"The file {place} belongs to another user.", f"chown it to uid {os.geteuid()}."
                )
            if stat.S_IMODE(status.st_mode) & 0o077:
                raise cannot(
                    f"The file {place} can be read or written by others.", f"chmod 600 {place}"
                )
            return _text(os.read(opened, LONGEST_VALUE + 2))
        finally:
            os.close(opened)


class Command(Source):
    """The output of a program, such as `op read`, started without a shell."""

    source = "command"

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables

    async def read(self, place: str) -> str:
        argv: list[str] = json.loads(place)
        # It may need credentials of other services, but none of Remit itself.
        told = {
            key: value for key, value in self._variables.items() if not key.startswith("REMIT_")
        }
        try:
            nowhere = asyncio.subprocess.DEVNULL
            process = await start_child(tie_to_parent(argv), told, stderr=nowhere)
        except (OSError, ValueError) as error:
            raise cannot(f"{argv[0]!r} cannot be started ({type(error).__name__}).") from None
        try:
            async with asyncio.timeout(COMMAND_SECONDS):
                assert process.stdout is not None
                output = await _at_most(process.stdout, LONGEST_VALUE + 2)
                code = await process.wait() if len(output) <= LONGEST_VALUE + 1 else 0
        except TimeoutError:
            raise cannot(
                f"{argv[0]!r} took longer than {COMMAND_SECONDS:.0f} seconds.",
                "Use a command that answers without a prompt.",
            ) from None
        finally:
            await end_child(process)
        if code:
            raise cannot(f"{argv[0]!r} ended with {code}.", "Try the command where Remit runs.")
        return _text(output)


class Plugin(Source):
    """A source from a plugin; its exceptions are not shown, because they may contain the value."""

    def __init__(self, source: Any) -> None:
        self._made = source

    async def read(self, place: str) -> str:
        name = self._made.source
        try:
            async with asyncio.timeout(COMMAND_SECONDS):
                answer = self._made.read(place)
                value = await answer if inspect.isawaitable(answer) else answer
        except Exception as error:
            raise cannot(f"The source {name!r} failed ({type(error).__name__}).") from None
        if not isinstance(value, str):
            raise cannot(f"The source {name!r} did not answer with text.")
        return value


def sources(variables: Mapping[str, str]) -> dict[str, Source]:
    """Return the built-in sources and those of plugins; unusable plugins are skipped and logged."""
    by_name: dict[str, Source] = {
        "env": Environment(variables),
        "file": File(),
        "command": Command(variables),
    }
    for entry in entry_points(group=GROUP):
        try:
            source = entry.load()()
            name = source.source
            if not isinstance(name, str) or not _NAME.fullmatch(name) or name in BUILT_IN:
                raise ValueError("its `source` is not a name of its own")
            if not callable(source.read):
                raise ValueError("it has no `read()`")
        except Exception as error:
            log.warning("the source of secrets %s cannot be used: %s", entry.value, error)
            continue
        by_name.setdefault(name, Plugin(source))
    return by_name


async def _at_most(stream: asyncio.StreamReader, size: int) -> bytes:
    output = b""
    while len(output) < size and (piece := await stream.read(size - len(output))):
        output += piece
    return output


def _text(raw: bytes) -> str:
    """Decoded output, without the line end that most programs add."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise cannot("The value found is not text.") from None
    return text.removesuffix("\n").removesuffix("\r")
