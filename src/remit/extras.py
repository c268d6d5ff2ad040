"""How an optional dependency is installed, as a command for the way in which Remit was installed.

The command names the packages of the extra and never Remit: a name on a package index that nobody
here holds could be anybody's.
"""

from __future__ import annotations

import re
import shlex
import sys
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec
from pathlib import Path

from remit import version

_EXTRA = re.compile(r"^(?P<what>[^;]{1,200}); *extra *== *['\"](?P<extra>[a-z0-9-]{1,40})['\"]$")


def how_to_install(extra: str) -> str:
    """Return a sentence with the command that adds an extra to this installation."""
    packages = _packages(extra)
    if not packages:
        return f"Install Remit again, from a build that declares the extra `{extra}`."
    return f"Install it with `{shlex.join([*_installer(Path(sys.prefix)), *packages])}`."


def _installer(environment: Path) -> list[str]:
    """Return the command that adds packages to an environment."""
    if (environment / "pipx_metadata.json").is_file():
        return ["pipx", "inject", environment.name]
    # Environments that uv made have no pip, those of `uv tool` among them.
    if (environment / "uv-receipt.toml").is_file() or find_spec("pip") is None:
        return ["uv", "pip", "install", "--python", sys.executable]
    return [sys.executable, "-m", "pip", "install"]


def _packages(extra: str) -> list[str]:
    """Return the requirements of an extra, in a checkout as they are declared there now."""
    root = version.source_tree()
    if root is not None:
        import tomllib

        declared = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
        return list(declared["project"]["optional-dependencies"].get(extra, ()))
    try:
        lines = requires("remit") or []
    except PackageNotFoundError:
        return []
    matches = [match for line in lines if (match := _EXTRA.match(line))]
    return [match["what"].strip().replace(" ", "") for match in matches if match["extra"] == extra]
