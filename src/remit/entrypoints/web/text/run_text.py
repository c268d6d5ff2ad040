"""Runs in words: the reason of each, and one as a tree of turns and calls."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from remit.clock import SECOND, from_iso
from remit.entrypoints.web.site import Visit
from remit.services.screens import run_page


def reasons(visit: Visit, runs: Sequence[Mapping[str, Any]]) -> Mapping[str, str]:
    """Return the reason why each run was started."""
    occasions = visit.ask(
        run_page.occasions, company=visit.company_id, runs=[run["id"] for run in runs]
    )
    return defaultdict(str, occasions)


@dataclass
class Step:
    """A step of a turn: a call with its result, or a text."""

    entry: Mapping[str, Any]
    result: Mapping[str, Any] | None = None
    #: Duration of a call, if the log has it.
    seconds: float | None = None

    @property
    def failed(self) -> bool:
        return self.denied or bool(self.result and self.result.get("failed"))

    @property
    def denied(self) -> bool:
        return "denied" in (self.entry["kind"], (self.result or self.entry)["kind"])

    @property
    def line(self) -> str:
        """Return its text on one line."""
        return " ".join(str(self.entry["text"]).split())[:200]


@dataclass
class Turn:
    """One turn of the model with its steps, usage and cost."""

    number: int
    steps: list[Step] = field(default_factory=list)
    at: str | None = None
    seconds: float | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float | None = None
    cost_estimated: bool = False

    @property
    def calls(self) -> int:
        return sum(step.entry["kind"] in ("call", "denied") for step in self.steps)

    @property
    def failed(self) -> bool:
        return any(step.failed for step in self.steps)


def turns(entries: Iterable[Mapping[str, Any]]) -> list[Turn]:
    """Split the entries of a run into turns; cumulative usage becomes usage by turn."""
    run_turns = [Turn(1)]
    spent: dict[str, float] = {}
    open_: dict[str, Step] = {}
    for entry in entries:
        turn = run_turns[-1]
        if entry["kind"] == "turn":
            turn.at = entry["at"]
            turn.seconds = entry.get("seconds")
            for name in ("tokens_in", "tokens_out", "cost_usd"):
                now = entry.get(name) or 0
                setattr(turn, name, max(0, now - spent.get(name, 0)))
                spent[name] = now
            turn.cost_estimated = bool(entry.get("cost_estimated"))
            run_turns.append(Turn(turn.number + 1))
        elif entry["kind"] in ("result", "denied"):
            step = open_.pop(entry.get("call") or "", None) or _unanswered(run_turns, entry)
            if step is None:
                turn.steps.append(Step(entry))
            else:
                step.result, step.seconds = entry, _between(step.entry["at"], entry["at"])
        elif entry["kind"] != "end":
            step = Step(entry)
            turn.steps.append(step)
            if entry["kind"] == "call" and entry.get("call"):
                open_[entry["call"]] = step
    if not run_turns[-1].steps and len(run_turns) > 1:
        run_turns.pop()
    return [turn for turn in run_turns if turn.steps or turn.at]


def _unanswered(turns: Sequence[Turn], entry: Mapping[str, Any]) -> Step | None:
    """Find the call for a result without an id: the last call of that tool without a result."""
    for turn in turns[:-3:-1]:
        for step in reversed(turn.steps):
            called = step.entry["kind"] == "call" and step.result is None
            if called and entry.get("tool") in (None, step.entry["tool"]):
                return step
    return None


def _between(began: str | None, ended: str | None) -> float | None:
    if not began or not ended:
        return None
    return max(0.0, (from_iso(ended) - from_iso(began)) / SECOND)
