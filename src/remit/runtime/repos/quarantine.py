"""Quarantine of one proposal: its objects are unpacked, checked and written anew there.

Bad objects are refused; the mirror of the repository gets only commits that Remit wrote itself: the
tree of the agent, its name as author, and the names that the company adds.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remit import threads
from remit.errors import BadInput, Conflict, TooLarge
from remit.model.connections.change import LONGEST_PATH
from remit.model.connections.commit_identity import CommitIdentity
from remit.runtime.repos import clones, diffs, git
from remit.runtime.repos.mirrors import CHECK_SECONDS, LOOK_SECONDS, Mirror
from remit.runtime.repos.signing import Signer
from remit.services.redaction import program_text

#: Limits of a proposal: bytes of one file, of one commit with its message, and of all objects; and
#: the numbers of commits, objects and files.
LARGEST_BLOB = 16 << 20
LARGEST_COMMIT = 1 << 20
LARGEST_TOTAL = 64 << 20
MOST_COMMITS = 250
MOST_OBJECTS = 50_000
MOST_PATHS = 5_000
#: Most bytes of a list of files, in which each commit may name the same files again.
_LONGEST_LIST = 16 << 20
#: Options that keep the memory of git small, for a bounded process.
_SMALL = (
    *("-c", "core.packedGitWindowSize=16m", "-c", "core.packedGitLimit=128m"),
    *("-c", "core.bigFileThreshold=1m", "-c", "pack.threads=2"),
)
#: Time limit for unpacking, because a few bytes can expand to gigabytes before the size is checked.
_UNPACK_SECONDS = 120.0
_FILE, _PROGRAM, _LINK, _SUBMODULE, _GONE = "100644", "100755", "120000", "160000", "000000"
_BAD_IN_PATH = re.compile(r"[\x00-\x1f\x7f\\]")
#: Names that some system reads as `.git`, also Windows; ignorable characters are removed before.
_DOT_GIT = re.compile(r"(?i)^(\.git|git~\d+)[ .]*(:.*)?$")
_IN = "refs/remit-in/head"
_COMMIT_AGAIN = "Make the commits of the branch again with git."
#: Header of an accepted bundle: prerequisites and one reference, without filters.
_BUNDLE = re.compile(
    rb"# v[23] git bundle(?:\n@object-format=sha(?:1|256))?"
    rb"(?:\n-[0-9a-f]+(?: [^\n]*)?)*+\n[0-9a-f]+ [^\n]+"
)
#: Header of a commit as git reads it: tree, parents, author and committer with their times.
_COMMIT = re.compile(
    rb"tree ([0-9a-f]+)\n((?:parent [0-9a-f]+\n)*)"
    rb"author [^\n]*?(?:> (\d{1,12} [+-]\d{4}))?\ncommitter [^\n]*?(?:> (\d{1,12} [+-]\d{4}))?\n"
)


@dataclass(frozen=True)
class Touched:
    """A file that a proposal adds, changes or removes, with modes and ids before and after."""

    path: str
    was: str
    mode: str
    old: str
    new: str


_NO_SECRETS = (
    "Take it out of every commit of the branch (amend or rebase), and read it from the environment "
    "instead."
)


class Quarantine:
    """A separate repository for one proposal: it reads the mirror's objects, never the reverse."""

    def __init__(self, mirror: Mirror, stage: Path) -> None:
        self._mirror = mirror
        self._at = stage

    async def _look(self, *arguments: str, **more: Any) -> bytes:
        return await self._mirror.look(*arguments, at=self._at, **more)

    async def _listed(self, *arguments: str, **more: Any) -> bytes:
        """Run a listing with bounded memory and output: few objects can expand to endless files."""
        listing = bytearray()

        def take(piece: bytes) -> None:
            listing.extend(piece)
            if len(listing) > _LONGEST_LIST:
                raise _too_many()

        try:
            await self._look(*_SMALL, *arguments, take=take, most_memory=1 << 30, **more)
        except git.GitFailed as error:
            raise TooLarge(
                f"It touches more files than can be listed: {error.said}.", "Propose less at once."
            ) from error
        return bytes(listing)

    async def has(self, commit: str) -> bool:
        try:
            await self._look("cat-file", "-e", f"{commit}^{{commit}}")
        except git.GitFailed:
            return False
        return True

    async def unpack(self, stream: bytes, ref: str, tip: str) -> None:
        """Unpack a bundle; git checks every object, and the header of the stream is verified."""
        header, _, pack = stream.partition(b"\n\n")
        if not _BUNDLE.fullmatch(header):
            raise BadInput("The bundle that git made of the branch is not whole.", "Clone it anew.")
        file = self._at / "in.bundle"
        await threads.FILES.run(file.write_bytes, stream)
        options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-gc", "--force")
        bounds: Any = {"seconds": _UNPACK_SECONDS, "most_memory": 1 << 30}
        try:
            # Before version 2.46, a fetch from a bundle ignores the options that check objects.
            await self._look(
                *(*_SMALL, "index-pack", "--stdin", "--fix-thin"),
                "--strict=badTimezone=ignore,badFilemode=error",
                stdin=pack,
                **bounds,
            )
            await self._look(
                *(*_SMALL, "fetch", *options, "--end-of-options"),
                *(str(file), f"{ref}:{_IN}"),
                **bounds,
            )
        except git.GitFailed as error:
            raise BadInput(
                f"git does not take the objects of the proposal: {error.said}.",
                "Fetch and rebase your branch in a fresh clone, then propose it again.",
            ) from error
        finally:
            file.unlink(missing_ok=True)
        if (await self._look("rev-parse", _IN)).decode().strip() != tip:
            raise Conflict("The branch moved while it was read.", "Propose it again.")

    async def base(self, tip: str, target: str) -> str:
        """Return the merge base of the proposal and its target branch."""
        try:
            goal = await self._mirror.look(
                "rev-parse", "--verify", "--quiet", f"refs/heads/{target}"
            )
        except git.GitFailed:
            raise BadInput(
                f"{self._mirror.repo.name} has no branch {target[:100]!r}.", "Name another target."
            ) from None
        try:
            output = await self._look("merge-base", goal.decode().strip(), tip)
        except git.GitFailed:
            raise BadInput(
                f"The branch has nothing in common with {target}.", "Begin it from a clone."
            ) from None
        base = output.decode().strip()
        if base == tip:
            raise BadInput(f"Everything on the branch is in {target} already.", "Commit something.")
        return base

    async def _unknown(self, *what: str, tip: str) -> list[str]:
        """Return the commits or objects reachable from the tip that the mirror does not have."""
        known = await self._mirror.look("for-each-ref", "--format=^%(objectname)")
        revisions = f"{tip}\n".encode() + known
        listing = await self._look(
            "rev-list", *what, "--stdin", stdin=revisions, seconds=CHECK_SECONDS
        )
        return listing.decode(errors="surrogateescape").splitlines()

    async def check(self, tip: str, base: str) -> set[str]:
        """Check every commit and file of the proposal against the limits and rules; returns the
        touched paths."""
        commits = await self._unknown(f"--max-count={MOST_COMMITS + 1}", tip=tip)
        if len(commits) > MOST_COMMITS:
            raise TooLarge(
                f"It has more than {MOST_COMMITS} commits.", "Squash them, or propose less."
            )
        listing = await self._listed(
            *("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", base, tip)
        )
        changed = {file.path: file for file in _entries(listing)}
        if len(changed) > MOST_PATHS:
            raise _too_many()
        # Also objects that later commits removed again, because they stay in the history.
        brought = await self._unknown("--objects", f"--max-count={MOST_COMMITS}", tip=tip)
        objects = dict(line.partition(" ")[::2] for line in brought)
        if len(objects) > MOST_OBJECTS:
            raise TooLarge(f"It has more than {MOST_OBJECTS} objects.", "Propose less at once.")
        blobs = await self._sizes(objects)
        on_the_way = await self._touched_on_the_way(commits)
        touched = {*changed, *(file.path for file in on_the_way)}
        if len(touched) > MOST_PATHS:
            raise _too_many()
        for path in touched:
            check_path(path)
            refuse_secret("The name of a file", path)
        for file in {*changed.values(), *on_the_way}:
            if file.mode == _SUBMODULE and file.mode + file.new != file.was + file.old:
                raise _refused(file.path, "is a new or changed submodule, which is not allowed")
            if file.mode not in (_FILE, _PROGRAM, _LINK, _SUBMODULE, _GONE):
                raise _refused(file.path, f"has the mode {file.mode}")
            if file.mode == _LINK:
                await self._check_link(file)
        for commit in commits:
            raw = (await self._look("cat-file", "commit", commit)).decode(errors="replace")
            words = raw.partition("\n\n")[2]
            await threads.FILES.run(refuse_secret, f"The message of {commit[:12]}", words)
        await self._check_contents(changed, blobs)
        await self._check_large_files(tip, changed, blobs)
        return touched

    async def _touched_on_the_way(self, commits: list[str]) -> "list[Touched]":
        """List the files of each commit. A list of objects is not enough: it names only one path of
        each object."""
        options = ("--root", "-r", "-c", "-z", "--raw", "--no-renames", "--no-abbrev")
        listing = await self._listed(
            *("diff-tree", "--stdin", *options, "--no-commit-id"),
            stdin="".join(f"{commit}\n" for commit in commits).encode(),
            seconds=CHECK_SECONDS,
        )
        return _entries(listing)

    async def _sizes(self, objects: Mapping[str, str]) -> dict[str, str]:
        """Return the blobs among the objects with their paths; refuse large and other objects."""
        names = "".join(f"{name}\n" for name in objects).encode()
        listing = await self._look("cat-file", "--batch-check", stdin=names, seconds=LOOK_SECONDS)
        total, blobs = 0, {}
        for line in listing.decode().splitlines():
            name, kind, size = line.split()
            if kind not in ("blob", "tree", "commit"):
                raise BadInput(f"It brings a {kind}.", "Propose commits only.")
            total += int(size)
            if kind == "blob":
                blobs[name] = objects[name]
            most = {"blob": LARGEST_BLOB, "commit": LARGEST_COMMIT}.get(kind, LARGEST_TOTAL)
            if int(size) > most or total > LARGEST_TOTAL:
                raise TooLarge(
                    f"{objects[name][:200] or f'The {kind} {name[:12]}'} is too large: at most "
                    f"{most >> 20} MiB each, all together {LARGEST_TOTAL >> 20} MiB.",
                    "Keep large files elsewhere.",
                )
        return blobs

    async def _check_link(self, file: Touched) -> None:
        target = (await self._look("cat-file", "blob", file.new)).decode(errors="replace")
        up, down = 0, [part for part in target.split("/") if part not in ("", ".")]
        while down[:1] == [".."]:
            up, down = up + 1, down[1:]
        # After another link, `..` may lead to a different folder than the path suggests.
        if (
            target.startswith("/")
            or up > file.path.count("/")
            or ".." in down
            or _BAD_IN_PATH.search(target)
        ):
            raise _refused(file.path, "is a symlink that leads out of the repository")
        if any(map(_is_dot_git, down)):
            raise _refused(file.path, "is a symlink into .git")

    async def _check_contents(
        self, changed: Mapping[str, Touched], blobs: Mapping[str, str]
    ) -> None:
        """Refuse new contents that look like a secret, naming the place, and new pointers of Git
        LFS, whose contents would be missing."""
        before = {file.new: file.old for file in changed.values() if file.was != _GONE}
        for name, path in blobs.items():
            content = await self._look("cat-file", "blob", name)
            if clones.is_pointer(content):
                raise clones.lfs_refusal(
                    path, "is a Git LFS pointer, and Remit does not upload its object"
                )
            old = await self._before(before[name]) if name in before else b""
            place = await threads.FILES.run(program_text.in_file, content, old)
            if place is not None:
                raise BadInput(
                    f"{path[:200]}, {place}, looks like a secret.",
                    _NO_SECRETS,
                    details={"path": path, "place": place},
                )

    async def _check_large_files(
        self, tip: str, changed: Mapping[str, Touched], blobs: Mapping[str, str]
    ) -> None:
        """Refuse contents in place of a pointer where the proposal's attributes want Git LFS; files
        that were there before and no pointers are accepted."""
        files = [
            file
            for file in changed.values()
            if file.mode in (_FILE, _PROGRAM) and file.new in blobs
        ]
        if not files:
            return
        await self._look("read-tree", tip, seconds=CHECK_SECONDS, most_memory=1 << 30)
        attributes = await self._look(
            *("check-attr", "--cached", "-z", "--stdin", "filter"),
            stdin="".join(f"{file.path}\0" for file in files).encode(),
        )
        outside = clones.kept_outside(attributes)
        for file in files:
            if file.path in outside and await self._is_new_there(file):
                why = "is kept in Git LFS by .gitattributes, and would be in git itself"
                raise clones.lfs_refusal(file.path, why)

    async def _is_new_there(self, file: Touched) -> bool:
        return file.was == _GONE or clones.is_pointer(await self._before(file.old))

    async def _before(self, blob: str) -> bytes:
        """Return the former content of a file; empty if it exceeds today's limit."""
        size = int(await self._look("cat-file", "-s", blob))
        return await self._look("cat-file", "blob", blob) if size <= LARGEST_BLOB else b""

    async def have_same_files(self, commit: str, other: str | None) -> bool:
        """Return whether two commits have the same tree; False if the mirror lacks the other."""
        if other is None or not await self.has(other):
            return False
        trees = await self._look("rev-parse", f"{commit}^{{tree}}", f"{other}^{{tree}}")
        return len(set(trees.split())) == 1

    async def sign(self, tip: str, who: CommitIdentity, signer: Signer | None = None) -> str:
        """Rewrite the new commits with Remit's names and signature; returns the new tip. Commits
        that the mirror has stay as they are."""
        written: dict[str, str] = {}
        for commit in await self._unknown("--reverse", "--topo-order", tip=tip):
            raw = await self._look("cat-file", "commit", commit)
            new = _rewritten(raw, written, who)
            if signer is not None:
                new = signer.signed(new)
            if raw == new:
                written[commit] = commit
                continue
            output = await self._look("hash-object", "-t", "commit", "-w", "--stdin", stdin=new)
            written[commit] = output.decode().strip()
        head = written.get(tip, tip)
        # Ensure that the rewritten commits bring no other history along through odd parent lines.
        if not set(await self._unknown(tip=head)) <= set(written.values()):
            raise BadInput("In its commits git reads other parents than Remit.", _COMMIT_AGAIN)
        return head

    async def bundle(self, ref: str, head: str, base: str) -> bytes:
        """Return a bundle of the rewritten commits beyond the base."""
        await self._look("update-ref", ref, head)
        file = self._at / "out.bundle"
        await self._look("bundle", "create", "--quiet", str(file), ref, f"^{base}")
        return await threads.FILES.run(file.read_bytes)

    async def difference(self, base: str, head: str) -> bytes | None:
        """Return the document of the difference for whoever approves a merge; None if git cannot
        tell it within its limits."""
        try:
            return await diffs.whole(self._mirror, base, head, self._at)
        except git.GitFailed:
            return None


def _entries(raw: bytes) -> list[Touched]:
    """Parse git's raw list of files; an entry of a merge has a colon for each parent."""
    fields = raw.split(b"\0")[:-1]
    entries = []
    for about, name in zip(fields[::2], fields[1::2], strict=True):
        listed = about.decode().lstrip(":")
        parents = len(about) - len(listed)
        modes, ids = listed.split(" ")[: parents + 1], listed.split(" ")[parents + 1 : -1]
        entries.append(Touched(_path(name), modes[0], modes[-1], ids[0], ids[-1]))
    return entries


def _path(name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise _refused(name.decode(errors="replace"), "has a name that is no UTF-8") from None


def check_path(path: str) -> None:
    parts = path.split("/")
    if len(path) > LONGEST_PATH or _BAD_IN_PATH.search(path) or path.startswith(("/", "-")):
        raise _refused(path, "has a path that is too long, or has characters that are not allowed")
    if any(part in ("", ".", "..") or _is_dot_git(part) for part in parts):
        raise _refused(path, "has a path with a part that git reserves, such as `.git` or `..`")


def _is_dot_git(part: str) -> bool:
    seen = "".join(char for char in part if unicodedata.category(char) != "Cf")
    return _DOT_GIT.match(seen) is not None


def _too_many() -> TooLarge:
    return TooLarge(f"It touches more than {MOST_PATHS} files.", "Propose less at once.")


def _refused(path: str, why: str) -> BadInput:
    plain = "".join(char if char.isprintable() else "?" for char in path[:200])
    return BadInput(f"{plain} {why}.", "Leave it out of every commit of the branch.")


def refuse_secret(what: str, text: str) -> None:
    line = program_text.in_text(text)
    if line is not None:
        raise BadInput(f"{what}, line {line}, looks like a secret.", _NO_SECRETS)


def _rewritten(raw: bytes, written: Mapping[str, str], who: CommitIdentity) -> bytes:
    """Rewrite a commit with the agent as author, the company's committer and its trailers.

    Only the headers that git itself reads are copied; a repeated header further down is dropped."""
    match = _COMMIT.match(raw)
    if match is None:
        raise BadInput("A commit of the branch has headers unlike git's.", _COMMIT_AGAIN)
    tree, parents, *dates = match.groups()
    lines = [
        b"tree " + tree,
        *(
            b"parent " + written.get(parent.decode(), parent.decode()).encode()
            for parent in parents.replace(b"parent ", b"").split()
        ),
        b"author %s %s" % (who.author.encode(), dates[0] or b"0 +0000"),
        b"committer %s %s" % (who.committer.encode(), dates[1] or b"0 +0000"),
    ]
    message = raw.partition(b"\n\n")[2].decode(errors="replace")
    return b"\n".join(lines) + b"\n\n" + who.message(message).encode()
