"""Checks: commands that Remit runs on changes proposed to a repository, and their results."""

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
#: The files that `make` reads first: a change of them could change the check.
DEFAULT_PROTECTED = ("GNUmakefile", "Makefile", "makefile")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
#: Escape sequences of terminals, and other invisible characters.
_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]{0,1000}(?:\x07|\x1b\\)|.)")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


#: REMIT: a command that Remit ran. FORGE: a check that a forge reports.
CheckSource = StrEnum("CheckSource", "REMIT FORGE")


CheckResult = StrEnum("CheckResult", "PASSED FAILED")


@dataclass(frozen=True, slots=True)
class RepoCheck:
    """A command that the board has run on each change proposed to a repository."""

    name: str
    command: str
    seconds: int = DEFAULT_SECONDS
    network: bool = False
    #: Whether a change that fails it cannot be merged.
    required: bool = False
    #: Patterns of files that are taken from the base, whatever the change does to them.
    protected: tuple[str, ...] = DEFAULT_PROTECTED

    def protects(self, path: str, base: frozenset[str]) -> bool:
        """Return whether a file is taken from the base, because its author could change the check
        with it: by a pattern, or as a file of the base that the command names."""
        if any(path_pattern.matches(path, pattern) for pattern in self.protected):
            return True
        return path in base and path in named_in(self.command)

    def tries_the_same(self, other: "RepoCheck") -> bool:
        """Return whether a result of one holds for the other; their time limits may differ."""
        return (self.command, self.network, self.protected) == (
            *(other.command, other.network, other.protected),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeCheck(Queued):
    """A check of one change: queued, run, with a result."""

    repo_id: RepoId
    change_id: ChangeId
    name: str
    #: The commits that are checked.
    head_commit: str
    base_commit: str
    #: JSON of the `RepoCheck` at the time of the proposal.
    details: str
    result: CheckResult | None = None
    #: The end of its output.
    log: str | None = None
    evidence_id: FileId | None = None

    @property
    def state(self) -> str:
        """Return the state as one word for people."""
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
    return json.dumps([asdict(check) for check in checks], ensure_ascii=False)


def read(text: str | None) -> tuple[RepoCheck, ...]:
    return tuple(read_one(entry) for entry in json.loads(text or "[]"))


def read_one(entry: Mapping[str, Any]) -> RepoCheck:
    return RepoCheck(**{**entry, "protected": tuple(entry["protected"])})


def named_in(command: str) -> frozenset[str]:
    """Words of a command that may be files of the repository."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    return frozenset(word.removeprefix("./") for word in words)


def printed(text: str) -> str:
    """Output of a program without control characters."""
    plain = _CONTROL.sub("?", _ESCAPE.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))
    return plain.encode(errors="replace").decode()
