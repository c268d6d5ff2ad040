"""Contents of a mirror: references, the size of a checkout, and clones for runs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from remit.errors import BadInput, Conflict, NotFound, TooLarge
from remit.model.connections.commit_identity import CommitIdentity
from remit.model.connections.repo import is_commit
from remit.runtime.repos import git
from remit.runtime.repos.mirrors import Mirror

#: A few kilobytes of objects can describe more files than a disk has room for.
MOST_FILES = 500_000
MOST_BYTES = 8 << 30
MOST_NAMED = 50
CLONE_SECONDS = 300.0
_LARGEST_ATTRIBUTES = 64 * 1024
_SUBMODULE = b"160000"


@dataclass(frozen=True)
class Found:
    """The commit to which a reference resolved."""

    name: str
    commit: str
    branch: bool
    #: Name of the local branch, for a proposal that only the mirror has.
    local: str | None = None


async def resolve(mirror: Mirror, ref: str | None) -> Found:
    """Resolve a reference: a branch of that name, or else a tag, or else a commit."""
    if ref is None:
        ref = await mirror.head()
        if ref is None:
            raise Conflict(
                f"{mirror.repo.name} has nothing on its usual branch.", "Name a branch as ref."
            )
    short = ref
    for kind in ("refs/heads/", "refs/tags/"):
        if ref.startswith(kind):
            short = ref.removeprefix(kind)
            break
    listing = await mirror.look(
        "for-each-ref",
        "--format=%(refname)%09%(objectname)%09%(*objectname)",
        "--end-of-options",
        *(f"{kind}{short}" for kind in ("refs/heads/", "refs/tags/")),
    )
    known: dict[str, str] = {}
    for line in listing.decode(errors="replace").splitlines():
        name, commit, peeled = line.split("\t")
        known[name] = peeled or commit
    for kind, branch in (("refs/heads/", True), ("refs/tags/", False)):
        whole = f"{kind}{short}"
        if whole in known and ref in (short, whole):
            return Found(short, known[whole], branch)
    if is_commit(ref):
        try:
            output = await mirror.look("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
            return Found(ref, output.decode().strip(), branch=False)
        except git.GitFailed:
            pass
    raise NotFound(
        f"{mirror.repo.name} has no branch, tag or commit {ref[:100]!r}.", "Check the ref."
    )


@dataclass
class Contents:
    """The size and special files of a checkout, counted from git's listing; limits are enforced."""

    files: int = 0
    size: int = 0
    submodules: list[str] = field(default_factory=list)
    attributes: list[str] = field(default_factory=list)
    lfs: bool = False
    _rest: bytes = b""

    def take(self, piece: bytes) -> None:
        *whole, self._rest = (self._rest + piece).split(b"\0")
        for entry in whole:
            about, _, path = entry.partition(b"\t")
            mode, _, name, length = about.split()
            self.files += 1
            if length.isdigit():
                self.size += int(length)
            if mode == _SUBMODULE and len(self.submodules) < MOST_NAMED:
                self.submodules.append(path.decode(errors="replace"))
            if (
                path.rpartition(b"/")[2] == b".gitattributes"
                and length.isdigit()
                and int(length) <= _LARGEST_ATTRIBUTES
                and len(self.attributes) < MOST_NAMED
            ):
                self.attributes.append(name.decode())
        if self.files > MOST_FILES or self.size > MOST_BYTES:
            raise TooLarge(
                f"It has more than {MOST_FILES} files or {MOST_BYTES >> 30} GiB.",
                "Ask for the part that you need in another way.",
            )

    def notes(self) -> dict[str, Any]:
        """Warnings about the clone: parts that are missing in it."""
        notes: dict[str, Any] = {}
        if self.submodules:
            notes["submodules_not_fetched"] = self.submodules
        if self.lfs:
            notes["lfs"] = "Files kept in Git LFS are pointers; their contents are not here."
        return notes


async def survey(mirror: Mirror, commit: str) -> Contents:
    contents = Contents()
    await mirror.look(
        *("ls-tree", "-r", "-z", "--long", "--full-tree", "--end-of-options", commit),
        take=contents.take,
        seconds=CLONE_SECONDS,
    )
    if contents.attributes:
        wanted = "".join(f"{name}\n" for name in contents.attributes).encode()
        contents.lfs = b"filter=lfs" in await mirror.look("cat-file", "--batch", stdin=wanted)
    return contents


async def copy(
    mirror: Mirror, revision: Found, stage: Path, who: CommitIdentity | None = None
) -> None:
    """Clone the mirror into an independent repository at `stage`, and check out the commit."""
    options = ("--quiet", "--no-checkout", "--no-hardlinks", "--template=", "--origin", "origin")
    clone = ("clone", *options, "--end-of-options", str(mirror.path), str(stage))
    await mirror.look(*clone, seconds=CLONE_SECONDS)
    await mirror.look("config", "remote.origin.url", mirror.repo.url, at=stage)
    if who is not None:
        await mirror.look("config", "user.name", who.name, at=stage)
        await mirror.look("config", "user.email", who.email, at=stage)
    checkout: tuple[str, ...]
    if revision.local is not None:
        checkout = ("-B", revision.local, revision.commit)
    elif revision.branch:
        checkout = ("-B", revision.name, "--track", f"refs/remotes/origin/{revision.name}")
    else:
        checkout = ("--detach", revision.commit)
    await mirror.look("checkout", "--quiet", *checkout, at=stage, seconds=CLONE_SECONDS)


# ── Git LFS ───────────────────────────────────────────────────────────────────────────────────────
#
# A pointer is a small file in place of a large one, whose contents lie in a store beside the
# remote. Agents cannot reach such a store, so a proposal that needs one is refused: the contents
# would be missing, or in git itself, where other clones do not expect them.

_LONGEST_POINTER = 1024
_POINTER = re.compile(
    rb"version https?://(?:git-lfs\.github\.com|hawser\.github\.com|git-media\.io)/\S+\n"
)
_STEP = "Leave it out of every commit of the branch, and ask a person to add it with Git LFS."


def is_pointer(content: bytes) -> bool:
    return len(content) <= _LONGEST_POINTER and _POINTER.match(content) is not None


def kept_outside(attributes: bytes) -> set[str]:
    """Return the paths that belong into LFS, from the output of `git check-attr -z filter`."""
    fields = attributes.split(b"\0")[:-1]
    return {
        path.decode()
        for path, value in zip(fields[::3], fields[2::3], strict=True)
        if value == b"lfs"
    }


def lfs_refusal(path: str, why: str) -> BadInput:
    return BadInput(f"{path[:200]} {why}.", _STEP, code="lfs")
