"""Making a company what a file says, over HTTP."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import StrictBool

from remit.app import App
from remit.entrypoints import setup_warnings
from remit.entrypoints.http.caller import caller
from remit.entrypoints.http.document import reply
from remit.entrypoints.http.fields import Body, CompanyId, new_router
from remit.services import applying


class ApplyBody(Body):
    #: Sections `company`, `secrets`, `repos`, `mcp_servers`, `agents`, `grants`, `bindings` and
    #: `schedules`.
    document: dict[str, Any]
    dry_run: StrictBool = False


def router(app: App) -> APIRouter:
    routes = new_router("apply", "/api")

    @routes.post("/companies/{companyId}/apply")
    async def apply_document(request: Request, company: CompanyId, body: ApplyBody) -> Response:
        """All or nothing. What the document does not mention is left alone; with `dryRun`, or
        when there is nothing to do, nothing is changed. `warnings` name the agents that cannot
        work here yet."""
        who = caller(request)
        if body.dry_run or await app.gate.first_answer(who) is None:
            plan = await app.gate(who, applying.preview, company=company, document=body.document)
            for source in applying.sources(body.document):
                app.vault.check_source(source)
            if body.dry_run or not (plan["created"] or plan["changed"]):
                warned = await setup_warnings.of_document(app, body.document, plan["plan"])
                return reply({**plan, "dry_run": body.dry_run, "warnings": warned})
        answer = await app.gate(who, applying.apply, company=company, document=body.document)
        for place in answer.pop("replaced", ()):
            await app.vault.discard(place)
        warned = await setup_warnings.of_document(app, body.document, answer["plan"])
        return reply({**answer, "warnings": warned})

    return routes
