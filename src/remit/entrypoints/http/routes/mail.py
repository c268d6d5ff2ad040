"""Mail over HTTP: routes that choose between verbs, or page in an order of their own.

Sending, reading and dead letters are declared with their verbs.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import StrictBool

from remit.app import App
from remit.entrypoints.http.wire.caller import caller
from remit.entrypoints.http.wire.fields import Body, Id, Reference, new_router
from remit.entrypoints.http.wire.json_document import reply
from remit.entrypoints.http.wire.paging import LARGEST, Page, Paged
from remit.errors import BadInput
from remit.ids import is_id
from remit.services.command import Answer, Verb
from remit.services.messaging import inbox, pending_items, threads, wish_withdrawal
from remit.services.screens import needs_you


class TakeBackBody(Body):
    #: Answer exactly what would end, and end nothing.
    dry_run: StrictBool = False


def router(app: App) -> APIRouter:
    routes = new_router("mail", "/api")

    async def listed(
        request: Request, verb: Verb[..., list[Answer]], page: Page, everything: bool, **whose: Any
    ) -> Response:
        arguments = {"everything": everything, "after": _place(page), "limit": page.limit}
        rows = await app.gate(caller(request), verb, **whose, **arguments)
        return page.reply(rows, lambda row: f"{row['company_id']} {row['position']}")

    @routes.get("/inbox")
    async def show_inbox(
        request: Request,
        page: Paged,
        company: Annotated[Reference | None, Query()] = None,
        everything: Annotated[bool, Query(alias="all")] = False,
    ) -> Response:
        """The caller's own mail, oldest first: what is unread, or all. Looking takes nothing up."""
        return await listed(request, threads.own_inbox, page, everything, company=company)

    @routes.get("/agents/{id}/inbox")
    async def show_inbox_of_agent(
        request: Request,
        agent: Id,
        page: Paged,
        everything: Annotated[bool, Query(alias="all")] = False,
    ) -> Response:
        """An agent's mail, for those who may look at it."""
        return await listed(request, threads.inbox_of, page, everything, agent=agent)

    @routes.get("/agents/{id}/loose-ends")
    async def list_loose_ends(request: Request, agent: Id) -> Response:
        """Loose ends of an agent and everybody below it."""
        view = await app.gate(caller(request), pending_items.loose_ends, agent=agent)
        return reply(view["loose_ends"])

    @routes.post("/messages/{id}/ack")
    async def acknowledge_message(request: Request, message: Id) -> Response:
        """Acknowledge a message as read or handled; it is not delivered again."""
        return reply(await app.gate(caller(request), inbox.acknowledge, ids=[message]))

    @routes.post("/messages/{id}/cancel")
    async def cancel_message(
        request: Request, message: Id, body: TakeBackBody | None = None
    ) -> Response:
        """Take back a letter from a person to an agent with all that was made of it and has no
        other reason, or show what would end; of other mail, what was not delivered yet."""
        carry_out = wish_withdrawal.cancel
        if body is not None and body.dry_run:
            carry_out = wish_withdrawal.preview_cancel
        return reply(await app.gate(caller(request), carry_out, message=message))

    @routes.get("/needs-you")
    async def list_what_needs_you(
        request: Request, page: Paged, company: Annotated[Reference | None, Query()] = None
    ) -> Response:
        """Everything that awaits the calling person, oldest first."""
        rows = await app.gate(caller(request), needs_you.listing, company=company)
        return page.after(rows, lambda row: f"{row['since']} {row['kind']} {row['id']}")

    return routes


def _place(page: Page) -> tuple[str, int]:
    """Parse the cursor: a company, and the position in its queue."""
    if page.cursor is None:
        return "", 0
    company, _, position = page.cursor.partition(" ")
    if not is_id(company) or not position.isdecimal() or not position.isascii():
        raise BadInput(
            "cursor: is not one from an earlier page.", "Use the Link header of that page."
        )
    return company, min(int(position[:20]), LARGEST)
