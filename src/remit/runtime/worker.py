"""Starts agents that have something to do, as many at once as there are slots."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import Protocol

from remit.adapters.running import RunResult
from remit.app import App
from remit.clock import SECOND
from remit.errors import Conflict, NotFound, RemitError
from remit.ids import CompanyId
from remit.runtime.execution import Claimed, execute, report
from remit.runtime.processes import end_leftovers
from remit.runtime.workspace import create_workspace, destroy_workspace
from remit.services import runs
from remit.services.identity import as_system

log = logging.getLogger(__name__)

DEFAULT_SLOTS = 4
RENEW_SECONDS = 3.0
SWEEP_SECONDS = 30.0
LONGEST_SLEEP = 1.0


class Dispatcher(Protocol):
    """How wakes reach workers. Who may run is decided by the lease, not by this."""

    def kick(self) -> None:
        """Somebody was woken; from any thread."""

    async def stop(self) -> None:
        """Start nobody any more, and end what is running."""


class Worker:
    """The embedded dispatcher: one loop in the process of the instance."""

    def __init__(
        self,
        app: App,
        url: str,
        *,
        name: str = "local",
        slots: int = DEFAULT_SLOTS,
        per_company: int | None = None,
    ) -> None:
        self._app = app
        self._url = url
        self.name = name
        self.slots = slots
        self._per_company = per_company or slots
        self._running: dict[str, tuple[Claimed, asyncio.Task[None]]] = {}
        self._woken = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False
        self._last_company = ""

    def start(self) -> None:
        self._app.gate.listeners.append(self._changed)
        for work in (self._dispatch, self._renew, self._look_after):
            self._tasks.append(asyncio.create_task(self._forever(work)))

    def kick(self) -> None:
        self._loop.call_soon_threadsafe(self._woken.set)

    async def stop(self) -> None:
        self._stopping = True
        if self._changed in self._app.gate.listeners:
            self._app.gate.listeners.remove(self._changed)
        for task in self._tasks:
            task.cancel()
        running = [task for _, task in self._running.values()]
        for task in running:
            task.cancel()
        await asyncio.gather(*self._tasks, *running, return_exceptions=True)

    @property
    def busy(self) -> int:
        return len(self._running)

    def _changed(self, _: CompanyId) -> None:
        self.kick()

    async def _forever(self, work: Callable[[], object]) -> None:
        """What fails is tried again; a worker that stops quietly is the worst kind."""
        while not self._stopping:
            try:
                await work()  # type: ignore[misc]
            except RemitError as error:
                log.warning("the worker goes on after: %s", error)
                await asyncio.sleep(LONGEST_SLEEP)
            except Exception:
                log.exception("the worker goes on after an unexpected error")
                await asyncio.sleep(LONGEST_SLEEP)

    # ── starting ────────────────────────────────────────────────────────────────────────────

    async def _dispatch(self) -> None:
        self._woken.clear()
        if self.busy < self.slots:
            await self._start_ready()
        pause = LONGEST_SLEEP
        following = await self._app.gate(as_system(), runs.next_ready)
        if following is not None:
            left = (following - self._app.clock.now()) / SECOND
            pause = min(max(left, 0.001), LONGEST_SLEEP)
        try:
            async with asyncio.timeout(pause):
                await self._woken.wait()
        except TimeoutError:
            pass

    async def _start_ready(self) -> None:
        ready = await self._app.gate(as_system(), runs.ready)
        busy = Counter(claimed.company_id for claimed, _ in self._running.values())
        for one in self._in_turn(ready):
            if self.busy >= self.slots:
                return
            if busy[one["company_id"]] >= self._per_company or one["agent_id"] in self._running:
                continue
            if await self._start(one["agent_id"]):
                busy[one["company_id"]] += 1
                self._last_company = one["company_id"]

    def _in_turn(self, ready: list[dict[str, str]]) -> list[dict[str, str]]:
        """One of each company after the other, so that a busy one does not starve the others."""
        by_company: dict[str, list[dict[str, str]]] = {}
        for one in ready:
            by_company.setdefault(one["company_id"], []).append(one)
        order = sorted(by_company, key=lambda company: (company <= self._last_company, company))
        turns: list[dict[str, str]] = []
        while any(by_company.values()):
            turns += [by_company[company].pop(0) for company in order if by_company[company]]
        return turns

    async def _start(self, agent: str) -> bool:
        run_id = self._app.ids.new()
        folder = create_workspace(self._app.settings.workspaces, run_id)
        try:
            answer = await self._app.gate(
                as_system(),
                runs.claim,
                agent=agent,
                run=run_id,
                workspace=str(folder),
                worker=self.name,
            )
        except (Conflict, NotFound):
            destroy_workspace(folder)  # another worker was faster
            return False
        except BaseException:
            destroy_workspace(folder)
            raise
        claimed = Claimed(
            run_id=run_id,
            agent_id=agent,
            company_id=answer["company_id"],
            token=answer["token"],
            epoch=answer["epoch"],
            seen=answer["seen"],
            workspace=folder,
        )
        task = asyncio.create_task(self._carry_out(claimed))
        self._running[agent] = (claimed, task)
        return True

    async def _carry_out(self, claimed: Claimed) -> None:
        status, result = "failed", RunResult(False, reason="stopped", error="its worker stopped")
        try:
            result = await execute(self._app, self._url, claimed)
            status = "completed" if result.ok else "failed"
        except asyncio.CancelledError:
            status = "lost" if self._stopping else "cancelled"
        except RemitError as error:
            result = RunResult(False, reason=error.reason, error=error.sentence)
        finally:
            self._running.pop(claimed.agent_id, None)
            try:
                await asyncio.shield(self._end(claimed, status, result))
            finally:
                self._woken.set()

    async def _end(self, claimed: Claimed, status: str, result: RunResult) -> None:
        end_leftovers({claimed.run_id})
        try:
            await self._app.gate(
                as_system(),
                runs.end,
                run=claimed.run_id,
                status=status,
                seen=claimed.seen,
                report=report(result),
            )
        except Conflict:
            pass  # somebody ended it already: it was cancelled, or another worker took over
        except RemitError as error:
            log.warning("run %s could not be ended properly: %s", claimed.run_id, error)
        destroy_workspace(claimed.workspace)

    # ── keeping ─────────────────────────────────────────────────────────────────────────────

    async def _renew(self) -> None:
        await asyncio.sleep(RENEW_SECONDS)
        held = [(claimed.agent_id, claimed.epoch) for claimed, _ in self._running.values()]
        if not held:
            return
        for agent in await self._app.gate(as_system(), runs.renew, held=held):
            claimed_task = self._running.get(agent)
            if claimed_task is not None:
                claimed_task[1].cancel()  # it is somebody else's now, or was cancelled

    async def _look_after(self) -> None:
        """Take over from workers that are silent; wake whom nobody woke."""
        waited = 0.0
        while waited < SWEEP_SECONDS:
            for run in await self._app.gate(as_system(), runs.expired):
                try:
                    await self._app.gate(as_system(), runs.take_over, run=run)
                except Conflict:
                    continue
            await self._end_cancelled()
            await asyncio.sleep(LONGEST_SLEEP)
            waited += LONGEST_SLEEP
        for company in await self._app.gate(as_system(), runs.forgotten):
            await self._app.gate(as_system(), runs.sweep, company=company)

    async def _end_cancelled(self) -> None:
        """Runs that somebody ended in the database end on the machine, too."""
        if not self._running:
            return
        live = {run["id"] for run in await self._app.gate(as_system(), runs.live)}
        for claimed, task in list(self._running.values()):
            if claimed.run_id not in live:
                task.cancel()
