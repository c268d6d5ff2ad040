"""Installations of a wheel in empty environments: with pip, `uv tool` and pipx.

All three take the dependencies from one folder with the files that the lock names and no index, so
what is installed is what was tested.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from tests.releasing.steps import run

_LOCAL = Path(sys.executable).parent


def gather(lock: Path, folder: Path) -> Path:
    """Download the files that the lock names, each by its hash."""
    folder.mkdir(parents=True, exist_ok=True)
    options = ("--quiet", "--require-hashes", "--only-binary", ":all:", "--dest", folder)
    run(_LOCAL / "python", "-m", "pip", "download", *options, "-r", lock)
    return folder


def with_pip(wheel: Path, files: Path, folder: Path) -> Path:
    place = folder / "pip"
    run(sys.executable, "-m", "venv", place)
    local = ("--quiet", "--no-index", "--find-links", files)
    run(place / "bin/python", "-m", "pip", "install", *local, wheel)
    run(place / "bin/python", "-m", "pip", "check")
    return place / "bin/remit"


def with_uv(wheel: Path, files: Path, folder: Path) -> Path:
    place = folder / "uv"
    local = ("--quiet", "--offline", "--no-index", "--find-links", files)
    folders = {"UV_TOOL_DIR": str(place / "tools"), "UV_TOOL_BIN_DIR": str(place / "bin")}
    run(
        *(_LOCAL / "uv", "tool", "install", *local, "--python", sys.executable, wheel),
        environment=_bare(folder) | folders,
    )
    return place / "bin/remit"


def with_pipx(wheel: Path, files: Path, folder: Path) -> Path:
    place = folder / "pipx"
    folders = {"PIPX_HOME": str(place), "PIPX_BIN_DIR": str(place / "bin")}
    # With pip, pipx would fetch the newest pip for all its environments.
    local = {"UV_OFFLINE": "1", "UV_NO_INDEX": "1", "UV_FIND_LINKS": str(files)}
    run(
        *(_LOCAL / "pipx", "install", "--quiet", "--backend", "uv"),
        *("--python", sys.executable, wheel),
        environment=_bare(folder) | folders | local,
    )
    return place / "bin/remit"


INSTALLERS: dict[str, Callable[[Path, Path, Path], Path]] = {
    "pip": with_pip,
    "uv tool": with_uv,
    "pipx": with_pipx,
}


def _bare(folder: Path) -> dict[str, str]:
    """An environment with nothing of this one but the programs."""
    return {"PATH": f"{_LOCAL}:{os.environ['PATH']}", "HOME": str(folder), "LANG": "C.UTF-8"}
