"""Conditions of a run: its lasting folder, tool chains, programs, tests, network.

    REMIT_HOME/projects/<agent>/<folder>     a lasting clone that an agent works in

Folders that the board named are checked again before each run, because a path may have come to mean
something else. No symlinks are shown, no folders of Remit, and no folders that hold keys; single
files with keys in a folder to work in are hidden.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from remit import threads
from remit.errors import BadInput, Conflict, RemitError
from remit.model.connections.folder import (
    LONGEST_PATH,
    Folder,
    FolderKind,
    folder_path,
    refuse_keys,
)
from remit.model.messaging.turn import quoted
from remit.model.organisation.decision import deny
from remit.runtime.repos.cache import Repos
from remit.runtime.runs import folder_instructions, key_files
from remit.runtime.runs.lifecycle import size_of
from remit.runtime.runs.workspace import destroy_workspace, open_inside
from remit.runtime.sandbox.mounts import View
from remit.services.command import Gate
from remit.services.connections import folders
from remit.services.connections.folders import Shown
from remit.services.identity import as_system

log = logging.getLogger(__name__)

#: The PATH of every program of a run, unless the board adds something before it.
SEARCH = "/usr/local/bin:/usr/bin:/bin"
#: Programs that indicate a language of this machine, by the language.
_KNOWN = {
    "Python": ("python3", "python"),
    "Node.js": ("node",),
    "Go": ("go",),
    "Rust": ("cargo",),
    "Java": ("java",),
    "C": ("cc", "gcc", "clang"),
    "Ruby": ("ruby",),
    "PHP": ("php",),
    "Perl": ("perl",),
    ".NET": ("dotnet",),
}
_TOOLS = ("git", "make", "npm", "pnpm", "yarn", "pip", "uv", "mvn", "gradle", "docker", "jq", "rg")
#: Names of files at the top of a tool chain that hold credentials, and are hidden.
_CREDENTIALS = frozenset(
    {
        *("credentials", "credentials.toml", "credentials.json", "auth.json", "settings.xml"),
        *("settings-security.xml", "gradle.properties", ".npmrc", ".yarnrc.yml", ".pypirc"),
        *(".env", "hosts.yml", "NuGet.Config", "pip.conf"),
    }
)
_LARGEST_READ = 256 * 1024
#: Hidden files that an agent is told of by name.
_MOST_NAMED = 20
NETWORK = "as far as this machine reaches"


@dataclass(frozen=True)
class Conditions:
    """The folders and programs that a run has beside its workspace and home."""

    work: Path | None = None
    #: The folder's title, for the agent.
    title: str = ""
    #: Files and folders with keys in the folder, which the run does not see.
    covered: Sequence[Path] = ()
    read: Mapping[Path, Sequence[Path]] = field(default_factory=dict)
    #: Folders before those of the system in PATH.
    search: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    #: Whether the run is told the instructions in its folder.
    instructed: bool = False

    def instructions(self) -> str:
        """Return the instructions of the folder to work in, for the head of a turn."""
        if self.work is None or not self.instructed:
            return ""
        return folder_instructions.read(self.work, hidden=self.covered)

    @property
    def view(self) -> View:
        written = () if self.work is None else (self.work,)
        return View(written=written, read=self.read, covered=self.covered)

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return a program's environment with the board's variables and search path added."""
        path = ":".join([*self.search, env.get("PATH", SEARCH)])
        return {**self.variables, **env, "PATH": path}

    def told(self) -> str:
        """Return a few lines for the agent; names chosen by others are quoted."""
        lines = []
        if self.work is not None:
            lines.append(f"your-folder: {_path(self.work)} ({self.title}; kept between runs)")
            if self.covered:
                lines.append(f"hidden-there: {self._covered()} (keys; empty to you)")
            if tests := tests_in(self.work):
                lines.append(f"tests-there: {', '.join(tests)}")
        if self.read:
            lines.append(f"read-only: {', '.join(_path(folder) for folder in self.read)}")
        lines.append(f"programs: {', '.join(programs(self.search)) or 'none that are known'}")
        lines.append(f"network: {NETWORK}")
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines) + "\n"

    def _covered(self) -> str:
        assert self.work is not None
        names = [quoted(str(path.relative_to(self.work)), LONGEST_PATH) for path in self.covered]
        more = [f"and {len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else []
        return ", ".join([*names[:_MOST_NAMED], *more])


def _path(path: Path) -> str:
    return quoted(str(path), LONGEST_PATH)


def programs(search: Sequence[str] = ()) -> list[str]:
    """Return the languages and tools that a run finds in its search path."""
    path = ":".join([*search, SEARCH])

    def found(name: str) -> bool:
        return shutil.which(name, path=path) is not None

    languages = [
        f"{language} ({next(filter(found, names))})"
        for language, names in _KNOWN.items()
        if any(map(found, names))
    ]
    return [*languages, *filter(found, _TOOLS)]


def tests_in(folder: Path) -> list[str]:
    """Guess the test commands of a project from untrusted files at the top of its folder."""
    commands = []
    if any(line.startswith("test:") for line in _read(folder, "Makefile").splitlines()):
        commands.append("make test")
    try:
        scripts = json.loads(_read(folder, "package.json") or "{}").get("scripts", {})
        commands += ["npm test"] if "test" in scripts else []
    except (ValueError, AttributeError, TypeError, RecursionError):
        pass
    usual = {"pyproject.toml": "pytest", "Cargo.toml": "cargo test", "go.mod": "go test ./..."}
    usual |= {"pom.xml": "mvn test", "build.gradle": "gradle test"}
    return commands + [command for name, command in usual.items() if (folder / name).is_file()]


async def prepare(app_home: Path, repos: Repos, shown: Shown) -> Conditions:
    """Check and prepare the folders that the board named; refuses the run if one is unusable."""
    read: dict[Path, Sequence[Path]] = {}
    search: list[str] = []
    variables: dict[str, str] = {}
    for tools in shown.tools:
        place = await threads.FILES.run(looked_at, tools.path, app_home, tools.kind)
        read[place] = await threads.FILES.run(_covered, place)
        search += tools.search
        variables |= json.loads(tools.variables)
    folder, repo = shown.work, shown.repo
    notes = [shown.note] if shown.note else []
    if folder is None:
        return Conditions(None, "", (), read, search, variables, notes)
    if repo is None:
        work, title = (
            await threads.FILES.run(looked_at, folder.path, app_home, folder.kind),
            "a folder of the board",
        )
    else:
        work, title = place_of(app_home, folder), f"your own copy of repo:{repo.name}"
        note = await repos.lasting(repo, work, shown.who)
        notes += [note] if note else []
    most = folder.most_megabytes or 0
    if await threads.FILES.run(size_of, work, most << 20) > most << 20:
        raise Conflict(
            f"The folder of this agent holds more than {most} MB.",
            "Let its contents be removed, or remove the binding and bind it with more megabytes.",
            code="folder_full",
        )
    covered = await threads.FILES.run(key_files.found, work) if folder.hides else []
    instructed = folder.instructions and (repo is None or repo.instructions)
    return Conditions(work, title, covered, read, search, variables, notes, instructed)


def place_of(app_home: Path, folder: Folder) -> Path:
    """Return the folder in which an agent works: a path of the board, or Remit's lasting clone."""
    if folder.path:
        return Path(folder.path)
    return app_home / "projects" / str(folder.agent_id) / folder.id


def open_in_run(app_home: Path, workspace: str, lasting: Folder | None, path: str) -> BinaryIO:
    """Open a file that a run names, relative to its lasting folder or else to its workspace; not
    one whose keys are hidden from it."""
    if lasting is None:
        return open_inside(workspace, path)
    place = place_of(app_home, lasting)
    if lasting.hides and key_files.hides(place, Path(os.path.normpath(place / path))):
        deny("holds_keys", f"{path[:200]!r} is hidden: its name says that it holds keys.").enforce(
            "Give what is no key in a file of another name."
        )
    try:
        return open_inside(place, path)
    except RemitError as error:
        if error.reason not in ("not_found", "outside_workspace"):
            raise
        return open_inside(workspace, path)


def looked_at(named: str | None, app_home: Path, kind: FolderKind) -> Path:
    """Return a folder of the board after checking it: it exists, is reached without links, holds
    no keys and nothing of Remit, and only trusted users can replace it."""
    path = Path(folder_path(named))
    try:
        real = path.resolve(strict=True)
        names = os.listdir(path)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise BadInput(
            f"The folder {path} cannot be shown to a run ({reason}).",
            "Make it on this machine, or remove it from the company's folders.",
            code="no_folder",
        ) from error
    if real != path:
        raise BadInput(
            f"{path} leads to {real}.", "Name the folder itself, without links.", code="folder_link"
        )
    refuse_keys(str(path), names, kind)
    ours, mine = app_home.resolve(), Path.home().resolve()
    if any(home == path or path in home.parents for home in (ours, mine)) or ours in path.parents:
        raise BadInput(
            f"{path} contains files of Remit, or a whole home folder.",
            "Name the one folder that is needed.",
            code="folder_of_remit",
        )
    for folder in (path, *path.parents):
        mode = folder.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise BadInput(
                f"Anybody can put something else in place of {path}: {folder} is open to all.",
                f"Run `chmod o-w {folder}`.",
                code="folder_open",
            )
    return path


def _covered(folder: Path) -> list[Path]:
    """Return the files of a tool chain that are hidden."""
    with os.scandir(folder) as entries:
        return sorted(Path(entry.path) for entry in entries if entry.name in _CREDENTIALS)


def _read(folder: Path, name: str) -> str:
    try:
        with open_inside(folder, name) as file:
            return file.read(_LARGEST_READ).decode(errors="replace")
    except RemitError:
        return ""


async def tidy(gate: Gate, app_home: Path) -> None:
    """Remove lasting clones whose folder was removed and is not in use any more."""
    root = app_home / "projects"
    there = await threads.FILES.run(lambda: list(root.glob("*/*")))
    names = [clone.name for clone in there]
    kept = await gate(as_system(), folders.kept, folders=names)
    for clone in there:
        if clone.name not in kept:
            try:
                await threads.FILES.run(destroy_workspace, clone)
            except RemitError as error:
                log.warning("%s is left: %s", clone, error)
