"""A company over HTTP: its permission policy and signing key, notifications, declaration, export,
import and outcome graph; and login links."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field, StrictBool, StrictInt
from starlette.responses import StreamingResponse

from remit.app import App
from remit.entrypoints import arrival, declared_files, svg
from remit.entrypoints.http.wire import field_types
from remit.entrypoints.http.wire.caller import caller
from remit.entrypoints.http.wire.fields import Body, CompanyId, new_router
from remit.entrypoints.http.wire.json_document import reply
from remit.errors import BadInput, Unavailable
from remit.model.organisation.permission import CAN_CREATE_AGENTS
from remit.services.connections import notices
from remit.services.fields import LONGEST_REFERENCE
from remit.services.identity import Caller
from remit.services.organisation import permissions
from remit.services.people import sessions
from remit.services.work import outcome_walks

_SETTINGS = {"can_create_agents": CAN_CREATE_AGENTS}
_KNOWN = (CAN_CREATE_AGENTS, "allow", "deny", "governs", "shipped")
TAR: Final = "application/x-tar"
_BYTES: Final[dict[str, Any]] = {TAR: {"schema": {"type": "string", "format": "binary"}}}
_SANDBOX: Final = "sandbox; default-src 'none'; frame-ancestors 'none'"
#: Agents write the titles in it, so a browser must never treat the drawing as a page of Remit's.
_DRAWING: Final = {
    "Content-Security-Policy": f"{_SANDBOX}; style-src 'unsafe-inline'",
    "Cache-Control": "private, no-cache",
}

Root = Annotated[str | None, Query(max_length=LONGEST_REFERENCE, description="Only what is below.")]


class PolicyBody(Body):
    #: `restricted`, `standard`, `privileged` or `boss`.
    level: field_types.Level
    #: Whether agents with the level hire: true, false, or null for the CEO alone.
    can_create_agents: StrictBool | None = None
    #: Actions that the level allows and denies.
    allow: Annotated[list[field_types.ActionName], Field(max_length=20)] | None = None
    deny: Annotated[list[field_types.ActionName], Field(max_length=20)] | None = None
    #: Over whom they have a say: `nobody`, `below` or `company`; only of the level boss.
    governs: field_types.Governs | None = None
    #: Instead of all that: as Remit ships it.
    shipped: StrictBool = False
    #: The version that was looked at.
    version: StrictInt | None = None


class ApplyBody(Body):
    #: Sections `company`, `secrets`, `repos`, `mcp_servers`, `agents`, `grants`, `bindings` and
    #: `schedules`.
    document: dict[str, Any]
    dry_run: StrictBool = False
    #: The digest of the preview, where the company would run, reach or be lent more.
    accepted: Annotated[str, Field(max_length=64)] | None = None


def router(app: App) -> APIRouter:
    routes = new_router("companies", "/api/companies/{companyId}")

    # Not declared: null is a setting of its own, other than a field that is left out.
    @routes.patch("/permission-policy")
    async def change_policy(request: Request, company: CompanyId, body: PolicyBody) -> Response:
        """Change permission levels; parts that are left out stay. Agents with a level gain and lose
        with it at once."""
        changes = body.model_dump(include=body.model_fields_set - {"level", "shipped", "version"})
        settings = {_SETTINGS.get(name, name): value for name, value in changes.items()}
        if not settings and not body.shipped:
            raise BadInput("Nothing is to be changed.", f"Give one of {', '.join(_KNOWN)}.")
        if settings and body.shipped:
            raise BadInput("shipped stands alone.", "Leave the other settings out.")
        return reply(
            await app.gate(
                caller(request),
                permissions.change_policy,
                company=company,
                level=body.level,
                settings=None if body.shipped else settings,
                expected_version=body.version,
            )
        )

    # Not declared: they use the vault of this machine.
    @routes.get("/signing-key")
    async def show_signing_key(request: Request, company: CompanyId) -> Response:
        """The public half of the key that its commits are signed with, if there is one."""
        return reply(await app.signing.shown(caller(request), company=company))

    @routes.post("/signing-key", status_code=201)
    async def make_signing_key(request: Request, company: CompanyId) -> Response:
        """A new key: commits are signed with it from now on."""
        return reply(await app.signing.make(caller(request), company=company), 201)

    # Not declared: the process knows whether there is a command, and no verb does. A command cannot
    # be set here.
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


def login_links(app: App) -> APIRouter:
    routes = new_router("users", "/api")

    # Not declared: the link has the address of the request, unless one is configured.
    @routes.post("/login-links", status_code=201)
    async def create_login_link(request: Request) -> Response:
        """A link that signs the calling person in to the web, once."""
        link = await app.gate(caller(request), sessions.create_link)
        base = arrival.of(request).link_base
        url = link["token"] and f"{base}/login?token={link['token']}"
        return reply({"url": url, "expires_at": link["expires_at"]}, 201)

    return routes


def declaration(app: App) -> APIRouter:
    routes = new_router("apply", "/api")

    @routes.post("/companies/{companyId}/apply")
    async def apply_document(request: Request, company: CompanyId, body: ApplyBody) -> Response:
        """All or nothing. The rest of the company is left alone; with `dryRun`, or
        when there is nothing to do, nothing is changed. `entries` are what the company would run,
        reach and be lent with it; where there are any, `accepted` is the `digest` that a preview
        showed. `leftOut` names rights over the machine, which no file gives. `warnings` name the
        agents that cannot work here yet."""
        return reply(
            await declared_files.apply(
                app,
                caller(request),
                company,
                body.document,
                dry_run=body.dry_run,
                accepted=body.accepted,
            )
        )

    return routes


def archive(app: App) -> APIRouter:
    routes = new_router("archive", "/api/companies")

    @routes.get(
        "/{companyId}/export",
        response_class=Response,
        responses={200: {"description": "A tar", "content": _BYTES}},
    )
    async def export_company(request: Request, company: CompanyId) -> Response:
        """The whole company as a tar of readable text. That it was taken is recorded."""
        outline = await app.archive.export(caller(request), company)
        headers = {
            "Content-Disposition": 'attachment; filename="company.tar"',
            "Content-Length": str(outline.size),
            "Content-Security-Policy": _SANDBOX,
        }
        return StreamingResponse(app.archive.stream(outline), headers=headers, media_type=TAR)

    @routes.post(
        "/import",
        status_code=201,
        openapi_extra={"requestBody": {"required": True, "content": _BYTES}},
    )
    async def import_company(
        request: Request, name: Annotated[str | None, Query(max_length=200)] = None
    ) -> Response:
        """Make a company from an export, under the ids it had; its board is the caller."""
        who = caller(request)
        await app.gate.check(who)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in (TAR, "application/octet-stream", ""):
            raise BadInput("The body must be a tar.", f"Send it as {TAR}.")
        source = request.stream().__aiter__()
        return reply(await app.archive.import_(who, source, name=name), 201)

    @routes.get("/{companyId}/outcomes/graph.json")
    async def outcome_graph(request: Request, company: CompanyId, root: Root = None) -> Response:
        """The outcomes of the company, or those below one, with what connects them."""
        return reply(
            await app.gate(caller(request), outcome_walks.drawing, company=company, root=root)
        )

    @routes.get(
        "/{companyId}/outcomes/graph.svg",
        response_class=Response,
        responses={200: {"description": "A drawing", "content": {"image/svg+xml": {}}}},
    )
    async def draw_outcomes(request: Request, company: CompanyId, root: Root = None) -> Response:
        """The same as a drawing."""
        shown = await app.gate(caller(request), outcome_walks.drawing, company=company, root=root)
        drawing = await app.library.run(svg.draw, shown)
        return Response(drawing, headers=_DRAWING, media_type="image/svg+xml")

    return routes


def _command(app: App, user: str) -> dict[str, Any]:
    """Return whether a command is set on this machine; its text is for the operator alone."""
    try:
        return {"command": app.notifier.command_of(user) is not None, "command_problem": None}
    except Unavailable as error:
        return {"command": False, "command_problem": error.sentence}
