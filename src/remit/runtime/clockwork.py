"""Sees to it that what has a time happens at that time, and once."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from remit.clock import SECOND
from remit.errors import Conflict, RemitError
from remit.services import approvals, schedules
from remit.services.command import Gate
from remit.services.identity import as_system

log = logging.getLogger(__name__)

#: How long to trust that nothing new came due: another process, or a clock that jumped.
LONGEST_SLEEP = 1.0


class Clockwork:
    """Delivers deferred mail, fires schedules, gives up what nobody decided; one per instance."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def tick(self) -> int:
        """Do what is due now; answers how much there was."""
        due = await self._gate(as_system(), schedules.companies_due)
        for company in due:
            await self._gate(as_system(), schedules.run_due, company=company)
        expired = 0
        for approval in await self._gate(as_system(), approvals.due):
            with suppress(Conflict):  # somebody decided it just now
                await self._gate(as_system(), approvals.expire, approval=approval)
                expired += 1
        return len(due) + expired

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
            await asyncio.sleep(pause)
