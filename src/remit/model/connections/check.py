"""Checks: commands that Remit runs on what is proposed to a repository, and what came of them."""

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from remit.ids import ChangeId, FileId, RepoId
from remit.model.leased import Queued
from remit.model.messaging.mail import DeliveryStatus
from remit.model.organisation import path_pattern
from remit.model.text import matching

LONGEST_COMMAND = 1000
LONGEST_LOG = 16_000
MOST_CHECKS = 20
LEAST_SECONDS, DEFAULT_SECONDS, MOST_SECONDS = 1, 600, 7200
#: The files that `make` begins with: a proposal that changes them could change the check.
DEFAULT_PROTECTED = ("GNUmakefile", "Makefile", "makefile")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
#: Escape sequences of terminals, and other invisible characters.
_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]{0,1000}(?:\x07|\x1b\\)|.)")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


#: REMIT: a command that Remit ran. FORGE: something that a forge says.
CheckSource = StrEnum("CheckSource", "REMIT FORGE")


CheckResult = StrEnum("CheckResult", "PASSED FAILED")


@dataclass(frozen=True, slots=True)
class RepoCheck:
    """A command that is run on each proposal to a repository, as the board has it."""

    name: str
    command: str
    seconds: int = DEFAULT_SECONDS
    network: bool = False
    #: Whether nothing is merged that it did not pass.
    required: bool = False
    #: Patterns of files that are as the base has them, whatever is proposed.
    protected: tuple[str, ...] = DEFAULT_PROTECTED

    def protects(self, path: str, base: frozenset[str]) -> bool:
        """Whether a file is not the author's to change: also what the command itself names."""
        if any(path_pattern.matches(path, one) for one in self.protected):
            return True
        return path in base and path in named_in(self.command)

    def tries_the_same(self, other: "RepoCheck") -> bool:
        """Whether what passed one passed the other; how long it may take says nothing of that."""
        return (self.command, self.network, self.protected) == (
            *(other.command, other.network, other.protected),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeCheck(Queued):
    """A check of one proposal; it waits in line, is run, and has a result."""

    repo_id: RepoId
    change_id: ChangeId
    name: str
    #: The commits that are checked.
    head_commit: str
    base_commit: str
    #: JSON of the `RepoCheck`, as it was when this was proposed.
    details: str
    result: CheckResult | None = None
    #: The end of what was printed.
    log: str | None = None
    evidence_id: FileId | None = None

    @property
    def state(self) -> str:
        """For people: one word."""
        if self.result is not None:
            return self.result.value
        words = {DeliveryStatus.QUEUED: "waiting", DeliveryStatus.LEASED: "running"}
        return words.get(self.status, "broken" if self.status is DeliveryStatus.DEAD else "left")


def repo_check(name: object, command: str, protected: Iterable[object], **more: Any) -> RepoCheck:
    rule = "check must be letters, digits, dots, dashes and underscores, at most 64."
    known = matching(name, _NAME, rule, "Call it after what it looks at, such as test.")
    patterns = path_pattern.patterns(protected, "files")
    return RepoCheck(known, command, protected=patterns, **more)


def stored(checks: Iterable[RepoCheck]) -> str:
    return json.dumps([asdict(one) for one in checks], ensure_ascii=False)


def read(text: str | None) -> tuple[RepoCheck, ...]:
    return tuple(read_one(one) for one in json.loads(text or "[]"))


def read_one(given: Mapping[str, Any]) -> RepoCheck:
    return RepoCheck(**{**given, "protected": tuple(given["protected"])})


def named_in(command: str) -> frozenset[str]:
    """Words of a command that may be files of the repository."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    return frozenset(one.removeprefix("./") for one in words)


def printed(text: str) -> str:
    """Output of a program without control characters."""
    plain = _CONTROL.sub("?", _ESCAPE.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))
    return plain.encode(errors="replace").decode()
