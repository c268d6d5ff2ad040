"""What a boss reads of a report's runs: the last few, and the end of what the newest did."""

from __future__ import annotations

from collections import deque
from typing import Any

from remit.entrypoints import transcripts
from remit.model import transcript
from remit.services import agents, idleness, runs
from remit.services.command import Gate
from remit.services.identity import Caller

MOST_RUNS = 5
#: Of a log; the end is where it says what went wrong.
LONGEST = 8_000
_SHOWN = (
    *("id", "status", "why", "started_at", "completed_at", "exit_reason", "error"),
    *("tokens_in", "tokens_out", "cost_usd", "denied"),
)


async def latest(gate: Gate, who: Caller, agent: str) -> dict[str, Any]:
    # Asked first, because it is what refuses those who are not above.
    idle = await gate(who, idleness.why_idle, agent=agent)
    shown = await gate(who, agents.show, agent=idle["agent_id"])
    found = await gate(who, runs.listing, company=None, agent=shown["id"], limit=MOST_RUNS)
    text, cut = await _end_of(gate, who, found[0]) if found else ("", False)
    return {
        **{key: shown[key] for key in ("id", "name", "status")},
        "idle": idle["sentence"],
        "runs": [{key: run[key] for key in _SHOWN} for run in found],
        "log": text,
        "cut": cut,
    }


async def _end_of(gate: Gate, who: Caller, run: dict[str, Any]) -> tuple[str, bool]:
    """The end of a log as people read it, whole lines if it has lines, and whether something is
    missing."""
    last: deque[str] = deque()
    size, cut = 0, False
    async for _, entry in transcripts.entries(gate, who, run):
        last.append(f"{transcript.shown(entry)}\n")
        size += len(last[-1])
        while size - len(last[0]) > LONGEST:
            size -= len(last.popleft())
            cut = True
    text = "".join(last)
    text, cut = text[-LONGEST:], cut or len(text) > LONGEST
    head, newline, rest = text.partition("\n")
    if cut and newline and len(head) < LONGEST // 2:
        return rest, cut
    return text, cut
