"""Recent runs of a report for its boss, with the end of the newest transcript."""

from collections import deque
from typing import Any

from remit.entrypoints import transcripts
from remit.model.execution import transcript
from remit.services.command import Ask, Gate
from remit.services.execution import runs
from remit.services.identity import Caller
from remit.services.organisation import agents, idleness

MOST_RUNS = 5
#: Most characters of a log's end, which has the errors.
LONGEST = 8_000
_SHOWN = (
    *("id", "status", "why", "started_at", "completed_at", "exit_reason", "error"),
    *("tokens_in", "tokens_out", "cost_usd", "denied"),
)


async def latest(gate: Gate, caller: Caller, agent: str) -> dict[str, Any]:
    return await gate.together(caller, lambda ask: _latest(ask, agent))


def _latest(ask: Ask, agent: str) -> dict[str, Any]:
    # First, because it refuses callers who are not above the agent.
    idle = ask(idleness.why_idle, agent=agent)
    shown = ask(agents.show, agent=idle["agent_id"])
    newest = ask(runs.listing, company=None, agent=shown["id"], limit=MOST_RUNS)
    text, cut = _end_of(ask, newest[0]["id"]) if newest else ("", False)
    return {
        **{key: shown[key] for key in ("id", "name", "status")},
        "idle": idle["sentence"],
        "runs": [{key: run[key] for key in _SHOWN} for run in newest],
        "log": text,
        "cut": cut,
    }


def _end_of(ask: Ask, run: str) -> tuple[str, bool]:
    """Return the end of a run's transcript, cut at a line if possible, and whether it was cut."""
    last: deque[str] = deque()
    size, cut = 0, False
    for _, entry in transcripts.entries(ask, run):
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
