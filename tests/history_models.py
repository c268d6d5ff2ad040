"""What files, approvals and runs are when everything comes one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from remit.testing.linearizability import Operation


class Version(NamedTuple):
    number: int
    hash: str
    #: Writes with a key, and what they were answered.
    kept: frozenset[tuple[str, int, str]] = frozenset()

    def __str__(self) -> str:
        return f"version {self.number} ({self.hash[:6]})"


class Files:
    """A file is overwritten by whoever saw its latest version; a repeat gets the first answer."""

    def __init__(self, first: Mapping[str, tuple[int, str]]) -> None:
        self._first = first

    def initial(self, key: str) -> Version:
        return Version(*self._first[key])

    def step(self, state: Version, operation: Operation) -> Iterable[Version]:
        answer = operation.answer
        if operation.name == "read":
            right = operation.unknown or answer == [state.number, state.hash]
            return [state] if right else []
        arguments = operation.given
        for key, number, digest in state.kept:
            if key == arguments["key"]:
                again = operation.unknown or answer == ["written", number, digest]
                return [state] if again else []
        if [arguments["version"], arguments["hash"]] != [state.number, state.hash]:
            right = operation.unknown or answer == ["stale", state.number, state.hash]
            return [state] if right else []
        new = Version(state.number + 1, arguments["new"], state.kept)
        if arguments["key"]:
            new = new._replace(kept=state.kept | {(arguments["key"], new.number, new.hash)})
        right = operation.unknown or answer == ["written", new.number, new.hash]
        return [new] if right else []

    def observes(self, operation: Operation) -> bool:
        return operation.name == "read" or operation.answer[0] == "stale"


class Approval(NamedTuple):
    status: str = "pending"
    revision: int = 1

    def __str__(self) -> str:
        return f"{self.status}, revision {self.revision}"


BECOMES = {
    "approve": "approved",
    "reject": "rejected",
    "revise": "revision_requested",
    "cancel": "cancelled",
}


class Approvals:
    """Decided once, and only by who saw its latest revision if they say which they saw."""

    def initial(self, _: str) -> Approval:
        return Approval()

    def step(self, state: Approval, operation: Operation) -> Iterable[Approval]:
        expected, new = self._follows(state, operation)
        return [new] if operation.unknown or operation.answer == expected else []

    def observes(self, operation: Operation) -> bool:
        return operation.name == "show" or operation.answer[0] != "is"

    def _follows(self, state: Approval, operation: Operation) -> tuple[list[object], Approval]:
        name = operation.name
        if name == "show":
            return ["is", *state], state
        if name == "resubmit":
            if state.status != "revision_requested":
                return ["wrong_status", state.status], state
            new = Approval("pending", state.revision + 1)
            return ["is", *new], new
        seen = operation.given.get("seen")
        if seen is not None and seen != state.revision:
            return ["stale_revision", state.revision], state
        wanted = BECOMES[name]
        allowed = {
            "pending": set(BECOMES.values()),
            "revision_requested": {"rejected", "cancelled"},
        }
        if wanted not in allowed.get(state.status, set()):
            return ["wrong_status", state.status], state
        new = state._replace(status=wanted)
        return ["is", *new], new


class Agent(NamedTuple):
    #: Its live run, if it has one.
    run: str | None = None
    #: Whether a worker holds it; who begins a run by hand holds nothing.
    held: bool = False
    epoch: int = 0
    #: What its lease says, as far as somebody looked since it was renewed.
    until: int | None = None

    def __str__(self) -> str:
        if self.run is None:
            return f"idle after epoch {self.epoch}"
        return f"in {self.run[-6:]}, epoch {self.epoch}" + (f", {self.until}" if self.held else "")


class Runs:
    """An agent has one live run; who lost it, or ended it, does nothing more in its name."""

    def initial(self, _: str) -> Agent:
        return Agent()

    def step(self, state: Agent, operation: Operation) -> Iterable[Agent]:
        outcomes = getattr(self, f"_{operation.name}")(state, operation)
        if operation.unknown:
            return [new for _, new in outcomes]
        return [new for answer, new in outcomes if answer == operation.answer]

    def observes(self, operation: Operation) -> bool:
        return operation.answer in (None, ["refused"], ["lost"]) or operation.name == "act"

    @staticmethod
    def _claim(state: Agent, operation: Operation) -> list[tuple[object, Agent]]:
        if state.run is not None:
            return [(["refused"], state)]
        epoch = state.epoch + 1
        return [(["begun", epoch], Agent(operation.given["run"], True, epoch))]

    @staticmethod
    def _start(state: Agent, operation: Operation) -> list[tuple[object, Agent]]:
        if state.run is not None:
            return [(["refused"], state)]
        return [(["begun"], Agent(operation.given["run"], False, state.epoch))]

    @staticmethod
    def _renew(state: Agent, operation: Operation) -> list[tuple[object, Agent]]:
        if state.held and operation.given["epoch"] == state.epoch:
            return [(["kept"], state._replace(until=None))]
        return [(["lost"], state)]

    @staticmethod
    def _look(state: Agent, operation: Operation) -> list[tuple[object, Agent]]:
        """What is seen fits what was seen before, if nothing was renewed since."""
        if not state.held:
            return [(None, state)]
        if state.until is None and not operation.unknown and operation.answer is not None:
            return [([state.run, operation.answer[1]], state._replace(until=operation.answer[1]))]
        return [([state.run, state.until], state)]

    @staticmethod
    def _take(state: Agent, operation: Operation) -> list[tuple[object, Agent]]:
        arguments = operation.given
        taken = (["taken"], Agent(None, False, state.epoch))
        if not state.held or state.run != arguments["run"]:
            return [(["refused"], state)]
        if state.until is None:
            return [taken, (["refused"], state)]
        return [taken] if state.until == arguments["until"] else [(["refused"], state)]

    @staticmethod
    def _end(state: Agent, operation: Operation) -> list[tuple[object, Agent]]:
        if state.run != operation.given["run"]:
            return [(["refused"], state)]
        return [(["ended"], Agent(None, False, state.epoch))]

    @staticmethod
    def _act(state: Agent, operation: Operation) -> list[tuple[object, Agent]]:
        return [(["done"] if state.run == operation.given["run"] else ["refused"], state)]
