"""Outcomes over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field, StrictBool

from remit.app import App
from remit.entrypoints.http import described
from remit.entrypoints.http.caller import caller
from remit.entrypoints.http.document import reply
from remit.entrypoints.http.fields import Body, CompanyId, Id, Reference, new_router
from remit.entrypoints.http.grants import Wish
from remit.entrypoints.http.paging import LARGEST, Paged, by_id
from remit.services import choices, delegation, graph, outcomes, searching, submitting

References = Annotated[list[Reference], Field(max_length=50)]


class NewOutcomeBody(Body):
    parent_id: Reference
    title: described.OutcomeTitle
    description: described.OutcomeText = ""
    #: More reasons for it, besides the first.
    parents: References = []  # noqa: RUF012  pydantic copies it
    blocked_by: References = []  # noqa: RUF012
    urgent: StrictBool = False
    important: StrictBool = False
    deferred_until: Annotated[described.Moment | None, Field(description="ISO 8601")] = None


class OutcomeBody(Body):
    version: Annotated[int, Field(description="The version last seen.")]
    title: described.OutcomeTitle | None = None
    description: described.OutcomeText | None = None
    parents: References | None = None
    blocked_by: References | None = None
    urgent: StrictBool | None = None
    important: StrictBool | None = None
    deferred_until: Annotated[
        described.Moment | None, Field(description="ISO 8601; null to defer it no longer.")
    ] = None

    def asked(self) -> dict[str, Any]:
        found = self.model_dump(exclude_none=True)
        if "deferred_until" in self.model_fields_set and self.deferred_until is None:
            found["deferred_until"] = ""
        return found


class CompleteBody(Body):
    evidence: References = []  # noqa: RUF012
    note: described.Remark = ""


class ReturnBody(Body):
    note: Annotated[described.Reason, Field(description="What is missing.")]


class CloseBody(Body):
    rationale: described.Reason


class ReopenBody(Body):
    note: described.Remark = ""


class HelperBody(Body):
    """A new agent for an outcome."""

    name: described.Name
    role: described.Role = "general"
    title: described.JobTitle = ""
    adapter_type: described.AdapterKind | None = None
    adapter_config: dict[str, Any] | None = None
    prompt: described.Prompt = ""


class BudgetBody(Body):
    """Set aside for an outcome out of the owner's share; what is unspent returns with it."""

    money_cents: described.Amount | None = None
    tokens: described.Amount | None = None


class DelegateBody(Body):
    #: A report of whoever owns the outcome, or else:
    to: Reference | None = None
    hire: HelperBody | None = None
    #: What the receiver will need; it ends with the outcome.
    grants: Annotated[list[Wish], Field(max_length=delegation.MOST_GRANTS)] = []  # noqa: RUF012
    budget: BudgetBody | None = None


class ReclaimBody(Body):
    reason: described.Reason


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
            Annotated[str, described.OUTCOME_STATUS] | None, Query(max_length=20)
        ] = None,
        actionable: bool = False,
        stale: bool = False,
        roots: bool = False,
        query: Annotated[str, Query(max_length=searching.LONGEST_WORDS)] = "",
    ) -> Response:
        """An agent's own, or all for the board; `roots` are part of nothing else, `stale` ones do
        not move.

        With a `query`, those whose title contains it, newest first.
        """
        if query.strip():
            found = await app.gate(
                caller(request),
                searching.outcomes,
                company=company,
                owner=owner,
                status=status,
                actionable=actionable,
                roots=roots,
                words=query,
                before=page.after_id(searching.END_OF_IDS),
                limit=page.limit,
            )
            return page.reply(found, by_id)
        rows = await app.gate(
            caller(request),
            outcomes.listing,
            company=company,
            owner=owner,
            status=status,
            actionable=actionable,
            stale=stale,
            roots=roots,
            after=page.after_id(),
            limit=page.limit,
        )
        # What can be worked on comes most pressing first, so there is no place to go on at.
        return page.reply(rows, None if actionable else by_id)

    @routes.post(in_company, status_code=201)
    async def create_outcome(
        request: Request, company: CompanyId, body: NewOutcomeBody
    ) -> Response:
        who = caller(request)
        await app.gate.check(who)
        view = await app.library.create_outcome(
            who,
            company=company,
            parent=body.parent_id,
            title=body.title,
            description=body.description,
            parents=body.parents,
            blocked_by=body.blocked_by,
            urgent=body.urgent,
            important=body.important,
            deferred_until=body.deferred_until,
        )
        return reply(view, 201)

    @routes.get("/outcomes/{id}")
    async def show_outcome(request: Request, outcome: Id) -> Response:
        return reply(await app.gate(caller(request), outcomes.show, outcome=outcome))

    @routes.patch("/outcomes/{id}")
    async def change_outcome(request: Request, outcome: Id, body: OutcomeBody) -> Response:
        view = await app.gate(caller(request), outcomes.change, outcome=outcome, **body.asked())
        return reply(view)

    @routes.get("/outcomes/{id}/ancestors")
    async def list_reasons(request: Request, outcome: Id) -> Response:
        """Why it is done: the graph above it, and the chains to a root."""
        return reply(await app.gate(caller(request), graph.ancestors, outcome=outcome))

    @routes.get("/outcomes/{id}/subtree")
    async def show_subtree(
        request: Request,
        outcome: Id,
        depth: Annotated[int | None, Query(ge=0, le=graph.DEEPEST)] = None,
    ) -> Response:
        """How it is done: its parts, nested. `more` says how many were left out below."""
        return reply(await app.gate(caller(request), graph.subtree, outcome=outcome, depth=depth))

    @routes.get("/outcomes/{id}/history")
    async def list_outcome_history(request: Request, outcome: Id, page: Paged) -> Response:
        """What happened to it, newest first."""
        rows = await app.gate(
            caller(request),
            outcomes.history,
            outcome=outcome,
            before=page.before_number(LARGEST),
            limit=page.limit,
        )
        return page.reply(rows, lambda row: row["seq"])

    @routes.get("/outcomes/{id}/choices")
    async def list_choices(request: Request, outcome: Id) -> Response:
        """What the caller could do with it now, and to whom it could be handed."""
        return reply(await app.gate(caller(request), choices.outcome, outcome=outcome))

    @routes.post("/outcomes/{id}/complete")
    async def complete_outcome(
        request: Request, outcome: Id, body: CompleteBody | None = None
    ) -> Response:
        given = body or CompleteBody()
        view = await app.gate(
            caller(request),
            outcomes.complete,
            outcome=outcome,
            evidence=given.evidence,
            note=given.note,
        )
        return reply(view)

    @routes.post("/outcomes/{id}/submit")
    async def submit_outcome(
        request: Request, outcome: Id, body: CompleteBody | None = None
    ) -> Response:
        """Hand it in for the verdict of who delegated it."""
        given = body or CompleteBody()
        view = await app.gate(
            caller(request),
            submitting.submit,
            outcome=outcome,
            evidence=given.evidence,
            note=given.note,
        )
        return reply(view)

    @routes.post("/outcomes/{id}/return")
    async def return_outcome(request: Request, outcome: Id, body: ReturnBody) -> Response:
        """Not yet: send back what was handed in."""
        view = await app.gate(
            caller(request), submitting.send_back, outcome=outcome, note=body.note
        )
        return reply(view)

    @routes.post("/outcomes/{id}/close")
    async def close_outcome(request: Request, outcome: Id, body: CloseBody) -> Response:
        view = await app.gate(
            caller(request), outcomes.close, outcome=outcome, rationale=body.rationale
        )
        return reply(view)

    @routes.post("/outcomes/{id}/reopen")
    async def reopen_outcome(
        request: Request, outcome: Id, body: ReopenBody | None = None
    ) -> Response:
        note = body.note if body else ""
        return reply(await app.gate(caller(request), outcomes.reopen, outcome=outcome, note=note))

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

    @routes.post("/outcomes/{id}/reclaim")
    async def reclaim_outcome(request: Request, outcome: Id, body: ReclaimBody) -> Response:
        """Take it back by force; the agents below it stop."""
        view = await app.gate(
            caller(request), delegation.reclaim, outcome=outcome, reason=body.reason
        )
        return reply(view)

    return routes
