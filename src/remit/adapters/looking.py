"""How adapters look around: for a program, its version, and whether a credential is configured.

Only the names of variables and files are looked for, and whether they are there. No value of a
credential is read, and nothing else is searched.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remit.adapters.contract import Check, Environment

_PATIENCE_SECONDS = 15
_VERSION = re.compile(r"\d{1,6}(?:\.\d{1,6}){1,3}[A-Za-z0-9.+-]{0,20}")


def find_program(command: str, environment: Environment) -> str | None:
    """Where a program is, given the environment's PATH."""
    return shutil.which(command, path=environment.get("PATH", os.defpath))


def version_of(program: str, environment: Environment) -> str | None:
    """What the program answers to --version; None when it does not answer like that.

    It is started with an empty folder as its home and without the environment's secrets.
    """
    with tempfile.TemporaryDirectory(prefix="remit-check-") as home:
        clean = {
            "PATH": environment.get("PATH", os.defpath),
            "HOME": home,
            "TMPDIR": home,
            "LANG": "C.UTF-8",
            "DISABLE_AUTOUPDATER": "1",
        }
        try:
            answer = subprocess.run(
                [program, "--version"],
                env=clean,
                cwd=home,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=_PATIENCE_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
    found = _VERSION.search(answer.stdout[:2000].decode("utf-8", "replace"))
    return found[0] if found and answer.returncode == 0 else None


def credential(
    environment: Environment, variables: Sequence[str], files: Mapping[str, str]
) -> str | None:
    """The name of the first source of a credential that is configured.

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
    """Where a program keeps its login, if somebody logged in with it; the file is not read."""
    for folder, file in files.items():
        place = Path(environment.get(folder) or "/nowhere") / file
        if place.is_file():
            return place
    return None


def path_with(program: str, path: str) -> str:
    """A PATH that also finds what lies beside a program, such as the node that it needs."""
    folder = str(Path(program).parent)
    return path if folder in path.split(":") else f"{folder}:{path}"


@dataclass(frozen=True)
class CommandLineAgent:
    """A program that talks to a model: how it is called, and where its key may come from."""

    name: str
    command: str
    variables: Sequence[str]
    #: A variable that holds a folder, and the file of a login expected in it.
    files: Mapping[str, str]
    install: str
    log_in: str

    def check(self, settings: Any, environment: Environment) -> Check:
        """Whether it is there, answers, and has a key."""
        program = find_program(settings.command, environment)
        if program is None:
            return Check(
                False,
                f"The program {self.command} is not installed, or is not on the PATH.",
                self.install,
                {"program": None},
            )
        version = version_of(program, environment)
        around = {**environment, **settings.env}
        source = settings.secret_ref or credential(around, self.variables, self.files)
        facts = {"program": program, "version": version, "credential": source}
        if version is None:
            sentence = f"{self.command} is there but does not answer to --version."
            return Check(False, sentence, "Run it by hand to see what is wrong.", facts)
        if source is None:
            sentence = f"{self.name} {version} is there, but no key for it is configured."
            return Check(False, sentence, self.log_in, facts)
        return Check(True, f"{self.name} {version} can be used; its key: {source}.", "", facts)

    def found(self, settings: Any) -> str | None:
        return find_program(settings.command, os.environ)

    def login(self, settings: Any, lent: Mapping[str, str]) -> Path | None:
        """The worker's own login, for a run that has no key."""
        if settings.secret_ref or lent or set(self.variables).intersection(settings.env):
            return None
        return login_file(os.environ, self.files)
