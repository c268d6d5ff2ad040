"""Who may hire: the one permission of its kind, and the levels that set it."""

from __future__ import annotations

from typing import Any

from remit.authority import Action
from remit.errors import BadInput, Conflict
from remit.model.agent import Agent, AgentStatus
from remit.model.grant import AGENT_CREATE, Resource, ResourceKind
from remit.model.permission import (
    CAN_CREATE_AGENTS,
    PRESETS,
    PermissionLevel,
    can_create_agents,
    permission_level,
    permissions,
)
from remit.model.principal import ActorKind
from remit.services import grants, lookup, views
from remit.services.command import Answer, Context, command
from remit.store import governance as statements

HIRING = Resource(ResourceKind.ACTION, AGENT_CREATE)


@command("permissions.change")
def change(ctx: Context, *, agent: str, can_create: object = None, level: object = None) -> Answer:
    """Let an agent create agents, or not; or give it one of the four levels, as the board."""
    if (can_create is None) == (level is None):
        raise BadInput(
            f"Give either {CAN_CREATE_AGENTS} or permissionLevel.", "Change one of the two."
        )
    wanted = None if level is None else permission_level(level)
    found = lookup.agent_anywhere(ctx, agent)
    if wanted is not None and ctx.actor.kind is ActorKind.AGENT:
        ctx.require(Action.CONFIG_CHANGE, on=f"agent:{found.id}")
    ctx.require(
        Action.AGENT_PERMIT,
        on=f"agent:{found.id}",
        home=found.id,
        place=ctx.place(found.id),
        **hiring_facts(ctx),
    )
    if found.status in (AgentStatus.TERMINATED, AgentStatus.PENDING_APPROVAL):
        raise Conflict(
            f"{found.name} is {found.status.value.replace('_', ' ')}.",
            "Permissions are for agents that can act.",
        )
    if wanted is not None:
        set_level(ctx, found, wanted)
    else:
        _permit(ctx, found, permissions({CAN_CREATE_AGENTS: can_create}), found.permission_level)
    new = lookup.agent_row(ctx, found.id)
    assert new is not None
    return views.agent(new)


def read(given: object) -> bool | None:
    """What a description of permissions says about hiring."""
    return can_create_agents(permissions(given))


def set_level(ctx: Context, agent: Agent, level: PermissionLevel) -> None:
    """Replace what the agent may do beyond its mandate by what a level bundles."""
    preset = PRESETS[level]
    grants.revoke_actions(ctx, agent)
    for mode, actions in (("allow", preset.allowed), ("deny", preset.denied)):
        for action in actions:
            grants.give_to(ctx, agent, {"resource": action, "level": "use", "mode": mode})
    said = None if preset.can_create_agents is None else preset.can_create_agents
    _permit(ctx, agent, permissions({CAN_CREATE_AGENTS: said}), level)


def hiring_facts(ctx: Context) -> dict[str, Any]:
    """What a decision about hiring has to know of the asking agent."""
    me = lookup.agent_row(ctx, ctx.actor.id) if ctx.actor.kind is ActorKind.AGENT else None
    if me is None:
        return {}
    return {"is_ceo": me.is_ceo, "can_create_agents": can_create_agents(me.permissions)}


def _permit(ctx: Context, agent: Agent, stored: str, level: PermissionLevel) -> None:
    ctx.tx.run(
        statements.PERMIT_AGENT,
        agent=agent.id,
        new_permissions=stored,
        new_level=level.value,
        now=ctx.now,
    )
    ctx.record(
        "agent.permit",
        f"agent:{agent.id}",
        {
            "name": agent.name,
            "can_create_agents": can_create_agents(stored),
            "level": level.value,
            "was": {
                "can_create_agents": can_create_agents(agent.permissions),
                "level": agent.permission_level.value,
            },
        },
    )
