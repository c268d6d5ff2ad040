"""The permission policy and the signing key of a company over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import Field, StrictBool, StrictInt

from remit.app import App
from remit.entrypoints.http.wire import field_types
from remit.entrypoints.http.wire.caller import caller
from remit.entrypoints.http.wire.fields import Body, CompanyId, new_router
from remit.entrypoints.http.wire.json_document import reply
from remit.errors import BadInput
from remit.model.organisation.permission import CAN_CREATE_AGENTS
from remit.services.organisation import permissions


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


_SETTINGS = {"can_create_agents": CAN_CREATE_AGENTS}
_KNOWN = (CAN_CREATE_AGENTS, "allow", "deny", "governs", "shipped")


def router(app: App) -> APIRouter:
    routes = new_router("companies", "/api/companies")

    # Not declared: null is a setting of its own, other than a field that is left out.
    @routes.patch("/{companyId}/permission-policy")
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
    @routes.get("/{companyId}/signing-key")
    async def show_signing_key(request: Request, company: CompanyId) -> Response:
        """The public half of the key that its commits are signed with, if there is one."""
        return reply(await app.signing.shown(caller(request), company=company))

    @routes.post("/{companyId}/signing-key", status_code=201)
    async def make_signing_key(request: Request, company: CompanyId) -> Response:
        """A new key: commits are signed with it from now on."""
        return reply(await app.signing.make(caller(request), company=company), 201)

    return routes
