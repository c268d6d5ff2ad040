"""Request bodies: authenticated before they are received; limited in size, values and memory.

    head ─ token known? ─ room for it? ─ received whole ─ values counted ─ parsed and checked

The cost of parsing JSON depends on the number of its values, not of its bytes: one string of
megabytes is parsed in milliseconds, as many megabytes of `[1],[1]` in seconds. So values are
counted before anything is parsed, and what is not small is parsed in a thread, never on the event
loop.
"""

import asyncio
import re
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope

from remit.errors import BadInput, RemitError, TooLarge, Unavailable

T = TypeVar("T")

#: Of a JSON document. Its parser holds the interpreter lock: for this size, about 20 ms.
LARGEST_DOCUMENT: Final = 8 * 1024 * 1024
#: In one document: about as many as describe a company of a thousand agents.
MOST_VALUES: Final = 50_000
#: Bodies up to this size are received, parsed and checked without asking for room or time.
SMALL: Final = 32 * 1024
#: Bytes in memory of large bodies that have not been answered: in all, and of one caller.
MOST_IN_FLIGHT: Final = 32 * 1024 * 1024
MOST_OF_ONE: Final = LARGEST_DOCUMENT
#: Longest wait for memory, and for a whole body to arrive.
ROOM_SECONDS: Final = 10.0
ARRIVAL_SECONDS: Final = 60.0

#: Key of the `Incoming` in a request's ASGI scope.
INCOMING: Final = "remit.incoming"

#: The rest of a JSON string, up to its closing quote or the end of the window.
_IN_STRING: Final = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
#: Bytes examined in one call, which holds the interpreter lock.
_WINDOW: Final = 256 * 1024
#: One thread: a parser holds the interpreter lock, and of two the event loop would wait for both.
_THREAD: Final = ThreadPoolExecutor(1, thread_name_prefix="bodies")


class TooSlow(RemitError):
    """A body that did not arrive in time."""

    code = "too_slow"
    status = 408
    next_step = "Send it again over a faster connection, or send contents as they are."


class Room:
    """Memory budget of request bodies. A request that does not fit waits in a queue."""

    def __init__(self, most: int = MOST_IN_FLIGHT, of_one: int = MOST_OF_ONE) -> None:
        self._most = most
        self._of_one = of_one
        self.taken = 0
        self._of: Counter[str] = Counter()
        self._waiting: deque[tuple[str, int, asyncio.Future[None]]] = deque()

    async def take(self, who: str, size: int, seconds: float = ROOM_SECONDS) -> None:
        if not self._waiting and self._fits(who, size):
            self._grant(who, size)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        place = (who, size, turn)
        self._waiting.append(place)
        self._admit()
        try:
            async with asyncio.timeout(seconds):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self.give_back(who, size)  # granted just as the wait ended
            else:
                self._waiting.remove(place)
                self._admit()
            if isinstance(error, TimeoutError):
                raise Unavailable(
                    "Too many large requests are being answered.",
                    "Try again in a moment; repeat with the same idempotency key.",
                    code="busy",
                ) from None
            raise

    def give_back(self, who: str, size: int) -> None:
        self.taken -= size
        self._of[who] -= size
        if not self._of[who]:
            del self._of[who]
        self._admit()

    def _fits(self, who: str, size: int) -> bool:
        return self.taken + size <= self._most and self._of[who] + size <= self._of_one

    def _grant(self, who: str, size: int) -> None:
        self.taken += size
        self._of[who] += size

    def _admit(self) -> None:
        """Admit requests in the order of arrival. One that waits for its caller's share holds up no
        other caller."""
        for place in list(self._waiting):
            who, size, turn = place
            if turn.done() or self._of[who] + size > self._of_one:
                continue  # given up just now, or over its caller's share
            if self.taken + size > self._most:
                return
            self._waiting.remove(place)
            self._grant(who, size)
            turn.set_result(None)


class Incoming:
    """Body of one request. No byte of it is received for an unknown token."""

    def __init__(
        self, receive: Receive, know: Callable[[], Awaitable[str]], room: Room, largest: int
    ) -> None:
        self._receive = receive
        self._know = know
        self._room = room
        self._largest = largest
        self._who: str | None = None
        self._size = 0
        self._reserved = 0
        self.complete = False

    async def receive(self) -> Message:
        await self.who()
        message = await self._receive()
        self._size += len(message.get("body", b""))
        self.complete = not message.get("more_body", False)
        if self._size > self._largest:
            raise too_large(self._largest)
        return message

    async def who(self) -> str:
        """Return the key of the token's bearer; refuse an unknown token."""
        if self._who is None:
            self._who = await self._know()
        return self._who

    async def reserve(self, size: int) -> None:
        who = await self.who()
        await self._room.take(who, size)
        self._reserved = size

    def release(self) -> None:
        if self._reserved and self._who is not None:
            self._room.give_back(self._who, self._reserved)
            self._reserved = 0


async def whole(scope: Scope, receive: Receive, largest: int = LARGEST_DOCUMENT) -> bytes:
    """Receive a whole body of at most `largest` bytes; memory for a large one is reserved first."""
    declared = declared_size(scope)
    if declared is not None and declared > largest:
        raise too_large(largest)
    incoming: Incoming | None = scope.get(INCOMING)
    if incoming is not None and (declared or 0) > SMALL:
        await incoming.reserve(declared or 0)
        incoming = None
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(ARRIVAL_SECONDS):
            more = True
            while more:
                message = await receive()
                if message["type"] != "http.request":
                    raise ClientDisconnect
                piece = message.get("body", b"")
                more = message.get("more_body", False)
                size += len(piece)
                if size > largest:
                    raise too_large(largest)
                if incoming is not None and size > SMALL:  # chunked, so its size is unknown
                    await incoming.reserve(largest)
                    incoming = None
                pieces.append(piece)
    except TimeoutError:
        raise TooSlow(f"The body did not arrive within {ARRIVAL_SECONDS:.0f} seconds.") from None
    return b"".join(pieces)


async def apart(size: int, work: Callable[..., T], *args: object) -> T:
    """Run work whose time grows with a body's size: in a thread, unless the body is small."""
    return work(*args) if size <= SMALL else await in_thread(work, *args)


async def in_thread(work: Callable[..., T], *args: object) -> T:
    return await asyncio.get_running_loop().run_in_executor(_THREAD, work, *args)


def check_values(body: bytes, most: int = MOST_VALUES) -> None:
    """Refuse a JSON text with more than `most` values, without parsing it."""
    if len(body) > most and _values(body, most) > most:
        raise BadInput(
            f"The body has more than {most:,} values.",
            "Send less at once; a long text is one value.",
            code="too_many_values",
        )


def declared_size(scope: Scope) -> int | None:
    """Return the body's size by its Content-Length, 0 without one; None for a chunked body."""
    declared = 0
    for name, value in scope["headers"]:
        if name == b"transfer-encoding":
            return None
        if name == b"content-length" and value.isdigit():
            declared = int(value[:20])
    return declared


def too_large(largest: int) -> TooLarge:
    shown = f"{largest >> 20} MiB" if largest >> 20 else f"{largest >> 10} KiB"
    return TooLarge(
        f"The request is larger than {shown}.",
        "Send less; a large content as it is (PUT or POST to /api, not as JSON) or, from a "
        "workspace, by its path.",
    )


def _values(body: bytes, most: int) -> int:
    """Count the values of a JSON text, an empty list or object as two; stop counting at some
    number above `most`."""
    values = 1 + _separators(body, 0, len(body), most)
    if values <= most:
        return values
    # Texts have commas, too: count what is not in a string.
    values, strings, here = 1, 0, 0
    while values <= most and strings <= 2 * most:
        quote = body.find(b'"', here)
        values += _separators(body, here, len(body) if quote < 0 else quote, most)
        if quote < 0:
            return values
        strings += 1
        here = _behind_string(body, quote + 1)
    return most + 1


def _separators(body: bytes, start: int, end: int, most: int) -> int:
    """Count commas and opening brackets: n values in a list or an object have n - 1 and one."""
    count = 0
    while start < end and count <= most:
        stop = min(start + _WINDOW, end)
        count += sum(body.count(mark, start, stop) for mark in (b",", b"[", b"{"))
        start = stop
    return count


def _behind_string(body: bytes, start: int) -> int:
    here, size = start, len(body)
    while here < size:
        match = _IN_STRING.match(body, here, here + _WINDOW)
        end = match.end() if match is not None else here
        if body[end : end + 1] == b'"':
            return end + 1
        if end == here:
            return size  # a backslash at the very end: invalid JSON, which the parser refuses
        here = end
    return size
