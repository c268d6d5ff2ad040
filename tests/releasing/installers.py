"""Installations of a wheel in empty environments: with pip, `uv tool` and pipx.

All three take the dependencies from one folder with the files that the lock names and no index, so
what is installed is what was tested.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.releasing.steps import run

_LOCAL = Path(sys.executable).parent


@dataclass(frozen=True)
class Place:
    """An empty folder for one installation, and the files that it is installed from."""

    folder: Path
    files: Path

    def environment(self) -> dict[str, str]:
        """Nothing of this environment but the programs; no index, and folders of its own."""
        return {
            "PATH": f"{_LOCAL}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.files),
            "UV_OFFLINE": "1",
            "UV_NO_INDEX": "1",
            "UV_FIND_LINKS": str(self.files),
            "UV_TOOL_DIR": str(self.folder / "tools"),
            "UV_TOOL_BIN_DIR": str(self.folder / "bin"),
            "PIPX_HOME": str(self.folder / "pipx"),
            "PIPX_BIN_DIR": str(self.folder / "bin"),
        }

    def run(self, *words: str | Path) -> str:
        return run(*words, environment=self.environment())

    def follow(self, advice: str) -> None:
        """Run the command that a sentence of Remit names between backquotes."""
        self.run(*shlex.split(advice.split("`")[1]))


def gather(lock: Path, folder: Path) -> Path:
    """Download the files that the lock names, each by its hash."""
    folder.mkdir(parents=True, exist_ok=True)
    options = ("--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:")
    run(_LOCAL / "python", "-m", "pip", "download", *options, "--dest", folder, "-r", lock)
    return folder


def with_pip(wheel: Path, place: Place) -> Path:
    python = place.folder / "venv/bin/python"
    place.run(sys.executable, "-m", "venv", place.folder / "venv")
    place.run(python, "-m", "pip", "install", "--quiet", wheel)
    place.run(python, "-m", "pip", "check")
    return python.with_name("remit")


def with_uv(wheel: Path, place: Place) -> Path:
    place.run("uv", "tool", "install", "--quiet", "--python", sys.executable, wheel)
    return place.folder / "bin/remit"


def with_pipx(wheel: Path, place: Place) -> Path:
    # With pip as its backend, pipx would fetch the newest pip for all its environments.
    options = ("--quiet", "--backend", "uv", "--python", sys.executable)
    place.run("pipx", "install", *options, wheel)
    return place.folder / "bin/remit"


INSTALLERS: dict[str, Callable[[Path, Place], Path]] = {
    "pip": with_pip,
    "uv tool": with_uv,
    "pipx": with_pipx,
}
