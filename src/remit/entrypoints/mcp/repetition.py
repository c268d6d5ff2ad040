"""Admission of tool calls, which ends a run that repeats the same call too often."""

from collections import OrderedDict
from contextlib import suppress
from typing import Any

from remit.adapters.pace import said_again, same_call
from remit.app import App
from remit.entrypoints.mcp.endpoint import Admit
from remit.errors import Conflict
from remit.model.execution.limit import REPETITION
from remit.model.organisation.decision import deny
from remit.services.execution import runaway
from remit.services.identity import Caller, as_system

_MOST_TOKENS = 10_000


def build_admission(app: App) -> Admit:
    known: OrderedDict[str, runaway.Watched] = OrderedDict()

    async def look(token: str) -> runaway.Watched:
        known[token] = watched = await app.gate(Caller(token), runaway.watched)
        if len(known) > _MOST_TOKENS:
            known.popitem(last=False)
        return watched

    async def admit(token: str, tool: str, arguments: Any) -> None:
        of = known.get(token) or await look(token)
        if (run := of.run_id) is None:
            return
        app.signs.note(run)
        if of.identical_calls is None:
            return
        times = app.streaks.count(run, same_call(tool, arguments))
        if times <= of.identical_calls:
            return
        of = await look(token)  # the limit may have been raised since
        if of.identical_calls is None or times <= of.identical_calls:
            return
        reason = said_again(tool, of.identical_calls)
        with suppress(Conflict):  # it has ended already
            await app.gate(as_system(), runaway.end, run=run, error=reason)
        app.streaks.interrupt(run)
        deny(REPETITION, reason).enforce("Your run has ended; nothing more is done in it.")

    return admit
