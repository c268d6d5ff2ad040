"""Folders of a worker's machine that are shown to runs: one to work in, and tool chains to read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from remit.clock import Micros
from remit.errors import BadInput
from remit.ids import AgentId, CompanyId, FolderId, RepoId
from remit.model.text import clean_line

LONGEST_PATH = 1000
MOST_PROGRAMS = 20
MOST_VARIABLES = 20
LEAST_MEGABYTES = 10
MOST_MEGABYTES = 1 << 20
#: Size limit of a lasting folder by default.
DEFAULT_MEGABYTES = 4096

#: System folders with all below them; a run sees what it needs of them anyway.
_OF_THE_SYSTEM = tuple(
    PurePosixPath(path) for path in ("/boot", "/dev", "/etc", "/proc", "/run", "/sys", "/var/run")
)
#: Folders in memory are allowed like any others.
_MEMORY = PurePosixPath("/dev/shm")  # noqa: S108
#: Names that mark a folder as holding credentials, in its path or directly inside.
KEYS = frozenset(
    {
        *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".gcloud"),
        *(".claude", ".codex", ".gemini", ".remit", ".netrc", ".git-credentials", ".vault-token"),
    }
)
#: Of these, names that a project has too, for settings. Nothing in a folder to work in is a setting
#: of an agent's program, and keys in it are hidden.
OF_PROJECTS = frozenset({".claude", ".codex", ".gemini"})
#: Patterns of names of files and folders with keys, which are hidden in a folder to work in.
KEY_FILES = (".credentials.json", "auth.json", "oauth_creds.json", ".env*")
_VARIABLE = re.compile(r"([A-Z_a-z][A-Z_a-z0-9]{0,99})=([^\0\n\r]{0,1000})")
#: Variables that control the sandbox of a run or its identity.
_NOT_SET = re.compile(
    r"(?i)REMIT_.*|LD_.*|DYLD_.*|GLIBC_TUNABLES|GCONV_PATH|LOCPATH|BASH_.*|ENV|IFS|PS4|SHELLOPTS"
    r"|PATH|HOME|TMPDIR|GIT_.*|.*_PROXY|SSL_CERT_.*|NODE_OPTIONS|PYTHONSTARTUP|PYTHONPATH|PERL5.*"
)


#: WORK: the one folder that an agent's runs work in, kept from run to run. TOOLS: read only, for
#: tool chains and caches.
FolderKind = StrEnum("FolderKind", "WORK TOOLS")


@dataclass(frozen=True, slots=True)
class Folder:
    id: FolderId
    company_id: CompanyId
    created_at: Micros
    kind: FolderKind
    #: None: every agent of the company.
    agent_id: AgentId | None
    #: A folder of the machine; None for a copy of a repository that Remit keeps.
    path: str | None
    repo_id: RepoId | None = None
    #: JSON: folders in it that hold programs.
    programs: str = "[]"
    #: JSON: variables that are set for programs.
    variables: str = "{}"
    most_megabytes: int | None = None
    #: Whether runs that work in it are told the instructions in it, such as AGENTS.md.
    instructions: bool = True
    removed_at: Micros | None = None

    @property
    def hides(self) -> tuple[str, ...]:
        """Return patterns of names of what runs do not see in it; a copy of a repository holds what
        its agent has anyway."""
        return KEY_FILES if self.kind is FolderKind.WORK and self.path is not None else ()

    @property
    def search(self) -> list[str]:
        """Return the folders that it adds to PATH."""
        assert self.path is not None
        return [str(PurePosixPath(self.path, folder)) for folder in json.loads(self.programs)]


def folder_path(text: object) -> str:
    """Validate an absolute path; refuse system folders, and paths whose names show credentials."""
    path = clean_line(text, "path", longest=LONGEST_PATH)
    steps = path.split("/")[1:]
    if not path.startswith("/") or any(step in ("", ".", "..") for step in steps) or ":" in path:
        raise BadInput(
            f"{path[:100]!r} is not the whole name of a folder.",
            "Give it from the root, such as /opt/go, without '..', ':' or a slash at the end.",
        )
    named = PurePosixPath(path)
    in_system = any(named == folder or folder in named.parents for folder in _OF_THE_SYSTEM)
    if (in_system and _MEMORY not in named.parents) or len(steps) < 2:
        raise BadInput(
            f"{path} is the system's own, or far too much.", "Name the one folder that is needed."
        )
    if keys := KEYS.intersection(steps):
        raise _keys(path, keys)
    return path


def refuse_keys(path: str, names: Iterable[str], kind: FolderKind) -> None:
    """Refuse a folder whose top level shows that it holds keys or credentials."""
    allowed = OF_PROJECTS if kind is FolderKind.WORK else frozenset()
    if keys := KEYS.intersection(names) - allowed:
        raise _keys(path, keys)


def holds_keys(name: str) -> bool:
    """Return whether the name of a file or folder says that it holds keys."""
    return any(fnmatchcase(name.lower(), pattern) for pattern in KEY_FILES)


def _keys(path: str, keys: Iterable[str]) -> BadInput:
    return BadInput(
        f"{path} has {min(keys)}, where keys are kept.",
        "Keep what runs are shown apart from it.",
        code="holds_keys",
    )


def overlap(folder: str, other: str) -> bool:
    """Return whether two folders are equal, or one lies in the other."""
    first, second = PurePosixPath(folder), PurePosixPath(other)
    return first == second or first in second.parents or second in first.parents


def program_folders(folders: Sequence[str]) -> str:
    for folder in folders:
        steps = folder.split("/")
        if any(step in ("", "..") for step in steps) or ":" in folder:
            raise BadInput(
                f"{folder[:60]!r} is not a folder in the folder.",
                "Give it like bin, or . for itself.",
            )
    return json.dumps(list(folders))


def set_variables(entries: Sequence[str]) -> str:
    """Validate `NAME=VALUE` entries; refuse variables that control the run's environment."""
    variables = {}
    for entry in entries:
        parts = _VARIABLE.fullmatch(entry)
        if parts is None:
            raise BadInput(f"{entry[:60]!r} is not NAME=VALUE.", "Give it like GOROOT=/opt/go.")
        if _NOT_SET.fullmatch(parts[1]):
            raise BadInput(f"{parts[1]} is set by Remit alone.", "Leave it out.")
        variables[parts[1]] = parts[2]
    return json.dumps(variables)
