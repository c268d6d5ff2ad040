"""Executor of background jobs, with a limit of its own beside the runs of agents.

A job is one program, started like an agent's but without access to Remit: a text goes in, an answer
comes out, and nothing else is kept.
"""

import asyncio
import logging
from dataclasses import asdict
from typing import Any

from remit import threads
from remit.adapters.running import RunResult, Usage
from remit.clock import Micros
from remit.errors import Conflict, NotFound
from remit.runtime.deadlines import uninterrupted
from remit.runtime.jobs.job_execution import Spent, execute
from remit.runtime.jobs.job_folders import JobFolder
from remit.runtime.loop import Loop
from remit.runtime.runs.execution import Instance
from remit.services.command import Ask
from remit.services.execution import admission, job_queue, run_queue
from remit.services.queues import Held
from remit.services.verbs import Verb

log = logging.getLogger(__name__)

#: Shortest time between two rounds, which batches the many changes that do not concern jobs.
SHORTEST_SLEEP = 0.03


class Jobs(Loop[None]):
    """Executes jobs in the process of a worker; a setting limits how many at once."""

    def __init__(
        self,
        app: Instance,
        *,
        name: str = "local",
        at_once: int | None = None,
        lease: Micros = run_queue.LEASE_TIME,
    ) -> None:
        super().__init__(app.gate, "the loop of jobs", shortest=SHORTEST_SLEEP)
        self._app = app
        self._name = name
        self.at_once = at_once or app.settings.background_jobs
        self._lease = lease
        self._renew(lease, job_queue.renew)
        self._watch(lease, self._held_elsewhere, self._take_over)

    async def _look(self) -> Micros | None:
        held, free = list(self._tasks), self.at_once - self.busy

        def questions(ask: Ask) -> tuple[list[Held], list[str], Micros | None]:
            return (
                ask(job_queue.lost, held=held) if held else [],
                ask(job_queue.ready, limit=free, worker=self._name) if free > 0 else [],
                ask(job_queue.next_due),
            )

        lost, ready, due = await self._ask(questions)
        for one in lost:
            self._cancel(one)
        for job in ready:
            await uninterrupted(self._claim(job))
        return due

    async def _claim(self, job: str) -> None:
        if self._stopping:
            return
        try:
            answer = await self._do(job_queue.claim, job=job, worker=self._name, lease=self._lease)
        except (Conflict, NotFound) as refusal:
            if refusal.reason == admission.HELD:
                await self._do(job_queue.wait, job=job, worker=self._name)
            return  # otherwise another worker was faster, or it was cancelled
        held = (job, answer["epoch"])
        self._begin(held, None, self._carry_out(held))

    async def _carry_out(self, held: Held) -> None:
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
            held,
            job_queue.end,
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
            await self._say(held, job_queue.put_back, usage=asdict(spent))
        await threads.FILES.run(folder.remove)

    async def _say(self, held: Held, verb: Verb[..., Any], **more: Any) -> None:
        job, epoch = held
        try:
            await self._do(verb, job=job, epoch=epoch, **more)
        except Conflict:
            pass  # it was cancelled, or another worker took over
        except Exception:
            # Its lease is not renewed any more, so another attempt will follow.
            log.exception("what became of background job %s could not be kept", job)

    async def _held_elsewhere(self) -> dict[Held, Micros]:
        return await self._of_others(job_queue.held)

    async def _take_over(self, held: Held, until: Micros) -> None:
        job, epoch = held
        await self._do(job_queue.take_over, job=job, epoch=epoch, until=until)
        # If that worker was on this machine, its programs may be, too.
        await threads.FILES.run(JobFolder(self._app.settings.job_folder, *held).clear)
