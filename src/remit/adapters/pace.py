"""Counters of a run: turns of the model, and identical or failed calls in a row.

Adapters report the turns and calls that they see, and how these ended; a run that exceeds a limit
ends.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from remit.model.execution.calls import Calls
from remit.model.execution.limit import FAILED_CALLS, MAX_TURNS, REPETITION
from remit.model.organisation.decision import deny

#: Of a longer text, only the length and so many characters of both ends are compared.
_COMPARED = 1_000
#: Argument that is ignored: it identifies a request, and is no part of its meaning.
_KEY = "idempotency_key"
_STEP = "Look at its log; a company has limits for this, which its board can raise."

Call = tuple[str, str]


def same_call(tool: str, arguments: Any) -> Call:
    """Return a comparable form of a call, equal for identical calls."""
    if isinstance(arguments, Mapping):
        arguments = {name: _short(argument) for name, argument in arguments.items() if name != _KEY}
    try:
        return tool, json.dumps(_short(arguments), sort_keys=True, default=str)
    except (ValueError, TypeError, RecursionError):
        return tool, ""  # arguments that cannot be encoded count as equal


def _short(value: Any) -> Any:
    if isinstance(value, str) and len(value) > 2 * _COMPARED:
        return [len(value), value[:_COMPARED], value[-_COMPARED:]]
    return value


def said_again(tool: str, times: int) -> str:
    return f"It called {tool[:100]} {times} times in a row with the same arguments."


def said_failed(tool: str, times: int) -> str:
    return f"{times} of its calls in a row were refused or failed, the last one of {tool[:100]}."


class Pace:
    """Counters and limits of one run; without limits it never raises."""

    def __init__(
        self,
        *,
        turns: int | None = None,
        repeats: int | None = None,
        failures: int | None = None,
        elsewhere: Callable[[], None] = lambda: None,
        calls: Calls | None = None,
    ) -> None:
        """`elsewhere` is called for each call of a tool that is not Remit's. `calls` are shared
        with the endpoint of Remit's tools, which counts the calls of these."""
        self._most_turns = turns
        self._most_repeats = repeats
        self._most_failures = failures
        self._elsewhere = elsewhere
        self.calls = calls or Calls()
        #: The last call and its count in a row, by caller: an agent's program may run helpers.
        self._last: dict[str, tuple[Call, int]] = {}
        #: Whether a tool was called that is not Remit's.
        self.acted = False

    def turn(self, number: int) -> None:
        """Report the number of turns so far; raises beyond the limit."""
        if self._most_turns is not None and number > self._most_turns:
            deny(MAX_TURNS, f"It took {self._most_turns} turns.").enforce(_STEP)

    def call(self, tool: str, arguments: Any, *, by: str = "", ours: bool = False) -> None:
        """Report a call, of Remit's tools or others; raises after too many identical ones."""
        if not ours:
            self.acted = True
            self.calls.made(tool)
            self._elsewhere()
        if self._most_repeats is None:
            return
        call = same_call(tool, arguments)
        before, times = self._last.get(by, (None, 0))
        times = times + 1 if before == call else 1
        self._last[by] = (call, times)
        if times > self._most_repeats:
            deny(REPETITION, said_again(tool, self._most_repeats)).enforce(_STEP)

    def ended(self, tool: str, *, failed: bool) -> None:
        """Report how a call of a tool ended that is not Remit's; raises after too many in a row
        that failed."""
        in_a_row = self.calls.ended(tool, failed=failed)
        if self._most_failures is not None and in_a_row >= self._most_failures:
            deny(FAILED_CALLS, said_failed(tool, in_a_row)).enforce(_STEP)
