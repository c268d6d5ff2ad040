"""Mail over HTTP: send, read, acknowledge, and what to do with what nobody could handle."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field, StrictBool

from remit.app import App
from remit.entrypoints.http import described
from remit.entrypoints.http.caller import caller
from remit.entrypoints.http.document import reply
from remit.entrypoints.http.fields import Body, CompanyId, Id, Reference, new_router
from remit.entrypoints.http.paging import LARGEST, Page, Paged, by_id
from remit.errors import BadInput
from remit.ids import is_id
from remit.model.mail import MOST_ATTACHMENTS
from remit.services import (
    capability_requests,
    dead_letters,
    inbox,
    needs_you,
    taking_back,
    threads,
    waiting,
)

#: Sorts after every id.
_NEWEST = "g"


class RefuseBody(Body):
    why: described.Reason


class MessageBody(Body):
    #: `agent:<name>`, `user:<name>`, `board`, or for agents `channel:<kind>:<id>`.
    to: Reference
    #: The text, or else a file that is the message.
    body: described.Letter | None = None
    file_id: Reference | None = None
    subject: described.Subject = ""
    #: Files; the receiver may read them.
    attachments: Annotated[list[Reference], Field(max_length=MOST_ATTACHMENTS)] = []  # noqa: RUF012  pydantic copies it
    reply_to: Reference | None = None
    deliver_at: Annotated[
        described.Moment | None, Field(description="ISO 8601; none means now.")
    ] = None
    #: Never hand it out a second time, even if the first attempt failed.
    at_most_once: StrictBool = False


class TakeBackBody(Body):
    #: Answer exactly what would end, and end nothing.
    dry_run: StrictBool = False


def router(app: App) -> APIRouter:
    routes = new_router("mail", "/api")
    in_company = "/companies/{companyId}/messages"

    @routes.get(in_company)
    async def list_messages(
        request: Request,
        company: CompanyId,
        page: Paged,
        sent: Annotated[bool, Query()] = False,
    ) -> Response:
        """What was sent, newest first, as far as the caller may see it; with `sent`, what the
        calling person wrote, and what became of it."""
        rows = await app.gate(
            caller(request),
            threads.listing,
            company=company,
            before=page.after_id(_NEWEST),
            limit=page.limit,
            sent=sent,
        )
        return page.reply(rows, by_id)

    @routes.post(in_company, status_code=201)
    async def send_message(request: Request, company: CompanyId, body: MessageBody) -> Response:
        """Nobody waits for an answer; it comes as mail."""
        who = caller(request)
        await app.gate.check(who)
        view = await app.library.send(
            who,
            company=company,
            to=body.to,
            body=body.body,
            file=body.file_id,
            subject=body.subject,
            attachments=body.attachments,
            reply_to=body.reply_to,
            deliver_at=body.deliver_at,
            at_most_once=body.at_most_once,
        )
        return reply(view, 201)

    @routes.get("/inbox")
    async def show_inbox(
        request: Request,
        page: Paged,
        company: Annotated[Reference | None, Query()] = None,
        everything: Annotated[bool, Query(alias="all")] = False,
    ) -> Response:
        """The caller's own mail, oldest first: what is unread, or all. Looking takes nothing up."""
        rows = await app.gate(
            caller(request),
            threads.own_inbox,
            company=company,
            everything=everything,
            after=_place(page),
            limit=page.limit,
        )
        return page.reply(rows, _place_of)

    @routes.get("/agents/{id}/inbox")
    async def show_inbox_of_agent(
        request: Request,
        agent: Id,
        page: Paged,
        everything: Annotated[bool, Query(alias="all")] = False,
    ) -> Response:
        """An agent's mail, for those who may look at it."""
        rows = await app.gate(
            caller(request),
            threads.inbox_of,
            agent=agent,
            everything=everything,
            after=_place(page),
            limit=page.limit,
        )
        return page.reply(rows, _place_of)

    @routes.get("/agents/{id}/loose-ends")
    async def list_loose_ends(request: Request, agent: Id) -> Response:
        """What an agent and everybody below it left open."""
        found = await app.gate(caller(request), waiting.loose_ends, agent=agent)
        return reply(found["loose_ends"])

    @routes.get("/messages/{id}")
    async def show_message(request: Request, message: Id) -> Response:
        """A message and its thread, as far as the caller may see it."""
        return reply(await app.gate(caller(request), threads.show, message=message))

    @routes.get("/messages/{id}/trace")
    async def trace_message(request: Request, message: Id) -> Response:
        """What became of a letter from a person: its state, runs, outcomes, hires and replies."""
        return reply(await app.gate(caller(request), threads.trace, message=message))

    @routes.post("/messages/{id}/ack")
    async def acknowledge_message(request: Request, message: Id) -> Response:
        """It was read, or dealt with, and does not come again."""
        return reply(await app.gate(caller(request), inbox.acknowledge, ids=[message]))

    @routes.post("/messages/{id}/cancel")
    async def cancel_message(
        request: Request, message: Id, body: TakeBackBody | None = None
    ) -> Response:
        """Take back a letter from a person to an agent with all that was made of it and has no
        other reason, or show what would end; of other mail, what was not delivered yet."""
        carry_out = taking_back.cancel
        if body is not None and body.dry_run:
            carry_out = taking_back.preview_cancel
        return reply(await app.gate(caller(request), carry_out, message=message))

    @routes.post("/messages/{id}/revive")
    async def revive_message(request: Request, message: Id) -> Response:
        """Put a dead letter back in line."""
        return reply(await app.gate(caller(request), dead_letters.revive, message=message))

    @routes.post("/messages/{id}/discard")
    async def discard_message(request: Request, message: Id) -> Response:
        """Let a dead letter rest."""
        return reply(await app.gate(caller(request), dead_letters.discard, message=message))

    @routes.post("/messages/{id}/grant")
    async def grant_request(request: Request, message: Id) -> Response:
        """Give what the message asks for, as it was asked for."""
        given = await app.gate(caller(request), capability_requests.grant_request, request=message)
        return reply(given)

    @routes.post("/messages/{id}/refuse")
    async def refuse_request(request: Request, message: Id, body: RefuseBody) -> Response:
        """Refuse what the message asks for; who asked is told why."""
        refused = await app.gate(
            caller(request), capability_requests.refuse_request, request=message, why=body.why
        )
        return reply(refused)

    @routes.get("/needs-you")
    async def list_what_needs_you(
        request: Request, page: Paged, company: Annotated[Reference | None, Query()] = None
    ) -> Response:
        """Everything that awaits the calling person, oldest first."""
        rows = await app.gate(caller(request), needs_you.listing, company=company)
        return page.after(rows, lambda row: f"{row['since']} {row['kind']} {row['id']}")

    return routes


def _place(page: Page) -> tuple[str, int]:
    """Where the page before ended: a company, and the place in line there."""
    if page.cursor is None:
        return "", 0
    company, _, position = page.cursor.partition(" ")
    if not is_id(company) or not position.isdecimal() or not position.isascii():
        raise BadInput("cursor: is not one that we gave.", "Follow the Link of the page before.")
    return company, min(int(position[:20]), LARGEST)


def _place_of(row: dict[str, Any]) -> object:
    return f"{row['company_id']} {row['position']}"
