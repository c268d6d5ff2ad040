"""How a person is told outside that something needs them. A command cannot be set here."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import Field

from remit.app import App
from remit.entrypoints.http.caller import caller
from remit.entrypoints.http.document import reply
from remit.entrypoints.http.fields import Body, CompanyId, new_router
from remit.errors import Unavailable
from remit.services import notices
from remit.services.identity import Caller


class NotifyBody(Body):
    webhook: Annotated[
        str | None,
        Field(
            description="Where to post what needs you, signed; null for nowhere.", max_length=2000
        ),
    ]


def router(app: App) -> APIRouter:
    routes = new_router("notify", "/api/companies/{companyId}")

    @routes.get("/notify")
    async def show_notify(request: Request, company: CompanyId) -> Response:
        """Where the calling person is told, and what became of the last notices."""
        shown = await app.gate(caller(request), notices.show, company=company)
        return reply({**shown, **_command(app, shown["user_id"])})

    @routes.patch("/notify")
    async def set_notify(request: Request, company: CompanyId, body: NotifyBody) -> Response:
        """Name a webhook, or none. The key that signs what is sent is shown this once."""
        who = caller(request)
        return reply(await app.gate(who, notices.set_webhook, company=company, url=body.webhook))

    @routes.post("/notify/test")
    async def try_notify(request: Request, company: CompanyId) -> Response:
        """Send a test in every way that the calling person is told; what became of it is shown."""
        who = caller(request)
        shown = await app.gate(Caller(who.token), notices.show, company=company)
        by_command = bool(_command(app, shown["user_id"])["command"])
        answer = await app.gate(who, notices.try_out, company=company, by_command=by_command)
        return reply(answer)

    return routes


def _command(app: App, user: str) -> dict[str, Any]:
    """Whether there is a command on this machine; its words are for whoever runs the instance."""
    try:
        return {"command": app.notifier.command_of(user) is not None, "command_problem": None}
    except Unavailable as error:
        return {"command": False, "command_problem": error.sentence}
