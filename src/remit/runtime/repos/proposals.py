"""Proposals of agents: read from their clones inside a sandbox, checked, and stored.

    the run's clone ─ sandbox ─► bundle ─► quarantine ─► checks ─► new commits ─► knowledge base

git reads the clone only in a sandbox like that of the run, without a network. Its output is one
bounded stream, which is unpacked in a quarantine. Bad objects are refused there; the mirror of the
repository gets only commits that Remit wrote itself: the tree of the agent, its name as author, and
the names that the company adds.
"""

import asyncio
import os
import re
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from remit import threads
from remit.errors import BadInput, Conflict, TooLarge
from remit.ids import Ids
from remit.model.connections.change import branch_name
from remit.model.connections.commit_identity import CommitIdentity
from remit.model.connections.repo import Repo
from remit.runtime.repos import git
from remit.runtime.repos.cache import Repos
from remit.runtime.repos.mirrors import Mirror
from remit.runtime.repos.quarantine import Quarantine, refuse_secret
from remit.runtime.runs import conditions
from remit.runtime.runs.workspace import destroy_workspace
from remit.runtime.sandbox import sandbox_policy
from remit.runtime.sandbox.mounts import View
from remit.services.changes import proposals
from remit.services.command import Answer, Gate
from remit.services.connections import folders
from remit.services.identity import Caller

#: Most bytes of the stream that git reads from a clone.
LARGEST_BUNDLE = 32 << 20
#: Time limit of git in the sandbox of an agent, whose clone may be slow on purpose.
_SANDBOX_SECONDS = 120.0


class Proposals:
    """Takes proposals from runs on this machine."""

    def __init__(self, gate: Gate, repos: Repos, ids: Ids, home: Path) -> None:
        self._gate = gate
        self._repos = repos
        self._ids = ids
        self._home = home
        self._at_once = asyncio.Semaphore(2)

    async def propose(
        self,
        caller: Caller,
        *,
        name: str,
        branch: str,
        title: str,
        description: str = "",
        place: str | None = None,
        target: str | None = None,
        outcome: str | None = None,
    ) -> Answer:
        """Propose a branch of the calling run's clone as a change."""
        branch = branch_name(branch)
        refuse_secret("The description", description)
        refuse_secret("The title", title)
        first = await self._gate.first_answer(caller)
        if first is not None:
            return first
        about = await self._gate(
            caller, proposals.prepare, name=name, branch=branch, target=target, outcome=outcome
        )
        repo = about["repo"]
        around, copy = await self._copy_of(caller, repo, about["workspace"], place)
        async with (
            self._at_once,
            self._repos.fresh(repo) as mirror,
            self._quarantine(mirror) as quarantine,
        ):
            tip = await self._taken(quarantine, around, copy, branch)
            into = about["target"] or await mirror.head() or ""
            base = await quarantine.base(tip, into)
            touched = await quarantine.check(tip, base)
            is_same = await quarantine.have_same_files(tip, about["before"])
            who = CommitIdentity.of(**about["identity"])
            head = await quarantine.sign(tip, who, await self._repos.signer(repo, who))
            ref = f"refs/{about['remote_branch']}"
            bundle = await quarantine.bundle(ref, head, base)
            new_id = self._ids.new()
            content = await self._repos.library.keep(new_id, bundle)
            difference = await self._kept(await quarantine.difference(base, head))
            answer = await self._gate(
                caller,
                proposals.propose,
                name=name,
                branch=branch,
                title=title,
                description=description,
                target=into,
                base=base,
                head=head,
                outcome=outcome,
                new_id=new_id,
                new_stored=content,
                new_facts={
                    "paths": sorted(touched),
                    "same_files_as": about["before"] if is_same else None,
                    "difference": difference,
                },
            )
        if answer["commit"] != head:
            return {**answer, "note": _UNCHANGED.format(head=answer["commit"][:12])}
        # After the end of reading: a process that replaces the mirror waits for its readers, and
        # holds the lock for fetching, for which this waits.
        await mirror.take(bundle, ref)
        if head != tip:
            answer = {**answer, "note": _NOTE.format(head=head[:12], ref=branch)}
        return answer

    async def _kept(self, difference: bytes | None) -> Answer | None:
        """Store a difference; returns the id of its document, and its bytes as they are stored."""
        if difference is None:
            return None
        new_id = self._ids.new()
        return {"id": new_id, "stored": await self._repos.library.keep(new_id, difference)}

    async def _copy_of(
        self, caller: Caller, repo: Repo, workspace: str, place: str | None
    ) -> tuple[Path, Path]:
        """Return the folder that the sandbox shows, and the clone in it. Without a place, this is
        the lasting clone to which the agent was bound, if it is of this repository."""
        bound = await self._gate(caller, folders.of_run) if place is None else None
        if bound is not None and bound.repo_id == repo.id:
            lasting = conditions.place_of(self._home, bound)
            return lasting, lasting
        return Path(workspace), Path(workspace, place or repo.name)

    @asynccontextmanager
    async def _quarantine(self, mirror: Mirror) -> AsyncIterator[Quarantine]:
        async with self._repos.staged() as stage:
            await mirror.look("init", "--quiet", "--bare", "--template=", str(stage))
            (stage / "objects/info").mkdir(exist_ok=True)
            (stage / "objects/info/alternates").write_text(f"{mirror.path}/objects\n")
            yield Quarantine(mirror, stage)

    async def _taken(self, quarantine: Quarantine, workspace: Path, copy: Path, branch: str) -> str:
        """Copy a branch of the clone into the quarantine; returns its commit."""
        output = await _inside(
            workspace, copy, "rev-parse", "--verify", f"refs/heads/{branch}^{{commit}}"
        )
        tip = output.decode(errors="replace").strip()
        if not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", tip):
            raise BadInput(f"There is no branch {branch[:100]!r} there.", "Commit to it first.")
        if not await quarantine.has(tip):
            range_ = (f"refs/heads/{branch}", "--not", "--remotes")
            stream = await _inside(workspace, copy, "bundle", "create", "--quiet", "-", *range_)
            await quarantine.unpack(stream, f"refs/heads/{branch}", tip)
        return tip


_UNCHANGED = (
    "Nothing new was proposed: the files are those of the open proposal {head}. It stays as it is, "
    "and waits for its checks and its decision."
)
_NOTE = (
    "Remit wrote your name and its own into the commits, so they have other ids than in your copy: "
    "the proposal is {head}. Go on committing to {ref} where you are, or clone it with that ref."
)


async def _inside(workspace: Path, copy: Path, *arguments: str) -> bytes:
    """Run git in the clone of a run, in a sandbox like the run's; returns its bounded output."""
    settings = {"safe.directory": "*", "core.hooksPath": "/dev/null", "core.fsmonitor": "false"}
    home = Path(tempfile.mkdtemp(prefix="remit-git-"))
    env = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": "file",
        # The real history, without replacements, grafts and lazy fetches.
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_GRAFT_FILE": os.devnull,
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_CONFIG_COUNT": str(len(settings)),
    }
    for number, (key, value) in enumerate(settings.items()):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    command = sandbox_policy.wrap(
        [git.program(), "-C", str(copy), *arguments],
        env=env,
        workspace=workspace,
        home=home,
        cwd=workspace,
        view=View(network=False),
    )
    taken = bytearray()

    def take(piece: bytes) -> None:
        taken.extend(piece)
        if len(taken) > LARGEST_BUNDLE:
            raise TooLarge(
                f"The proposal has more than {LARGEST_BUNDLE >> 20} MiB.",
                "Propose less at once, and keep large files elsewhere.",
            )

    try:
        await git.run_command(
            command,
            env=sandbox_policy.outer(env),
            cwd=workspace,
            seconds=_SANDBOX_SECONDS,
            take=take,
        )
    except git.GitFailed as error:
        raise Conflict(
            f"git cannot read the branch in your copy: {error.said}.",
            "Commit to the branch in the folder that repo_clone made, and name both.",
        ) from error
    finally:
        # Programs in the clone may have left links in the home.
        await threads.FILES.run(destroy_workspace, home)
    return bytes(taken)
