"""Thread pools for blocking work, one for each kind.

Stuck work of one kind does not delay other kinds, and daemon threads do not keep the process from
ending. The event loop's own pool is left to work that cannot get stuck, such as imports.
"""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


async def alone(work: Callable[..., T], *arguments: Any) -> T:
    """Run work in a thread of its own, for work that others can delay without limit, such as a
    script that calls tools."""
    future: Future[T] = Future()
    threading.Thread(target=_do, args=(future, work, arguments), name="alone", daemon=True).start()
    return await asyncio.wrap_future(future)


class Threads:
    """A pool of daemon threads for one kind of work, started on demand."""

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._jobs: queue.SimpleQueue[tuple[Future[Any], Callable[..., Any], Any]] = (
            queue.SimpleQueue()
        )
        self._lock = threading.Lock()
        self._count = 0
        #: Number of idle threads; approximate, which costs at most one thread too many.
        self._idle = 0

    async def run(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run work in a thread; cancelling the caller before the work began cancels the work."""
        future: Future[T] = Future()
        self._jobs.put((future, work, arguments))
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
            del job  # so that an idle thread keeps no reference to it


def _do(future: Future[T], work: Callable[..., T], arguments: tuple[Any, ...]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    # The waiter may be gone, and its loop closed.
    with contextlib.suppress(RuntimeError):
        try:
            result = work(*arguments)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)


#: For folders of runs and repositories, which may be large.
FILES = Threads("files", 8)
#: For ending the leftover processes of runs.
ENDINGS = Threads("endings", 4)
#: For checks of adapters, which may be plugins' code.
CHECKS = Threads("checks", 4)
