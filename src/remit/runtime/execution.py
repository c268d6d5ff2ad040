"""One run, from the claim to the last word."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from remit.adapters import registry
from remit.adapters.contract import Adapter
from remit.adapters.running import Child, RunContext, RunResult, Usage
from remit.clock import Clock
from remit.errors import Refused, RemitError, Unavailable, Unsupported
from remit.ids import Ids
from remit.runtime import cgroups, prompt, sandbox
from remit.runtime.journal import Journal
from remit.runtime.processes import ChildProcess, end_leftovers
from remit.runtime.reports import wait_for_report
from remit.runtime.sessions import resumable
from remit.runtime.workspace import create_workspace
from remit.services import claiming, inbox, overview
from remit.services.command import Gate
from remit.services.identity import Caller, as_system
from remit.services.library import Library
from remit.settings import Settings

T = TypeVar("T")
log = logging.getLogger(__name__)

DEFAULT_TIMEOUT = 3600
#: A conversation in which so many runs failed is not gone on with: it may be what is wrong.
MOST_FAILURES_OF_SESSION = 2


class Instance(Protocol):
    """What a worker needs of the instance it works for."""

    settings: Settings
    clock: Clock
    ids: Ids
    gate: Gate
    library: Library


@dataclass(frozen=True)
class Claimed:
    """What a worker holds while a run lasts."""

    run_id: str
    agent_id: str
    company_id: str
    token: str
    epoch: int
    seen: int
    workspace: Path


@dataclass
class Context(RunContext):
    config: Any
    agent: Mapping[str, Any]
    run_id: str
    url: str
    token: str
    workspace: Path
    home: Path
    instructions: str
    turn: str
    session: str | None
    credentials: Mapping[str, str]
    journal: Journal
    gate: Gate
    may_have_full_access: bool
    #: What is Remit's own; no run sees it.
    hidden: Sequence[Path] = ()
    spent: Usage = field(default_factory=Usage)
    children: list[ChildProcess] = field(default_factory=list)
    #: All its processes together, where that can be.
    group: cgroups.Group | None = None

    async def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path | None = None,
        stdin: bytes = b"",
        full_access: bool = False,
        lent: Mapping[Path, Path] | None = None,
    ) -> Child:
        folder = self.workspace if cwd is None else self.workspace / cwd
        if full_access:
            if not self.may_have_full_access:
                raise Refused(
                    "This agent has no full access to the machine.",
                    "Set sandbox to workspace, or let the board grant full_access.",
                    code="no_full_access",
                )
            command = sandbox.tie_to_parent(sandbox.limits(argv))
        else:
            command = sandbox.wrap(
                argv,
                env=env,
                workspace=self.workspace,
                home=self.home,
                cwd=folder,
                hidden=self.hidden,
                lent=lent,
            )
        child = await ChildProcess.begin(
            self._bounded(command),
            env=env,
            cwd=folder,
            stdin=stdin,
            log=self._heard,
            sandboxed=not full_access,
        )
        self.children.append(child)
        return child

    def _bounded(self, command: list[str]) -> list[str]:
        """The same command, together with all others of the run within its bounds."""
        memory = self._most_memory()
        if memory is not None and cgroups.MEMORY not in cgroups.look().bound:
            raise Unsupported(
                "The memory of a run cannot be bounded on this machine.",
                "Let the worker have a cgroup of its own, or set memoryMb to null.",
                code="no_memory_bound",
            )
        if self.group is None:
            self.group = cgroups.create(
                self.run_id, processes=sandbox.MOST_PROCESSES, memory=memory
            )
        if self.group is None and memory is not None:
            raise Unavailable("The memory of this run could not be bounded.")
        return command if self.group is None else self.group.join(command)

    def _most_memory(self) -> int | None:
        megabytes = getattr(self.config, "memory_mb", None)
        return None if megabytes is None else int(megabytes) << 20

    def judged(self, result: RunResult) -> RunResult:
        """The result, with the reason that only the machine knows."""
        if self.group is None:
            return result
        if self.group.had_too_many_processes():
            self.log(f"It wanted more than {sandbox.MOST_PROCESSES} processes at once.")
        if not self.group.ran_out_of_memory():
            return result
        sentence = f"it took more memory than its {getattr(self.config, 'memory_mb', 0)} MiB"
        self.log(f"Some of it was ended: {sentence}.")
        return result if result.ok else replace(result, reason="memory", error=sentence)

    async def reported(self) -> RunResult:
        return await wait_for_report(self.gate, self.run_id)

    def _heard(self, text: str, stream: str) -> None:
        if stream == "stderr" and text.strip():
            self.complaint = text.strip()[-500:]
        self.journal.add(text, stream)

    def log(self, text: str, stream: str = "remit") -> None:
        self.journal.add(text.rstrip("\n") + "\n", stream)

    async def close(self) -> None:
        """Whatever happened, nothing of the run stays alive, and what it printed is kept."""
        await asyncio.gather(*(child.end() for child in self.children), return_exceptions=True)
        if any(not child.sandboxed for child in self.children):
            await asyncio.to_thread(end_leftovers, {self.run_id})
        if self.group is not None:
            await asyncio.to_thread(self.group.end)
        await self.journal.close()


async def execute(app: Instance, url: str, claimed: Claimed) -> RunResult:
    """Carry a run out and say how it ended; only being cancelled is not an end like others."""
    try:
        return await _execute(app, url, claimed)
    except RemitError as error:
        return RunResult(False, reason=error.reason, error=error.sentence)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return RunResult(False, reason="storage", error=f"its folders cannot be used ({reason})")
    except Exception as error:
        log.exception("run %s could not be carried out", claimed.run_id)
        return RunResult(False, reason="internal", error=f"Remit failed ({error!r})"[:500])


async def _execute(app: Instance, url: str, claimed: Claimed) -> RunResult:
    create_workspace(claimed.workspace.parent, claimed.workspace.name)
    briefing = await app.gate(as_system(), claiming.briefing, run=claimed.run_id)
    adapter = registry.get(briefing["agent"]["adapter_type"])
    context = await _prepare(app, url, claimed, briefing, adapter)
    try:
        result = context.judged(await _call(adapter, context))
    finally:
        await uninterrupted(context.close())
    await _keep_session(app, briefing, context, result)
    return result


async def _prepare(
    app: Instance, url: str, claimed: Claimed, briefing: Mapping[str, Any], adapter: Adapter
) -> Context:
    agent = briefing["agent"]
    config = registry.read(agent["adapter_type"], agent["adapter_config"])
    caller = Caller(claimed.token)
    taken = await app.gate(caller, inbox.turn)
    offers = await app.gate(caller, overview.offered)
    policy = getattr(config, "session_policy", None)
    session = None
    if briefing["failures"] < MOST_FAILURES_OF_SESSION and resumable(
        briefing["session"], policy, agent["adapter_type"], briefing["now"]
    ):
        session = briefing["session"]["session_id"]
    memory = "" if session else await _memory(app, caller, agent)
    home = app.settings.home / "agents" / claimed.agent_id
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    (claimed.workspace / ".tmp").mkdir(mode=0o700, exist_ok=True)
    lent = {name: os.environ[name] for name in adapter.lends if os.environ.get(name)}
    return Context(
        config=config,
        agent=agent,
        run_id=claimed.run_id,
        url=url,
        token=claimed.token,
        workspace=claimed.workspace,
        home=home,
        instructions=prompt.instructions(
            agent=agent,
            boss=briefing["boss"],
            company=briefing["company"],
            can=offers,
        ),
        turn=prompt.turn(taken["text"], mail=bool(taken["ids"]), memory=memory),
        session=session,
        credentials=lent,
        journal=Journal(app.gate, app.clock, claimed.run_id, (claimed.token, *lent.values())),
        gate=app.gate,
        may_have_full_access=briefing["full_access"],
        hidden=[app.settings.home],
    )


async def _call(adapter: Adapter, context: Context) -> RunResult:
    seconds = getattr(context.config, "timeout_seconds", DEFAULT_TIMEOUT)
    try:
        async with asyncio.timeout(seconds) as limit:
            return await adapter.run(context)
    except RemitError as error:
        reason, sentence = error.reason, error.sentence
    except Exception as error:
        if limit.expired():
            reason, sentence = "timeout", f"it took longer than {seconds} seconds"
        else:
            log.exception("the adapter %s failed in run %s", adapter.type, context.run_id)
            reason, sentence = "adapter", f"its adapter failed ({error!r})"[:500]
    return RunResult(False, reason=reason, error=sentence, usage=context.spent)


async def _memory(app: Instance, caller: Caller, agent: Mapping[str, Any]) -> str:
    """The agent's state document, as it left it."""
    try:
        _, content = await app.library.read(caller, file=agent["state_file_id"])
    except RemitError:
        return ""
    return content.decode(errors="replace").strip()


async def _keep_session(
    app: Instance, briefing: Mapping[str, Any], context: Context, result: RunResult
) -> None:
    if getattr(context.config, "session_policy", None) is None:
        return
    before = briefing["session"] if context.session else None
    try:
        await app.gate(
            as_system(),
            claiming.keep_session,
            run=context.run_id,
            adapter_type=context.agent["adapter_type"],
            session_id=result.session if result.ok else context.session,
            begun_at=before["begun_at"] if before else briefing["now"],
            context_tokens=result.context_tokens or (before["context_tokens"] if before else 0),
        )
    except RemitError as error:
        log.warning("the session of run %s is not kept: %s", context.run_id, error)


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """Finish it, however often we are cancelled meanwhile; then be cancelled."""
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
    return task.result()


def report(result: RunResult) -> dict[str, Any]:
    """What is kept of a result."""
    return {
        "session_id": result.session,
        "final_response": result.text or None,
        "context_length": result.context_tokens,
        "tokens_in": result.usage.tokens_in,
        "tokens_out": result.usage.tokens_out,
        "tokens_cached": result.usage.tokens_cached,
        "cost_micros": result.usage.cost_micros,
        "exit_reason": result.reason,
        "error": result.error,
    }
