"""Background jobs over HTTP: what was asked for, what became of it, and putting an end to it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from remit.app import App
from remit.entrypoints.http import described
from remit.entrypoints.http.caller import caller
from remit.entrypoints.http.document import reply
from remit.entrypoints.http.fields import Body, CompanyId, Id, Reference, new_router
from remit.entrypoints.http.paging import Paged, by_id
from remit.services import jobs
from remit.services.identity import Caller


class CancelJobBody(Body):
    reason: described.Remark | None = None


def router(app: App) -> APIRouter:
    routes = new_router("jobs", "/api")

    @routes.get("/companies/{companyId}/jobs")
    async def list_jobs(
        request: Request,
        company: CompanyId,
        page: Paged,
        unfinished: bool = False,
        agent: Annotated[Reference | None, Query()] = None,
    ) -> Response:
        """What agents have done in the background, newest first."""
        rows = await app.gate(
            caller(request),
            jobs.listing,
            company=company,
            agent=agent,
            unfinished=unfinished,
            before=page.after_id(jobs.END_OF_IDS),
            limit=page.limit,
        )
        return page.reply(rows, by_id)

    @routes.get("/jobs/{id}")
    async def show_job(request: Request, job: Id) -> Response:
        return reply(await app.gate(caller(request), jobs.show, job=job))

    @routes.post("/jobs/{id}/cancel")
    async def cancel_job(request: Request, job: Id, body: CancelJobBody | None = None) -> Response:
        """End it. Its program ends as soon as its worker sees that."""
        reason = body.reason if body is not None else None
        who = caller(request)
        done = await app.gate(who, jobs.cancel, job=job, reason=reason or "")
        return reply(await app.gate(Caller(who.token), jobs.show, job=done["id"]))

    return routes
