"""The permission policy of a company: the rights of each of the four levels. The board edits it.

A change applies to the agents that have the level: they gain what the level gained and lose what it
lost. Grants that an agent got apart from its level stay.
"""

from collections.abc import Mapping
from typing import Any

from remit.authority import Action
from remit.errors import Conflict, stale
from remit.model.organisation.agent import Agent
from remit.model.organisation.grant import Mode, Resource, ResourceKind
from remit.model.organisation.permission import (
    PRESETS,
    PermissionLevel,
    Policy,
    Preset,
    permission_level,
    preset,
)
from remit.services import lookup, shapes
from remit.services.command import Context, command, query
from remit.services.fields import CompanyRef
from remit.services.organisation import permissions
from remit.services.rights import grants
from remit.services.surfaces import AsCommand, AsRoute
from remit.store.organisation import governance as statements


@query(
    "policies.show",
    AsRoute("GET /companies/{companyId}/permission-policy", "show_policy"),
    AsCommand("policy show"),
)
def show(ctx: Context, *, company: CompanyRef | None = None) -> shapes.PolicyShape:
    """The permission levels: what each allows and denies, and how many agents have it."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.POLICY_READ, on=f"company:{ctx.company}")
    return _view(ctx, permissions.current(ctx))


@command("policies.change")
def change(
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
    was = permissions.current(ctx)
    if expected_version is not None and expected_version != was.version:
        current = was.version
        raise stale(f"The policy is at version {current}, not {expected_version}.", version=current)
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
        for action in sorted(set(after) - set(before)):
            wish = {"resource": action, "level": "use", "mode": mode.value}
            grants.give_to(ctx, agent, wish)
            changed = True
    permission = agent.can_create_agents
    if was.can_create_agents != now.can_create_agents and permission == was.can_create_agents:
        permissions.permit(ctx, agent, now.can_create_agents, agent.permission_level)
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
