"""An end to waiting: whatever hangs, an end comes to its end.

`within` bounds one wait, `uninterrupted` finishes one. `Deadline` bounds the end of the whole
process, also when the event loop itself is stuck: it is a thread, and it leaves without asking
anybody. Nothing that was acknowledged is lost by that, and programs of runs are killed by the
system when we are gone.
"""

import asyncio
import logging
import os
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Self, TypeVar

T = TypeVar("T")
log = logging.getLogger(__name__)

#: From the first signal to the end of the process; what was promised is 10 seconds.
END_SECONDS = 9.0
#: For what was left behind to end after all, when everything else has.
LEFT_SECONDS = 0.5
#: How a process ends that did not come to its end by itself.
CUT_OFF = 1


async def within(seconds: float, work: Awaitable[T], what: str) -> T | None:
    """The result, or None if it takes longer: then it is cancelled, left behind, and logged."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait([task], timeout=seconds)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if task.done():
        return task.result()
    leave_behind(task)
    log.error("%s did not come to an end within %g seconds and is left behind", what, seconds)
    return None


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """Finish it, however often we are cancelled meanwhile; then be cancelled."""
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
    return task.result()


def leave_behind(task: asyncio.Future[T]) -> None:
    """Nobody waits for it any more: it may refuse to be cancelled, and its result is unwanted."""
    task.add_done_callback(_ignored)
    task.cancel()


def _ignored(task: asyncio.Future[T]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.warning("what was left behind ended with %r", error)


class Deadline:
    """The time that a process may take to end; enter it while there is something to end."""

    def __init__(
        self, seconds: float | None = None, leave: Callable[[int], object] = os._exit
    ) -> None:
        self._seconds = seconds
        self._leave = leave
        self._put_away = threading.Event()
        self._over = threading.Event()
        self._begun = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._put_away.set()

    def begin(self) -> None:
        """The process is to end: from now on it has so many seconds. Once."""
        if not self._begun:
            self._begun = True
            threading.Thread(target=self._watch, name="deadline", daemon=True).start()

    def put_away(self) -> None:
        """All that has to be is; whatever was left behind and still hangs is not waited for."""
        self._put_away.set()

    def at_once(self, code: int) -> None:
        """Somebody does not want to wait."""
        self._leave(code)

    def _watch(self) -> None:
        seconds = END_SECONDS if self._seconds is None else self._seconds
        if not self._put_away.wait(seconds):
            log.critical("it did not end within %g seconds and is cut off", seconds)
            log.critical("what it was doing: %s", _doing())
            self._leave(CUT_OFF)
        elif not self._over.wait(LEFT_SECONDS):
            self._leave(0)


def _doing() -> str:
    """The stack of the main thread: places in programs, no data."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    places = traceback.extract_stack(frame)[-4:] if frame is not None else []
    return " > ".join(f"{one.name} ({one.filename}:{one.lineno})" for one in places)
