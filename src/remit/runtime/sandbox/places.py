"""Places: the processes from which a run's token is accepted.

A program that Remit starts has the token in its environment, and may leak it, through injected
instructions or a log. So a token on a connection is accepted only if the other end is held by a
process of the run, according to the kernel.

Tokens of agents elsewhere (`http`) come from other machines, and those of runs with full access
from programs that have the whole machine anyway; these two kinds are accepted from everywhere.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Iterable
from typing import Final

from remit import threads
from remit.errors import Unauthenticated
from remit.ids import token_digest
from remit.runtime.sandbox import peers
from remit.runtime.sandbox.peers import Ends

log = logging.getLogger(__name__)

#: How long the check of a connection is trusted.
BELIEVED_SECONDS: Final = 5.0
#: How long a call is delayed while a program is being started, which may call before its process
#: is registered.
_START_SECONDS: Final = 5.0
#: Time limit of a search through a run's processes; after it, the token is refused.
_LOOK_SECONDS: Final = 30.0
OUTSIDE: Final = "run_token_outside"


class Place:
    """The processes of one run; this process is one of them, for adapters that run in it."""

    def __init__(self, run: str, *, anywhere: bool = False) -> None:
        self.run = run
        #: Whether its token is accepted from everywhere.
        self.anywhere = anywhere
        self._programs: list[int] = []
        self._settled = asyncio.Event()
        self._settled.set()
        self._starting = 0
        #: One search at a time, so that a run with many processes does not delay others.
        self._looking = asyncio.Lock()

    def begin(self) -> None:
        """A program is about to be started."""
        self._starting += 1
        self._settled.clear()

    def begun(self, pid: int | None) -> None:
        """The program was started with this process id, or None if it could not be."""
        if pid is not None:
            self._programs.append(pid)
        self._starting -= 1
        if not self._starting:
            self._settled.set()

    async def holds(self, ends: Ends) -> bool:
        """Return whether a process of the run holds the other end of a connection."""
        async with asyncio.timeout(_LOOK_SECONDS), self._looking:
            async with asyncio.timeout(_START_SECONDS):
                await self._settled.wait()
            return await threads.alone(_is_held, ends, [os.getpid()], list(self._programs))


def _is_held(ends: Ends, selves: Iterable[int], programs: Iterable[int]) -> bool:
    number = peers.socket_of(ends)
    if number is None:
        return False
    return (
        peers.held_by(number, selves) is not None
        or peers.holder_below(number, programs) is not None
    )


class Peer(tuple[str, int]):
    """The other end of one connection, with the times of its successful checks."""

    believed: dict[str, float]

    def __new__(cls, address: tuple[str, int]) -> Peer:
        peer = super().__new__(cls, address)
        peer.believed = {}
        return peer


class Places:
    """The places of all runs of this process."""

    def __init__(self) -> None:
        self._by_token: dict[str, Place] = {}
        #: Whether tokens of other workers' runs are refused, as in the process that serves.
        self.strict = False
        #: Whether owners of connections can be found here; None if that was not tried yet.
        self._can_tell: bool | None = None

    @property
    def can_tell(self) -> bool:
        if self._can_tell is None:
            self._can_tell = peers.can_tell()
            if not self._can_tell:
                log.warning(
                    "this system does not tell the owner of a connection: run tokens work "
                    "everywhere"
                )
        return self._can_tell

    def open(self, token: str, place: Place) -> None:
        self._by_token[token_digest(token)] = place

    def close(self, token: str) -> None:
        self._by_token.pop(token_digest(token), None)

    def of(self, token: str) -> Place | None:
        return self._by_token.get(token_digest(token))

    async def check(self, place: Place, other: tuple[str, int], own: tuple[str, int]) -> None:
        """Refuse a run's token that comes from outside of the run."""
        if place.anywhere or not self.can_tell:
            return
        now = time.monotonic()
        believed = other.believed if isinstance(other, Peer) else {}
        if now - believed.get(place.run, -BELIEVED_SECONDS) < BELIEVED_SECONDS:
            return
        try:
            inside = await place.holds(Ends((other[0], other[1]), (own[0], own[1])))
        except TimeoutError:
            inside = False
        if not inside:
            raise outside(place.run)
        believed[place.run] = now


def outside(run: str) -> Unauthenticated:
    log.warning("the token of run %s was used from outside of it, and refused", run)
    return Unauthenticated(
        "The token of a run is good inside that run only.",
        "Give your program a token of its own.",
        code=OUTSIDE,
    )
