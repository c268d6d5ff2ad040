"""Agents and their keys over HTTP: routes that describe an agent, choose between two verbs, or
touch files outside of the database. The other routes are declared."""

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import Field, StrictBool

from remit.app import App
from remit.entrypoints.described_agent import describing
from remit.entrypoints.http.declared_routes import whole
from remit.entrypoints.http.routes.grants import Wish
from remit.entrypoints.http.wire import field_types
from remit.entrypoints.http.wire.caller import caller
from remit.entrypoints.http.wire.fields import Body, CompanyId, Expiring, Id, Reference, new_router
from remit.entrypoints.http.wire.json_document import reply
from remit.entrypoints.http.wire.paging import LARGEST, Paged, View
from remit.model.organisation.agent_spec import FIELDS
from remit.services.command import Verb
from remit.services.organisation import agents, halts, termination

MOST_GRANTS = 100


@describing(FIELDS.values(), field_types.of_agent)
class AgentBody(Body):
    reports_to: Reference | None = None
    #: The purpose of the agent; its mandate.
    purpose: field_types.OutcomeTitle | None = None
    #: Whether the mandate goes on for ever, as it does if left out. One that does not is work from
    #: the first moment, and the agent is done when it is accomplished.
    perpetual: StrictBool | None = None
    grants: Annotated[list[Wish], Field(max_length=MOST_GRANTS)] = []  # noqa: RUF012  pydantic copies it

    def asked(self) -> dict[str, Any]:
        """Return the body as arguments of the service."""
        arguments = self.model_dump(exclude_none=True, exclude={"grants", "outcome_id"})
        return {**arguments, "given": [wish.model_dump() for wish in self.grants]}


class KeyBody(Expiring):
    #: Alias of `label`, as other systems call it.
    name: field_types.Label = ""


class GoBody(Body):
    subtree: StrictBool = False


class StopAgentBody(GoBody):
    #: Why, for everybody who looks; only with `subtree`.
    note: field_types.HaltNote | None = None


def router(app: App) -> APIRouter:
    routes = new_router("agents", "/api")

    async def _controlled(request: Request, verb: Verb[..., View], agent: str) -> Response:
        who = caller(request)
        return reply(await whole(app, who, await app.gate(who, verb, agent=agent)))

    @routes.post("/companies/{companyId}/agents", status_code=201)
    async def create_agent(request: Request, company: CompanyId, body: AgentBody) -> Response:
        who = caller(request)
        view = await app.gate(who, agents.create, company=company, **body.asked())
        return reply(await whole(app, who, view), 201)

    @routes.post("/agents/{id}/purge")
    async def purge_agent(request: Request, agent: Id) -> Response:
        """Take out for good what a terminated agent left, as the board; the record stays."""
        gone = await app.gate(caller(request), termination.purge, agent=agent)
        await app.kept.tidy()
        return reply(gone)

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
