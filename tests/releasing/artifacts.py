"""Source distribution and wheel: built from a clone, compared with its tree, the same each time."""

from __future__ import annotations

import email
import hashlib
import os
import re
import shutil
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from email.message import Message
from pathlib import Path

from trove_classifiers import classifiers as known_classifiers

from remit import version
from tests.releasing.steps import Failed, run

#: A final version, as a tag names it.
FINAL = re.compile(r"\d+\.\d+\.\d+")
#: Folders and files without which nobody can read, build or test a source distribution.
_NEEDED = ("docs/", "examples/", "scripts/", "tests/", "CHANGELOG.md", "LICENSE", "Makefile")


@dataclass(frozen=True)
class Built:
    """A source distribution and a wheel, and the tree that they were built from."""

    source: Path
    wheel: Path
    tree: Path

    @property
    def version(self) -> str:
        return str(metadata(self.wheel)["Version"])


def refuse_unclean(root: Path) -> None:
    """Refuse a tree whose version says nothing: changed, unknown, or with a part of the history."""
    named = version.of_tree(root)
    if named == version.UNKNOWN:
        raise Failed("The version of this tree is unknown. Release from a clone, with git.")
    if ".dirty" in named:
        raise Failed(f"The tree differs from its commit ({named}). Commit or remove the changes.")
    if run("git", "-C", root, "rev-parse", "--is-shallow-repository").strip() == "true":
        raise Failed("The clone is shallow, so commits cannot be counted. Fetch all of it.")


def clone(root: Path, folder: Path) -> Path:
    """Clone the commit that is checked out, with nothing else that lies in the folder."""
    run("git", "clone", "--quiet", "--no-hardlinks", root, folder)
    commit = run("git", "-C", root, "rev-parse", "HEAD").strip()
    run("git", "-C", folder, "checkout", "--quiet", "--detach", commit)
    return folder


def clone_with_changes(root: Path, folder: Path) -> Path:
    """Clone, and make the files those of the tree: what a commit of all of it would build."""
    clone(root, folder)
    wanted = tracked(root)
    for name in tracked(folder) - wanted:
        (folder / name).unlink()
    for name in wanted:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, folder / name)
    return folder


def build(tree: Path, target: Path) -> Built:
    """Build as a release does: the source distribution first, and the wheel from that.

    The backend is installed, from the lock: nothing is fetched.
    """
    moment = run("git", "-C", tree, "log", "-1", "--format=%ct").strip()
    uv = Path(sys.executable).with_name("uv")
    options = ("--offline", "--no-build-isolation", "--quiet", "--out-dir", target)
    run(uv, "build", *options, tree, environment={**os.environ, "SOURCE_DATE_EPOCH": moment})
    (source,) = target.glob("*.tar.gz")
    (wheel,) = target.glob("*.whl")
    return Built(source, wheel, tree)


def tracked(tree: Path) -> frozenset[str]:
    listed = run("git", "-C", tree, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return frozenset(name for name in listed.split("\0") if name and (tree / name).exists())


def differences(built: Built) -> list[str]:
    """Return what the distributions lack of the tree, have besides it, or have differently."""
    names = tracked(built.tree)
    found = []
    with tarfile.open(built.source) as archive:
        there = {
            member.name.partition("/")[2]: member
            for member in archive.getmembers()
            if not member.isdir()
        }
        found += _compared("sdist", names, there.keys() - {"PKG-INFO"})
        for name in sorted(names & there.keys()):
            stream = archive.extractfile(there[name])
            if stream is not None and stream.read() != (built.tree / name).read_bytes():
                found.append(f"sdist: {name} differs")
    found += [
        f"sdist: nothing of {needed}"
        for needed in _NEEDED
        if not any(name.startswith(needed) for name in there)
    ]
    package = {name.removeprefix("src/") for name in names if name.startswith("src/remit/")}
    with zipfile.ZipFile(built.wheel) as archive_of_wheel:
        inside = {name for name in archive_of_wheel.namelist() if ".dist-info/" not in name}
        found += _compared("wheel", package, inside)
        found += [
            f"wheel: {name} differs"
            for name in sorted(package & inside)
            if archive_of_wheel.read(name) != (built.tree / "src" / name).read_bytes()
        ]
    return found


def _compared(kind: str, wanted: frozenset[str] | set[str], there: set[str]) -> list[str]:
    lacking = [f"{kind}: {name} is missing" for name in sorted(wanted - there)]
    return lacking + [f"{kind}: {name} is not in the tree" for name in sorted(there - wanted)]


def hashes(built: Built) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (built.source, built.wheel)
    }


# ── metadata ────────────────────────────────────────────────────────────────────────────────────


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [one for one in archive.namelist() if one.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(archive.read(name))


def problems_of_metadata(wheel: Path) -> list[str]:
    """Return what is wrong with what a package index would show."""
    described = metadata(wheel)
    problems = [
        f"{field} is missing"
        for field in ("Summary", "Keywords", "Classifier", "Requires-Python", "License-Expression")
        if not described[field]
    ]
    problems += [
        f"no such classifier: {name}"
        for name in described.get_all("Classifier", [])
        if name not in known_classifiers
    ]
    if not described["Author"] and not described["Author-email"]:
        problems.append("nobody is named as the author")
    if not str(described.get_payload()).strip():
        problems.append("the description is empty")
    number = str(described["Version"])
    if number == version.UNKNOWN or ".dirty" in number:
        problems.append(f"{number} is no version to release")
    # The address of the project is known to whoever publishes it, so only a final version needs it.
    addresses = described.get_all("Project-URL", [])
    if FINAL.fullmatch(number) and not addresses:
        problems.append("there is no Project-URL: add [project.urls] to pyproject.toml")
    if any("https://" not in address for address in addresses):
        problems.append("an address of the project is not https")
    return problems
