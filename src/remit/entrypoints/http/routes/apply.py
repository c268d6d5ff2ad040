"""Applying the declaration of a company, over HTTP."""

from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import StrictBool

from remit.app import App
from remit.entrypoints import declared_files
from remit.entrypoints.http.wire.caller import caller
from remit.entrypoints.http.wire.fields import Body, CompanyId, new_router
from remit.entrypoints.http.wire.json_document import reply


class ApplyBody(Body):
    #: Sections `company`, `secrets`, `repos`, `mcp_servers`, `agents`, `grants`, `bindings` and
    #: `schedules`.
    document: dict[str, Any]
    dry_run: StrictBool = False


def router(app: App) -> APIRouter:
    routes = new_router("apply", "/api")

    @routes.post("/companies/{companyId}/apply")
    async def apply_document(request: Request, company: CompanyId, body: ApplyBody) -> Response:
        """All or nothing. The rest of the company is left alone; with `dryRun`, or
        when there is nothing to do, nothing is changed. `warnings` name the agents that cannot
        work here yet."""
        return reply(
            await declared_files.apply(
                app, caller(request), company, body.document, dry_run=body.dry_run
            )
        )

    return routes
