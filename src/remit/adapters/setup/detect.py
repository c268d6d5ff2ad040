"""Detection for adapters: a program, its version, and whether a credential is configured.

Only the existence of variables and files is checked. No value of a credential is read, and nothing
else is searched.
"""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from remit import threads
from remit.adapters.contract import Check, Environment
from remit.adapters.running import RunContext, RunResult
from remit.adapters.setup import lending
from remit.adapters.setup.lending import Lent
from remit.errors import Unsupported

#: The type of an adapter's session.
S = TypeVar("S")
_PATIENCE_SECONDS = 10
_OPTION = re.compile(r"(?<![\w-])--[A-Za-z][A-Za-z0-9-]{1,60}")
#: Most programs whose answers are cached.
_MOST_KNOWN = 100
_VERSION = re.compile(r"\d{1,6}(?:\.\d{1,6}){1,3}[A-Za-z0-9.+-]{0,20}")
_NUMBERS = re.compile(r"\d{1,6}(?:\.\d{1,6}){1,3}")


#: Wraps a command and its environment so that it runs in a sandbox, with a folder as its home.
Hold = Callable[[Sequence[str], Mapping[str, str], Path], tuple[Sequence[str], Mapping[str, str]]]
_hold: ContextVar[Hold | None] = ContextVar("hold", default=None)


@contextmanager
def held(hold: Hold) -> Iterator[None]:
    """Context manager: run programs in a sandbox, because an agent's settings may name a program
    that an agent wrote."""
    before = _hold.set(hold)
    try:
        yield
    finally:
        _hold.reset(before)


def find_program(command: str, environment: Environment) -> str | None:
    """Return the path of a program on the environment's PATH."""
    return shutil.which(command, path=environment.get("PATH", os.defpath))


def version_of(program: str, environment: Environment) -> str | None:
    """Return the program's version from --version; None without one."""
    output = said_by(program, ["--version"], environment)
    match = _VERSION.search(output[:2000]) if output is not None else None
    return match[0] if match else None


def is_older(version: str, than: str) -> bool:
    """Return whether a version is older than another, by its numbers alone."""
    return _numbers(version) < _numbers(than)


def _numbers(version: str) -> list[int]:
    match = _NUMBERS.match(version)
    return [int(number) for number in match[0].split(".")] if match else []


def said_by(program: str, arguments: Sequence[str], environment: Environment) -> str | None:
    """Return the output of a program; None unless it succeeds in time.

    It is started with an empty folder as its home and without the environment's secrets.
    """
    with tempfile.TemporaryDirectory(prefix="remit-check-", ignore_cleanup_errors=True) as home:
        clean = {
            "PATH": environment.get("PATH", os.defpath),
            "HOME": home,
            "TMPDIR": home,
            "LANG": "C.UTF-8",
            "DISABLE_AUTOUPDATER": "1",
        }
        command: Sequence[str] = [program, *arguments]
        around: Mapping[str, str] = clean
        if (hold := _hold.get()) is not None:
            command, around = hold(command, clean, Path(home))
        try:
            answer = subprocess.run(
                command,
                env=dict(around),
                cwd=home,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=_PATIENCE_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
    return answer.stdout.decode("utf-8", "replace") if answer.returncode == 0 else None


@dataclass(frozen=True)
class Found:
    """The version and options of a program."""

    version: str
    #: Required options that its help does not list.
    lacking: tuple[str, ...]


@lru_cache(_MOST_KNOWN)
def _said_about_itself(
    program: str, _: tuple[object, ...], helps: tuple[str, ...], needed: tuple[str, ...], path: str
) -> Found:
    """Run a program for its version and help. Results are cached by its fingerprint, the second
    argument; LookupError, for a program that does not answer, is not."""
    around = {"PATH": path}
    with ThreadPoolExecutor(2) as both:
        version = both.submit(copy_context().run, version_of, program, around)
        text = both.submit(copy_context().run, said_by, program, helps, around) if helps else None
    if (number := version.result()) is None:
        raise LookupError(program)
    return Found(number, _lacking((text.result() if text else None) or "", needed))


def _fingerprint(program: str) -> tuple[str, int, int]:
    """Return a fingerprint of a program's file, which differs after it was replaced."""
    real = os.path.realpath(program)
    status = os.stat(real)
    return real, status.st_mtime_ns, status.st_size


def _lacking(text: str, needed: Sequence[str]) -> tuple[str, ...]:
    """Return the options that a help text lacks; none if it has none of them, as it is no help."""
    known = set(_OPTION.findall(text))
    lacking = tuple(option for option in needed if option not in known)
    return lacking if len(lacking) < len(needed) else ()


def credential(
    environment: Environment, variables: Sequence[str], files: Mapping[str, str]
) -> str | None:
    """Return the name of the first configured source of a credential.

    `files` maps a variable that holds a folder to the file expected in it.
    """
    for name in variables:
        if environment.get(name):
            return name
    for folder, file in files.items():
        if environment.get(folder) and (Path(environment[folder]) / file).is_file():
            return f"${folder}/{file}"
    return None


def login_file(environment: Environment, files: Mapping[str, str]) -> Path | None:
    """Return the file with a program's login, if it exists; the file is not read."""
    for folder, file in files.items():
        place = Path(environment.get(folder) or "/nowhere") / file
        if place.is_file():
            return place
    return None


def path_with(program: str, path: str) -> str:
    """Return a PATH with the folder of a program, which may have its interpreter, such as node."""
    folder = str(Path(program).parent)
    return path if folder in path.split(":") else f"{folder}:{path}"


@dataclass(frozen=True)
class CommandLineAgent:
    """A program that talks to a model: its command, and the sources of its key."""

    name: str
    command: str
    variables: Sequence[str]
    #: A variable that holds a folder, and the file of a login expected in it.
    files: Mapping[str, str]
    install: str
    log_in: str
    #: The oldest version that can be used, and the command that updates an older one.
    oldest: str
    update: str
    #: Arguments that print its help, and the options that the help must list.
    helps: Sequence[str] = ()
    options: Sequence[str] = ()

    def check(self, settings: Any, environment: Environment, lent: Lent) -> Check:
        """Check that it is installed, has the required options, and has a key."""
        program = find_program(settings.command, environment)
        if program is None:
            return Check(
                False,
                f"The program {settings.command} is not installed, or is not on the PATH.",
                self.install,
                {"program": None},
            )
        answer = self._answer(program, environment.get("PATH", os.defpath))
        version = answer.version if answer else None
        around = {**environment, **settings.env}
        source = settings.secret_ref or credential(around, self.variables, self.files)
        facts = {"program": program, "version": version, "credential": source}
        if answer is None and settings.sandbox == "full":
            sentence = f"{self.command} is there, and is not tried outside a sandbox."
            return Check(True, sentence, "", facts)
        if answer is None:
            sentence = f"{self.command} is there but does not answer to --version."
            return Check(False, sentence, "Run it by hand to see what is wrong.", facts)
        if is_older(answer.version, self.oldest):
            facts["oldest"] = self.oldest
            return Check(False, self._too_old(answer.version), self._newer(), facts)
        if answer.lacking:
            sentence = f"{self.name} {version} does not know {', '.join(answer.lacking)}."
            step = f"Install a newer {self.name} on this worker, or set `command` to one."
            return Check(False, sentence, step, facts)
        if lent.problem:
            return Check(False, lent.problem, lent.step, facts)
        if source is None:
            sentence = f"{self.name} {version} is there, but no key for it is configured."
            return Check(False, sentence, self.log_in, facts)
        return Check(True, f"{self.name} {version} can be used; its key: {source}.", "", facts)

    def _too_old(self, version: str) -> str:
        return f"{self.name} {version} is too old; {self.oldest} or newer is needed."

    def _newer(self) -> str:
        return f"Run `{self.update}` on this worker, or set `command` to a newer {self.name}."

    async def refuse_too_old(self, program: str) -> None:
        """Refuse a run whose program is too old. It is asked in a sandbox, or not at all; one that
        does not answer is believed."""
        if _hold.get() is None:
            return
        path = os.environ.get("PATH", os.defpath)
        answer = await threads.CHECKS.run(copy_context().run, self._answer, program, path)
        if answer is not None and is_older(answer.version, self.oldest):
            sentence = f"{self._too_old(answer.version)} `{self.update}` updates it."
            raise Unsupported(sentence, self._newer())

    def _answer(self, program: str, path: str) -> Found | None:
        arguments = (tuple(self.helps), tuple(self.options), path)
        with contextlib.suppress(LookupError, OSError):
            return _said_about_itself(program, _fingerprint(program), *arguments)
        return None

    async def run(
        self,
        context: RunContext,
        attempt: Callable[[RunContext, str, Path | None, S | None], Awaitable[RunResult]],
        session: S | None,
        kept: Mapping[str, Sequence[str]],
        *,
        login: bool = True,
    ) -> RunResult:
        """Execute a run: resume the session, or begin a new one if the program has lost it. `kept`
        has the folders of the home to empty, each with the files that a resumed session needs;
        without `login`, the worker's login is not lent."""
        settings = context.config
        program = find_program(settings.command, os.environ)
        if program is None:
            raise Unsupported(
                f"The program {settings.command} is not installed here.",
                f"Install {self.name} on this worker.",
            )
        await self.refuse_too_old(program)
        # Earlier runs may have left instructions, settings, hooks and skills there.
        for folder, files in kept.items():
            await context.forget(folder, files if session else ())
        own = self._login(settings, context.credentials) if login else None
        shown = lending.shown(
            context.beside, context.workspace / ".tmp", full=settings.sandbox == "full"
        )
        with shown as context.beside:
            result = await attempt(context, program, own, session)
            if session is not None and result.reason == "session_lost":
                context.log("The conversation is gone; a new one is begun.")
                result = await attempt(context, program, own, None)
            return result

    def _login(self, settings: Any, lent: Mapping[str, str]) -> Path | None:
        """Return the worker's login file, for a run without a key."""
        if settings.secret_ref or lent or set(self.variables).intersection(settings.env):
            return None
        return login_file(os.environ, self.files)
