"""Login links over HTTP."""

from fastapi import APIRouter, Request, Response

from remit.app import App
from remit.entrypoints.http.wire.caller import caller
from remit.entrypoints.http.wire.fields import new_router
from remit.entrypoints.http.wire.json_document import reply
from remit.services.people import sessions


def router(app: App) -> APIRouter:
    routes = new_router("users", "/api")

    # Not declared: the link has the address of the request, unless one is configured.
    @routes.post("/login-links", status_code=201)
    async def create_login_link(request: Request) -> Response:
        """A link that signs the calling person in to the web, once."""
        link = await app.gate(caller(request), sessions.create_link)
        base = app.settings.url or f"{request.url.scheme}://{request.url.netloc}"
        url = link["token"] and f"{base.rstrip('/')}/login?token={link['token']}"
        return reply({"url": url, "expires_at": link["expires_at"]}, 201)

    return routes
