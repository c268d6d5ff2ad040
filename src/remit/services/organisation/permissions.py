"""The permission to hire, and the four permission levels of agents."""

import json
from typing import Annotated

from remit.authority import Action
from remit.errors import BadInput, Conflict
from remit.model.organisation.agent import Agent, AgentStatus
from remit.model.organisation.agent_spec import permissions
from remit.model.organisation.grant import AGENT_CREATE, Resource, ResourceKind
from remit.model.organisation.permission import (
    CAN_CREATE_AGENTS,
    PermissionLevel,
    Policy,
    Reach,
    permission_level,
    policy,
)
from remit.model.organisation.principal import SYSTEM
from remit.services import lookup, shapes, views
from remit.services.command import Context, command
from remit.services.fields import AgentRef
from remit.services.rights import grants
from remit.services.surfaces import AsRoute
from remit.store.organisation import governance as statements
from remit.store.organisation import people

HIRING = Resource(ResourceKind.ACTION, AGENT_CREATE)


@command(
    "permissions.change",
    AsRoute(
        "PATCH /agents/{id}/permission-level",
        "change_permission_level",
        words="restricted, standard, privileged or boss; by the board.",
        spelled={"level": "permissionLevel"},
        without=("can_create",),
        needs=("level",),
        as_seen=True,
    ),
)
def change(
    ctx: Context,
    *,
    agent: AgentRef,
    can_create: object = None,
    level: Annotated[str, PermissionLevel] | None = None,
) -> shapes.AgentShape:
    """Let an agent create agents, or not; or give it one of the four levels, as the board."""
    if (can_create is None) == (level is None):
        raise BadInput(
            f"Give either {CAN_CREATE_AGENTS} or permissionLevel.", "Change one of the two."
        )
    wanted = None if level is None else permission_level(level)
    agent_row = lookup.agent_anywhere(ctx, agent)
    if wanted is not None:
        require_level(ctx, wanted, on=f"agent:{agent_row.id}", home=agent_row.id)
    ctx.require(Action.AGENT_PERMIT, over=agent_row.id)
    if agent_row.status in (AgentStatus.TERMINATED, AgentStatus.PENDING_APPROVAL):
        raise Conflict(
            f"{agent_row.name} is {agent_row.status.value.replace('_', ' ')}.",
            "Permissions are for agents that can act.",
        )
    if wanted is not None:
        set_level(ctx, agent_row, wanted)
    else:
        permit(ctx, agent_row, read({CAN_CREATE_AGENTS: can_create}), agent_row.permission_level)
    return views.agent(lookup.known_agent(ctx, agent_row.id))


def read(description: object) -> bool | None:
    """Return the permission to hire from a description of permissions; None if it has none."""
    permission = json.loads(permissions(description)).get(CAN_CREATE_AGENTS)
    return permission if isinstance(permission, bool) else None


def require_level(ctx: Context, level: PermissionLevel, *, on: str, home: str | None) -> None:
    """Refuse unless the caller may give this level. Levels are the board's; one that governs other
    agents needs the board of the whole company."""
    governs = current(ctx)[level].governs is not Reach.NOBODY
    ctx.require(Action.LEVEL_CHANGE, on=on, home=None if governs else home)


def current(ctx: Context) -> Policy:
    """The company's presets of the permission levels."""
    company = ctx.tx.existing(people.COMPANY)
    return policy(company.permission_policy)


def set_level(ctx: Context, agent: Agent, level: PermissionLevel) -> None:
    """Replace an agent's grants of actions and its permission to hire by those of a level."""
    preset = current(ctx)[level]
    grants.revoke_actions(ctx, agent)
    for mode, actions in (("allow", preset.allowed), ("deny", preset.denied)):
        for action in actions:
            grants.give_to(ctx, agent, {"resource": action, "level": "use", "mode": mode})
    permit(ctx, agent, preset.can_create_agents, level)


def begin(ctx: Context, agent: Agent) -> None:
    """Give a new agent the grants of its level, whoever created it."""
    preset = current(ctx)[agent.permission_level]
    with ctx.acting_as(SYSTEM):
        for mode, actions in (("allow", preset.allowed), ("deny", preset.denied)):
            for action in actions:
                grants.give_to(ctx, agent, {"resource": action, "level": "use", "mode": mode})
        permission = agent.can_create_agents
        if permission is None and preset.can_create_agents is not None:
            permit(ctx, agent, preset.can_create_agents, agent.permission_level)


def permit(ctx: Context, agent: Agent, can_create: bool | None, level: PermissionLevel) -> None:
    """Store an agent's permission to hire, and its level."""
    stored = permissions({CAN_CREATE_AGENTS: can_create})
    ctx.tx.run(
        statements.PERMIT_AGENT, agent=agent.id, new_permissions=stored, new_level=level.value
    )
    ctx.record(
        "agent.permit",
        f"agent:{agent.id}",
        {
            "name": agent.name,
            "can_create_agents": can_create,
            "level": level.value,
            "was": {
                "can_create_agents": agent.can_create_agents,
                "level": agent.permission_level.value,
            },
        },
    )
