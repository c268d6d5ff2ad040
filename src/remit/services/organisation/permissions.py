"""The permission to hire, the four permission levels of agents, and a company's policy for them.

The policy has the rights of each level; the board edits it. A change applies to the agents that
have the level: they gain what the level gained and lose what it lost. Grants that an agent got
apart from its level stay.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from remit.authority import Action
from remit.errors import BadInput, Conflict, stale
from remit.model.organisation.agent import Agent
from remit.model.organisation.agent_spec import permissions
from remit.model.organisation.grant import AGENT_CREATE, Mode, Resource, ResourceKind
from remit.model.organisation.permission import (
    CAN_CREATE_AGENTS,
    PRESETS,
    PermissionLevel,
    Policy,
    Preset,
    Reach,
    permission_level,
    policy,
    preset,
)
from remit.model.organisation.principal import SYSTEM
from remit.services import lookup, shapes, views
from remit.services.command import Context, command, query
from remit.services.fields import AgentRef, CompanyRef
from remit.services.rights import grants
from remit.services.surfaces import AsCommand, AsRoute
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
    agent_row.require_operational("Permissions are for agents that can act.")
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
    rights = current(ctx)[level]
    grants.revoke_actions(ctx, agent)
    _give(ctx, agent, Mode.ALLOW, rights.allowed)
    _give(ctx, agent, Mode.DENY, rights.denied)
    permit(ctx, agent, rights.can_create_agents, level)


def begin(ctx: Context, agent: Agent) -> None:
    """Give a new agent the grants of its level, whoever created it."""
    rights = current(ctx)[agent.permission_level]
    with ctx.acting_as(SYSTEM):
        _give(ctx, agent, Mode.ALLOW, rights.allowed)
        _give(ctx, agent, Mode.DENY, rights.denied)
        if agent.can_create_agents is None and rights.can_create_agents is not None:
            permit(ctx, agent, rights.can_create_agents, agent.permission_level)


def _give(ctx: Context, agent: Agent, mode: Mode, actions: Iterable[str]) -> None:
    for action in actions:
        grants.give_to(ctx, agent, {"resource": action, "level": "use", "mode": mode.value})


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


# ── the policy ──────────────────────────────────────────────────────────────────────────────────


@query(
    "policies.show",
    AsRoute("GET /companies/{companyId}/permission-policy", "show_policy"),
    AsCommand("policy show"),
)
def show_policy(ctx: Context, *, company: CompanyRef | None = None) -> shapes.PolicyShape:
    """The permission levels: what each allows and denies, and how many agents have it."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.POLICY_READ, on=f"company:{ctx.company}")
    return _view(ctx, current(ctx))


@command("policies.change")
def change_policy(
    ctx: Context,
    *,
    level: object,
    company: str | None = None,
    settings: Mapping[str, Any] | None = None,
    expected_version: int | None = None,
) -> shapes.ChangedPolicyShape:
    """Replace settings of a level; without settings, reset it to its default."""
    which = permission_level(level)
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.POLICY_CHANGE, on=f"company:{ctx.company}")
    was = current(ctx)
    if expected_version is not None and expected_version != was.version:
        raise stale(
            f"The policy is at version {was.version}, not {expected_version}.", version=was.version
        )
    new = PRESETS[which] if settings is None else preset(which, was[which], settings)
    if new == was[which]:
        raise Conflict(f"The level {which.value} is like that already.", "Nothing was changed.")
    now = was.with_level(which, new)
    ctx.tx.run(statements.SET_POLICY, new_policy=now.stored())
    ctx.record(
        "policy.change",
        f"company:{ctx.company}",
        {
            "version": now.version,
            "level": which.value,
            "now": new.as_dict(),
            "was": was[which].as_dict(),
        },
    )
    having = ctx.tx.all(statements.AGENTS_WITH_LEVEL, level=which.value)
    reached = [agent for agent in having if _fit(ctx, agent, was[which], new)]
    return {**_view(ctx, now), "agents_changed": [agent.name for agent in reached]}


def _fit(ctx: Context, agent: Agent, was: Preset, now: Preset) -> bool:
    """Give an agent what its level gained, and revoke what it lost; returns whether anything
    changed."""
    changed = False
    for mode, before, after in (
        (Mode.ALLOW, was.allowed, now.allowed),
        (Mode.DENY, was.denied, now.denied),
    ):
        for action in sorted(set(before) - set(after)):
            changed |= grants.revoke_mode(ctx, agent, Resource(ResourceKind.ACTION, action), mode)
        gained = sorted(set(after) - set(before))
        _give(ctx, agent, mode, gained)
        changed |= bool(gained)
    permission = agent.can_create_agents
    if was.can_create_agents != now.can_create_agents and permission == was.can_create_agents:
        permit(ctx, agent, now.can_create_agents, agent.permission_level)
        changed = True
    return changed


def _view(ctx: Context, policy: Policy) -> shapes.PolicyShape:
    count = dict(ctx.tx.all(statements.COUNT_BY_LEVEL))
    return {
        "company_id": ctx.company,
        "version": policy.version,
        "levels": {
            level.value: {
                "canCreateAgents": policy[level].can_create_agents,
                "allow": list(policy[level].allowed),
                "deny": list(policy[level].denied),
                "governs": policy[level].governs.value,
                "shipped": level not in policy.edited,
                "agents": count.get(level.value, 0),
            }
            for level in PermissionLevel
        },
    }
