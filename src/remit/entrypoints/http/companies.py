"""Companies over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import Field, StrictBool, StrictInt

from remit.app import App
from remit.entrypoints.http import described
from remit.entrypoints.http.caller import caller
from remit.entrypoints.http.document import reply
from remit.entrypoints.http.fields import Body, CompanyId, new_router
from remit.entrypoints.http.paging import Paged, by_id
from remit.errors import BadInput
from remit.model.permission import CAN_CREATE_AGENTS
from remit.services import companies, halts, policies


class CompanyBody(Body):
    name: described.CompanyName
    #: Of its root agent; `ceo` if left out.
    root_name: described.Name | None = None
    #: What runs the root agent; the first that can be used here, if left out.
    adapter_type: described.AdapterKind | None = None
    adapter_config: dict[str, Any] | None = None


class ChangeBody(Body):
    name: described.CompanyName | None = None
    #: Who may write to whom: `chain`, `team`, `subtree` or `open`.
    messaging: described.MessagingRule | None = None
    require_board_approval_for_new_agents: StrictBool | None = None
    require_approval_for_config_changes: StrictBool | None = None
    chat_llm_provider: Annotated[str | None, Field(alias="chatLLMProvider")] = None
    chat_llm_model: Annotated[str | None, Field(alias="chatLLMModel")] = None
    #: After how many hours each what does not move is looked at again, such as `1, 4, 24`.
    review_hours: str | None = None
    #: Those to be changed, such as `{"agentRunsPerHour": 120}`; 0, null or "none": no limit.
    limits: dict[str, int | str | None] | None = None


class PolicyBody(Body):
    #: `restricted`, `standard`, `privileged` or `boss`.
    level: described.Level
    #: Whether agents with the level hire: true, false, or null for the CEO alone.
    can_create_agents: StrictBool | None = None
    #: Actions that the level allows and denies.
    allow: Annotated[list[str], Field(max_length=20)] | None = None
    deny: Annotated[list[str], Field(max_length=20)] | None = None
    #: Over whom they have a say: `nobody`, `below` or `company`; only of the level boss.
    governs: described.Governs | None = None
    #: Instead of all that: as Remit ships it.
    shipped: StrictBool = False
    #: The version that was looked at.
    version: StrictInt | None = None


class StopCompanyBody(Body):
    #: Why, for everybody who looks.
    note: described.HaltNote | None = None


_SETTINGS = {"can_create_agents": CAN_CREATE_AGENTS}
_KNOWN = (CAN_CREATE_AGENTS, "allow", "deny", "governs", "shipped")


def router(app: App) -> APIRouter:
    routes = new_router("companies", "/api/companies")

    @routes.get("")
    async def list_companies(request: Request, page: Paged) -> Response:
        """The companies the caller has a part in."""
        rows = await app.gate(
            caller(request), companies.listing, after=page.after_id(), limit=page.limit
        )
        return page.reply(rows, by_id)

    @routes.post("", status_code=201)
    async def create_company(request: Request, body: CompanyBody) -> Response:
        """With its root outcome and its root agent, whose id is `rootAgentId`."""
        asked = body.model_dump(exclude_none=True)
        return reply(await app.gate(caller(request), companies.create, **asked), 201)

    @routes.get("/{companyId}")
    async def show_company(request: Request, company: CompanyId) -> Response:
        return reply(await app.gate(caller(request), companies.show, company=company))

    @routes.patch("/{companyId}")
    async def change_company(request: Request, company: CompanyId, body: ChangeBody) -> Response:
        given = body.model_dump(exclude_none=True)
        if not given:
            raise BadInput("Nothing is to be changed.", "Give name, messaging or another setting.")
        return reply(await app.gate(caller(request), companies.change, company=company, **given))

    @routes.get("/{companyId}/permission-policy")
    async def show_policy(request: Request, company: CompanyId) -> Response:
        """What each permission level bundles."""
        return reply(await app.gate(caller(request), policies.show, company=company))

    @routes.patch("/{companyId}/permission-policy")
    async def change_policy(request: Request, company: CompanyId, body: PolicyBody) -> Response:
        """What is left out stays; whoever has the level gets what it gained and loses the rest."""
        given = body.model_dump(include=body.model_fields_set - {"level", "shipped", "version"})
        settings = {_SETTINGS.get(name, name): value for name, value in given.items()}
        if not settings and not body.shipped:
            raise BadInput("Nothing is to be changed.", f"Give one of {', '.join(_KNOWN)}.")
        if settings and body.shipped:
            raise BadInput("shipped stands alone.", "Leave the other settings out.")
        return reply(
            await app.gate(
                caller(request),
                policies.change,
                company=company,
                level=body.level,
                settings=None if body.shipped else settings,
                expected_version=body.version,
            )
        )

    @routes.post("/{companyId}/stop")
    async def stop_company(
        request: Request, company: CompanyId, body: StopCompanyBody | None = None
    ) -> Response:
        """Halt the company: nothing starts, and runs end. The instance runs on."""
        note = (body or StopCompanyBody()).note or ""
        return reply(await app.gate(caller(request), halts.stop, company=company, note=note))

    @routes.post("/{companyId}/go")
    async def go_company(request: Request, company: CompanyId) -> Response:
        """Remove the company's halt; those of subtrees stay."""
        return reply(await app.gate(caller(request), halts.go, company=company))

    @routes.get("/{companyId}/halts")
    async def list_halts(request: Request, company: CompanyId, page: Paged) -> Response:
        """What is stopped, by whom, since when and why."""
        return page.cut(await app.gate(caller(request), halts.listing, company=company))

    return routes
