"""One run, from the claim to the last word."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from remit import threads
from remit.adapters import registry
from remit.adapters.contract import Adapter
from remit.adapters.pace import Pace
from remit.adapters.running import Child, RunContext, RunResult, Usage
from remit.clock import Clock
from remit.errors import BadInput, Conflict, Refused, RemitError, Unavailable, Unsupported
from remit.ids import Ids
from remit.model.fault import Fault
from remit.model.limit import RUNAWAY
from remit.model.secret import filled, named_in
from remit.model.transcript import MARK, Entry, EntryKind
from remit.runtime import cgroups, homes, prompt, sandbox
from remit.runtime.deadlines import leave_behind, within
from remit.runtime.journal import Journal
from remit.runtime.kept import Kept
from remit.runtime.memory import remembered
from remit.runtime.places import Place, Places
from remit.runtime.processes import ChildProcess, end_leftovers
from remit.runtime.reports import wait_for_report
from remit.runtime.secrets import Vault
from remit.runtime.sessions import resumable
from remit.runtime.signs import Signs
from remit.runtime.streaks import Streaks
from remit.runtime.workspace import create_workspace
from remit.services import accounts, budgets, claiming, inbox, mcp_servers, overview
from remit.services.command import Gate
from remit.services.identity import Caller, as_system
from remit.services.library import Library
from remit.services.redaction import Known
from remit.services.redaction import error_without_secrets as told
from remit.services.run_endings import CONTEXT_FULL
from remit.settings import Settings

T = TypeVar("T")
log = logging.getLogger(__name__)

DEFAULT_TIMEOUT = 3600
#: A conversation in which so many runs failed is not gone on with: it may be what is wrong.
MOST_FAILURES_OF_SESSION = 2
#: For each thing that is put away after a run; what takes longer is left behind.
CLOSE_SECONDS = 10.0
#: For an adapter to give up what it is doing when it is told to.
LET_GO_SECONDS = 3.0


class Instance(Protocol):
    """What a worker needs of the instance it works for."""

    settings: Settings
    clock: Clock
    ids: Ids
    gate: Gate
    library: Library
    vault: Vault
    kept: Kept
    streaks: Streaks
    signs: Signs
    places: Places


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
    #: Whether it finds out if a closed account works again.
    probe: bool = False


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
    #: What must not be seen of the run.
    known: Known
    secret: str | None = None
    beside: Mapping[str, str] = field(default_factory=dict)
    #: Variables of MCP servers that were set up to be given to the agent's own programs.
    injected: Mapping[str, str] = field(default_factory=dict)
    #: What is Remit's own; no run sees it.
    hidden: Sequence[Path] = ()
    #: What is left to spend, in millionths of a dollar.
    money_left: int | None = None
    most_turns: int | None = None
    pace: Pace = field(default_factory=Pace)
    spent: Usage = field(default_factory=Usage)
    recorded: Usage = field(default_factory=Usage)
    #: How often the model was asked, as far as its adapter says so.
    turns: int = 0
    #: What it has cost so far by what earlier runs cost, if nobody says, as money above.
    about: int = 0
    #: Why nothing more may be spent.
    over: str | None = None
    #: Whether the first answer of the model shows that a closed account works again.
    probes: bool = False
    children: list[ChildProcess] = field(default_factory=list)
    #: All its processes together, where that can be.
    group: cgroups.Group | None = None
    signs: Signs = field(default_factory=Signs)
    #: Where its token is good; a job has none.
    place: Place = field(default_factory=lambda: Place(""))

    async def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path | None = None,
        stdin: bytes = b"",
        full_access: bool = False,
        lent: Mapping[Path, Path] | None = None,
        unlogged: str | None = None,
    ) -> Child:
        folder = self.workspace if cwd is None else self.workspace / cwd
        env = {**self.injected, **env}
        if full_access:
            if not self.may_have_full_access:
                raise Refused(
                    "This agent has no full access to the machine.",
                    "Set sandbox to workspace, or let the board grant full_access.",
                    code="no_full_access",
                )
            command = sandbox.tie_to_parent(sandbox.limits(argv))
            self.place.anywhere = True  # it has the whole machine, and may leave its parent
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
            env = sandbox.outer(env)
        child: ChildProcess | None = None
        bounded = self._bounded(command)
        self.place.begin()
        try:
            child = await ChildProcess.begin(
                bounded,
                env=env,
                cwd=folder,
                stdin=stdin,
                log=self._heard if unlogged is None else self._without(unlogged),
                sandboxed=not full_access,
            )
            self.children.append(child)
        finally:
            self.place.begun(None if child is None else child.pid)
        return child

    async def forget(self, name: str, keep: Sequence[str] = ()) -> None:
        await threads.FILES.run(homes.forget, self.home, name, keep)

    async def spend(self, spent: Usage, *, last: bool = False, turns: int | None = None) -> None:
        self.signs.note(self.run_id)
        self.spent = spent
        self.turns = turns or self.turns + 1
        await self._tell_that_it_answers()
        await self._record()
        self._tell_of_the_turn()
        if self.over is not None and not last:
            raise Refused(
                self.over,
                "It goes on with the next month, or when the budget is raised.",
                code=budgets.OVER,
            )

    def _tell_of_the_turn(self) -> None:
        turn = Entry(EntryKind.TURN, turn=self.turns, **asdict(self.spent))
        if self.about and not self.spent.cost_micros:
            turn = replace(turn, cost_micros=self.about, cost_estimated=True)
        self.tell(turn)

    async def _tell_that_it_answers(self) -> None:
        """Others wait for the same account, and are not to wait until the run is over."""
        if self.probes:
            self.probes = False
            with contextlib.suppress(Conflict):
                await self.gate(as_system(), accounts.answered, run=self.run_id)

    async def _record(self) -> None:
        """So that it is known whatever becomes of the run, and of this process."""
        if self.spent == self.recorded:
            return
        answer = await self.gate(
            as_system(), budgets.spend, run=self.run_id, total=asdict(self.spent)
        )
        self.recorded = self.spent
        self.over = answer["over"]
        self.about = answer["about_micros"]
        self.money_left = answer["left"].get("money")

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

    def _without(self, start: str) -> Callable[[str, str], None]:
        def heard(text: str, stream: str) -> None:
            if stream == "stdout" and start in text:
                kept = [line for line in text.splitlines(True) if not line.startswith(start)]
                text = "".join(kept)
            if text:
                self._heard(text, stream)

        return heard

    def _heard(self, text: str, stream: str) -> None:
        self.signs.note(self.run_id)
        if stream == "stderr" and text.strip():
            self.complaint = text.strip()[-500:]
        self.journal.add(text, stream)

    def log(self, text: str, stream: str = "remit") -> None:
        self.signs.note(self.run_id)
        # What is only quoted is not taken for an entry of Remit.
        text = f"\n{text}".replace(f"\n{MARK}", f"\n {MARK}")[1:]
        self.journal.add(text.rstrip("\n") + "\n", stream)

    def tell(self, entry: Entry) -> None:
        self.signs.note(self.run_id)
        self.journal.tell(entry)

    async def close(self) -> None:
        """Whatever happened, nothing of the run stays alive, and what it printed is kept."""
        await self._end_children()
        if any(not child.sandboxed for child in self.children):
            await self._put_away(threads.ENDINGS.run(end_leftovers, {self.run_id}), "what is left")
        try:
            await self._put_away(self._record(), "what it took")
        except RemitError as error:
            log.warning("what run %s took is not known in full: %s", self.run_id, error)
        await self._end_group()
        await self._put_away(self.journal.close(), "the log")

    async def _end_children(self) -> None:
        ending = (child.end() for child in self.children)
        await self._put_away(asyncio.gather(*ending, return_exceptions=True), "a program")

    async def _end_group(self) -> None:
        if self.group is not None:
            await self._put_away(threads.ENDINGS.run(self.group.end), "the cgroup")

    async def _put_away(self, work: Awaitable[T], what: str) -> None:
        """Whatever hangs, the run ends: its agent is waited for, and so may be the instance."""
        await within(CLOSE_SECONDS, work, f"{what} of run {self.run_id}")


class _Faulty(Exception):
    """A run that is over before it began, with the fault of it."""

    def __init__(self, result: RunResult) -> None:
        super().__init__(result.error)
        self.result = result


async def execute(app: Instance, url: str, claimed: Claimed) -> RunResult:
    """Carry a run out and say how it ended; only being cancelled is not an end like others."""
    try:
        return await _execute(app, url, claimed)
    except _Faulty as faulty:
        return faulty.result
    except RemitError as error:
        return RunResult(False, reason=error.reason, error=error.sentence)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return RunResult(False, reason="storage", error=f"its folders cannot be used ({reason})")
    except Exception as error:
        log.exception("run %s could not be carried out", claimed.run_id)
        return RunResult(False, reason="internal", error=f"Remit failed ({told(error)})")


async def _execute(app: Instance, url: str, claimed: Claimed) -> RunResult:
    create_workspace(claimed.workspace.parent, claimed.workspace.name)
    briefing = await app.gate(as_system(), claiming.briefing, run=claimed.run_id)
    adapter = _adapter(briefing["agent"])
    context = await _prepare(app, url, claimed, briefing, adapter)
    app.places.open(claimed.token, context.place)
    try:
        result = context.judged(await call(adapter, context))
    finally:
        app.places.close(claimed.token)
        await uninterrupted(context.close())
    await _keep_session(app, briefing, context, result)
    return replace(
        result,
        text=context.known.out_of(result.text),
        error=None if result.error is None else context.known.out_of(result.error),
    )


def _adapter(agent: Mapping[str, Any]) -> Adapter:
    """The adapter of an agent, if there is one and it takes the agent's settings."""
    if agent["adapter_type"] not in registry.types():
        raise Unsupported(
            f"There is no adapter {agent['adapter_type']!r} here.",
            "Install it, or choose another.",
            code="no_adapter",
        )
    try:
        registry.read(agent["adapter_type"], agent["adapter_config"])
    except BadInput as error:
        raise BadInput(error.sentence, error.step, code="bad_configuration") from None
    return registry.get(agent["adapter_type"])


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
    memory = [] if session else await remembered(app, caller, agent)
    home = homes.set_up(app.settings.home, claimed.agent_id)
    (claimed.workspace / ".tmp").mkdir(mode=0o700, exist_ok=True)
    lent = adapter.lending(config, os.environ)
    secret = await _own_secret(app, claimed, config)
    injected, values = await _injected(app, claimed)
    known = Known((claimed.token, *lent.hidden, *values, *([secret] if secret else ())))
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
            mandate=briefing["mandate"],
            can=offers,
        ),
        turn=prompt.turn(
            taken["text"],
            situation=briefing["situation"],
            mail=bool(taken["ids"]),
            memory=memory,
        ),
        session=session,
        credentials=lent.keys,
        beside=lent.beside,
        journal=Journal(app.gate, app.clock, claimed.run_id, known, adapter.reader()),
        gate=app.gate,
        may_have_full_access=briefing["full_access"],
        money_left=briefing["left"].get("money"),
        most_turns=briefing["limits"]["turns_per_run"],
        pace=_pace(app, claimed, briefing["limits"]),
        known=known,
        secret=secret,
        injected=injected,
        hidden=[app.settings.home],
        probes=claimed.probe,
        signs=app.signs,
        place=Place(claimed.run_id, anywhere=adapter.remote),
    )


def _pace(app: Instance, claimed: Claimed, limits: Mapping[str, int | None]) -> Pace:
    """What a run does with other tools than Remit's is seen by its adapter alone."""
    return Pace(
        turns=limits["turns_per_run"],
        repeats=limits["identical_calls"],
        elsewhere=lambda: app.streaks.interrupt(claimed.run_id),
    )


async def _own_secret(app: Instance, claimed: Claimed, config: Any) -> str | None:
    """The one that the agent's configuration names; whoever set that up was allowed to."""
    name = getattr(config, "secret_ref", None)
    if name is None:
        return None
    try:
        return await app.vault.value(claimed.company_id, name)
    except RemitError as error:
        raise _Faulty(
            RunResult(False, reason=error.reason, error=error.sentence, fault=Fault.AUTH)
        ) from error


async def _injected(app: Instance, claimed: Claimed) -> tuple[dict[str, str], list[str]]:
    """Variables for the agent's own programs, and the secrets in them."""
    given: dict[str, str] = {}
    secrets: dict[str, str] = {}
    for server in await app.gate(
        as_system(), mcp_servers.injected, company=claimed.company_id, agent=claimed.agent_id
    ):
        values = await app.vault.values(claimed.company_id, named_in(server.templates.values()))
        secrets |= values
        given |= server.settings
        given |= {name: filled(text, values) for name, text in server.templates.items()}
    return given, list(secrets.values())


async def call(adapter: Adapter, context: Context) -> RunResult:
    """Let an adapter carry out a run, in the time its configuration gives it."""
    context.signs.begin(context.run_id)
    # Of its own, so that one that does not let itself be cancelled keeps nobody.
    working = asyncio.create_task(adapter.run(context))
    try:
        given_up = await _watch(working, context)
        if given_up is None and not working.cancelled():
            return working.result()
        reason, sentence = given_up or ("adapter", "its adapter gave up by itself")
    except RemitError as error:
        reason, sentence = error.reason, error.sentence
    except Exception as error:
        log.exception("the adapter %s failed in run %s", adapter.type, context.run_id)
        reason, sentence = "adapter", f"its adapter failed ({told(error)})"
    finally:
        context.signs.forget(context.run_id)
        await uninterrupted(_let_go(working, adapter, context.run_id))
    return RunResult(False, reason=reason, error=sentence, usage=context.spent)


async def _watch(working: asyncio.Task[RunResult], context: Context) -> tuple[str, str] | None:
    """Wait for the end of it; why it is given up, if it took or was silent for too long."""
    seconds = getattr(context.config, "timeout_seconds", DEFAULT_TIMEOUT)
    quiet = getattr(context.config, "silence_seconds", None)
    end = time.monotonic() + seconds
    while not working.done():
        left = end - time.monotonic()
        if left <= 0:
            return "timeout", f"it took longer than {seconds} seconds"
        if quiet is not None:
            patience = quiet - context.signs.silence(context.run_id)
            if patience <= 0:
                return "silent", f"nothing was heard of it for {quiet} seconds"
            left = min(left, patience)
        await asyncio.wait([working], timeout=left)
    return None


async def _let_go(working: asyncio.Task[RunResult], adapter: Adapter, run: str) -> None:
    if working.done():
        return
    working.cancel()
    await asyncio.wait([working], timeout=LET_GO_SECONDS)
    if not working.done():
        log.error("the adapter %s does not let go of run %s; it is left behind", adapter.type, run)
        leave_behind(working)
    elif not working.cancelled() and (error := working.exception()) is not None:
        log.info("run %s was cancelled while its adapter failed: %r", run, error)


async def _keep_session(
    app: Instance, briefing: Mapping[str, Any], context: Context, result: RunResult
) -> None:
    if getattr(context.config, "session_policy", None) is None:
        return
    before = briefing["session"] if context.session else None
    kept = result.session if result.ok else context.session
    if result.reason == CONTEXT_FULL:
        kept = None  # the next begins anew, with what the agent wrote down
    try:
        await app.gate(
            as_system(),
            claiming.keep_session,
            run=context.run_id,
            adapter_type=context.agent["adapter_type"],
            session_id=kept,
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
        "fault": result.fault or RUNAWAY.get(result.reason),
        "fault_until": result.until,
    }
