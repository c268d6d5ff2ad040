"""The context of a run: what its adapter is given, the programs that it starts, its usage and
journal, and the cleanup at its end."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from remit import threads
from remit.adapters.running import Child, RunContext, RunResult, Usage
from remit.errors import Conflict, RemitError, Unavailable, Unsupported
from remit.model.execution.transcript import MARK, Entry, EntryKind
from remit.model.organisation.decision import deny
from remit.runtime.deadlines import within
from remit.runtime.runs import homes
from remit.runtime.runs.conditions import Conditions
from remit.runtime.runs.conversations import Kept
from remit.runtime.runs.journal import Journal
from remit.runtime.runs.liveness import Signs
from remit.runtime.runs.processes import ChildProcess, end_leftovers
from remit.runtime.sandbox import cgroups, sandbox_policy
from remit.runtime.sandbox.mounts import View
from remit.runtime.sandbox.places import Place
from remit.services.command import Gate
from remit.services.execution import account_faults, runs
from remit.services.identity import as_system
from remit.services.redaction import Known
from remit.services.spending import budgets

T = TypeVar("T")
log = logging.getLogger(__name__)

#: Time limit of each step of the cleanup; a step that takes longer is abandoned.
CLOSE_SECONDS = 10.0
#: Between two looks for the report of a remote agent.
_LOOK_SECONDS = 0.25


@dataclass(kw_only=True)
class Context(RunContext):
    """A run on this machine: its programs run in the sandbox, and its usage is recorded."""

    journal: Journal
    gate: Gate
    may_have_full_access: bool
    #: Secrets of the run that are redacted from its output.
    known: Known
    #: Variables of MCP servers that are configured to be injected into the agent's programs.
    injected: Mapping[str, str] = field(default_factory=dict)
    #: Remit's own folders; no run sees them.
    hidden: Sequence[Path] = ()
    #: Its folders and variables beside its workspace and home.
    conditions: Conditions = field(default_factory=Conditions)
    recorded: Usage = field(default_factory=Usage)
    #: Number of requests to the model, as far as the adapter reports them.
    turns: int = 0
    #: Estimated cost so far in micros, from the price of earlier runs, if the adapter reports none.
    about: int = 0
    #: Why nothing more may be spent; None while the budget lasts.
    over: str | None = None
    #: Whether the first answer of the model shows that a closed account works again.
    probes: bool = False
    children: list[ChildProcess] = field(default_factory=list)
    #: The cgroup of its processes, where this machine supports one.
    group: cgroups.Group | None = None
    signs: Signs = field(default_factory=Signs)
    #: The processes from which its token is accepted; a job has no token.
    place: Place = field(default_factory=lambda: Place(""))
    #: The conversations that its program keeps, watched until the end.
    kept: Kept | None = None
    #: Why the conversation is not resumed, by what was found at the end.
    altered: str | None = None

    @property
    def starts_in(self) -> Path:
        own = getattr(self.config, "cwd", None) is not None
        return super().starts_in if own else self.conditions.work or self.workspace

    async def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path | None = None,
        stdin: bytes = b"",
        full_access: bool = False,
        lent: Mapping[Path, Path] | None = None,
        sealed: Sequence[Path] = (),
        unlogged: str | None = None,
    ) -> Child:
        folder = self.conditions.work or self.workspace
        folder = folder if cwd is None else self.workspace / cwd
        env = self.conditions.environment({**self.injected, **env})
        if full_access:
            if not self.may_have_full_access:
                deny("no_full_access", "This agent has no full access to the machine.").enforce(
                    "Set sandbox to workspace, or let the board grant full_access."
                )
            command = sandbox_policy.tie_to_parent(sandbox_policy.limits(argv))
            self.place.anywhere = True  # it has the whole machine, and may leave its parent
        else:
            command = sandbox_policy.wrap(
                argv,
                env=env,
                workspace=self.workspace,
                home=self.home,
                cwd=folder,
                hidden=self.hidden,
                lent=lent,
                view=self._view(sealed),
            )
            env = sandbox_policy.outer(env)
        child: ChildProcess | None = None
        self.complaint = ""
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

    def _view(self, sealed: Sequence[Path]) -> View:
        view = self.conditions.view
        covered = [*view.covered, *(sealed if sandbox_policy.can_cover() else ())]
        return replace(view, read={**view.read, **dict.fromkeys(self.skills, ())}, covered=covered)

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
            step = "It goes on with the next month, or when the budget is raised."
            deny(budgets.OVER, self.over).enforce(step)

    def _tell_of_the_turn(self) -> None:
        turn = Entry(EntryKind.TURN, turn=self.turns, **asdict(self.spent))
        if self.about and not self.spent.cost_micros:
            turn = replace(turn, cost_micros=self.about, cost_estimated=True)
        self.tell(turn)

    async def _tell_that_it_answers(self) -> None:
        """Report the first answer of a probed account, so that others need not wait for the end."""
        if self.probes:
            self.probes = False
            with contextlib.suppress(Conflict):
                await self.gate(as_system(), account_faults.answered, run=self.run_id)

    async def _record(self) -> None:
        """Store the usage so far, so that it survives the end of the run or of this process."""
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
        """Return the command, started within the run's cgroup and its limits."""
        megabytes = getattr(self.config, "memory_mb", None)
        memory = None if megabytes is None else int(megabytes) << 20
        if memory is not None and cgroups.MEMORY not in cgroups.look().bound:
            raise Unsupported(
                "The memory of a run cannot be bounded on this machine.",
                "Let the worker have a cgroup of its own, or set memoryMb to null.",
                code="no_memory_bound",
            )
        if self.group is None:
            self.group = cgroups.create(
                self.run_id, processes=sandbox_policy.MOST_PROCESSES, memory=memory
            )
        if self.group is None and memory is not None:
            raise Unavailable("The memory of this run could not be bounded.")
        return command if self.group is None else self.group.join(command)

    def judged(self, result: RunResult) -> RunResult:
        """Return the result; that of a failed run with the reason if its memory was exceeded."""
        if self.group is None:
            return result
        if self.group.had_too_many_processes():
            self.log(f"It wanted more than {sandbox_policy.MOST_PROCESSES} processes at once.")
        if not self.group.ran_out_of_memory():
            return result
        sentence = f"it took more memory than its {getattr(self.config, 'memory_mb', 0)} MiB"
        self.log(f"Some of it was ended: {sentence}.")
        return result if result.ok else replace(result, reason="memory", error=sentence)

    def advised(self, result: RunResult) -> RunResult:
        """Return the result; that of a failed run with the adapter's advice in its error."""
        if result.ok or not self.advice:
            return result
        error = f"{(result.error or 'It failed').rstrip('.')}. {self.advice}"
        return replace(result, error=error)

    def without_secrets(self, result: RunResult) -> RunResult:
        error = None if result.error is None else self.known.out_of(result.error)
        return replace(result, text=self.known.out_of(result.text), error=error)

    async def reported(self) -> RunResult:
        """Poll the database for the report; the caller limits the time."""
        while (report := await self.gate(as_system(), runs.read_report, run=self.run_id)) is None:  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_SECONDS)  # another process may receive it
        tokens = (report["tokens_in"], report["tokens_out"], report["tokens_cached"])
        return RunResult(
            *(report["ok"], report["text"], report["reason"], report["error"]),
            usage=Usage(*tokens, report["cost_micros"]),
            session=report["session"],
            fault=report["fault"],
            until=report["fault_until"],
            acted=True,  # elsewhere, where nobody sees it
        )

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
        if stream == "stderr":
            # A message of several lines may come in pieces.
            self.complaint = f"{self.complaint}\n{text}".strip()[-500:]
        self.journal.add(text, stream)

    def log(self, text: str, stream: str = "remit") -> None:
        self.signs.note(self.run_id)
        # Escaped, so that a quoted line cannot pass for a journal entry of Remit.
        text = f"\n{text}".replace(f"\n{MARK}", f"\n {MARK}")[1:]
        self.journal.add(text.rstrip("\n") + "\n", stream)

    def tell(self, entry: Entry) -> None:
        self.signs.note(self.run_id)
        self.journal.tell(entry)

    async def close(self) -> None:
        """End every process of the run, record its usage, and store its log."""
        await self._end_children()
        if any(not child.sandboxed for child in self.children):
            await self._put_away(threads.ENDINGS.run(end_leftovers, {self.run_id}), "what is left")
        try:
            await self._put_away(self._record(), "what it took")
        except RemitError as error:
            log.warning("what run %s took is not known in full: %s", self.run_id, error)
        await self._end_group()
        if self.kept is not None:
            self.altered = "it could not be looked at in time"
            await self._put_away(self._look_at_conversation(self.kept), "the conversation")
        await self._put_away(self.journal.close(), "the log")

    async def _look_at_conversation(self, kept: Kept) -> None:
        self.altered = await kept.end(self.turn)
        if self.altered is not None:
            self.log(f"The conversation is not resumed: {self.altered}. The next run begins anew.")

    async def _end_children(self) -> None:
        ending = (child.end() for child in self.children)
        await self._put_away(asyncio.gather(*ending, return_exceptions=True), "a program")

    async def _end_group(self) -> None:
        if self.group is not None:
            await self._put_away(threads.ENDINGS.run(self.group.end), "the cgroup")

    async def _put_away(self, work: Awaitable[T], what: str) -> None:
        """Bound a step of the end: the run ends even if the step hangs."""
        await within(CLOSE_SECONDS, work, f"{what} of run {self.run_id}")
