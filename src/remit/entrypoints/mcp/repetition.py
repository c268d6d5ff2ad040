"""Watch over the tool calls of runs: one that repeats the same call, or whose calls fail, too often
in a row is ended."""

from collections import OrderedDict
from contextlib import suppress
from typing import Any

from remit.adapters.pace import said_again, said_failed, same_call
from remit.app import App
from remit.errors import Conflict
from remit.model.execution.calls import with_calls
from remit.model.execution.limit import FAILED_CALLS, REPETITION
from remit.model.organisation.decision import deny
from remit.services.execution import runaway
from remit.services.identity import Caller, as_system

_MOST_TOKENS = 10_000


class CallWatch:
    """Counts the calls of each run, and ends those that a limit does not allow."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._known: OrderedDict[str, runaway.Watched] = OrderedDict()

    async def _look(self, token: str) -> runaway.Watched:
        watched = await self._app.gate(Caller(token), runaway.watched)
        self._known[token] = watched
        if len(self._known) > _MOST_TOKENS:
            self._known.popitem(last=False)
        return watched

    async def admit(self, token: str, tool: str, arguments: Any) -> None:
        """Count a call; end the run instead if it made the same one too often."""
        of = self._known.get(token) or await self._look(token)
        if (run := of.run_id) is None:
            return
        self._app.signs.note(run)
        times = self._app.streaks.count(run, same_call(tool, arguments))
        self._app.streaks.calls(run).made(tool)
        if not _is_beyond(times, of.identical_calls):
            return
        of = await self._look(token)  # the limit may have been raised since
        if of.identical_calls is not None and _is_beyond(times, of.identical_calls):
            await self._end(run, REPETITION, said_again(tool, of.identical_calls))

    async def ended(self, token: str, tool: str, *, failed: bool) -> None:
        """Note how a call ended; end the run if too many failed in a row."""
        of = self._known.get(token)
        if of is None or (run := of.run_id) is None:
            return
        times = self._app.streaks.calls(run).ended(tool, failed=failed)
        if not failed or not _is_reached(times, of.failed_calls):
            return
        of = await self._look(token)
        if _is_reached(times, of.failed_calls):
            await self._end(run, FAILED_CALLS, said_failed(tool, times))

    async def _end(self, run: str, reason: str, sentence: str) -> None:
        error = with_calls(sentence, self._app.streaks.calls(run))
        with suppress(Conflict):  # it has ended already
            await self._app.gate(as_system(), runaway.end, run=run, error=error, reason=reason)
        self._app.streaks.forget(run)
        deny(reason, sentence).enforce("Your run has ended; nothing more is done in it.")


def _is_beyond(times: int, limit: int | None) -> bool:
    return limit is not None and times > limit


def _is_reached(times: int, limit: int | None) -> bool:
    return limit is not None and times >= limit
