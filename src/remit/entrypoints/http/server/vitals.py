"""Write checks of the database and the blob store, for the health of the instance."""

import asyncio
import logging
import time
from collections.abc import Awaitable
from typing import Final

from remit.app import App
from remit.errors import RemitError

log = logging.getLogger(__name__)

#: Cache lifetime of a result; a check costs two small writes.
EVERY_SECONDS: Final = 5.0
#: Longest wait of a request, which then gets the last result.
ANSWER_SECONDS: Final = 0.05
#: Timeout of a check: storage this slow counts as failing.
LONGEST_SECONDS: Final = 3.0


class Vitals:
    """Write checks with a cache: run on demand, one at a time, with a timeout."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._failing: dict[str, str] = {}
        self._at = -EVERY_SECONDS
        self._looking: asyncio.Task[None] | None = None

    async def failing(self) -> dict[str, str]:
        """Failing parts, each with a sentence; nothing if all is well."""
        if self._looking is None and time.monotonic() - self._at >= EVERY_SECONDS:
            self._looking = asyncio.create_task(self._look())
        if self._looking is not None:
            await asyncio.wait([self._looking], timeout=ANSWER_SECONDS)
        return self._failing

    async def _look(self) -> None:
        looks: dict[str, Awaitable[object]] = {
            "database": self._app.database.check(),
            "blobs": self._app.library.run(self._app.blobs.check),
        }
        tasks = {name: asyncio.create_task(_found(look)) for name, look in looks.items()}
        await asyncio.wait(tasks.values(), timeout=LONGEST_SECONDS)
        before, self._failing = self._failing, {}
        for name, task in tasks.items():
            sentence = task.result() if task.done() else "It does not answer."
            if sentence:
                self._failing[name] = sentence
            task.cancel()
        if self._failing and not before:
            log.error("the instance cannot write its data: %s", self._failing)
        elif before and not self._failing:
            log.info("the instance can write its data again")
        self._at = time.monotonic()
        self._looking = None


async def _found(look: Awaitable[object]) -> str:
    try:
        await look
    except RemitError as error:
        return error.sentence
    except Exception as error:
        log.exception("whether the storage can be used is not known")
        return f"It fails ({type(error).__name__})."
    return ""
