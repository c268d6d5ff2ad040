"""Journal of a run's output: stored while the run lasts, bounded, redacted."""

import asyncio
import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable, MutableSequence
from dataclasses import replace
from typing import Any

from remit.adapters.reading import Reader, Transcript
from remit.clock import Clock
from remit.errors import RemitError
from remit.model.execution.transcript import Entry, EntryKind, harmless, line_of, name
from remit.services.command import Gate
from remit.services.execution import run_queue
from remit.services.identity import as_system
from remit.services.redaction import Known

log = logging.getLogger(__name__)

#: Most characters that are kept of the beginning of a log, and of its end.
MOST_HEAD = 1 << 20
MOST_TAIL = 1 << 20
_EVERY_SECONDS = 0.2
_LARGEST_PIECE = 32 * 1024
#: Smaller pieces are merged, so that a program that prints letter by letter costs no more.
_SMALLEST_PIECE = 1024
#: Most names of denied tools that are counted; others are counted together.
_MOST_TOOLS = 12
_OTHERS = "others"
_CUT = "[… {} characters are left out …]\n"


class Journal:
    """Collects output and stores it a few times a second."""

    def __init__(
        self,
        gate: Gate,
        clock: Clock,
        run: str,
        hidden: Known | None = None,
        reader: Reader | None = None,
    ) -> None:
        self._gate = gate
        self._clock = clock
        self._run = run
        self._hidden = hidden or Known()
        self._waiting: list[tuple[str, str]] = []
        self._head = 0
        self._tail: deque[tuple[str, str]] = deque()
        self._tail_size = 0
        self._dropped = 0
        self._number = 0
        self._reading = Transcript(reader) if reader is not None and reader.sees_denials else None
        #: Number of denials by tool, and whether the numbers have changed since they were stored.
        self._denied: dict[str, int] = {}
        self._more_denied = False
        self._new = asyncio.Event()
        self._closing = asyncio.Event()
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._task = asyncio.create_task(self._write_down())

    def add(self, text: str, stream: str) -> None:
        """Add some whole lines of output; callable from any thread."""
        self._here(self._add, text, stream)

    def tell(self, entry: Entry) -> None:
        """Add an entry that no program printed; callable from any thread."""
        self._here(self._tell, entry)

    def _here(self, work: Callable[..., None], *arguments: Any) -> None:
        """Run some work in the journal's event loop, because its state is not thread-safe.

        Additions of one thread keep their order, and come before callbacks that the thread
        schedules later, such as its own end.
        """
        if threading.get_ident() == self._thread:
            work(*arguments)
            return
        # A thread that could not be stopped may still print when the loop is closed.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(work, *arguments)

    def _add(self, text: str, stream: str) -> None:
        if self._closed:
            return
        text = self._hidden.out_of(text)
        text = harmless(text)
        if self._reading is not None:
            for entry in self._reading.add(stream, text):
                self._look_at(entry)
        if self._head < MOST_HEAD:
            kept = text[: MOST_HEAD - self._head]
            self._head += len(kept)
            _put(self._waiting, stream, kept)
            text = text[len(kept) :]
            self._new.set()
        if text:
            _put(self._tail, stream, text)
            self._tail_size += len(text)
            self._shorten_tail()

    def _tell(self, entry: Entry) -> None:
        # Redacted before the encoding as JSON, which changes some characters.
        text = self._hidden.out_of(entry.text)
        self._add(line_of(replace(entry, text=text, at=self._clock.now())) + "\n", "remit")
        if self._reading is None:
            self._look_at(entry)

    async def close(self) -> None:
        """Store the rest, with a note about output that was left out in the middle."""
        self._closing.set()
        self._new.set()
        await self._task
        self._closed = True
        if self._dropped:
            self._waiting.append(("remit", _CUT.format(self._dropped)))
        self._waiting += self._tail
        self._tail.clear()
        await self._flush()

    def _look_at(self, entry: Entry) -> None:
        if entry.kind is EntryKind.DENIED:
            tool = name(entry.tool)
            if tool not in self._denied and len(self._denied) >= _MOST_TOOLS:
                tool = _OTHERS
            self._denied[tool] = self._denied.get(tool, 0) + 1
            self._more_denied = True
            self._new.set()

    def _shorten_tail(self) -> None:
        while self._tail_size > MOST_TAIL:
            stream, oldest = self._tail.popleft()
            over = self._tail_size - MOST_TAIL
            if len(oldest) > over:
                self._tail.appendleft((stream, oldest[over:]))
            gone = min(len(oldest), over)
            self._tail_size -= gone
            self._dropped += gone

    async def _write_down(self) -> None:
        while not self._closing.is_set():
            await self._new.wait()
            self._new.clear()
            try:
                async with asyncio.timeout(_EVERY_SECONDS):
                    await self._closing.wait()
            except TimeoutError:
                pass
            await self._flush()

    async def _flush(self) -> None:
        pieces = self._merged()
        denied = dict(self._denied) if self._more_denied else None
        if not pieces and denied is None:
            return
        self._more_denied = False
        try:
            await self._gate(
                as_system(), run_queue.append_log, run=self._run, pieces=pieces, denied=denied
            )
        except RemitError as error:
            log.warning("the log of run %s is incomplete: %s", self._run, error)
        except Exception:
            log.exception("the log of run %s is incomplete", self._run)

    def _merged(self) -> list[dict[str, Any]]:
        """Merge successive output of one stream into pieces."""
        waiting, self._waiting = self._waiting, []
        pieces: list[dict[str, Any]] = []
        for stream, text in waiting:
            last = pieces[-1] if pieces else None
            if last and last["stream"] == stream and len(last["text"]) < _LARGEST_PIECE:
                last["text"] += text
            else:
                self._number += 1
                pieces.append(
                    {
                        "number": self._number,
                        "at": self._clock.now(),
                        "stream": stream,
                        "text": text,
                    }
                )
        return pieces


def _put(pieces: MutableSequence[tuple[str, str]], stream: str, text: str) -> None:
    if pieces and pieces[-1][0] == stream and len(pieces[-1][1]) < _SMALLEST_PIECE:
        pieces[-1] = (stream, pieces[-1][1] + text)
    else:
        pieces.append((stream, text))
