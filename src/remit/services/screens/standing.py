"""State of every agent, in one word each: one query, however many agents there are.

A list shows the word, and a folded branch the worst one in it. The detailed reason is computed for
few agents (`idleness`).
"""

import re
from collections.abc import Mapping
from typing import Final

from remit.model.execution.fault import Holds
from remit.model.organisation.agent import AgentStatus
from remit.services.command import Context
from remit.services.execution import runaway
from remit.store.record import overview as statements
from remit.store.record.overview import Standing

#: From the worst to the unremarkable, each with the class that it is drawn with.
WORDS: Final = {
    "silent": "bad",
    "stopped": "bad",
    "over budget": "bad",
    "program missing": "bad",
    "set-up broken": "bad",
    "account closed": "bad",
    "failing": "bad",
    "paused": "wait",
    "awaits approval": "wait",
    "waiting": "wait",
    "working": "work",
    "idle": "idle",
}
_NOT_THERE: Final = re.compile(r"program .{0,200}\bnot (?:there|installed)|command not found")
_RANK: Final = {word: rank for rank, word in enumerate(WORDS)}


def of_company(ctx: Context) -> dict[str, tuple[Standing, str]]:
    """Return the row and word of each agent in the caller's part of the entered company, by id."""
    silent = {run.agent_id for run, _ in runaway.silent(ctx)}
    rows = ctx.tx.all(statements.STANDINGS, **scope(ctx))
    return {row.id: (row, _word(row, row.id in silent)) for row in rows}


def scope(ctx: Context) -> dict[str, object]:
    """Scope of the calling person: the whole company, or their part of it."""
    part = ctx.membership.scope_agent_id if ctx.membership else None
    return {"everybody": part is None, "agent": part}


def _word(row: Standing, silent: bool) -> str:
    if row.run_id is not None:
        return "silent" if silent else "working"
    match row.status:
        case AgentStatus.ERROR:
            return "stopped"
        case AgentStatus.PAUSED:
            return "paused"
        case AgentStatus.PENDING_APPROVAL:
            return "awaits approval"
    if row.over_budget:
        return "over budget"
    if row.held_by is not None:
        return _held(row)
    if row.failures:
        return "failing"
    return "waiting" if row.waits else "idle"


def _held(row: Standing) -> str:
    """Return the word for a held agent: its account is closed, or a set-up, whose program may be
    missing."""
    if row.held_kind != Holds.SETUP:
        return "account closed"
    return "program missing" if _NOT_THERE.search(row.held_cause or "") else "set-up broken"


def rank(word: str) -> int:
    return _RANK[word]


def branches(standings: Mapping[str, tuple[Standing, str]]) -> dict[str, str]:
    """By agent, the worst state of itself and of everybody below it."""
    worst = {agent: word for agent, (_, word) in standings.items()}
    for row, word in standings.values():
        above = row.boss_id
        # An agent with a state as bad or worse has updated those above already.
        while above is not None and above in standings and rank(word) < rank(worst[above]):
            worst[above] = word
            above = standings[above][0].boss_id
    return worst
