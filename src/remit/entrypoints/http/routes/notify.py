"""Notifications of a person, over HTTP. A command cannot be set here.

Not declared: the process knows whether there is a command, and no verb does.
"""

from typing import Any

from fastapi import APIRouter, Request, Response

from remit.app import App
from remit.entrypoints.http.wire.caller import caller
from remit.entrypoints.http.wire.fields import CompanyId, new_router
from remit.entrypoints.http.wire.json_document import reply
from remit.errors import Unavailable
from remit.services.connections import notices
from remit.services.identity import Caller


def router(app: App) -> APIRouter:
    routes = new_router("companies", "/api/companies/{companyId}")

    @routes.get("/notify")
    async def show_notify(request: Request, company: CompanyId) -> Response:
        """Where the calling person is told, and what became of the last notices."""
        shown = await app.gate(caller(request), notices.show, company=company)
        return reply({**shown, **_command(app, shown["user_id"])})

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
    """Return whether a command is set on this machine; its text is for the operator alone."""
    try:
        return {"command": app.notifier.command_of(user) is not None, "command_problem": None}
    except Unavailable as error:
        return {"command": False, "command_problem": error.sentence}
