"""Report on the end of a remote agent's run, over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import Field

from remit.app import App
from remit.entrypoints.http.wire.caller import caller
from remit.entrypoints.http.wire.fields import Body, Id, new_router
from remit.entrypoints.http.wire.json_document import reply
from remit.services.execution import runs

Count = Annotated[int, Field(ge=0, le=runs.MOST)]


class UsageBody(Body):
    tokens_in: Count = 0
    tokens_out: Count = 0
    tokens_cached: Count = 0
    cost_micros: Count = 0


class ReportBody(Body):
    ok: bool = True
    text: Annotated[str, Field(max_length=runs.LONGEST_TEXT)] = ""
    error: Annotated[str, Field(max_length=runs.LONGEST_ERROR)] | None = None
    session: Annotated[str, Field(max_length=runs.LONGEST_SESSION)] | None = None
    #: The fault, if not the agent's: `auth`, `rate`, `overload`, `billing`, `network`,
    #: `setup` or `message`; and until when that lasts, in ISO 8601.
    fault: Annotated[str, Field(max_length=40)] | None = None
    until: Annotated[str, Field(max_length=40)] | None = None
    usage: UsageBody = UsageBody()


def router(app: App) -> APIRouter:
    routes = new_router("runs", "/api")

    @routes.post("/runs/{id}/report")
    async def report_run(request: Request, run: Id, body: ReportBody) -> Response:
        """With the token of the run, and once: how it ended and what it took."""
        report = body.model_dump(exclude={"usage"})
        taken = body.usage.model_dump()
        return reply(await app.gate(caller(request), runs.report, run=run, **report, **taken))

    return routes
