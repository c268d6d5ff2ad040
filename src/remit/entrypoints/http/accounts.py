"""Accounts and set-ups over HTTP: what agents depend on, and what of it is closed."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from remit.app import App
from remit.entrypoints.http.caller import caller
from remit.entrypoints.http.document import reply
from remit.entrypoints.http.fields import CompanyId, Id, new_router
from remit.entrypoints.http.paging import Paged
from remit.services import accounts, dead_letters


def router(app: App) -> APIRouter:
    routes = new_router("accounts", "/api")

    @routes.get("/companies/{companyId}/accounts")
    async def list_accounts(request: Request, company: CompanyId, page: Paged) -> Response:
        """Accounts of providers and set-ups of workers: `open`, `closed` until a time, or
        `failing`; with the cause, when it is tried next, and how many agents wait."""
        return page.cut(await app.gate(caller(request), accounts.listing, company=company))

    @routes.post("/companies/{companyId}/accounts/{id}/retry")
    async def retry_account(request: Request, company: CompanyId, account: Id) -> Response:
        """Try a closed one at once, because somebody saw to it."""
        tried = await app.gate(caller(request), accounts.retry, company=company, account=account)
        return reply(tried)

    @routes.get("/companies/{companyId}/dead-letters")
    async def list_dead_letters(request: Request, company: CompanyId, page: Paged) -> Response:
        """Dead letters that died through no fault of theirs."""
        return page.cut(await app.gate(caller(request), dead_letters.revivable, company=company))

    @routes.post("/companies/{companyId}/dead-letters/revive")
    async def revive_dead_letters(request: Request, company: CompanyId) -> Response:
        """Put all of them back in line."""
        return reply(await app.gate(caller(request), dead_letters.revive_all, company=company))

    return routes
