"""Sees to it that what has a time happens at that time, and once."""

import contextlib
import logging

from remit.clock import Micros
from remit.errors import Conflict
from remit.runtime.loop import Loop
from remit.services.command import Gate
from remit.services.governance import approvals
from remit.services.messaging import reminders, schedules, wishes

log = logging.getLogger(__name__)

#: However much happens, time is not looked at more often than this.
SHORTEST_SLEEP = 0.02


class Clockwork(Loop[None]):
    """Delivers deferred mail, fires schedules, reminds who is awaited, answers wishes that nobody
    answered, gives up what nobody decided; one per instance."""

    def __init__(self, gate: Gate) -> None:
        super().__init__(gate, "the clockwork", shortest=SHORTEST_SLEEP)

    async def _look(self) -> Micros | None:
        while await self.tick():
            pass
        return await self._do(schedules.next_due)

    async def tick(self) -> int:
        """Do what is due now; answers how much was done."""
        done = 0
        for company in await self._do(schedules.companies_due):
            try:
                await self._do(schedules.run_due, company=company)
            except Exception:
                # One company's trouble is not another's.
                log.exception("what is due in company %s will be tried again", company)
            else:
                done += 1
        for approval in await self._do(approvals.due):
            with contextlib.suppress(Conflict):  # somebody decided it just now
                await self._do(approvals.expire, approval=approval)
                done += 1
        for company in await self._do(reminders.companies):
            await self._do(reminders.remind, company=company)
            done += 1
        for company in await self._do(wishes.companies):
            done += await self._do(wishes.look, company=company)
        return done
