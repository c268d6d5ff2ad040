"""Whether the instance lives, and what it has been doing."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from remit import __version__
from remit.app import App
from remit.entrypoints.http.caller import caller
from remit.entrypoints.http.document import reply
from remit.entrypoints.http.fields import new_router
from remit.errors import Refused
from remit.model.principal import ActorKind
from remit.services import users

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


def router(app: App, answered: Counter[int], streams: Callable[[], int]) -> APIRouter:
    routes = new_router("instance", public=True)
    began = time.monotonic()

    @routes.get("/health")
    async def health() -> Response:
        """Needs no token."""
        return reply({"status": "ok", "version": __version__})

    @routes.get("/metrics", responses={200: {"content": {"text/plain": {}}}})
    async def metrics(request: Request) -> Response:
        """For Prometheus, with a person's token."""
        me = await app.gate(caller(request), users.me)
        if me["kind"] != ActorKind.USER.value:
            raise Refused(
                "Only people see how the instance is doing.",
                "Use a board member's token.",
                code="board_only",
            )
        return PlainTextResponse(
            _text(answered, time.monotonic() - began, streams()), media_type=PROMETHEUS
        )

    return routes


def _text(answered: Counter[int], seconds: float, streams: int) -> str:
    lines = [
        "# HELP remit_info The running version.",
        "# TYPE remit_info gauge",
        f'remit_info{{version="{__version__}"}} 1',
        "# HELP remit_uptime_seconds Since the instance began to answer.",
        "# TYPE remit_uptime_seconds gauge",
        f"remit_uptime_seconds {seconds:.3f}",
        "# HELP remit_open_streams Event streams somebody is reading.",
        "# TYPE remit_open_streams gauge",
        f"remit_open_streams {streams}",
        "# HELP remit_http_responses_total Answers by the class of their status.",
        "# TYPE remit_http_responses_total counter",
        *(
            f'remit_http_responses_total{{class="{kind}xx"}} {answered[kind]}'
            for kind in range(1, 6)
        ),
    ]
    return "\n".join(lines) + "\n"
