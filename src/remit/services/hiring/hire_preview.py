"""Dry run of a hire: the agent, its prompt and its rights; then everything is rolled back."""

from collections.abc import Mapping
from typing import Any, cast

from remit.errors import BadInput
from remit.model.organisation.principal import Principal
from remit.services import lookup, shapes, views
from remit.services.command import Context, logged
from remit.services.execution import situation
from remit.services.governance import approvals
from remit.services.hiring import hiring
from remit.services.organisation import agents
from remit.services.rights import grants
from remit.services.rights.implicit_rights import rights
from remit.services.screens import overview
from remit.store.organisation import grants as statements
from remit.store.organisation import people


@logged("hire_preview.preview")
def preview(
    ctx: Context, *, company: str | None, asked: Mapping[str, Any]
) -> shapes.HirePreviewShape:
    """Return the agent as it would be after approval, with its boss and its rights."""
    lookup.company_of_caller(ctx, company)
    if asked.get("outcome") is None:
        described = {key: value for key, value in asked.items() if key != "outcome"}
        new = agents.create.body(ctx, company=company, **described)["id"]
    else:
        hired = hiring.hire.body(ctx, company=company, **asked)
        new = hired["agent"]["id"]
        if hired["approval"] is not None:
            approvals.approve.body(ctx, approval=hired["approval"]["id"])
    agent = lookup.agent_row(ctx, new)
    here = ctx.tx.one(people.COMPANY)
    if agent is None or here is None:
        raise BadInput("There is nothing to show.", "Describe the agent.")
    held = ctx.tx.all(statements.HELD_BY, holder=agent.id, after="", limit=1000)
    with ctx.acting_as(Principal.of(agent)):
        offered = overview.offered.body(ctx)
    shown = {**views.agent(agent), "prompt": agent.prompt, "capabilities": agent.capabilities}
    answer: shapes.HirePreviewShape = {
        "agent": cast(shapes.AgentShape, shown),
        "boss": situation.boss(ctx, agent),
        "company": views.company(here),
        "mandate": situation.mandate(ctx, agent),
        "rights": [
            *rights(ctx, agent),
            *(views.grant(grant, grants.reason(grant)) for grant in held),
        ],
        "can": sorted(offered),
    }
    ctx.tx.restart()
    return answer
