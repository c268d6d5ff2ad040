"""The organisation over HTTP: the tree of agents, reorganisations, and past states.

Not declared: the tree is nested, and the other routes choose between verbs.
"""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field, StrictBool

from remit.app import App
from remit.entrypoints.described_agent import describing
from remit.entrypoints.http.wire import field_types
from remit.entrypoints.http.wire.caller import caller
from remit.entrypoints.http.wire.fields import Body, CompanyId, Reference, new_router
from remit.entrypoints.http.wire.json_document import reply
from remit.entrypoints.http.wire.paging import Paged, View, by_id
from remit.errors import BadInput
from remit.model.organisation.agent_spec import SHORT
from remit.services.organisation import agents, reorganise
from remit.services.record import events

#: More agents than a company has.
_ALL = 1_000_000
_SHOWN = ("id", "name", "role", "title", "status", "adapter_type", "seat_user_id")
_INNER_CAPITAL = re.compile(r"(?<=[a-z])([A-Z])")


@describing(SHORT, field_types.of_agent, new=False)
class Operation(Body):
    """One change; which fields it needs depends on `op`. Keys may be in snake_case, too."""

    model_config = Body.model_config | {"populate_by_name": True}

    op: Annotated[str, Field(description="move, insertLayer, removeLayer or seat", max_length=40)]
    agent: Reference | None = None
    agents: Annotated[list[Reference], Field(max_length=1000)] | None = None
    to: Annotated[Reference | None, Field(description="The new boss, or board.")] = None
    user: Annotated[Reference | None, Field(description="The person who takes the seat.")] = None
    purpose: field_types.OutcomeTitle | None = None

    def asked(self) -> dict[str, Any]:
        arguments = self.model_dump(exclude_none=True)
        return {**arguments, "op": _INNER_CAPITAL.sub(r"_\1", self.op).lower()}


class ReorganiseBody(Body):
    operations: Annotated[list[Operation], Field(max_length=reorganise.MOST_OPERATIONS)] | None = (
        None
    )
    undo: Annotated[Reference | None, Field(description="The event to take back.")] = None
    dry_run: StrictBool = False


def router(app: App) -> APIRouter:
    routes = new_router("organisation", "/api/companies/{companyId}")

    @routes.get("/org")
    async def show_organisation(request: Request, company: CompanyId) -> Response:
        """The tree of agents, nested."""
        rows = await app.gate(caller(request), agents.listing, company=company, limit=_ALL)
        return reply(nested(rows))

    @routes.post("/reorganise")
    async def reorganise_company(
        request: Request, company: CompanyId, body: ReorganiseBody
    ) -> Response:
        """Carry out operations, all or none, or undo an earlier change; answers with the authority
        that anybody gains or loses by it."""
        if (body.operations is None) == (body.undo is None):
            raise BadInput("Give operations, or an event to undo.", "Give one of the two.")
        who = caller(request)
        if body.undo is not None:
            take_back = reorganise.preview_undo if body.dry_run else reorganise.undo
            return reply(await app.gate(who, take_back, company=company, event=body.undo))
        operations = [operation.asked() for operation in body.operations or ()]
        carry_out = reorganise.preview if body.dry_run else reorganise.reorganise
        return reply(await app.gate(who, carry_out, company=company, operations=operations))

    @routes.get("/as-of")
    async def show_past(
        request: Request,
        company: CompanyId,
        page: Paged,
        at: Annotated[field_types.Moment | None, Query(description="ISO 8601; needed.")] = None,
        what: Literal["org", "grants"] = "org",
        agent: Annotated[Reference | None, Query(description="Only what this agent held.")] = None,
    ) -> Response:
        """The tree of agents, or the grants in force, as they were at a time."""
        who = caller(request)
        at = at or ""  # the verb refuses it, after the token is checked
        if what == "org":
            return page.cut(await app.gate(who, events.org_at, company=company, at=at))
        rows = await app.gate(
            who,
            events.grants_at,
            company=company,
            at=at,
            agent=agent,
            after=page.after_id(),
            limit=page.limit,
        )
        return page.reply(rows, by_id)

    return routes


def nested(rows: Sequence[View]) -> list[View]:
    """Return agents as a forest, each of them once even if the stored tree has a cycle."""
    nodes = {row["id"]: {key: row[key] for key in _SHOWN} | {"reports": []} for row in rows}
    bosses = {row["id"]: row["reports_to"] for row in rows if row["reports_to"] in nodes}
    forest: list[View] = []
    for own_id, node in nodes.items():
        if own_id in _above(own_id, bosses):
            del bosses[own_id]  # cut the cycle open here
        boss = bosses.get(own_id)
        (forest if boss is None else nodes[boss]["reports"]).append(node)
    return forest


def _above(own_id: str, bosses: dict[str, str]) -> list[str]:
    """Return the bosses above an agent, up to the first repetition."""
    chain: list[str] = []
    at = bosses.get(own_id)
    while at is not None and at not in chain:
        chain.append(at)
        at = bosses.get(at)
    return chain
