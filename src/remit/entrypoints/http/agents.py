"""Agents and their keys over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import Field

from remit.app import App
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
from remit.entrypoints.http.paging import LARGEST, Paged, by_id
from remit.services import agents

MOST_GRANTS = 100


class AgentBody(Body):
    name: str
    role: str = "general"
    title: str | None = None
    reports_to: Reference | None = None
    adapter_type: str = "human"
    adapter_config: dict[str, Any] | None = None
    #: What the agent is there for; its mandate.
    purpose: str | None = None
    grants: Annotated[list[Wish], Field(max_length=MOST_GRANTS)] = []  # noqa: RUF012  pydantic copies it


def router(app: App) -> APIRouter:
    routes = new_router("agents", "/api")
    in_company = "/companies/{companyId}/agents"

    @routes.get(in_company)
    async def list_agents(
        request: Request, company: CompanyId, page: Paged, terminated: bool = False
    ) -> Response:
        rows = await app.gate(
            caller(request),
            agents.listing,
            company=company,
            after=page.after_id(),
            limit=page.limit,
            terminated=terminated,
        )
        return page.reply(rows, by_id)

    @routes.post(in_company, status_code=201)
    async def create_agent(request: Request, company: CompanyId, body: AgentBody) -> Response:
        view = await app.gate(
            caller(request),
            agents.create,
            company=company,
            name=body.name,
            role=body.role,
            title=body.title or "",
            reports_to=body.reports_to,
            adapter_type=body.adapter_type,
            adapter_config=body.adapter_config,
            purpose=body.purpose,
            given=[wish.as_wish() for wish in body.grants],
        )
        return reply(view, 201)

    @routes.get("/agents/me")
    async def show_calling_agent(request: Request) -> Response:
        return reply(await app.gate(caller(request), agents.me))

    @routes.get("/agents/{id}")
    async def show_agent(request: Request, agent: Id) -> Response:
        return reply(await app.gate(caller(request), agents.show, agent=agent))

    @routes.delete("/agents/{id}")
    async def delete_agent(request: Request, agent: Id) -> Response:
        """The same as terminate: its history stays."""
        return reply(await app.gate(caller(request), agents.terminate, agent=agent))

    @routes.post("/agents/{id}/terminate")
    async def terminate_agent(request: Request, agent: Id) -> Response:
        return reply(await app.gate(caller(request), agents.terminate, agent=agent))

    @routes.post("/agents/{id}/pause")
    async def pause_agent(request: Request, agent: Id) -> Response:
        return reply(await app.gate(caller(request), agents.pause, agent=agent))

    @routes.post("/agents/{id}/resume")
    async def resume_agent(request: Request, agent: Id) -> Response:
        return reply(await app.gate(caller(request), agents.resume, agent=agent))

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
        return page.cut(await app.gate(caller(request), agents.keys, agent=agent))

    @routes.post("/agents/{id}/keys", status_code=201)
    async def create_key(request: Request, agent: Id, body: Expiring | None = None) -> Response:
        """The token is in this answer and nowhere else."""
        wanted = body or Expiring()
        view = await app.gate(
            caller(request),
            agents.create_key,
            agent=agent,
            label=wanted.label,
            expires_at=wanted.expiry(),
        )
        return reply(view, 201)

    @routes.delete("/agents/{id}/keys/{keyId}")
    async def revoke_key(request: Request, agent: Id, key: KeyId) -> Response:
        return reply(await app.gate(caller(request), agents.revoke_key, agent=agent, key=key))

    return routes
