"""Carries out background jobs, so many at once, beside the agents that run.

A job is one program, started like an agent's but told nothing of Remit: a text goes in, an answer
comes out, and nothing is kept.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from dataclasses import asdict
from typing import Any

from remit import threads
from remit.adapters.running import RunResult, Usage
from remit.clock import SECOND, Micros
from remit.errors import Conflict, NotFound, RemitError
from remit.ids import CompanyId
from remit.runtime.deadlines import within
from remit.runtime.execution import Instance, uninterrupted
from remit.runtime.job_execution import Spent, execute
from remit.runtime.job_folders import JobFolder
from remit.runtime.silence import Silence
from remit.runtime.worker import LOOPS_SECONDS, RUNS_SECONDS
from remit.services import accounts, claiming, job_work
from remit.services.identity import as_system

log = logging.getLogger(__name__)

RENEW_SECONDS = 3.0
LONGEST_SLEEP = 1.0
#: Much happens that is not about jobs; it is looked at together.
SHORTEST_SLEEP = 0.03


class Jobs:
    """One loop in the process of a worker; how many it carries out at once is a setting."""

    def __init__(
        self,
        app: Instance,
        *,
        name: str = "local",
        at_once: int | None = None,
        lease: Micros = claiming.LEASE_TIME,
    ) -> None:
        self._app = app
        self._name = name
        self.at_once = at_once or app.settings.background_jobs
        self._lease = lease
        self._silence: Silence[job_work.Held] = Silence(lease / SECOND)
        self._carried: dict[job_work.Held, asyncio.Task[None]] = {}
        self._woken = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False

    def start(self) -> None:
        self._app.gate.listeners.append(self._changed)
        for work in (self._dispatch, self._renew, self._look_after):
            self._tasks.append(asyncio.create_task(self._forever(work)))

    async def stop(self) -> None:
        """Begin nothing any more; what is under way goes back in line, if it can be ended."""
        if self._stopping:
            return
        self._stopping = True
        if self._changed in self._app.gate.listeners:
            self._app.gate.listeners.remove(self._changed)
        for task in self._tasks:
            task.cancel()
        await within(
            LOOPS_SECONDS,
            asyncio.gather(*self._tasks, return_exceptions=True),
            "what background jobs were at",
        )
        carried = list(self._carried.values())
        for task in carried:
            task.cancel()
        await within(
            RUNS_SECONDS,
            asyncio.gather(*carried, return_exceptions=True),
            "some background job",
        )

    @property
    def busy(self) -> int:
        return len(self._carried)

    def _changed(self, _: CompanyId) -> None:
        self._loop.call_soon_threadsafe(self._woken.set)

    async def _forever(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        while not self._stopping:
            try:
                await work()
            except RemitError as error:
                log.warning("background jobs go on after: %s", error)
                await asyncio.sleep(LONGEST_SLEEP)
            except Exception:
                log.exception("background jobs go on after an unexpected error")
                await asyncio.sleep(LONGEST_SLEEP)

    async def _dispatch(self) -> None:
        self._woken.clear()
        if self.busy:
            self._drop(await self._app.gate(as_system(), job_work.lost, held=list(self._carried)))
        if self.busy < self.at_once:
            free = self.at_once - self.busy
            for job in await self._app.gate(
                as_system(), job_work.ready, limit=free, worker=self._name
            ):
                await uninterrupted(self._begin(job))
        await asyncio.sleep(SHORTEST_SLEEP)
        due = await self._app.gate(as_system(), job_work.next_due)
        left = LONGEST_SLEEP if due is None else (due - self._app.clock.now()) / SECOND
        try:
            async with asyncio.timeout(min(max(left, 0.001), LONGEST_SLEEP)):
                await self._woken.wait()
        except TimeoutError:
            pass

    async def _begin(self, job: str) -> None:
        if self._stopping:
            return
        try:
            answer = await self._app.gate(
                as_system(), job_work.claim, job=job, worker=self._name, lease=self._lease
            )
        except (Conflict, NotFound) as refusal:
            if refusal.reason == accounts.HELD:
                await self._app.gate(as_system(), job_work.wait, job=job, worker=self._name)
            return  # otherwise another worker was faster, or it was cancelled
        held = (job, answer["epoch"])
        self._carried[held] = asyncio.create_task(self._carry_out(held))

    async def _carry_out(self, held: job_work.Held) -> None:
        folder = JobFolder(self._app.settings.job_folder, *held)
        spent = Spent()
        try:
            result = await execute(self._app, held, folder, spent)
        except asyncio.CancelledError:
            await uninterrupted(self._let_go(held, folder, spent.usage))
            return
        await uninterrupted(self._end(held, folder, result))

    async def _end(self, held: job_work.Held, folder: JobFolder, result: RunResult) -> None:
        job, epoch = held
        try:
            await self._app.gate(
                as_system(),
                job_work.end,
                job=job,
                epoch=epoch,
                ok=result.ok,
                text=result.text,
                error=result.error or result.reason,
                usage=asdict(result.usage),
                reason=result.reason,
                fault=result.fault,
                until=result.until,
            )
        except Conflict:
            pass  # it was cancelled, or another worker took over
        except Exception:
            # It is not renewed any more, so it will be found and done again.
            log.exception("background job %s could not be ended properly", job)
        await self._forget(held, folder)

    async def _let_go(self, held: job_work.Held, folder: JobFolder, spent: Usage) -> None:
        job, epoch = held
        try:
            if self._stopping:
                usage = asdict(spent)
                await self._app.gate(
                    as_system(), job_work.put_back, job=job, epoch=epoch, usage=usage
                )
        except Conflict:
            pass
        except Exception:
            log.exception("background job %s could not be put back", job)
        await self._forget(held, folder)

    async def _forget(self, held: job_work.Held, folder: JobFolder) -> None:
        await threads.FILES.run(folder.remove)
        self._carried.pop(held, None)
        self._woken.set()

    def _drop(self, held: list[job_work.Held]) -> None:
        """They are somebody else's, or were cancelled."""
        for one in held:
            task = self._carried.get(one)
            # Once: it needs its time to put things away.
            if task is not None and not task.cancelling():
                task.cancel()

    async def _renew(self) -> None:
        await asyncio.sleep(min(RENEW_SECONDS, self._lease / SECOND / 3))
        if held := list(self._carried):
            self._drop(
                await self._app.gate(as_system(), job_work.renew, held=held, lease=self._lease)
            )

    async def _look_after(self) -> None:
        """Take over from workers that are silent."""
        held = await self._app.gate(as_system(), job_work.held)
        others = {one: until for one, until in held.items() if one not in self._carried}
        for job, epoch in self._silence.of(others, time.monotonic()):
            until = held[(job, epoch)]
            try:
                await self._app.gate(
                    as_system(), job_work.take_over, job=job, epoch=epoch, until=until
                )
            except Conflict:
                continue
            # If that worker was on this machine, its programs may be, too.
            folder = JobFolder(self._app.settings.job_folder, job, epoch)
            await threads.FILES.run(folder.clear)
        await asyncio.sleep(LONGEST_SLEEP)
