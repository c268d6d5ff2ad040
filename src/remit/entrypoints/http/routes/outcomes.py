"""Outcomes over HTTP: the routes that their verbs do not declare.

A search is another verb than the list; delegation may hire, which takes a body of its own.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from remit.app import App
from remit.entrypoints.described_agent import describing
from remit.entrypoints.http.routes.agents import Wish
from remit.entrypoints.http.wire import field_types
from remit.entrypoints.http.wire.caller import caller
from remit.entrypoints.http.wire.fields import Body, CompanyId, Id, Reference, new_router
from remit.entrypoints.http.wire.json_document import reply
from remit.entrypoints.http.wire.paging import Paged, by_id
from remit.model.organisation.agent_spec import SHORT
from remit.services.record import search
from remit.services.work import delegation, outcomes


@describing(SHORT, field_types.of_agent)
class HelperBody(Body):
    """A new agent for an outcome."""


class BudgetBody(Body):
    """Set aside for an outcome out of the owner's share; what is unspent returns with it."""

    money_cents: field_types.Amount | None = None
    tokens: field_types.Amount | None = None


class DelegateBody(Body):
    #: A report of whoever owns the outcome, or else:
    to: Reference | None = None
    hire: HelperBody | None = None
    #: Grants that the receiver will need; they end with the outcome.
    grants: Annotated[list[Wish], Field(max_length=delegation.MOST_GRANTS)] = []  # noqa: RUF012
    budget: BudgetBody | None = None


def router(app: App) -> APIRouter:
    routes = new_router("outcomes", "/api")
    in_company = "/companies/{companyId}/outcomes"

    @routes.get(in_company)
    async def list_outcomes(
        request: Request,
        company: CompanyId,
        page: Paged,
        owner: Annotated[Reference | None, Query()] = None,
        status: Annotated[
            Annotated[str, field_types.OUTCOME_STATUS] | None, Query(max_length=20)
        ] = None,
        actionable: bool = False,
        stale: bool = False,
        roots: bool = False,
        query: Annotated[str, Query(max_length=search.LONGEST_WORDS)] = "",
    ) -> Response:
        """An agent's own, or all for the board; `roots` are part of nothing else, `stale` ones do
        not move.

        With a `query`, those whose title contains it, newest first.
        """
        wanted: dict[str, Any] = {"company": company, "owner": owner, "status": status}
        wanted |= {"actionable": actionable, "roots": roots, "limit": page.limit}
        by = caller(request)
        if query.strip():
            before = page.before_id()
            matches = await app.gate(by, search.outcomes, words=query, before=before, **wanted)
            return page.reply(matches, by_id)
        after = page.after_id()
        rows = await app.gate(by, outcomes.listing, stale=stale, after=after, **wanted)
        # Actionable outcomes come most pressing first, so there is no cursor to resume at.
        return page.reply(rows, None if actionable else by_id)

    @routes.post("/outcomes/{id}/delegate")
    async def delegate_outcome(request: Request, outcome: Id, body: DelegateBody) -> Response:
        """Hand it to a report, or to a new agent that is hired for it."""
        view = await app.gate(
            caller(request),
            delegation.delegate,
            outcome=outcome,
            to=body.to,
            hire=body.hire.model_dump() if body.hire else None,
            given=[wish.model_dump(exclude_none=True) for wish in body.grants],
            budget=body.budget.model_dump() if body.budget else None,
        )
        return reply(view)

    return routes
