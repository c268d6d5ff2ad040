"""Executor of background jobs, with a limit of its own beside the runs of agents.

A job is one program, started like an agent's but without access to Remit: a text goes in, an answer
comes out, and nothing else is kept.
"""

import asyncio
from dataclasses import asdict
from typing import Any

from remit import threads
from remit.adapters.running import RunResult, Usage
from remit.clock import Micros
from remit.errors import Conflict, NotFound
from remit.runtime.claims import Claims
from remit.runtime.deadlines import uninterrupted
from remit.runtime.jobs.job_execution import Spent, execute
from remit.runtime.jobs.job_folders import JobFolder
from remit.runtime.runs.execution import Instance
from remit.services.command import Ask
from remit.services.execution import accounts, job_queue, run_queue
from remit.services.queues import Held

#: Shortest time between two rounds, which batches the many changes that do not concern jobs.
SHORTEST_SLEEP = 0.03


#: Jobs here whose lease has ended or was lost, and jobs that can begin.
Found = tuple[list[Held], list[str]]


class Jobs(Claims[None, Found]):
    """Executes jobs in the process of a worker; a setting limits how many at once."""

    def __init__(
        self,
        app: Instance,
        *,
        name: str = "local",
        at_once: int | None = None,
        lease: Micros = run_queue.LEASE_TIME,
    ) -> None:
        self._app = app
        self.at_once = at_once or app.settings.background_jobs
        more: dict[str, Any] = {"shortest": SHORTEST_SLEEP, "name": name, "lease": lease}
        super().__init__(app.gate, job_queue, "job", "the loop of jobs", **more)

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
            result = await execute(self._app, held, folder, spent)
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
