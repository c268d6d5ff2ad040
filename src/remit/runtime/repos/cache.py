"""The repository cache: agents get clones in their workspaces without a fetch from the remote each.

One mirror per machine (`mirrors.py`) is refreshed when it is a minute old; concurrent callers share
one fetch. An agent gets a repository of its own:

- Its objects are copied, not linked. Hard links would save copying the pack, but agents run as the
  same user as Remit: an agent that makes its file writable and changes it would change the mirror,
  and with it the clones of every other agent. Sharing the mirror's objects (`--shared`) would need
  a mount for each repository an agent may have, known before the run begins, and would tie the
  clone to the mirror for ever. A clone of 20 000 files and 100 MB takes most of a second, nearly
  all of it for writing the files, and about as long as `cp -r`; see `benchmarks/repos.py`.
- It is made in a folder that no agent can reach, and then renamed into the workspace. So nothing
  that an agent does in its workspace meanwhile can redirect git.
- It contains the address of its remote, and no credentials.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from remit import threads
from remit.clock import MINUTE, SECOND, Clock, Micros, to_iso
from remit.errors import BadInput, NotFound, RemitError, Unavailable
from remit.ids import is_id, random_name
from remit.model.connections import check
from remit.model.connections.change import Change
from remit.model.connections.commit_identity import CommitIdentity
from remit.model.connections.repo import Repo, is_https, is_local, site
from remit.runtime.repos import git, lendable
from remit.runtime.repos.clones import Contents, Found, copy, resolve, survey
from remit.runtime.repos.forges import Forges
from remit.runtime.repos.mirrors import Mark, Mirror, discard, words
from remit.runtime.repos.signing import Signer
from remit.runtime.runs import folder_instructions, held_commands
from remit.runtime.runs.workspace import destroy_workspace, move_inside
from remit.runtime.sandbox.mounts import View
from remit.runtime.secrets.values import SecretOf
from remit.services import shapes
from remit.services.changes import proposals
from remit.services.command import Answer, Gate
from remit.services.connections import repos
from remit.services.identity import Caller, as_system
from remit.services.knowledge.file_contents import Library

#: A mirror younger than this counts as up to date.
FRESH: Micros = MINUTE
#: How long a caller waits for a fetch before it gets the mirror as it is.
PATIENCE_SECONDS = 20.0
#: Pause after a failed fetch, in which other callers get the same failure without a new attempt.
_AGAIN_SECONDS = 10.0
_MOST_FETCHES = 4
_MOST_CLONES = 4
_NEWS_SECONDS = 60.0
_REMOTE_BRANCHES = "+refs/heads/*:refs/remotes/origin/*"
_IN_SANDBOX = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ALLOW_PROTOCOL": "file",
    "GIT_NO_LAZY_FETCH": "1",
    "LC_ALL": "C",
}
#: Settings of a copy that name a program are without effect when Remit runs git in it.
_WITHOUT_PROGRAMS = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false", "-c", "core.alternateRefsCommand=true"),
)


#: Prefix of the temporary file with a private key for ssh.
_KEY = ".key-"


class Repos:
    """The mirrors on this machine, and the clones made of them."""

    def __init__(
        self,
        gate: Gate,
        clock: Clock,
        home: Path,
        secret_of: SecretOf,
        library: Library,
        forges: Forges,
    ) -> None:
        self._gate = gate
        self._clock = clock
        self._folder = home / "repos"
        self._stage = home / "run" / "clones"
        self._secret_of = secret_of
        #: Stores the bundles of proposals.
        self.library = library
        self.forges = forges
        self._under_way: dict[Path, asyncio.Task[Mark]] = {}
        self._failed: dict[Path, tuple[float, RemitError]] = {}
        self._fetches = asyncio.Semaphore(_MOST_FETCHES)
        self._clones = asyncio.Semaphore(_MOST_CLONES)
        #: Locks by folder: a run and the jobs of its agent share one clone, which is made once.
        self._lasting: dict[Path, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def clone(
        self, caller: Caller, *, name: str, ref: str | None = None, place: str | None = None
    ) -> Answer:
        """Clone a repository into the workspace of the calling run, at `place` or by its name."""
        repo, workspace = await self._gate(caller, repos.use, name=name, ref=ref, place=place)
        mirror = self._mirror(repo)
        mark, problem = await self._refreshed(mirror)
        about = await self._gate(caller, proposals.for_clone, name=name, ref=ref)
        who = CommitIdentity.of(**about["identity"])
        own = await self._proposed(mirror, about["change"])
        revision, contents, where = await self._placed(
            mirror, ref, workspace, place, own=own, who=who
        )
        answer: Answer = {
            "name": repo.name,
            "path": str(where),
            "ref": revision.name,
            "commit": revision.commit,
            "fetched_at": to_iso(mark.fetched_at),
        }
        if checks := check.read(repo.checks):
            answer["checks"] = {repo_check.name: repo_check.command for repo_check in checks}
        if repo.instructions:
            told = await threads.FILES.run(_instructions, Path(workspace), where)
            answer |= {"instructions": told} if told else {}
        if problem is not None:
            old = max(self._clock.now() - mark.fetched_at, 0) // SECOND
            answer["note"] = f"This is from {old} seconds ago; the remote fails now: {problem}."
        return {**answer, **contents.notes()}

    async def lasting(self, repo: Repo, work: Path, who: CommitIdentity | None = None) -> str:
        """Make the lasting clone that an agent works in, or fetch into the existing one. Returns
        the reason why it could not be updated, or an empty text."""
        mirror = self._mirror(repo)
        _, problem = await self._refreshed(mirror)
        async with self._lasting[work]:
            if not await threads.FILES.run(_is_there, work):
                await self._placed(mirror, None, str(work.parent), work.name, who=who)
                return problem or ""
        # The agent controls the contents, git's settings among them: so git runs in a sandbox.
        fetch = (
            *("fetch", "--quiet", "--prune", "--no-tags", "--no-recurse-submodules", "--force"),
            "--upload-pack=git-upload-pack",  # the copy may have settings for an address, too
        )
        async with mirror.in_use():
            try:
                ended = await held_commands.run(
                    ["git", *_WITHOUT_PROGRAMS, *fetch, mirror.path.as_uri(), _REMOTE_BRANCHES],
                    folder=work,
                    home=work,
                    env=_IN_SANDBOX,
                    seconds=_NEWS_SECONDS,
                    view=View(read={mirror.path: ()}, network=False),
                    hidden=[self._folder.parent],
                )
            except RemitError as error:
                return f"origin is as it was: {words(error)}"
        if ended.code:
            complaint = (ended.heard.text.strip().splitlines() or ["no reason"])[-1]
            return f"origin is as it was: git says {complaint[:200]!r}"
        return problem or ""

    @asynccontextmanager
    async def holding(
        self, repo: Repo, change: Change, bundle: shapes.BundleShape
    ) -> AsyncIterator[Mirror]:
        """Context manager: the mirror, refreshed if possible and locked for reading, with a change
        in it, which is taken from its bundle if it is missing."""
        mirror = self._mirror(repo)
        await self._refreshed(mirror)
        try:
            await self._have(mirror, change.head_commit, change.ref, bundle)
        except git.GitFailed as error:
            raise Unavailable(
                f"The change is not whole: {error.said}.", "Have its author propose it again."
            ) from error
        async with mirror.in_use():
            yield mirror

    async def _have(
        self, mirror: Mirror, commit: str, ref: str, bundle: shapes.BundleShape
    ) -> None:
        """Take a change from its bundle into the mirror, unless it is there. The caller must not
        hold the mirror in use: a process that replaces the mirror waits for its readers, and holds
        the lock for fetching, for which this waits."""
        async with mirror.in_use():
            there = await mirror.commit_of(ref)
        if there != commit:
            await mirror.take(await self.library.content(bundle["id"], bundle["sha256"]), ref)
            if await mirror.commit_of(ref) != commit:
                raise git.GitFailed("its bundle brings something else")

    @asynccontextmanager
    async def staged(self) -> AsyncIterator[Path]:
        """Context manager: an unused path that no agent can reach; removed at the end."""
        self._stage.mkdir(mode=0o700, parents=True, exist_ok=True)
        stage = self._stage / f"{os.getpid()}-{random_name()}"
        try:
            yield stage
        finally:
            await threads.FILES.run(destroy_workspace, stage)

    async def newest(self, repo: Repo) -> None:
        """Fetch from the remote now, however fresh the mirror is."""
        mirror = self._mirror(repo)
        self._failed.pop(mirror.path, None)
        await self._shared(mirror, since=self._clock.now())

    async def sync(self, caller: Caller, *, company: str | None, name: str) -> Answer:
        """Fetch now and verify the mirror; returns its number of branches and its time."""
        mirror = self._mirror(await self._gate(caller, repos.sync, company=company, name=name))
        self._failed.pop(mirror.path, None)
        try:
            mark = await self._shared(mirror, since=self._clock.now(), thorough=True)
        except RemitError as error:
            raise _unreachable(mirror, error) from error
        async with mirror.in_use():
            refs = await mirror.look("for-each-ref", "--format=%(refname)", "refs/heads")
            head = await mirror.head()
        return {
            "name": mirror.repo.name,
            "url": mirror.repo.url,
            "fetched_at": to_iso(mark.fetched_at),
            "branches": len(refs.splitlines()),
            "head": head,
        }

    async def lendable(
        self, caller: Caller, *, company: str | None, name: str, ref: str | None, folder: str
    ) -> Answer:
        """Return the files in a repository that can be lent to an agent."""
        repo = await self._gate(caller, repos.look_into, company=company, name=name, ref=ref)
        mirror = self._mirror(repo)
        await self._refreshed(mirror)
        async with mirror.in_use():
            contents = await lendable.read(mirror, ref or repo.ref, folder)
        files = [
            {"path": path, "content": base64.b64encode(raw).decode()}
            for path, raw in contents.files.items()
        ]
        return {"commit": contents.commit, "files": files, "left_out": contents.left_out}

    async def try_out(self, caller: Caller, *, company: str | None, **spec: Any) -> Answer:
        """Check that the remote and the forge of a repository answer, before it is added."""
        new = await self._gate(caller, repos.try_out, company=company, asked=spec)
        mirror = self._mirror(new)
        try:
            async with self._fetches, self.opened(mirror.repo) as credentials:
                head = await mirror.ask(credentials)
        except RemitError as error:
            raise _unreachable(mirror, error) from error
        if mirror.repo.forge is not None and (why := await self.forges.problem(mirror.repo)):
            raise Unavailable(f"Git answers, but not the forge: {why}.", "See to its token.")
        return {"name": mirror.repo.name, "head": head}

    async def remove(self, caller: Caller, *, company: str | None, name: str) -> Answer:
        gone = await self._gate(caller, repos.remove, company=company, name=name)
        await self._discard(gone["company_id"], gone["name"])
        return {"name": gone["name"], "revoked": gone["revoked"]}

    async def tidy(self) -> None:
        """Remove the mirrors of removed repositories, and unfinished clones and keys of killed
        processes."""
        for folder in await threads.FILES.run(_folders, self._folder):
            if is_id(folder.name):
                names = [path.name.removesuffix(".git") for path in folder.glob("*.git")]
                there = await self._gate(
                    as_system(), repos.still_there, company=folder.name, names=names
                )
                for name in set(names) - set(there):
                    await self._discard(folder.name, name)
        for stage in await threads.FILES.run(_abandoned, self._stage):
            await threads.FILES.run(destroy_workspace, stage)
        await threads.FILES.run(_remove_keys, self._folder)

    async def close(self) -> None:
        for task in self._under_way.values():
            task.cancel()
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)

    # ── for proposals and their publication ─────────────────────────────────────────────────

    @asynccontextmanager
    async def fresh(self, repo: Repo) -> AsyncIterator[Mirror]:
        """Context manager: the mirror of a repository, refreshed if possible, in use meanwhile."""
        mirror = self._mirror(repo)
        await self._refreshed(mirror)
        async with mirror.in_use():
            yield mirror

    async def _proposed(self, mirror: Mirror, change: Mapping[str, Any] | None) -> Found | None:
        """Take the agent's own proposal for a branch into the mirror; None without one."""
        if change is None:
            return None
        bundle: shapes.BundleShape = {"id": change["bundle_id"], "sha256": change["sha256"]}
        await self._have(mirror, change["head"], change["ref"], bundle)
        return Found(change["branch"], change["head"], branch=False, local=change["branch"])

    # ── being up to date ────────────────────────────────────────────────────────────────────

    async def _refreshed(self, mirror: Mirror) -> tuple[Mark, str | None]:
        """Refresh the mirror if it is old; return its mark, and the problem if that failed."""
        mark = mirror.mark()
        if mark is not None and self._clock.now() - mark.fetched_at < FRESH:
            return mark, None
        try:
            if mark is None:
                return await self._shared(mirror), None
            # After the timeout, the fetch goes on for others.
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await self._shared(mirror), None
        except TimeoutError:
            assert mark is not None
            return mark, "it does not answer in time"
        except RemitError as error:
            if mark is None:
                raise _unreachable(mirror, error) from error
            return mark, words(error)

    async def _shared(
        self, mirror: Mirror, *, since: Micros | None = None, thorough: bool = False
    ) -> Mark:
        """Fetch once for all concurrent callers; it goes on if some of them are cancelled."""
        before = self._failed.get(mirror.path)
        if before is not None and time.monotonic() - before[0] < _AGAIN_SECONDS:
            raise before[1]
        task = self._under_way.get(mirror.path)
        if task is None:
            since = self._clock.now() - FRESH if since is None else since
            task = asyncio.create_task(self._fetch(mirror, since, thorough=thorough))
            self._under_way[mirror.path] = task
            task.add_done_callback(lambda done: self._ended(mirror.path, done))
        return await asyncio.shield(task)

    def _ended(self, path: Path, task: asyncio.Task[Mark]) -> None:
        self._under_way.pop(path, None)
        if not task.cancelled() and isinstance(error := task.exception(), RemitError):
            self._failed[path] = (time.monotonic(), error)
        else:
            self._failed.pop(path, None)

    async def _fetch(self, mirror: Mirror, since: Micros, *, thorough: bool) -> Mark:
        async with self._fetches, self.opened(mirror.repo) as credentials:
            return await mirror.fetch(credentials, since, thorough=thorough)

    @asynccontextmanager
    async def opened(self, repo: Repo) -> AsyncIterator[git.Credentials]:
        """Context manager: the credentials of the remote; a key file is deleted at the end."""
        if repo.secret is None or is_local(repo.url):
            yield git.NOBODY
            return
        value = await self._secret_of(repo.company_id, repo.secret)
        if is_https(repo.url):
            if any(char in value for char in "\n\r\0"):
                raise BadInput(
                    f"The secret {repo.secret!r} has several lines.",
                    "Keep the password or token of the remote in it.",
                )
            yield git.Credentials(site(repo.url), repo.username or "git", value)
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = self._folder / f"{_KEY}{os.getpid()}-{random_name()}"
        try:
            fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "w") as key:
                key.write(value.rstrip("\n") + "\n")
            yield git.Credentials(key_file=file)
        finally:
            file.unlink(missing_ok=True)

    async def signer(self, repo: Repo, who: CommitIdentity) -> Signer | None:
        """Return the key that signs the company's commits; None if it has none."""
        if who.signing is None:
            return None
        return Signer.of(who.signing, await self._secret_of(repo.company_id, who.signing))

    # ── clones for agents ───────────────────────────────────────────────────────────────────

    async def _placed(
        self,
        mirror: Mirror,
        ref: str | None,
        workspace: str,
        place: str | None,
        **options: Any,
    ) -> tuple[Found, Contents, Path]:
        """Place a clone in the workspace; rebuild the mirror first if it turns out to be broken."""
        try:
            return await self._place(mirror, ref, workspace, place, **options)
        except git.GitFailed:
            async with self._fetches:
                sound = await mirror.is_sound()
        if sound:
            # Another process may have replaced the mirror during the check.
            try:
                return await self._place(mirror, ref, workspace, place, **options)
            except git.GitFailed as error:
                raise Unavailable(f"It cannot be copied: {error.said}.") from error
        try:
            async with self._fetches, self.opened(mirror.repo) as credentials:
                await mirror.make_again(credentials)
        except RemitError as error:
            raise _unreachable(mirror, error) from error
        return await self._place(mirror, ref, workspace, place, **options)

    async def _place(
        self,
        mirror: Mirror,
        ref: str | None,
        workspace: str,
        place: str | None,
        *,
        own: Found | None = None,
        who: CommitIdentity | None = None,
    ) -> tuple[Found, Contents, Path]:
        revision = own or await self._found(mirror, ref or mirror.repo.ref)
        async with self.staged() as stage:
            async with self._clones, mirror.in_use():
                contents = await survey(mirror, revision.commit)
                await copy(mirror, revision, stage, who)
            where = await threads.FILES.run(
                move_inside, workspace, place or mirror.repo.name, stage
            )
            return revision, contents, where

    async def _found(self, mirror: Mirror, ref: str | None) -> Found:
        """Resolve a reference to a commit; an unknown one is fetched first."""
        for _ in range(2):
            try:
                return await resolve(mirror, ref)
            except NotFound:
                # A fetch under way may have listed the remote before the reference was pushed.
                joined = mirror.path in self._under_way
            with contextlib.suppress(RemitError, TimeoutError):
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await self._shared(mirror, since=self._clock.now())
            if not joined:
                break
        return await resolve(mirror, ref)

    def _mirror(self, repo: Repo) -> Mirror:
        return Mirror(self._folder / repo.company_id, repo, self._clock)

    async def _discard(self, company: str, name: str) -> None:
        folder = self._folder / company
        if (folder / f"{name}.git").exists():
            await discard(folder, name)


def _unreachable(mirror: Mirror, error: RemitError) -> RemitError:
    if not isinstance(error, git.GitFailed):
        return error
    return Unavailable(
        f"{mirror.repo.name} cannot be fetched: {error.said}.",
        "See to the address and the secret of the repository, then try again.",
    )


def _is_there(work: Path) -> bool:
    """Return whether a clone exists; make its parent folder."""
    work.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return work.exists()


def _folders(place: Path) -> list[Path]:
    return [path for path in place.iterdir() if path.is_dir()] if place.is_dir() else []


def _abandoned(place: Path) -> list[Path]:
    """Return the unfinished clones of processes that are gone."""
    return [path for path in _folders(place) if not _is_running(path.name.partition("-")[0])]


def _remove_keys(place: Path) -> None:
    for file in place.glob(f"{_KEY}*"):
        if not _is_running(file.name.removeprefix(_KEY).partition("-")[0]):
            file.unlink(missing_ok=True)


def _is_running(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True


def _instructions(workspace: Path, clone: Path) -> str:
    # From the workspace on, because its agent may put a link in place of a folder in it.
    return folder_instructions.read(workspace, top=str(clone.relative_to(workspace)))
