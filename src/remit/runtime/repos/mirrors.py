"""Mirrors: bare copies of repositories on this machine, from which runs get their clones.

    REMIT_HOME/repos/<company>/<name>.git     a bare repository: branches and tags, no settings
                               <name>.fetch   lock file: one process fetches at a time
                               <name>.use     lock file: shared by readers, exclusive to replace

A mirror is made aside and renamed, so it is complete or absent. A killed fetch leaves the mirror
as it was; the next fetch removes its leftovers.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from remit import threads
from remit.clock import Clock, Micros
from remit.errors import Conflict, RemitError, Unavailable
from remit.ids import random_name
from remit.model.connections.repo import Repo
from remit.runtime.repos import git
from remit.runtime.runs.workspace import destroy_workspace

#: Long enough for the first fetch of a large repository.
FETCH_SECONDS = 900.0
LOOK_SECONDS = 60.0
CHECK_SECONDS = 600.0
#: Each fetch with new commits adds a pack; more than this many are repacked into one.
MOST_PACKS = 30
_POLL_SECONDS = 0.02
_MARK = "remit.json"
_BRANCHES = "+refs/heads/*:refs/heads/*"
_TAGS = "+refs/tags/*:refs/tags/*"
_HEAD = re.compile(rb"ref: refs/heads/(\S+)\tHEAD")


@dataclass(frozen=True)
class Mark:
    """The label of a mirror: its repository, and when it was fetched."""

    repo: str
    url: str
    fetched_at: Micros


class Mirror:
    """The mirror of one repository."""

    def __init__(self, folder: Path, repo: Repo, clock: Clock) -> None:
        self.repo = repo
        self.path = folder / f"{repo.name}.git"
        self._folder = folder
        self._clock = clock
        self._known_hosts = folder.parent / "known_hosts"

    def mark(self) -> Mark | None:
        """Read the mark; None without a mirror, or if it is of another repository of this name."""
        try:
            fields = json.loads((self.path / _MARK).read_text())
            mark = Mark(str(fields["repo"]), str(fields["url"]), int(fields["fetched_at"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return mark if (mark.repo, mark.url) == (self.repo.id, self.repo.url) else None

    async def fetch(
        self, credentials: git.Credentials, since: Micros, *, thorough: bool = False
    ) -> Mark:
        """Make the mirror newer than `since`; does nothing if another process just fetched."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        async with _locked(self._lock("fetch"), fcntl.LOCK_EX) as held:
            mark = self.mark()
            if mark is not None and mark.fetched_at > since:
                return mark
            await threads.FILES.run(self._clear_leftovers)
            if mark is None or (thorough and not await self.is_sound()):
                return await self._make(credentials, held)
            try:
                return await self._renew(credentials, held, thorough=thorough)
            except git.GitFailed:
                if thorough or not await self._answers(credentials) or await self.is_sound():
                    raise
            return await self._make(credentials, held)

    async def ask(self, credentials: git.Credentials) -> str | None:
        """Return the default branch of the remote, without fetching."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        match = _HEAD.match(await self._listed(credentials, "HEAD", "--symref"))
        return match[1].decode(errors="replace") if match else None

    async def _listed(
        self, credentials: git.Credentials, ref: str, *options: str, url: str | None = None
    ) -> bytes:
        """Return git's listing of a reference at the remote, which begins with its commit."""
        arguments = ("--quiet", *options, "--end-of-options", url or self.repo.url, ref)
        return await self.look("ls-remote", *arguments, at=self._folder, credentials=credentials)

    async def _answers(self, credentials: git.Credentials) -> bool:
        """Return whether the remote answers, so that a failed fetch is the fault of the mirror."""
        try:
            await self._listed(credentials, "HEAD")
        except git.GitFailed:
            return False
        return True

    async def _make(self, credentials: git.Credentials, held: int) -> Mark:
        """Make a new mirror, and replace an existing one."""
        aside = self._folder / f".{self.repo.name}~{random_name()}"
        try:
            empty = ("init", "--quiet", "--bare", "--template=", str(aside))
            await self.look(*empty, at=self._folder)
            at = self._clock.now()
            await self._fetch_into(aside, credentials, held)
            await self._follow_head(aside, credentials)
            mark = Mark(self.repo.id, self.repo.url, at)
            _write_mark(aside, mark)
            async with self.in_use(alone=True):
                await threads.FILES.run(destroy_workspace, self.path)
                aside.rename(self.path)
            return mark
        finally:
            await threads.FILES.run(destroy_workspace, aside)

    async def _renew(self, credentials: git.Credentials, held: int, *, thorough: bool) -> Mark:
        at = self._clock.now()
        await self._fetch_into(self.path, credentials, held)
        if thorough or await self.head() is None:
            await self._follow_head(self.path, credentials)
        mark = Mark(self.repo.id, self.repo.url, at)
        _write_mark(self.path, mark)
        if len(list(self.path.glob("objects/pack/*.pack"))) > MOST_PACKS:
            async with self.in_use(alone=True):
                packing = ("repack", "-a", "-d", "--quiet")
                await self.look(*packing, seconds=CHECK_SECONDS, held=(held,))
        return mark

    async def _fetch_into(self, place: Path, credentials: git.Credentials, held: int) -> None:
        options = (
            *("--quiet", "--prune", "--force", "--no-tags", "--no-write-fetch-head"),
            *("--no-recurse-submodules", "--no-auto-gc", "--update-head-ok", "--end-of-options"),
        )
        await self.look(
            *("fetch", *options, self.repo.url, _BRANCHES, _TAGS),
            at=place,
            credentials=credentials,
            seconds=FETCH_SECONDS,
            held=(held,),
        )

    async def _follow_head(self, place: Path, credentials: git.Credentials) -> None:
        """Set the mirror's HEAD to the remote's default branch."""
        if (head := await self.ask(credentials)) is not None:
            await self.look("symbolic-ref", "HEAD", f"refs/heads/{head}", at=place)

    async def head(self) -> str | None:
        """Return the default branch; None if it has no commit."""
        name = (await self.look("symbolic-ref", "HEAD")).decode(errors="replace").strip()
        there = await self.look("for-each-ref", "--format=%(refname)", "--end-of-options", name)
        return name.removeprefix("refs/heads/") if there.strip() else None

    async def look(
        self,
        *arguments: str,
        at: Path | None = None,
        credentials: git.Credentials = git.NOBODY,
        seconds: float = LOOK_SECONDS,
        **how: Any,
    ) -> bytes:
        """Run git in the mirror, or in another folder `at`; a remote that needs credentials is
        reached only with them."""
        env = git.environment(self._known_hosts, credentials)
        return await git.run(arguments, env=env, cwd=at or self.path, seconds=seconds, **how)

    # ── proposals of agents ─────────────────────────────────────────────────────────────────

    async def commit_of(self, ref: str) -> str | None:
        output = await self.look("for-each-ref", "--format=%(objectname)", "--end-of-options", ref)
        return output.decode().strip() or None

    async def take(self, bundle: bytes, ref: str) -> None:
        """Fetch the commits of a stored bundle, under a reference that no other fetch touches."""
        aside = self._folder / f".{self.repo.name}~{random_name()}"
        async with _locked(self._lock("fetch"), fcntl.LOCK_EX) as held:
            try:
                await threads.FILES.run(aside.write_bytes, bundle)
                options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-gc")
                await self.look(
                    *("fetch", *options, "--end-of-options", str(aside), f"+{ref}:{ref}"),
                    seconds=CHECK_SECONDS,
                    held=(held,),
                )
            finally:
                aside.unlink(missing_ok=True)

    async def remote_commit(
        self, credentials: git.Credentials, branch: str, url: str | None = None
    ) -> str | None:
        """Return the present commit of a branch at the remote, or at another one."""
        listing = await self._listed(credentials, f"refs/heads/{branch}", url=url)
        return listing.decode(errors="replace").partition("\t")[0].strip() or None

    async def move_branch(
        self,
        credentials: git.Credentials,
        commit: str,
        branch: str,
        expected: str,
        url: str | None = None,
    ) -> None:
        """Move a branch of the remote, or of another one, to a commit, if it is at the `expected`
        commit, which is empty for a new branch."""
        whole = f"refs/heads/{branch}"
        options = ("--quiet", "--porcelain", "--no-verify", "--no-recurse-submodules")
        await self.look(
            *("push", *options, f"--force-with-lease={whole}:{expected}"),
            *("--end-of-options", url or self.repo.url, f"{commit}:{whole}"),
            credentials=credentials,
            seconds=FETCH_SECONDS,
        )

    async def is_sound(self) -> bool:
        """Return whether every object is present and matches its hash."""
        try:
            await self.look(
                *("fsck", "--full", "--no-dangling", "--no-progress"), seconds=CHECK_SECONDS
            )
        except (git.GitFailed, OSError):
            return False
        return True

    async def make_again(self, credentials: git.Credentials) -> Mark:
        """Replace a broken mirror, unless another process has replaced it."""
        async with _locked(self._lock("fetch"), fcntl.LOCK_EX) as held:
            if (mark := self.mark()) is not None and await self.is_sound():
                return mark  # another process was faster
            await threads.FILES.run(self._clear_leftovers)
            return await self._make(credentials, held)

    @asynccontextmanager
    async def in_use(self, *, alone: bool = False) -> AsyncIterator[None]:
        """Context manager: lock the mirror for reading, or `alone` to replace or repack it."""
        kind = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
        async with _locked(self._lock("use"), kind):
            yield

    def _lock(self, kind: str) -> Path:
        return self._folder / f"{self.repo.name}.{kind}"

    def _clear_leftovers(self) -> None:
        """Remove the leftovers of killed fetches; the caller holds the lock for fetching."""
        for aside in self._folder.glob(f".{self.repo.name}~*"):
            destroy_workspace(aside)
        if self.path.is_dir():
            for lock in (*self.path.glob("*.lock"), *self.path.glob("refs/**/*.lock")):
                lock.unlink(missing_ok=True)
            for half in self.path.glob("objects/pack/tmp_*"):
                half.unlink(missing_ok=True)


async def discard(folder: Path, name: str) -> None:
    """Remove the mirror of a removed repository."""
    async with (
        _locked(folder / f"{name}.fetch", fcntl.LOCK_EX),
        _locked(folder / f"{name}.use", fcntl.LOCK_EX),
    ):
        await threads.FILES.run(destroy_workspace, folder / f"{name}.git")


def _write_mark(place: Path, mark: Mark) -> None:
    aside = place / f".{random_name()}"
    aside.write_text(json.dumps(asdict(mark)))
    aside.replace(place / _MARK)


@asynccontextmanager
async def _locked(path: Path, kind: int) -> AsyncIterator[int]:
    """Context manager: a file lock between processes, awaited without blocking the event loop."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise Unavailable(
            f"The copies of repositories cannot be kept ({error.strerror}).",
            "See to the folder repos in REMIT_HOME.",
        ) from error
    try:
        await _acquire(fd, kind)
        yield fd
    finally:
        os.close(fd)


async def _acquire(fd: int, kind: int) -> None:
    try:
        async with asyncio.timeout(2 * FETCH_SECONDS):
            while True:
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(fd, kind | fcntl.LOCK_NB)
                    return
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        raise Conflict("Somebody else has been fetching it for long.", "Try again later.") from None


def words(error: RemitError) -> str:
    """Return the text of an error as a part of a sentence."""
    return error.said if isinstance(error, git.GitFailed) else error.sentence.rstrip(".")
