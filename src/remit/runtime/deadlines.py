"""Deadlines: time limits for waits, and for the shutdown of the process.

`within` bounds one wait; `uninterrupted` completes one despite cancellation. `Deadline` bounds the
shutdown of the whole process, also when the event loop is stuck: a thread exits the process without
cleanup. That loses nothing that was acknowledged, and the system kills programs of runs when their
parent is gone.
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

#: From the first signal to the end of the process; the documented limit is 10 seconds.
END_SECONDS = 9.0
#: For abandoned tasks, after everything else has ended.
LEFT_SECONDS = 0.5
#: Exit code of a process that the deadline ended.
CUT_OFF = 1


async def within(seconds: float, work: Awaitable[T], what: str) -> T | None:
    """Return the result of an awaitable, or None after the time limit: then the task is cancelled,
    abandoned and logged."""
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
    """Run a coroutine to its end despite cancellation; raises `CancelledError` afterwards."""
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
    """Cancel a task without waiting for it; its result is ignored and its error logged."""
    task.add_done_callback(_ignored)
    task.cancel()


def _ignored(task: asyncio.Future[T]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.warning("what was left behind ended with %r", error)


class Deadline:
    """Watchdog for the shutdown of the process; a context manager around the work to be ended."""

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
        """Start the countdown; further calls have no effect."""
        if not self._begun:
            self._begun = True
            threading.Thread(target=self._watch, name="deadline", daemon=True).start()

    def put_away(self) -> None:
        """Report that the cleanup is complete; abandoned tasks get only a moment more."""
        self._put_away.set()

    def at_once(self, code: int) -> None:
        """Exit the process now, without waiting for the cleanup."""
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
    """The top of the main thread's stack: places in the code, no data."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    places = traceback.extract_stack(frame)[-4:] if frame is not None else []
    return " > ".join(f"{place.name} ({place.filename}:{place.lineno})" for place in places)
