"""Answers to wrong tokens, links and webhook secrets are held back, longer with each.

A right one is answered at once, whoever else tries from the same address: only an answer that is a
refusal waits. So many refusals wait at most; beyond that they are answered with 429, and the
connection is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from starlette.types import Scope

from remit.runtime.tries import Pace, Tries

#: A person mistypes a few times; a run whose token has ended asks a few times more.
SOURCE: Final = Pace(free=20, first=0.05, longest=5.0)
TARGET: Final = Pace(free=200, first=0.05, longest=1.0)
MAX_HELD: Final = 512
_CARRYING: Final = (b"authorization", b"cookie")
#: Paths that take other proofs than a token; each is a target of its own.
_PROVED: Final = ("/login", "/api/channels/", "/api/hooks/")


def source_of(scope: Scope) -> str:
    """Return the address that a request comes from."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def is_try(scope: Scope) -> bool:
    """Return whether a refused request brought something that could have been right."""
    if any(name in _CARRYING for name, _ in scope["headers"]):
        return True
    return scope["method"] == "POST" and str(scope["path"]).startswith(_PROVED)


class Strangers:
    """Holds back refusals of one process."""

    def __init__(self) -> None:
        self.tries = Tries(SOURCE, TARGET)
        self._held = 0
        self._over = asyncio.Event()

    async def hold(self, scope: Scope) -> float:
        """Wait before a refusal is sent. Returns 0 then; with too many that wait, at once the
        seconds after which the source may try again."""
        path = scope["path"]
        target = path[:200] if path.startswith(_PROVED) else "tokens"
        delay = self.tries.wrong(source_of(scope), target)
        if not delay or self._over.is_set():
            return 0.0
        if self._held >= MAX_HELD:
            return delay
        self._held += 1
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), delay)
        finally:
            self._held -= 1
        return 0.0

    def close(self) -> None:
        """Let all refusals go, because the server stops."""
        self._over.set()
