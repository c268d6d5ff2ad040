"""Background jobs on this machine, with a limit of their own beside the runs of agents.

A job is one program, started like an agent's but without access to Remit: a text goes in, an answer
comes out, and nothing else is kept. It works where its sender works: in the folder that the board
bound to the sender, with the sender's tool chains, or else in a folder of its own. Each attempt has
a fresh workspace and home, deleted at its end.
"""

import asyncio
import logging
import os
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from remit import threads
from remit.adapters import registry
from remit.adapters.pace import Pace
from remit.adapters.running import RunResult, Usage
from remit.clock import Micros
from remit.errors import Conflict, NotFound, RemitError, Unsupported
from remit.model.execution.fault import Fault
from remit.model.execution.transcript import Entry
from remit.model.organisation.decision import deny
from remit.runtime.claims import Claims
from remit.runtime.deadlines import uninterrupted
from remit.runtime.runs import conditions
from remit.runtime.runs.context import Context
from remit.runtime.runs.execution import Instance, call, ended
from remit.runtime.runs.journal import Journal
from remit.runtime.runs.processes import end_leftovers_of_jobs
from remit.runtime.runs.workspace import destroy_workspace, materialise
from remit.services.command import Ask, Gate
from remit.services.execution import accounts, job_queue, run_queue
from remit.services.identity import as_system
from remit.services.queues import Held
from remit.services.redaction import Known
from remit.services.spending.budgets import OVER
from remit.store.blob_store.blobs import storage_error

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class JobFolder:
    """The folder of one attempt at a job, so that two attempts never share one."""

    root: Path
    job: str
    epoch: int

    @property
    def name(self) -> str:
        return f"{self.job}-{self.epoch}"

    @property
    def path(self) -> Path:
        return self.root / self.name

    @property
    def workspace(self) -> Path:
        return self.path / "work"

    @property
    def home(self) -> Path:
        return self.path / "home"

    def make(self) -> None:
        destroy_workspace(self.path)
        try:
            for folder in (self.workspace / ".tmp", self.home):
                folder.mkdir(mode=0o700, parents=True)
        except OSError as error:
            raise storage_error(error) from error

    def remove(self) -> None:
        """Remove the folder; one that cannot be removed is left and logged."""
        _remove(self.path)

    def clear(self) -> None:
        """Kill the leftover processes of a dead worker's attempt, and remove its folder."""
        end_leftovers_of_jobs(self.path)
        _remove(self.path)


async def recover(gate: Gate, root: Path, *, alone: bool) -> None:
    """After a start, kill leftover programs of a former instance, and requeue its jobs.

    Beside other workers on the same database, their jobs are left to them and to their leases.
    """
    held = await gate(as_system(), job_queue.running)
    living = set() if alone else {JobFolder(root, *claim).name for claim in held}
    await threads.ENDINGS.run(end_leftovers_of_jobs, root, living)
    for job, epoch in held if alone else ():
        try:
            await gate(as_system(), job_queue.take_over, job=job, epoch=epoch, alone=True)
        except Conflict:
            continue
    await threads.FILES.run(_tidy, root, living)


def _tidy(root: Path, living: set[str]) -> None:
    for folder in root.iterdir() if root.is_dir() else ():
        if folder.name not in living:
            _remove(folder)


def _remove(folder: Path) -> None:
    try:
        destroy_workspace(folder)
    except RemitError as error:
        log.warning("the folder of a background job is left: %s", error)


#: Longest title of an attachment.
_TITLE = 200


class Unkept(Journal):
    """A journal that drops its entries: only the answer of a job is kept."""

    def __init__(self) -> None:
        pass

    def tell(self, entry: Entry) -> None:
        del entry

    def add(self, text: str, stream: str) -> None:
        pass

    async def close(self) -> None:
        pass


@dataclass
class JobContext(Context):
    """The context of a job: a run without access to Remit."""

    background: bool = True
    folder: JobFolder | None = None
    #: How many tokens its sender may still use.
    tokens_left: int | None = None

    async def spend(self, spent: Usage, *, last: bool = False, turns: int | None = None) -> None:
        """Note the usage, which the sender pays at the end; stop a job that uses up the budget."""
        self.signs.note(self.run_id)
        self.spent = spent
        self.turns = turns or self.turns + 1
        used = spent.tokens_in + spent.tokens_out
        dear = self.money_left is not None and spent.cost_micros >= self.money_left
        if not last and (dear or (self.tokens_left is not None and used >= self.tokens_left)):
            deny(OVER, "The budget of its sender is used up.").enforce()

    async def reported(self) -> RunResult:
        raise Unsupported(
            "A background job cannot wait for the report of a remote agent.",
            "Return the result when the adapter's call ends.",
        )

    async def close(self) -> None:
        """End all processes of the job."""
        await self._end_children()
        if self.folder is not None and any(not child.sandboxed for child in self.children):
            leftovers = threads.ENDINGS.run(end_leftovers_of_jobs, self.folder.path)
            await self._put_away(leftovers, "what is left")
        await self._end_group()


@dataclass
class Spent:
    """Holder of a job's usage so far, for a job that is cut off."""

    context: JobContext | None = None

    @property
    def usage(self) -> Usage:
        return Usage() if self.context is None else self.context.spent


async def _execute(app: Instance, held: Held, folder: JobFolder, spent: Spent) -> RunResult:
    job, epoch = held
    known = await app.gate(as_system(), job_queue.material, job=job, epoch=epoch)
    adapter = registry.get(known.adapter_type)
    if not adapter.background:
        # Not a fault of the set-up.
        error = f"The adapter {adapter.type} cannot do background jobs."
        return RunResult(False, reason="unsupported", error=error, fault=Fault.AGENT)
    await threads.FILES.run(folder.make)
    text = await app.library.run(_text, app, folder.workspace, known)
    config = registry.read(known.adapter_type, known.adapter_config)
    name = getattr(config, "secret_ref", None)
    secret = await app.vault.value(known.agent["company_id"], name) if name else None
    lent = adapter.lending(config, os.environ)
    around = await conditions.prepare(app.settings.home, app.repos, known.folders)
    told = await threads.FILES.run(around.instructions)
    context = spent.context = JobContext(
        config=config,
        agent=known.agent,
        run_id=job,
        url="",
        token="",
        workspace=folder.workspace,
        home=folder.home,
        instructions="",
        turn=f"{told}{text}",
        session=None,
        credentials=lent.keys,
        beside=lent.beside,
        known=Known((*lent.hidden, *([secret] if secret else ()))),
        secret=secret,
        money_left=known.left.get("money"),
        tokens_left=known.left.get("tokens"),
        most_turns=known.limits["turns_per_run"],
        pace=Pace(
            turns=known.limits["turns_per_run"],
            repeats=known.limits["identical_calls"],
            failures=known.limits["failed_calls"],
        ),
        journal=Unkept(),
        gate=app.gate,
        may_have_full_access=known.full_access,
        hidden=[app.settings.home],
        conditions=around,
        folder=folder,
    )
    try:
        result = context.judged(await call(adapter, context))
    finally:
        await uninterrupted(context.close())
    return context.without_secrets(result)


def _text(app: Instance, workspace: Path, known: job_queue.Material) -> str:
    """Write the attachments as read-only files; return the sent text with a list of them."""
    blobs = app.library.blobs
    with blobs.open(*known.body) as stream:
        text = stream.read().decode(errors="replace")
    lines = [text if text.strip() else known.subject]
    if known.attachments:
        lines += ["", "Attachments:"]
    for file in known.attachments:
        with blobs.open(file.id, file.hash) as stream:
            if file.heading is not None:
                stream = BytesIO(file.heading.encode() + stream.read())
            place = materialise(workspace, file.id, stream)
        title = " ".join(str(file.description).split())[:_TITLE]
        lines.append(f"- {place} ({title})")
    return "\n".join(lines)


#: Jobs here whose lease has ended or was lost, and jobs that can begin.
Found = tuple[list[Held], list[str]]


class Jobs(Claims[None, Found]):
    """Executes jobs in the process of a worker; a setting limits how many at once."""

    verbs, noun = job_queue, "job"
    shortest = 0.03
    lease = run_queue.LEASE_TIME

    def __init__(self, app: Instance, *, at_once: int | None = None, **more: Any) -> None:
        super().__init__(app.gate, **more)
        self._app = app
        self.at_once = at_once or app.settings.background_jobs

    def _found(self, ask: Ask) -> Found:
        held, free = list(self._tasks), self.at_once - self.busy
        return (
            ask(job_queue.lost, held=held) if held else [],
            ask(job_queue.ready, limit=free, worker=self._name) if free > 0 else [],
        )

    async def _take(self, rows: Found) -> int:
        lost, ready = rows
        for held in lost:
            self._cancel(held)
        begun = 0
        for job in ready:
            begun += await uninterrupted(self._claim(job, None))
        return begun

    async def _claim(self, item: str, about: None) -> bool:
        try:
            return await super()._claim(item, about)
        except (Conflict, NotFound) as refusal:
            if refusal.reason == accounts.HELD:
                await self._do(job_queue.wait, job=item, worker=self._name)
            return False  # otherwise another worker was faster, or it was cancelled

    async def _work(self, held: Held, claimed: Any) -> None:
        del claimed  # its material is read when it begins
        folder = JobFolder(self._app.settings.job_folder, *held)
        spent = Spent()
        try:
            work = _execute(self._app, held, folder, spent)
            result = await ended(work, f"background job {held[0]}")
        except asyncio.CancelledError:
            await uninterrupted(self._put_back(held, folder, spent.usage))
            return
        await uninterrupted(self._end(held, folder, result))

    async def _end(self, held: Held, folder: JobFolder, result: RunResult) -> None:
        await self._say(
            job_queue.end,
            held,
            ok=result.ok,
            text=result.text,
            error=result.error or result.reason,
            usage=asdict(result.usage),
            reason=result.reason,
            fault=result.fault,
            until=result.until,
        )
        await threads.FILES.run(folder.remove)

    async def _put_back(self, held: Held, folder: JobFolder, spent: Usage) -> None:
        if self._stopping:
            await self._say(job_queue.put_back, held, usage=asdict(spent))
        await threads.FILES.run(folder.remove)

    async def _take_over_from(self, held: Held, until: Micros) -> None:
        await super()._take_over_from(held, until)
        # If that worker was on this machine, its programs may be, too.
        await threads.FILES.run(JobFolder(self._app.settings.job_folder, *held).clear)
