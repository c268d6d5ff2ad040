"""Version of this program: from version control in a checkout, else from how it was built.

Between releases it is `0.2.0.dev1234+g606c178b`: the release that comes next, the number of commits
since the last one, and the commit. A tree that differs from its commit adds `.dirty` and a digest
of the difference, so that no two builds of different sources say the same.

The build backend runs this file by its path, so it imports nothing but the standard library. It
starts git, and only when somebody asks for the version: most commands never do.
"""

from __future__ import annotations

import hashlib
import os
import re
from functools import cache
from pathlib import Path
from typing import Final

#: The release that comes next, as long as no tag is as new.
NEXT: Final = "0.2.0"
#: Neither version control nor a build says which version it is.
UNKNOWN: Final = "0+unknown"
_DESCRIBED = re.compile(r"v(\d+)\.(\d+)\.(\d+)-(\d+)-g([0-9a-f]+)")
#: Tags of releases; those of trials, such as `v0.2.0rc1`, count as commits.
_RELEASES: Final = ("--match=v*.*.*", "--exclude=v*[!0-9.]*")
_GIT_SECONDS: Final = 10


@cache
def current() -> str:
    """Return the version of the program that runs, as it was when this was first asked."""
    root = source_tree()
    return _of_installation() if root is None else of_tree(root)


def source_tree() -> Path | None:
    """Return the folder of the sources if the program runs from them; None for an installation."""
    root = Path(__file__).resolve().parents[2]
    is_tree = (root / "pyproject.toml").is_file() and (root / "src/remit/version.py").is_file()
    return root if is_tree else None


def of_tree(root: Path) -> str:
    """Return the version of a source tree: a checkout, or an unpacked source distribution."""
    if (root / ".git").exists():
        return _of_checkout(root)
    try:
        described = (root / "PKG-INFO").read_text(encoding="utf-8")
    except OSError:
        return UNKNOWN
    line = re.search(r"^Version: (\S{1,100})$", described, re.MULTILINE)
    return line[1] if line else UNKNOWN


def _of_installation() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("remit")
    except PackageNotFoundError:
        return UNKNOWN


def _of_checkout(root: Path) -> str:
    try:
        # With `--always` a tree without tags is described by its commit alone.
        options = ("--tags", "--always", "--long", "--abbrev=8", *_RELEASES)
        described = _git(root, "describe", *options).decode().strip()
        changed = _difference(root)
        tag = _DESCRIBED.fullmatch(described)
        if tag is None:
            release, commit = NEXT, described
            commits = int(_git(root, "rev-list", "--count", "HEAD"))
        else:
            release, commits, commit = _next_after(tag), int(tag[4]), tag[5]
            if not commits and not changed:
                return ".".join(tag.groups()[:3])
    except (OSError, ValueError):
        return UNKNOWN
    mark = f".dirty.d{changed}" if changed else ""
    return f"{release}.dev{commits}+g{commit}{mark}"


def _next_after(tag: re.Match[str]) -> str:
    major, minor, patch = (int(part) for part in tag.groups()[:3])
    if (major, minor, patch) < tuple(int(part) for part in NEXT.split(".")):
        return NEXT
    return f"{major}.{minor + 1}.0"


def _difference(root: Path) -> str:
    """Return a digest of what the tree has besides its commit; nothing for a clean one."""
    listed = _git(root, "status", "--porcelain", "-z", "--untracked-files=all")
    if not listed:
        return ""
    digest = hashlib.sha256(listed)
    digest.update(_git(root, "diff", "HEAD", "--binary", "--no-ext-diff", "--no-textconv"))
    for name in _git(root, "ls-files", "--others", "--exclude-standard", "-z").split(b"\0"):
        file = root / os.fsdecode(name)
        if file.is_file():
            digest.update(file.read_bytes())
    return digest.hexdigest()[:8]


def _git(root: Path, *arguments: str) -> bytes:
    """Ask git about the tree; raises `OSError` if it cannot answer."""
    import subprocess

    # A git that started this program, as for a hook, names its own repository in variables.
    outside = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        return subprocess.run(
            ["git", "--no-optional-locks", "-C", root, *arguments],
            env={**outside, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=_GIT_SECONDS,
        ).stdout
    except subprocess.SubprocessError as error:
        raise OSError(str(error)) from error
