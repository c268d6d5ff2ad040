"""Health and metrics of the instance."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from remit import version
from remit.app import App
from remit.entrypoints.http.server.guard import Guard
from remit.entrypoints.http.wire.caller import caller
from remit.entrypoints.http.wire.fields import new_router
from remit.entrypoints.http.wire.json_document import reply
from remit.errors import RemitError
from remit.model.organisation.decision import deny
from remit.model.organisation.principal import ActorKind
from remit.services.people import users

log = logging.getLogger(__name__)

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


def router(app: App, guard: Guard, streams: Callable[[], int]) -> APIRouter:
    routes = new_router("instance", public=True)
    began = time.monotonic()
    vitals = Vitals(app)

    @routes.get("/health")
    async def health() -> Response:
        """Needs no token. 503 while the database or the blobs cannot be written, or the newest
        contents are not there."""
        if failing := await vitals.failing():
            what = " ".join(f"{name}: {sentence}" for name, sentence in failing.items())
            return reply(
                {
                    "status": "failing",
                    "version": version.current(),
                    "failing": failing,
                    "error": f"The storage of the instance does not work. {what}",
                    "code": "storage",
                    "next_step": "Check the disk and the database; nothing acknowledged is lost.",
                },
                503,
            )
        return reply({"status": "ok", "version": version.current()})

    @routes.get("/metrics", response_class=PlainTextResponse)
    async def metrics(request: Request) -> Response:
        """For Prometheus, with an operator's token: it is about all companies."""
        me = await app.gate(caller(request), users.me)
        if me["kind"] != ActorKind.USER.value or not me["operator"]:
            refusal = deny("operator_only", "Only who runs the instance sees how it is doing.")
            refusal.enforce("Use an operator's token.")
        return PlainTextResponse(
            _text(guard, time.monotonic() - began, streams()), media_type=PROMETHEUS
        )

    return routes


def _text(guard: Guard, seconds: float, streams: int) -> str:
    lines = [
        "# HELP remit_info The running version.",
        "# TYPE remit_info gauge",
        f'remit_info{{version="{version.current()}"}} 1',
        "# HELP remit_uptime_seconds Since the instance began to answer.",
        "# TYPE remit_uptime_seconds gauge",
        f"remit_uptime_seconds {seconds:.3f}",
        "# HELP remit_open_streams Open event streams.",
        "# TYPE remit_open_streams gauge",
        f"remit_open_streams {streams}",
        "# HELP remit_http_responses_total Answers by the class of their status.",
        "# TYPE remit_http_responses_total counter",
        *(
            f'remit_http_responses_total{{class="{kind}xx"}} {guard.answered[kind]}'
            for kind in range(1, 6)
        ),
        "# HELP remit_refused_tokens_total Requests with a token that was not accepted.",
        "# TYPE remit_refused_tokens_total counter",
        f"remit_refused_tokens_total {guard.refusals.count}",
    ]
    return "\n".join(lines) + "\n"


# ── write checks of the database and the blob store ───────────────────────────────────────────────

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
            "contents": self._app.library.check_place(),
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
            log.error("the storage of the instance does not work: %s", self._failing)
        elif before and not self._failing:
            log.info("the storage of the instance works again")
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
