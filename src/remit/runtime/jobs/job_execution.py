"""One background job, from the claim to its answer.

A job works where its sender works: in the folder that the board bound to the sender, with the
sender's tool chains, or else in a folder of its own.
"""

import os
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from remit import threads
from remit.adapters import registry
from remit.adapters.pace import Pace
from remit.adapters.running import RunResult, Usage
from remit.errors import Unsupported
from remit.model.execution.fault import Fault
from remit.model.execution.transcript import Entry
from remit.model.organisation.decision import deny
from remit.runtime.deadlines import uninterrupted
from remit.runtime.jobs.job_folders import JobFolder
from remit.runtime.runs import conditions
from remit.runtime.runs.context import Context
from remit.runtime.runs.execution import Instance, call, ended
from remit.runtime.runs.journal import Journal
from remit.runtime.runs.processes import end_leftovers_of_jobs
from remit.runtime.runs.workspace import materialise
from remit.services.execution import job_queue
from remit.services.identity import as_system
from remit.services.queues import Held
from remit.services.redaction import Known
from remit.services.spending.budgets import OVER

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


async def execute(app: Instance, held: Held, folder: JobFolder, spent: Spent) -> RunResult:
    """Execute a job; returns its result, also for a failure."""
    return await ended(_execute(app, held, folder, spent), f"background job {held[0]}")


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
    context = spent.context = JobContext(
        config=config,
        agent=known.agent,
        run_id=job,
        url="",
        token="",
        workspace=folder.workspace,
        home=folder.home,
        instructions="",
        turn=text,
        session=None,
        credentials=lent.keys,
        beside=lent.beside,
        known=Known((*lent.hidden, *([secret] if secret else ()))),
        secret=secret,
        money_left=known.left.get("money"),
        tokens_left=known.left.get("tokens"),
        most_turns=known.limits["turns_per_run"],
        pace=Pace(turns=known.limits["turns_per_run"], repeats=known.limits["identical_calls"]),
        journal=Unkept(),
        gate=app.gate,
        may_have_full_access=known.full_access,
        hidden=[app.settings.home],
        conditions=await conditions.prepare(app.settings.home, app.repos, known.folders),
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
