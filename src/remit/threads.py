"""Threads for what blocks, one kind of work beside the other.

What is stuck in one kind keeps no other waiting, and none of them keeps the process from ending.
The event loop's own pool is left to what cannot get stuck, such as imports.
"""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


async def alone(work: Callable[..., T], *given: Any) -> T:
    """Do it in a thread of its own: for what somebody else can keep waiting for as long as they
    like, such as a script that calls tools."""
    future: Future[T] = Future()
    threading.Thread(target=_do, args=(future, work, given), name="alone", daemon=True).start()
    return await asyncio.wrap_future(future)


class Threads:
    """A few threads for one kind of work, begun when they are needed."""

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._jobs: queue.SimpleQueue[tuple[Future[Any], Callable[..., Any], Any]] = (
            queue.SimpleQueue()
        )
        self._lock = threading.Lock()
        self._count = 0
        #: How many wait for work; not exact, which costs a thread at most.
        self._idle = 0

    async def run(self, work: Callable[..., T], *given: Any) -> T:
        """Run work in a thread; a caller that is cancelled before it began cancels it."""
        future: Future[T] = Future()
        self._jobs.put((future, work, given))
        with self._lock:
            if self._idle < self._jobs.qsize() and self._count < self._most:
                self._count += 1
                name = f"{self._name}-{self._count}"
                threading.Thread(target=self._serve, name=name, daemon=True).start()
        return await asyncio.wrap_future(future)

    def _serve(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
            job = self._jobs.get()
            with self._lock:
                self._idle -= 1
            _do(*job)
            del job  # nothing of it is kept while there is nothing to do


def _do(future: Future[T], work: Callable[..., T], given: tuple[Any, ...]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    # The waiter may be gone, and its loop closed.
    with contextlib.suppress(RuntimeError):
        try:
            result = work(*given)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)


#: Folders of runs and repositories, which may be large.
FILES = Threads("files", 8)
#: Ending what runs left behind.
ENDINGS = Threads("endings", 4)
#: Checks of adapters; those of plugins are somebody else's code.
CHECKS = Threads("checks", 4)
