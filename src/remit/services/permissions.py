"""Who may hire: the one permission of its kind; and giving an agent one of the four levels."""

from __future__ import annotations

from typing import Any

from remit.authority import Action
from remit.errors import BadInput, Conflict
from remit.model.agent import Agent, AgentStatus
from remit.model.grant import AGENT_CREATE, Resource, ResourceKind
from remit.model.permission import (
    CAN_CREATE_AGENTS,
    PermissionLevel,
    Policy,
    Reach,
    can_create_agents,
    permission_level,
    permissions,
    policy,
)
from remit.model.principal import SYSTEM, ActorKind
from remit.services import grants, lookup, views
from remit.services.command import Answer, Context, command
from remit.store import governance as statements
from remit.store import people

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
    if wanted is not None:
        require_level(ctx, wanted, on=f"agent:{found.id}", home=found.id)
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
        permit(ctx, found, read({CAN_CREATE_AGENTS: can_create}), found.permission_level)
    new = lookup.agent_row(ctx, found.id)
    assert new is not None
    return views.agent(new)


def read(given: object) -> bool | None:
    """What a description of permissions says about hiring."""
    return can_create_agents(permissions(given))


def require_level(ctx: Context, level: PermissionLevel, *, on: str, home: str | None) -> None:
    """Levels are the board's; one with a say over others is for those with a say over all."""
    governs = current(ctx)[level].governs is not Reach.NOBODY
    ctx.require(Action.LEVEL_CHANGE, on=on, home=None if governs else home)


def current(ctx: Context) -> Policy:
    """What the levels bundle in this company."""
    company = ctx.tx.one(people.COMPANY, company=ctx.company)
    assert company is not None
    return policy(company.permission_policy)


def set_level(ctx: Context, agent: Agent, level: PermissionLevel) -> None:
    """Replace what the agent may do beyond its mandate by what a level bundles."""
    preset = current(ctx)[level]
    grants.revoke_actions(ctx, agent)
    for mode, actions in (("allow", preset.allowed), ("deny", preset.denied)):
        for action in actions:
            grants.give_to(ctx, agent, {"resource": action, "level": "use", "mode": mode})
    permit(ctx, agent, preset.can_create_agents, level)


def begin(ctx: Context, agent: Agent) -> None:
    """What a new agent has by its level, whoever brought it into being."""
    preset = current(ctx)[agent.permission_level]
    with ctx.acting_as(SYSTEM):
        for mode, actions in (("allow", preset.allowed), ("deny", preset.denied)):
            for action in actions:
                grants.give_to(ctx, agent, {"resource": action, "level": "use", "mode": mode})
        said = can_create_agents(agent.permissions)
        if said is None and preset.can_create_agents is not None:
            permit(ctx, agent, preset.can_create_agents, agent.permission_level)


def hiring_facts(ctx: Context) -> dict[str, Any]:
    """What a decision about hiring has to know of the asking agent."""
    me = lookup.agent_row(ctx, ctx.actor.id) if ctx.actor.kind is ActorKind.AGENT else None
    if me is None:
        return {}
    return {"is_ceo": me.is_ceo, "can_create_agents": can_create_agents(me.permissions)}


def permit(ctx: Context, agent: Agent, can_create: bool | None, level: PermissionLevel) -> None:
    """Write down what is said about an agent and hiring, and its level."""
    stored = permissions({CAN_CREATE_AGENTS: can_create})
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
