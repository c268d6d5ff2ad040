"""Hiring and configuring over HTTP: what an agent is to be, may do, and was."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Request, Response
from pydantic import Field, StrictBool

from remit.app import App
from remit.entrypoints.http import described
from remit.entrypoints.http.agents import AgentBody, whole
from remit.entrypoints.http.caller import caller
from remit.entrypoints.http.document import reply
from remit.entrypoints.http.fields import Body, CompanyId, Id, Reference, new_router
from remit.entrypoints.http.paging import Paged
from remit.errors import BadInput
from remit.model.configuration import CONFIG_KEYS
from remit.services import agents, configuration, hiring, overview, permissions

#: More revisions than an agent has.
_NEWEST = 2**30
RevisionId = Annotated[str, Path(alias="revisionId", min_length=1, max_length=64)]


class HireBody(AgentBody):
    #: What it is hired for; without one it gets a mandate of its own.
    outcome_id: Reference | None = None
    #: restricted, standard, privileged or boss; for the board to say.
    permission_level: described.Level | None = None
    #: What it is needed for, for whoever approves it.
    reason: Annotated[str | None, Field(max_length=hiring.LONGEST_REASON)] = None

    def asked(self) -> dict[str, Any]:
        said = super().asked()
        level = said.pop("permission_level", None)
        return {**said, "outcome": self.outcome_id, "level": level}


class ConfigurationBody(Body):
    """Those parts of a configuration that are to change."""

    name: described.Name | None = None
    role: described.Role | None = None
    title: described.JobTitle | None = None
    capabilities: described.Capabilities | None = None
    prompt: described.Prompt | None = None
    adapter_type: described.AdapterKind | None = None
    adapter_config: dict[str, Any] | None = None
    runtime_config: dict[str, Any] | None = None
    budget_monthly_cents: described.Amount | None = None
    budget_monthly_tokens: described.Amount | None = None
    metadata: dict[str, Any] | None = None
    expected_revision: Annotated[
        int | None, Field(ge=1, le=_NEWEST, description="The revision that was seen.")
    ] = None

    def changes(self) -> dict[str, Any]:
        said = self.model_dump(by_alias=True, exclude_unset=True)
        return {key: said[key] for key in CONFIG_KEYS if key in said}


class AgentChange(ConfigurationBody):
    reports_to: Reference | None = None
    permissions: dict[str, Any] | None = None


class ProposalBody(ConfigurationBody):
    reason: described.Remark = ""


class PermissionsBody(Body):
    """Exactly this: there is no other permission of its kind."""

    model_config = Body.model_config | {"extra": "forbid"}

    can_create_agents: StrictBool
    #: Another system's; not one here, so that only false is right.
    can_assign_tasks: Literal[False] | None = None


class LevelBody(Body):
    permission_level: described.Level


class WakeBody(Body):
    reason: described.Remark | None = None


def router(app: App) -> APIRouter:
    routes = new_router("hiring", "/api")

    @routes.post("/companies/{companyId}/agent-hires", status_code=201)
    async def hire_agent(request: Request, company: CompanyId, body: HireBody) -> Response:
        """Answers the agent and, when a person has to decide, the approval that asks for it."""
        who = caller(request)
        answer = await app.gate(who, hiring.hire, company=company, **body.asked())
        return reply({**answer, "agent": await whole(app, who, answer["agent"])}, 201)

    @routes.patch("/agents/{id}")
    async def change_agent(request: Request, agent: Id, body: AgentChange) -> Response:
        """Change an agent's configuration at once, as the board. A secret that comes back as it
        was shown stays what it was."""
        who = caller(request)
        if body.permissions is not None:
            raise BadInput(
                "permissions: are not changed here.", f"PATCH /api/agents/{agent}/permissions."
            )
        if "reports_to" in body.model_fields_set:
            now = await app.gate(who, agents.show, agent=agent)
            if body.reports_to != now["reports_to"]:
                raise BadInput(
                    "reportsTo: is not changed here.",
                    "Use POST /api/companies/:companyId/reorganise.",
                )
        view = await app.gate(
            who,
            configuration.change,
            agent=agent,
            changes=body.changes(),
            expected_revision=body.expected_revision,
        )
        return reply(await whole(app, who, view))

    @routes.get("/companies/{companyId}/agent-configurations")
    async def list_configurations(request: Request, company: CompanyId, page: Paged) -> Response:
        """For the board, the CEO and those who may hire; without secrets."""
        rows = await app.gate(
            caller(request),
            configuration.listing,
            company=company,
            after=page.after_id(),
            limit=page.limit,
        )
        return page.reply(rows, lambda row: row["agent_id"])

    @routes.get("/agents/{id}/configuration")
    async def show_configuration(request: Request, agent: Id) -> Response:
        return reply(await app.gate(caller(request), configuration.show, agent=agent))

    @routes.post("/agents/{id}/config-proposals", status_code=201)
    async def propose_configuration(request: Request, agent: Id, body: ProposalBody) -> Response:
        """Ask for a change of somebody below; answers the agent, and the approval if one is
        needed."""
        view = await app.gate(
            caller(request),
            configuration.propose,
            agent=agent,
            changes=body.changes(),
            reason=body.reason,
            expected_revision=body.expected_revision,
        )
        return reply(view, 201)

    @routes.get("/agents/{id}/config-revisions")
    async def list_config_revisions(request: Request, agent: Id, page: Paged) -> Response:
        """What it was, newest first, each with what it changed."""
        rows = await app.gate(
            caller(request),
            configuration.revisions,
            agent=agent,
            before=min(page.before_number(_NEWEST), _NEWEST),
            limit=page.limit,
        )
        return page.reply(rows, lambda row: row["number"])

    @routes.post("/agents/{id}/config-revisions/{revisionId}/rollback")
    async def roll_back_configuration(
        request: Request, agent: Id, revision: RevisionId
    ) -> Response:
        """Make an earlier configuration the current one again, as a new revision."""
        who = caller(request)
        view = await app.gate(who, configuration.rollback, agent=agent, revision=revision)
        return reply(await whole(app, who, view))

    @routes.patch("/agents/{id}/permissions")
    async def change_permissions(request: Request, agent: Id, body: PermissionsBody) -> Response:
        """By the board, or by the CEO for others."""
        who = caller(request)
        view = await app.gate(
            who, permissions.change, agent=agent, can_create=body.can_create_agents
        )
        return reply(await whole(app, who, view))

    @routes.patch("/agents/{id}/permission-level")
    async def change_permission_level(request: Request, agent: Id, body: LevelBody) -> Response:
        """restricted, standard, privileged or boss; by the board."""
        who = caller(request)
        view = await app.gate(who, permissions.change, agent=agent, level=body.permission_level)
        return reply(await whole(app, who, view))

    @routes.post("/agents/{id}/wakeup", status_code=202)
    async def wake_agent(request: Request, agent: Id, body: WakeBody | None = None) -> Response:
        """Send it mail that says why, so that it is started."""
        who = caller(request)
        reason = body.reason if body is not None else None
        view = await app.gate(who, agents.wake, agent=agent, reason=reason or "")
        shown = await app.gate(who, overview.agent, agent=view["id"])
        return reply({**shown, "message_id": view["message_id"]}, 202)

    return routes
