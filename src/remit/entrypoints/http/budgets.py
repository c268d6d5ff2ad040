"""Budgets over HTTP: what agents may spend, and what is left of it."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from remit.app import App
from remit.entrypoints.http.caller import caller
from remit.entrypoints.http.document import reply
from remit.entrypoints.http.fields import CompanyId, Id, new_router
from remit.entrypoints.http.paging import Paged
from remit.services import budgets


def router(app: App) -> APIRouter:
    routes = new_router("budgets", "/api")

    @routes.get("/agents/{id}/budget")
    async def show_budget(request: Request, agent: Id) -> Response:
        """Of this month: the limit, what is reserved, spent and left. Money is in millionths of a
        dollar. An agent without a budget of its own lives on the one that `paidBy` names."""
        return reply(await app.gate(caller(request), budgets.show, agent=agent))

    @routes.get("/companies/{companyId}/budgets")
    async def list_budgets(request: Request, company: CompanyId, page: Paged) -> Response:
        """Everybody who has a budget or spent something this month."""
        rows = await app.gate(
            caller(request),
            budgets.listing,
            company=company,
            after=page.after_id(),
            limit=page.limit,
        )
        return page.reply(rows, lambda row: row["agent_id"])

    return routes
