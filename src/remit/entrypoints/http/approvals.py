"""Approvals over HTTP: asked for, looked at, talked about, decided."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field, StrictInt

from remit.app import App
from remit.clock import from_iso
from remit.entrypoints.http import described
from remit.entrypoints.http.caller import caller
from remit.entrypoints.http.document import reply
from remit.entrypoints.http.fields import Body, CompanyId, Id, Reference, new_router
from remit.entrypoints.http.paging import Paged, by_id
from remit.services import approvals
from remit.services.command import Verb


class RequestBody(Body):
    type: described.Requestable
    payload: dict[str, Any] = {}  # noqa: RUF012  pydantic copies it
    expires_at: Annotated[
        described.Moment | None, Field(description="ISO 8601; then it is given up.")
    ] = None


class DecisionBody(Body):
    decision_note: described.DecisionNote | None = None
    expected_revision: Annotated[
        StrictInt | None, Field(ge=1, le=2**30, description="The revision that was seen.")
    ] = None


class ResubmitBody(Body):
    payload: dict[str, Any] | None = None


class CommentBody(Body):
    body: described.Comment
    reply_to: Reference | None = None


def router(app: App) -> APIRouter:
    routes = new_router("approvals", "/api")
    in_company = "/companies/{companyId}/approvals"

    @routes.get(in_company)
    async def list_approvals(
        request: Request,
        company: CompanyId,
        page: Paged,
        status: Annotated[
            Annotated[str, described.APPROVAL_STATUS] | None, Query(max_length=40)
        ] = None,
    ) -> Response:
        """Newest first: for people what is in their reach, for an agent what concerns it."""
        rows = await app.gate(
            caller(request),
            approvals.listing,
            company=company,
            status=status or None,
            before=page.after_id(approvals.END_OF_IDS),
            limit=page.limit,
        )
        return page.reply(rows, by_id)

    @routes.post(in_company, status_code=201)
    async def request_approval(request: Request, company: CompanyId, body: RequestBody) -> Response:
        """approve_ceo_strategy, budget or request_board_approval; the others ask by themselves."""
        view = await app.gate(
            caller(request),
            approvals.request,
            company=company,
            kind=body.type,
            payload=body.payload,
            expires_at=None if body.expires_at is None else from_iso(body.expires_at),
        )
        return reply(view, 201)

    @routes.get("/approvals/{id}")
    async def show_approval(request: Request, approval: Id) -> Response:
        """With all its revisions and comments."""
        return reply(await app.gate(caller(request), approvals.show, approval=approval))

    async def _decide(
        request: Request, verb: Verb[..., dict[str, Any]], approval: str, body: DecisionBody | None
    ) -> Response:
        said = body or DecisionBody()
        view = await app.gate(
            caller(request),
            verb,
            approval=approval,
            note=said.decision_note,
            expected_revision=said.expected_revision,
        )
        return reply(view)

    @routes.post("/approvals/{id}/approve")
    async def approve(request: Request, approval: Id, body: DecisionBody | None = None) -> Response:
        """What was asked for takes effect with the decision, or neither happens."""
        return await _decide(request, approvals.approve, approval, body)

    @routes.post("/approvals/{id}/reject")
    async def reject(request: Request, approval: Id, body: DecisionBody | None = None) -> Response:
        return await _decide(request, approvals.reject, approval, body)

    @routes.post("/approvals/{id}/request-revision")
    async def request_revision(
        request: Request, approval: Id, body: DecisionBody | None = None
    ) -> Response:
        """Send it back; it cannot be approved before it was submitted again."""
        return await _decide(request, approvals.request_revision, approval, body)

    @routes.post("/approvals/{id}/resubmit")
    async def resubmit(
        request: Request, approval: Id, body: ResubmitBody | None = None
    ) -> Response:
        """What the payload leaves out stays as it was."""
        payload = body.payload if body is not None else None
        return reply(
            await app.gate(caller(request), approvals.resubmit, approval=approval, payload=payload)
        )

    @routes.post("/approvals/{id}/cancel")
    async def cancel_approval(
        request: Request, approval: Id, body: DecisionBody | None = None
    ) -> Response:
        note = body.decision_note if body is not None else None
        return reply(
            await app.gate(caller(request), approvals.cancel, approval=approval, note=note)
        )

    @routes.delete("/approvals/{id}/agent")
    async def delete_disapproved_agent(request: Request, approval: Id) -> Response:
        """Only one that was never taken on; the approval and its comments stay."""
        return reply(await app.gate(caller(request), approvals.delete_agent, approval=approval))

    @routes.get("/approvals/{id}/comments")
    async def list_comments(request: Request, approval: Id, page: Paged) -> Response:
        """Oldest first."""
        rows = await app.gate(
            caller(request),
            approvals.comments,
            approval=approval,
            after=page.after_id(),
            limit=page.limit,
        )
        return page.reply(rows, by_id)

    @routes.post("/approvals/{id}/comments", status_code=201)
    async def add_comment(request: Request, approval: Id, body: CommentBody) -> Response:
        view = await app.gate(
            caller(request),
            approvals.comment,
            approval=approval,
            body=body.body,
            reply_to=body.reply_to,
        )
        return reply(view, 201)

    return routes
