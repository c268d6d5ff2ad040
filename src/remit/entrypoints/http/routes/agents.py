"""Agents, their keys, hiring and configuration over HTTP: routes that describe an agent, choose
between two verbs, have a body of one exact form, or touch files outside of the database. The other
routes are declared."""

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import Field, StrictBool

from remit.app import App
from remit.entrypoints.described_agent import describing
from remit.entrypoints.http.declared_routes import SeenAgent
from remit.entrypoints.http.wire import field_types
from remit.entrypoints.http.wire.caller import caller
from remit.entrypoints.http.wire.fields import Body, CompanyId, Expiring, Id, Reference, new_router
from remit.entrypoints.http.wire.json_document import reply
from remit.entrypoints.http.wire.paging import LARGEST, Paged, View
from remit.errors import BadInput
from remit.model.connections.lent_plugin import LONGEST_SOURCE, MOST_FILES
from remit.model.organisation.agent_spec import CONFIGURED, FIELDS
from remit.model.organisation.configuration import CONFIG_KEYS
from remit.services.command import Verb
from remit.services.connections import lent_plugins
from remit.services.hiring import configuration, hiring
from remit.services.organisation import agents, halts, permissions, termination

MOST_GRANTS = 100


class Wish(Body):
    """A capability to give to an agent."""

    resource: Reference
    level: field_types.Access
    mode: field_types.Mode | None = None
    scope: Reference | None = None
    expires_at: field_types.Moment | None = None


@describing(FIELDS.values(), field_types.of_agent)
class AgentBody(Body):
    reports_to: Reference | None = None
    #: The purpose of the agent; its mandate.
    purpose: field_types.OutcomeTitle | None = None
    #: Whether the mandate goes on for ever, as it does if left out. One that does not is work from
    #: the first moment, and the agent is done when it is accomplished.
    perpetual: StrictBool | None = None
    #: restricted, standard, privileged or boss; for the board to say.
    permission_level: field_types.Level | None = None
    grants: Annotated[list[Wish], Field(max_length=MOST_GRANTS)] = []  # noqa: RUF012  pydantic copies it

    def asked(self) -> dict[str, Any]:
        """Return the body as arguments of the service."""
        left_out = {"grants", "outcome_id", "permission_level"}
        arguments = self.model_dump(exclude_none=True, exclude=left_out)
        wishes = [wish.model_dump() for wish in self.grants]
        return {**arguments, "level": self.permission_level, "given": wishes}


class LendBody(Body):
    #: Prefix of each skill in a program: `name:skill`.
    name: Annotated[str, Field(max_length=64)]
    #: Where it was copied from.
    source: Annotated[str, Field(max_length=LONGEST_SOURCE)]
    #: Contents in base64, by path: skills/NAME/SKILL.md, commands/NAME.md, agents/NAME.md.
    files: Annotated[dict[str, str], Field(max_length=MOST_FILES)]
    #: Digest of what was shown; anything else is refused.
    seen: Annotated[str | None, Field(max_length=64)] = None
    #: Only show what would be lent.
    dry_run: StrictBool = False


class KeyBody(Expiring):
    #: Alias of `label`, as other systems call it.
    name: field_types.Label = ""


class GoBody(Body):
    subtree: StrictBool = False


class StopAgentBody(GoBody):
    #: Why, for everybody who looks; only with `subtree`.
    note: field_types.HaltNote | None = None


class HireBody(AgentBody):
    #: The outcome that it is hired for; without one it gets a mandate of its own.
    outcome_id: Reference | None = None
    #: The reason, for the person who approves it.
    reason: Annotated[str | None, Field(max_length=hiring.LONGEST_REASON)] = None

    def asked(self) -> dict[str, Any]:
        return {**super().asked(), "outcome": self.outcome_id}


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


def _warned(answer: View) -> View:
    """Return the warning of an answer, if there is one."""
    return {"warning": answer["warning"]} if answer.get("warning") else {}


def router(app: App) -> APIRouter:
    routes = new_router("agents", "/api")

    async def _controlled(request: Request, verb: Verb[..., View], agent: str) -> Response:
        seen = SeenAgent(caller(request))
        await app.gate(seen.caller, verb, agent=agent)
        return reply(seen.view)

    @routes.post("/companies/{companyId}/agents", status_code=201)
    async def create_agent(request: Request, company: CompanyId, body: AgentBody) -> Response:
        seen = SeenAgent(caller(request))
        created = await app.gate(seen.caller, agents.create, company=company, **body.asked())
        return reply({**seen.view, **_warned(created)}, 201)

    @routes.post("/agents/{id}/purge")
    async def purge_agent(request: Request, agent: Id) -> Response:
        """Take out for good what a terminated agent left, as the board; the record stays."""
        gone = await app.gate(caller(request), termination.purge, agent=agent)
        await app.kept.tidy()
        return reply(gone)

    @routes.post("/agents/{id}/lent")
    async def lend_plugin(request: Request, agent: Id, body: LendBody) -> Response:
        """Lend skills, commands and agents to an agent, or show what would be lent."""
        verb = lent_plugins.preview if body.dry_run else lent_plugins.lend
        arguments = body.model_dump(exclude={"dry_run"}, exclude_none=True)
        view = await app.gate(caller(request), verb, agent=agent, **arguments)
        return reply(view)

    @routes.post("/agents/{id}/stop")
    async def stop_agent(
        request: Request, agent: Id, body: StopAgentBody | None = None
    ) -> Response:
        """End what it is doing, and keep it from being started; with `subtree`, halt it and
        everybody below it."""
        wanted = body or StopAgentBody()
        if not wanted.subtree:
            return await _controlled(request, agents.stop, agent)
        return reply(
            await app.gate(caller(request), halts.stop, agent=agent, note=wanted.note or "")
        )

    @routes.post("/agents/{id}/go")
    async def go_agent(request: Request, agent: Id, body: GoBody | None = None) -> Response:
        """The same as start; with `subtree`, remove the halt of it and everybody below it."""
        if not (body or GoBody()).subtree:
            return await _controlled(request, agents.start, agent)
        return reply(await app.gate(caller(request), halts.go, agent=agent))

    # Not declared: the tool's answer names the agent, too; this is a list in pages.
    @routes.get("/agents/{id}/log")
    async def list_log(request: Request, agent: Id, page: Paged) -> Response:
        """Activity log of an agent: the words of its runs, newest first."""
        answer = await app.gate(
            caller(request),
            agents.read_log,
            agent=agent,
            before=page.before_number(LARGEST),
            limit=page.limit,
        )
        return page.reply(answer["entries"], lambda entry: entry["seq"])

    # Not declared: stored calls have the expiry as a number, and the label has two names here.
    @routes.post("/agents/{id}/keys", status_code=201)
    async def create_key(request: Request, agent: Id, body: KeyBody | None = None) -> Response:
        """The token is in this answer and nowhere else."""
        wanted = body or KeyBody()
        view = await app.gate(
            caller(request),
            agents.create_key,
            agent=agent,
            label=wanted.label or wanted.name,
            expires_at=wanted.expiry(),
        )
        return reply({**view, "name": view["label"]}, 201)

    return routes


def hiring_router(app: App) -> APIRouter:
    routes = new_router("hiring", "/api")

    @routes.post("/companies/{companyId}/agent-hires", status_code=201)
    async def hire_agent(request: Request, company: CompanyId, body: HireBody) -> Response:
        """Answers the agent and, when a person has to decide, the approval that asks for it."""
        seen = SeenAgent(caller(request))
        answer = await app.gate(seen.caller, hiring.hire, company=company, **body.asked())
        return reply({**answer, "agent": seen.view}, 201)

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
        seen = SeenAgent(who)
        changed = await app.gate(
            seen.caller,
            configuration.change,
            agent=agent,
            changes=body.changes(),
            expected_revision=body.expected_revision,
        )
        return reply({**seen.view, **_warned(changed)})

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
        seen = SeenAgent(caller(request))
        await app.gate(
            seen.caller, permissions.change, agent=agent, can_create=body.can_create_agents
        )
        return reply(seen.view)

    return routes
