"""Outcomes over HTTP."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from remit.app import App
from remit.entrypoints.http.caller import caller
from remit.entrypoints.http.document import reply
from remit.entrypoints.http.fields import Body, Id, new_router
from remit.services import outcomes


class CompleteBody(Body):
    note: str = ""


class CloseBody(Body):
    rationale: str


def router(app: App) -> APIRouter:
    routes = new_router("outcomes", "/api/outcomes")

    @routes.get("/{id}")
    async def show_outcome(request: Request, outcome: Id) -> Response:
        return reply(await app.gate(caller(request), outcomes.show, outcome=outcome))

    @routes.post("/{id}/complete")
    async def complete_outcome(
        request: Request, outcome: Id, body: CompleteBody | None = None
    ) -> Response:
        note = body.note if body else ""
        return reply(await app.gate(caller(request), outcomes.complete, outcome=outcome, note=note))

    @routes.post("/{id}/close")
    async def close_outcome(request: Request, outcome: Id, body: CloseBody) -> Response:
        view = await app.gate(
            caller(request), outcomes.close, outcome=outcome, rationale=body.rationale
        )
        return reply(view)

    return routes
