"""Linearizability check: whether concurrent operations are consistent with a sequential order.

A history consists of calls and answers, with the times of both by one clock. It is linearizable if
there is an order in which each operation takes effect at one moment between its call and its
answer, and every answer is right in that order. The search is that of Wing and Gong with Lowe's
memoisation: each pair of a set of completed operations and a state is visited once. Keys are
independent and checked one by one.

An operation without an answer, because its process was killed or its connection lost, may have
taken effect at any time after its call, or never.
"""

import json
import os
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

S = TypeVar("S", bound=Hashable)
#: Limit of the search; far more than a history of thousands needs if most operations have answers.
MOST_PLACES = 2_000_000
_LONGEST_LINE = 160


@dataclass(frozen=True)
class Operation:
    """An operation on one key."""

    key: str
    name: str
    given: Any
    #: The value that the model compares with; None if there was no answer.
    answer: Any
    began: int
    #: When the answer came; None if it never did.
    ended: int | None
    by: str = ""

    @property
    def unknown(self) -> bool:
        return self.ended is None


class Model(Protocol[S]):
    """Sequential model of one key."""

    def initial(self, key: str) -> S: ...

    def step(self, state: S, operation: Operation) -> Iterable[S]:
        """Return the states that an operation may lead to with its answer; none if that answer is
        wrong here.

        Without an answer (`operation.unknown`), the states it may lead to with any answer.
        """
        ...

    def observes(self, operation: Operation) -> bool:
        """Whether the operation, with its answer, is read-only in any state; prunes the search."""
        ...


class Undecided(Exception):
    """The search would take too long: too many operations have no answer."""


@dataclass(frozen=True)
class Violation(Generic[S]):
    """A short history without a valid order."""

    key: str
    #: The possible states of the key when this part of the history began.
    before: tuple[S, ...]
    operations: tuple[Operation, ...]

    def __str__(self) -> str:
        start = min(operation.began for operation in self.operations)
        lines = [f"{self.key} was {' or '.join(map(str, self.before))}; then, in microseconds:"]
        for operation in self.operations:
            until = (
                "      …" if operation.ended is None else f"{(operation.ended - start) / 1000:7.0f}"
            )
            answer = "no answer" if operation.ended is None else operation.answer
            line = (
                f"{(operation.began - start) / 1000:7.0f} -{until}  "
                f"{operation.by}: {operation.name} {operation.given}"
            )
            lines.append(f"{line} → {answer}"[:_LONGEST_LINE])
        return "\n".join(lines)


def check(
    model: Model[S], history: Iterable[Operation], *, most: int = MOST_PLACES
) -> list[Violation[S]]:
    """Return one violation for each key whose history has no valid order."""
    by_key: dict[str, list[Operation]] = defaultdict(list)
    for operation in history:
        by_key[operation.key].append(operation)
    return [
        _shortest(model, key, operations, most)
        for key, operations in sorted(by_key.items())
        if not _Search(model, operations, most).ends({(0, model.initial(key))})
    ]


#: A search state: the unanswered operations that took effect, as bits, and the model's state.
_Place = tuple[int, Any]


class _Search(Generic[S]):
    def __init__(self, model: Model[S], operations: Sequence[Operation], most: int) -> None:
        self._model = model
        self._most = most
        ordered = sorted(operations, key=lambda operation: operation.began)
        self.known = [
            (operation.began, operation.ended, operation)
            for operation in ordered
            if operation.ended is not None
        ]
        self.loose = [operation for operation in ordered if operation.ended is None]

    def ends(self, starts: Iterable[_Place], *, every: bool = False) -> set[_Place]:
        """Return a reachable end with every answer right, if there is one, or `every` such end."""
        # Completed are all operations before `first`, and later ones whose bit is set in `done`.
        stack = [(0, 0, *start) for start in starts]
        seen = set(stack)
        ends: set[_Place] = set()
        while stack:
            if len(seen) > self._most:
                raise Undecided(f"more than {self._most} places to look at")
            first, done, taken, state = stack.pop()
            if first == len(self.known):
                ends.add((taken, state))
                if not every:
                    return ends
            for place in self._next(first, done, taken, state):
                if place not in seen:
                    seen.add(place)
                    stack.append(place)
        return ends

    def _next(self, first: int, done: int, taken: int, state: S) -> list[tuple[int, int, int, Any]]:
        """Return the successors: operations that began before any other pending one ended."""
        candidates, end = [], None
        for index in range(first, len(self.known)):
            began, ended, operation = self.known[index]
            if end is not None and began > end:
                break
            if not done >> (index - first) & 1:
                candidates.append((ended, index, operation))
                end = ended if end is None else min(end, ended)
        places = []
        for number, operation in enumerate(self.loose):
            if end is not None and operation.began > end:
                break
            if not taken >> number & 1:
                places += [
                    (first, done, taken | 1 << number, new)
                    for new in set(self._model.step(state, operation)) - {state}
                ]
        # The stack visits the last one first, and the operation that ended first is most likely.
        for _, index, operation in sorted(
            candidates, key=lambda candidate: candidate[:2], reverse=True
        ):
            states = set(self._model.step(state, operation))
            moved = _moved(first, done | 1 << (index - first))
            if states and self._model.observes(operation):
                # A read-only operation that is right here can be taken first without loss.
                return [(*moved, taken, state)]
            places += [(*moved, taken, new) for new in states]
        return places


def _moved(first: int, done: int) -> tuple[int, int]:
    while done & 1:
        first, done = first + 1, done >> 1
    return first, done


def _shortest(
    model: Model[S], key: str, operations: Sequence[Operation], most: int
) -> Violation[S]:
    """Cut a violation to the part from the last idle moment to the first impossible answer."""
    answers = sorted(operation.ended for operation in operations if operation.ended is not None)
    starts: set[_Place] = {(0, model.initial(key))}

    def until(end: int) -> list[Operation]:
        return [
            operation
            if operation.ended is None or operation.ended <= end
            else replace(operation, answer=None, ended=None)
            for operation in operations
            if operation.began <= end
        ]

    wrong = bisect_left(
        answers, True, key=lambda end: not _Search(model, until(end), most).ends(starts)
    )
    search = _Search(model, until(answers[wrong]), most)
    cut, busy_until = 0, 0
    for index, (began, ended, _) in enumerate(search.known):
        if began > busy_until:
            cut = index
        busy_until = max(busy_until, ended)
    quiet = search.known[cut][0]
    earlier = [operation for _, _, operation in search.known[:cut]]
    # Unanswered calls begun by then may have taken effect before, or may do so later.
    early = [operation for operation in search.loose if operation.began < quiet]
    places = _Search(model, [*earlier, *early], most).ends(starts, every=True)
    open_still = [
        operation
        for number, operation in enumerate(search.loose)
        if not all(taken >> number & 1 for taken, _ in places)
    ]
    rest = [operation for _, _, operation in search.known[cut:]] + open_still
    rest.sort(key=lambda operation: operation.began)
    before = {state for _, state in places}
    return Violation(key, tuple(sorted(before, key=repr)), tuple(rest))


class Recorder:
    """Log of a process's calls and answers, which survives its being killed.

    `now` is a clock that all processes share, such as `time.monotonic_ns` on one machine.
    """

    def __init__(self, path: Path, by: str, now: Callable[[], int]) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._by = by
        self._now = now
        self._count = 0

    def asked(self, key: str, name: str, given: Any) -> int:
        self._count += 1
        self._write([self._count, self._now(), self._by, key, name, given])
        return self._count

    def answered(self, number: int, answer: Any) -> None:
        self._write([number, self._now(), answer])

    def close(self) -> None:
        os.close(self._file)

    def _write(self, line: Any) -> None:
        os.write(self._file, json.dumps(line).encode() + b"\n")


def recorded(paths: Iterable[Path]) -> list[Operation]:
    """Read the history that recorders wrote."""
    history: list[Operation] = []
    for path in paths:
        here: dict[int, Operation] = {}
        for line in path.read_bytes().splitlines():
            with suppress(ValueError):  # a line cut off by the end of its process
                number, at, *rest = json.loads(line)
                if len(rest) == 1:
                    here[number] = replace(here[number], answer=rest[0], ended=at)
                else:
                    by, key, name, argument = rest
                    here[number] = Operation(key, name, argument, None, at, None, by)
        history += here.values()
    return history


__all__ = ["Model", "Operation", "Recorder", "Undecided", "Violation", "check", "recorded"]
