"""Sees to it that what has a time happens at that time, and once."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from remit.clock import SECOND
from remit.errors import Conflict, RemitError
from remit.ids import CompanyId
from remit.services import approvals, reminding, schedules, wishes
from remit.services.command import Gate
from remit.services.identity import as_system

log = logging.getLogger(__name__)

#: How long to trust that nothing new came due: another process, or a clock that jumped.
LONGEST_SLEEP = 1.0
#: However much happens, time is not looked at more often than this.
SHORTEST_SLEEP = 0.02


class Clockwork:
    """Delivers deferred mail, fires schedules, reminds who is awaited, answers wishes that nobody
    answered, gives up what nobody decided; one per instance."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed = asyncio.Event()

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._gate.listeners.append(self._something_happened)
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._something_happened in self._gate.listeners:
            self._gate.listeners.remove(self._something_happened)
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _something_happened(self, _: CompanyId) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._changed.set)

    async def tick(self) -> int:
        """Do what is due now; answers how much was done."""
        done = 0
        for company in await self._gate(as_system(), schedules.companies_due):
            try:
                await self._gate(as_system(), schedules.run_due, company=company)
            except Exception:
                # One company's trouble is not another's.
                log.exception("what is due in company %s will be tried again", company)
            else:
                done += 1
        for approval in await self._gate(as_system(), approvals.due):
            with contextlib.suppress(Conflict):  # somebody decided it just now
                await self._gate(as_system(), approvals.expire, approval=approval)
                done += 1
        for company in await self._gate(as_system(), reminding.companies):
            await self._gate(as_system(), reminding.remind, company=company)
            done += 1
        for company in await self._gate(as_system(), wishes.companies):
            done += await self._gate(as_system(), wishes.look, company=company)
        return done

    async def _run(self) -> None:
        while True:
            pause = LONGEST_SLEEP
            try:
                while await self.tick():
                    pass
                following = await self._gate(as_system(), schedules.next_due)
                if following is not None:
                    left = (following - self._gate.clock.now()) / SECOND
                    pause = min(max(left, 0.001), LONGEST_SLEEP)
            except RemitError as error:
                log.warning("what is due will be tried again: %s", error)
            except Exception:
                # Whatever it was: time goes on, and so must this.
                log.exception("what is due will be tried again")
            await self._sleep(pause)

    async def _sleep(self, seconds: float) -> None:
        """Until then, or until something happened: it may come due sooner."""
        await asyncio.sleep(min(seconds, SHORTEST_SLEEP))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds - SHORTEST_SLEEP):
                await self._changed.wait()
        self._changed.clear()
