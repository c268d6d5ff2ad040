"""Counters of a run: turns of the model, and identical calls in a row.

An adapter that sees turns and calls says so; a run that goes beyond its limits ends.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from remit.model.execution.limit import MAX_TURNS, REPETITION
from remit.model.organisation.decision import deny

#: Of a long text only so much at its beginning and its end is compared, and its length.
_COMPARED = 1_000
#: A key makes one request repeatable; it says nothing about what is asked for.
_KEY = "idempotency_key"
_STEP = "Look at its log; a company has limits for this, which its board can raise."

Call = tuple[str, str]


def same_call(tool: str, arguments: Any) -> Call:
    """Digest of a call, the same for identical ones."""
    if isinstance(arguments, Mapping):
        arguments = {name: _short(one) for name, one in arguments.items() if name != _KEY}
    try:
        return tool, json.dumps(_short(arguments), sort_keys=True, default=str)
    except (ValueError, TypeError, RecursionError):
        return tool, ""  # whatever cannot be written down is taken for the same


def _short(value: Any) -> Any:
    if isinstance(value, str) and len(value) > 2 * _COMPARED:
        return [len(value), value[:_COMPARED], value[-_COMPARED:]]
    return value


def said_again(tool: str, times: int) -> str:
    return f"It called {tool[:100]} {times} times in a row with the same arguments."


class Pace:
    """Of one run. Without limits it only looks on."""

    def __init__(
        self,
        *,
        turns: int | None = None,
        repeats: int | None = None,
        elsewhere: Callable[[], None] = lambda: None,
    ) -> None:
        """`elsewhere` is told when the run called something that is not a tool of Remit."""
        self._most_turns = turns
        self._most_repeats = repeats
        self._elsewhere = elsewhere
        #: The last call and how often in a row it was made, by who made it: an agent may let
        #: others work for it at the same time.
        self._last: dict[str, tuple[Call, int]] = {}

    def turn(self, number: int) -> None:
        """The model was asked so often; raises when that is too often."""
        if self._most_turns is not None and number > self._most_turns:
            deny(MAX_TURNS, f"It took {self._most_turns} turns.").enforce(_STEP)

    def call(self, tool: str, arguments: Any, *, by: str = "", ours: bool = False) -> None:
        """The model called a tool, of Remit or of its own; raises when it did so too often."""
        if not ours:
            self._elsewhere()
        if self._most_repeats is None:
            return
        call = same_call(tool, arguments)
        before, times = self._last.get(by, (None, 0))
        times = times + 1 if before == call else 1
        self._last[by] = (call, times)
        if times > self._most_repeats:
            deny(REPETITION, said_again(tool, self._most_repeats)).enforce(_STEP)
