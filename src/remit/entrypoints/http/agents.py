"""Agents and their keys over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import Field, StrictBool

from remit.app import App
from remit.entrypoints.http import described
from remit.entrypoints.http.caller import caller
from remit.entrypoints.http.document import reply
from remit.entrypoints.http.fields import (
    Body,
    CompanyId,
    Expiring,
    Id,
    KeyId,
    Reference,
    new_router,
)
from remit.entrypoints.http.grants import Wish
from remit.entrypoints.http.paging import LARGEST, Paged, View, by_id
from remit.errors import RemitError
from remit.services import agents, halts, overview, purging, updating
from remit.services.command import Verb
from remit.services.identity import Caller

MOST_GRANTS = 100


class AgentBody(Body):
    name: described.Name
    role: described.Role | None = None
    title: described.JobTitle | None = None
    reports_to: Reference | None = None
    #: What it can do, in words.
    capabilities: described.Capabilities | None = None
    prompt: described.Prompt | None = None
    adapter_type: described.AdapterKind | None = None
    adapter_config: dict[str, Any] | None = None
    runtime_config: dict[str, Any] | None = None
    budget_monthly_cents: described.Amount | None = None
    budget_monthly_tokens: described.Amount | None = None
    metadata: dict[str, Any] | None = None
    permissions: dict[str, Any] | None = None
    #: What the agent is there for; its mandate.
    purpose: described.OutcomeTitle | None = None
    #: Whether the mandate goes on for ever, as it does if left out. One that does not is work from
    #: the first moment, and the agent is done when it is accomplished.
    perpetual: StrictBool | None = None
    grants: Annotated[list[Wish], Field(max_length=MOST_GRANTS)] = []  # noqa: RUF012  pydantic copies it

    def asked(self) -> dict[str, Any]:
        """What was said, in the words of the services."""
        said = self.model_dump(exclude_none=True, exclude={"grants", "outcome_id"})
        return {**said, "given": [wish.as_wish() for wish in self.grants]}


class KeyBody(Expiring):
    #: The same as `label`, which is what other systems call it.
    name: described.Label = ""


class GoBody(Body):
    subtree: StrictBool = False


class TerminateBody(Body):
    #: Everybody below it, too.
    subtree: StrictBool = False
    #: Only say who and what would end.
    dry_run: StrictBool = False


class UpdateBody(Body):
    #: Only say what would change.
    dry_run: StrictBool = False


class StopAgentBody(GoBody):
    #: Why, for everybody who looks; only with `subtree`.
    note: described.HaltNote | None = None


#: What the end of an agent brings with it.
_ENDED = ("agents_ended", "outcomes_closed", "outcomes_moved", "dry_run")


def router(app: App) -> APIRouter:
    routes = new_router("agents", "/api")
    in_company = "/companies/{companyId}/agents"

    async def _controlled(request: Request, verb: Verb[..., View], agent: str) -> Response:
        who = caller(request)
        return reply(await whole(app, who, await app.gate(who, verb, agent=agent)))

    @routes.get(in_company)
    async def list_agents(
        request: Request, company: CompanyId, page: Paged, terminated: bool = False
    ) -> Response:
        rows = await app.gate(
            caller(request),
            overview.agents,
            company=company,
            after=page.after_id(),
            limit=page.limit,
            terminated=terminated,
        )
        return page.reply(rows, by_id)

    @routes.post(in_company, status_code=201)
    async def create_agent(request: Request, company: CompanyId, body: AgentBody) -> Response:
        who = caller(request)
        view = await app.gate(who, agents.create, company=company, **body.asked())
        return reply(await whole(app, who, view), 201)

    @routes.get("/agents/me")
    async def show_calling_agent(request: Request) -> Response:
        return reply(await app.gate(caller(request), overview.me))

    @routes.get("/agents/{id}")
    async def show_agent(request: Request, agent: Id) -> Response:
        return reply(await app.gate(caller(request), overview.agent, agent=agent))

    @routes.delete("/agents/{id}")
    async def delete_agent(request: Request, agent: Id) -> Response:
        """The same as terminate: its history stays."""
        return await _controlled(request, agents.terminate, agent)

    @routes.post("/agents/{id}/terminate")
    async def terminate_agent(
        request: Request, agent: Id, body: TerminateBody | None = None
    ) -> Response:
        """End it for good, with `subtree` everybody below it as well, all or none."""
        wanted, who = body or TerminateBody(), caller(request)
        verb = agents.preview_terminate if wanted.dry_run else agents.terminate
        done = await app.gate(who, verb, agent=agent, subtree=wanted.subtree)
        # An answer that is given again may be older than what it says now.
        ended = {key: done[key] for key in _ENDED if key in done}
        return reply({**await whole(app, who, done), **ended})

    @routes.post("/agents/{id}/update")
    async def update_agent(request: Request, agent: Id, body: UpdateBody | None = None) -> Response:
        """Have it take over its settings and its program as they are now, in a new session."""
        verb = updating.preview if (body or UpdateBody()).dry_run else updating.update
        return reply(await app.gate(caller(request), verb, agent=agent))

    @routes.post("/agents/{id}/purge")
    async def purge_agent(request: Request, agent: Id) -> Response:
        """Take out for good what a terminated agent left, as the board; the record stays."""
        gone = await app.gate(caller(request), purging.purge, agent=agent)
        await app.kept.tidy()
        return reply(gone)

    @routes.post("/agents/{id}/pause")
    async def pause_agent(request: Request, agent: Id) -> Response:
        return await _controlled(request, agents.pause, agent)

    @routes.post("/agents/{id}/resume")
    async def resume_agent(request: Request, agent: Id) -> Response:
        return await _controlled(request, agents.resume, agent)

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

    @routes.post("/agents/{id}/start")
    async def start_agent(request: Request, agent: Id) -> Response:
        """Let it work again; it is started when there is something to do."""
        return await _controlled(request, agents.start, agent)

    @routes.post("/agents/{id}/restart")
    async def restart_agent(request: Request, agent: Id) -> Response:
        """End what it is doing, and begin anew at once."""
        return await _controlled(request, agents.restart, agent)

    @routes.post("/agents/{id}/abort")
    async def abort_agent(request: Request, agent: Id) -> Response:
        """End its run; it is started again for something new."""
        return await _controlled(request, agents.abort, agent)

    @routes.get("/agents/{id}/log")
    async def list_log(request: Request, agent: Id, page: Paged) -> Response:
        """What its runs said they did, newest first."""
        answer = await app.gate(
            caller(request),
            agents.read_log,
            agent=agent,
            before=page.before_number(LARGEST),
            limit=page.limit,
        )
        return page.reply(answer["entries"], lambda entry: entry["seq"])

    @routes.get("/agents/{id}/keys")
    async def list_keys(request: Request, agent: Id, page: Paged) -> Response:
        found = await app.gate(caller(request), agents.keys, agent=agent)
        return page.cut([_named(key) for key in found])

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
        return reply(_named(view), 201)

    @routes.delete("/agents/{id}/keys/{keyId}")
    async def revoke_key(request: Request, agent: Id, key: KeyId) -> Response:
        return reply(await app.gate(caller(request), agents.revoke_key, agent=agent, key=key))

    return routes


def _named(key: View) -> View:
    """A key as other systems show it, too."""
    return {**key, "name": key["label"]}


async def whole(app: App, who: Caller, changed: View) -> View:
    """An agent that was just changed, with as much of it as the caller may see."""
    try:
        return await app.gate(Caller(who.token), overview.agent, agent=changed["id"])
    except RemitError:
        # An answer that is given again may be about an agent that is gone, or out of sight.
        return {key: changed[key] for key in ("id", "company_id", "name", "role", "status")}
