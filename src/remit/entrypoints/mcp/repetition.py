"""Ends a run that makes the same call again and again, whatever program makes it."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from typing import Any

from remit.adapters.pace import said_again, same_call
from remit.app import App
from remit.entrypoints.mcp.endpoint import Admit
from remit.errors import Conflict, Refused
from remit.model.limit import REPETITION
from remit.services import runaway
from remit.services.identity import Caller, as_system

_MOST_TOKENS = 10_000


def build_admission(app: App) -> Admit:
    known: OrderedDict[str, dict[str, Any]] = OrderedDict()

    async def look(token: str) -> dict[str, Any]:
        known[token] = found = await app.gate(Caller(token), runaway.watched)
        if len(known) > _MOST_TOKENS:
            known.popitem(last=False)
        return found

    async def admit(token: str, tool: str, arguments: Any) -> None:
        of = known.get(token) or await look(token)
        if of["run_id"] is not None:
            app.signs.note(of["run_id"])
        if of["run_id"] is None or of["identical_calls"] is None:
            return
        times = app.streaks.count(of["run_id"], same_call(tool, arguments))
        if times <= of["identical_calls"]:
            return
        of = await look(token)  # somebody may have raised it since
        if of["identical_calls"] is None or times <= of["identical_calls"]:
            return
        said = said_again(tool, of["identical_calls"])
        with suppress(Conflict):  # it has ended already
            await app.gate(as_system(), runaway.end, run=of["run_id"], error=said)
        app.streaks.interrupt(of["run_id"])
        raise Refused(said, "Your run has ended; nothing more is done in it.", code=REPETITION)

    return admit
