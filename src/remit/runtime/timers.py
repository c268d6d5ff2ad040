"""Timers: a loop that executes scheduled work at its time, once."""

import contextlib
import logging
from typing import NamedTuple

from remit.clock import Micros
from remit.errors import Conflict
from remit.runtime.loop import Loop
from remit.services.command import Ask, Gate
from remit.services.governance import approvals
from remit.services.messaging import escalation, schedules, wishes

log = logging.getLogger(__name__)

#: Shortest time between two rounds.
SHORTEST_SLEEP = 0.02


class Due(NamedTuple):
    """Work that is due, by company or approval, and the next time at which some is."""

    #: Companies with deferred mail and schedules.
    mail: list[str]
    approvals: list[str]
    #: Companies with due reminders, and with due wishes.
    reminders: list[str]
    wishes: list[str]
    following: Micros | None


class Clockwork(Loop[None]):
    """Delivers deferred mail, fires schedules, sends reminders, checks unanswered wishes and
    expires undecided approvals; one per instance."""

    def __init__(self, gate: Gate) -> None:
        super().__init__(gate, "the clockwork", shortest=SHORTEST_SLEEP)

    async def _look(self) -> Micros | None:
        while True:
            due = await self._ask(_due)
            if not await self._do_due(due):
                return due.following

    async def tick(self) -> int:
        """Do the work that is due now; returns how much was done."""
        return await self._do_due(await self._ask(_due))

    async def _do_due(self, due: Due) -> int:
        done = 0
        for company in due.mail:
            try:
                await self._do(schedules.run_due, company=company)
            except Exception:
                # A failure in one company does not affect others.
                log.exception("what is due in company %s will be tried again", company)
            else:
                done += 1
        for approval in due.approvals:
            with contextlib.suppress(Conflict):  # it was decided just now
                await self._do(approvals.expire, approval=approval)
                done += 1
        if done:
            due = await self._ask(_due)  # some of the rest may have been settled by this
        for company in due.reminders:
            await self._do(escalation.remind, company=company)
            done += 1
        for company in due.wishes:
            done += await self._do(wishes.look, company=company)
        return done


def _due(ask: Ask) -> Due:
    return Due(
        ask(schedules.companies_due),
        ask(approvals.due),
        ask(escalation.companies),
        ask(wishes.companies),
        ask(schedules.next_due),
    )
