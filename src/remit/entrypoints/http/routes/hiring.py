"""Hiring and configuration over HTTP: routes whose body describes an agent or has one exact form.
The other routes are declared."""

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import Field, StrictBool

from remit.app import App
from remit.entrypoints.described_agent import describing
from remit.entrypoints.http.declared_routes import whole
from remit.entrypoints.http.routes.agents import AgentBody
from remit.entrypoints.http.wire import field_types
from remit.entrypoints.http.wire.caller import caller
from remit.entrypoints.http.wire.fields import Body, CompanyId, Id, Reference, new_router
from remit.entrypoints.http.wire.json_document import reply
from remit.errors import BadInput
from remit.model.organisation.agent_spec import CONFIGURED
from remit.model.organisation.configuration import CONFIG_KEYS
from remit.services.hiring import configuration, hiring
from remit.services.organisation import agents, permissions


class HireBody(AgentBody):
    #: The outcome that it is hired for; without one it gets a mandate of its own.
    outcome_id: Reference | None = None
    #: restricted, standard, privileged or boss; for the board to say.
    permission_level: field_types.Level | None = None
    #: The reason, for the person who approves it.
    reason: Annotated[str | None, Field(max_length=hiring.LONGEST_REASON)] = None

    def asked(self) -> dict[str, Any]:
        arguments = super().asked()
        level = arguments.pop("permission_level", None)
        return {**arguments, "outcome": self.outcome_id, "level": level}


@describing(CONFIGURED, field_types.of_agent, new=False)
class ConfigurationBody(Body):
    """Changes of a configuration; parts that are left out stay."""

    expected_revision: Annotated[
        int | None, Field(ge=1, le=configuration.NEWEST, description="The revision that was seen.")
    ] = None

    def changes(self) -> dict[str, Any]:
        fields = self.model_dump(by_alias=True, exclude_unset=True)
        return {key: fields[key] for key in CONFIG_KEYS if key in fields}


class AgentChange(ConfigurationBody):
    reports_to: Reference | None = None
    permissions: dict[str, Any] | None = None


class ProposalBody(ConfigurationBody):
    reason: field_types.Remark = ""


class PermissionsBody(Body):
    """The permission to create agents, the only one that can be set."""

    model_config = Body.model_config | {"extra": "forbid"}

    can_create_agents: StrictBool
    #: A permission of other systems that does not exist here: only false is accepted.
    can_assign_tasks: field_types.Never | None = None


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

    @routes.patch("/agents/{id}/permissions")
    async def change_permissions(request: Request, agent: Id, body: PermissionsBody) -> Response:
        """Set whether an agent may create agents, as the board, or as the CEO for others."""
        who = caller(request)
        view = await app.gate(
            who, permissions.change, agent=agent, can_create=body.can_create_agents
        )
        return reply(await whole(app, who, view))

    return routes
