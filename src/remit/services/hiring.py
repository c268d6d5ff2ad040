"""Hiring: an agent that exists and shows from the start, and works once a person said so."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from remit.authority import Action
from remit.errors import BadInput, Conflict, Refused
from remit.model.agent import Agent, AgentStatus
from remit.model.approval import Approval, ApprovalType
from remit.model.budget import Kind
from remit.model.configuration import CONFIG_KEYS, RevisionSource, configuration_of, lends_secret
from remit.model.decision import Decision, Effect
from remit.model.outcome import Outcome
from remit.model.permission import PermissionLevel, permission_level
from remit.model.principal import ActorKind
from remit.model.text import clean_text
from remit.services import (
    agents,
    approval_engine,
    configuration,
    default_adapter,
    documents,
    finishing,
    grants,
    handing_over,
    lookup,
    outcomes,
    posts,
    reservations,
    tree,
    views,
    waking,
)
from remit.services.command import Answer, Context, command
from remit.services.opening import open_outcome, write_document
from remit.services.permissions import HIRING, hiring_facts, permit, require_level, set_level
from remit.services.permissions import begin as begin_level
from remit.services.permissions import read as read_permissions
from remit.services.redaction import restore
from remit.services.verbs import Added
from remit.store import people

MOST_GRANTS = 100
LONGEST_REASON = 2_000


@dataclass(frozen=True)
class Hired:
    """Who was hired, for what, and the approval that is still needed."""

    agent: Agent
    mandate: Outcome
    approval: Approval | None
    #: How much moved along with the outcome.
    moved: int = 0


@command("hiring.hire", Added("perpetual", None), Added("reason", None))
def hire(
    ctx: Context,
    *,
    company: str | None,
    name: object,
    reports_to: str | None = None,
    outcome: str | None = None,
    purpose: object = None,
    role: object = None,
    title: object = None,
    capabilities: object = None,
    prompt: object = None,
    adapter_type: object = None,
    adapter_config: object = None,
    runtime_config: object = None,
    budget_monthly_cents: object = None,
    budget_monthly_tokens: object = None,
    metadata: object = None,
    permissions: object = None,
    level: object = None,
    perpetual: object = None,
    reason: object = None,
    given: Sequence[Mapping[str, Any]] = (),
) -> Answer:
    """Take an agent on, for a post or for an outcome; where the company wants to be asked, a
    person decides whether, and reads the reason."""
    described = {
        "name": name,
        "role": role,
        "title": title,
        "capabilities": capabilities,
        "prompt": prompt,
        "adapter_type": adapter_type,
        "adapter_config": adapter_config,
        "runtime_config": runtime_config,
        "budget_monthly_cents": budget_monthly_cents,
        "budget_monthly_tokens": budget_monthly_tokens,
        "metadata": metadata,
        "permissions": permissions,
        "reason": reason,
    }
    lookup.company_of_caller(ctx, company)
    if outcome is not None:
        found = lookup.outcome_anywhere(ctx, outcome)
        boss = lookup.agent_anywhere(ctx, found.owner_id)
        if reports_to is not None and lookup.agent(ctx, reports_to).id != boss.id:
            raise BadInput(
                f"Whoever is hired for that outcome reports to {boss.name}, who owns it.",
                "Leave reportsTo out.",
            )
        handing_over.check(ctx, found)
        hired = hire_for(ctx, found, boss, described, given, level=level)
    else:
        above = _boss(ctx, reports_to)
        hired = _take_on(ctx, above, described, given, level, purpose=purpose, perpetual=perpetual)
    return answer(hired)


def answer(hired: Hired) -> Answer:
    return {
        "agent": views.agent(hired.agent),
        "approval": None if hired.approval is None else views.approval(hired.approval),
    }


def hire_for(
    ctx: Context,
    outcome: Outcome,
    boss: Agent,
    described: Mapping[str, Any],
    given: Sequence[Mapping[str, Any]],
    *,
    level: object = None,
    amounts: Mapping[Kind, int] | None = None,
) -> Hired:
    """A new agent for an outcome that its owner hands over, with what is set aside for that."""
    handing_over.check_not_hired_for(ctx, outcome)
    return _take_on(ctx, boss, described, given, level, outcome=outcome, amounts=amounts or {})


def _take_on(
    ctx: Context,
    boss: Agent | None,
    described: Mapping[str, Any],
    given: Sequence[Mapping[str, Any]],
    level: object,
    *,
    outcome: Outcome | None = None,
    purpose: object = None,
    perpetual: object = None,
    amounts: Mapping[Kind, int] | None = None,
) -> Hired:
    reason = _reason(described.get("reason"))
    post = posts.new_post(**_with_defaults(ctx, described, boss))
    wanted_level = _level(ctx, post, level, boss)
    waits = _may_hire(ctx, post, boss, for_delegation=outcome is not None)
    status = AgentStatus.PENDING_APPROVAL if waits else AgentStatus.IDLE
    if outcome is None:
        agent = agents.found(ctx, post, boss, purpose=purpose, perpetual=perpetual, status=status)
        mandate = outcomes.require(ctx, agent.id)
    else:
        assert boss is not None, "an outcome has an owner"
        mandate = _free_mandate(ctx, outcome, boss)
        agent = agents.appoint(ctx, post, mandate, boss, status)
    wishes = _wishes(given, mandate, for_outcome=outcome is not None)
    if not waits:
        moved = _begin(ctx, agent, mandate, wishes, wanted_level, for_outcome=outcome is not None)
        if boss is not None and amounts:
            reservations.set_aside(ctx, boss, agent, mandate.id, amounts)
        started = lookup.agent_row(ctx, agent.id)
        assert started is not None
        return Hired(started, mandate, None, moved)
    for wish in wishes:
        grants.weigh(ctx, agent, wish)  # what could not be given is refused now, not later
    if boss is not None and amounts:
        reservations.weigh(ctx, boss, amounts)
    payload = {
        **posts.hire_payload(
            agent,
            requested_by=ctx.actor.agent_id,
            outcome=mandate.id if outcome is not None else None,
            grants=wishes,
        ),
        "permissionLevel": wanted_level.value if wanted_level else None,
        **({"reason": reason} if reason else {}),
        **({"setAside": {kind.value: one for kind, one in amounts.items()}} if amounts else {}),
    }
    approval = approval_engine.ask(
        ctx, ApprovalType.HIRE_AGENT, payload, agent=agent.id, home=boss.id if boss else agent.id
    )
    return Hired(agent, mandate, approval)


def _may_hire(ctx: Context, post: posts.Post, boss: Agent | None, *, for_delegation: bool) -> bool:
    """Whether it has to wait for a person; ends the call when it may not be at all."""
    decision = ctx.decide(
        Action.AGENT_CREATE,
        HIRING,
        home=boss.id if boss else None,
        for_delegation=for_delegation,
        **hiring_facts(ctx),
    )
    company = ctx.tx.one(people.COMPANY, company=ctx.company)
    assert company is not None
    if decision.effect is Effect.ASK and decision.basis:
        # The hire is the request that a gated use would make.
        ctx.accept_rule(Decision(Effect.ALLOW, "asks", "A person is asked.", decision.basis))
        return True
    ctx.accept(Action.AGENT_CREATE, f"agent:{post.name}", decision)
    settings = {"adapterConfig": json.loads(post.adapter_config)}
    if ctx.actor.kind is ActorKind.AGENT and lends_secret(settings):
        # Whatever the company says about hires, a person decides who gets a secret, and where
        # requests of ours go.
        return True
    return company.require_board_approval_for_new_agents


def _boss(ctx: Context, reports_to: str | None) -> Agent | None:
    """Whom the new agent reports to; an agent hires below itself."""
    if ctx.actor.kind is not ActorKind.AGENT:
        return lookup.agent(ctx, reports_to) if reports_to else None
    boss = lookup.agent(ctx, reports_to or ctx.actor.id)
    if ctx.actor.id not in ctx.place(boss.id):
        raise Refused(
            "You hire for yourself and for those below you.",
            "Leave reportsTo out, or ask the board.",
            code="not_below_you",
        )
    return boss


def _with_defaults(
    ctx: Context, described: Mapping[str, Any], boss: Agent | None
) -> dict[str, Any]:
    """What is not said has its default."""
    unknown = described.keys() - posts.FIELDS.values() - {"permissions", "reason"}
    if unknown:
        known = ", ".join(sorted(posts.FIELDS))
        raise BadInput(f"hire has an unknown field {min(unknown)[:40]!r}.", f"Known: {known}.")
    said = {key: one for key, one in described.items() if one is not None and key != "reason"}
    asked = {"name": None, **said}
    return default_adapter.fill_in(ctx, asked, boss)


def _reason(text: object) -> str:
    """What it is needed for, as whoever decides reads it."""
    return clean_text("" if text is None else text, "reason", longest=LONGEST_REASON, empty_ok=True)


def _level(
    ctx: Context, post: posts.Post, level: object, boss: Agent | None
) -> PermissionLevel | None:
    """Permissions come with a hire only from those who may edit them."""
    if post.permissions != "{}" and ctx.actor.kind is ActorKind.AGENT:
        ctx.require(Action.AGENT_PERMIT, on=f"agent:{post.name}", **hiring_facts(ctx))
    if level is None:
        return None
    wanted = permission_level(level)
    require_level(ctx, wanted, on=f"agent:{post.name}", home=boss.id if boss else None)
    return wanted


def _free_mandate(ctx: Context, outcome: Outcome, boss: Agent) -> Outcome:
    """The outcome itself, or, when an earlier agent had its id, one inside it with the same aim."""
    if lookup.agent_row(ctx, outcome.id) is None:
        return outcome
    again = open_outcome(
        ctx,
        title=outcome.title,
        owner=boss.id,
        urgent=outcome.urgent,
        important=outcome.important,
        deferred_until=outcome.deferred_until,
    )
    write_document(ctx, again, documents.prose(ctx, outcome.id))
    outcomes.insert_below(ctx, outcome, again)
    ctx.record(
        "outcome.create",
        f"outcome:{again.id}",
        {"title": again.title, "owner": boss.id, "parents": [outcome.id]},
    )
    return again


def _begin(
    ctx: Context,
    agent: Agent,
    mandate: Outcome,
    wishes: Sequence[Mapping[str, Any]],
    level: PermissionLevel | None,
    *,
    for_outcome: bool,
) -> int:
    """What a hire gives, once it is settled: the outcome, the grants, the level."""
    moved = handing_over.hand_to(ctx, mandate, agent, hired=True) if for_outcome else 0
    for wish in wishes:
        grants.give_to(ctx, agent, wish)
    if level is not None:
        set_level(ctx, agent, level)
    return moved


# ── what a decision does ────────────────────────────────────────────────────────────────────────


def take_effect(ctx: Context, approval: Approval) -> None:
    """The agent starts to work, with exactly what was approved."""
    payload = json.loads(approval.payload)
    agent = _as_approved(ctx, _limbo(ctx, approval), approval, payload)
    mandate = outcomes.require(ctx, agent.id)
    tree.set_status(ctx, agent, AgentStatus.IDLE)
    working = lookup.agent_row(ctx, agent.id)
    assert working is not None
    level = payload.get("permissionLevel")
    ctx.record("agent.hire", f"agent:{agent.id}", {"name": agent.name, "approval": approval.id})
    if level is not None:
        set_level(ctx, working, permission_level(level))
    else:
        begin_level(ctx, working)
    waking.news(ctx, mandate, agents.WORK_FROM_THE_START)
    for_outcome = payload.get("outcomeId") is not None
    if not for_outcome and not payload["grants"]:
        return
    with approval_engine.in_their_name(ctx, approval, "Ask for a revision, or reject it."):
        if for_outcome:
            handing_over.check(ctx, mandate)
            _check_owner(mandate, working)
        _begin(ctx, working, mandate, payload["grants"], None, for_outcome=for_outcome)
        _set_aside(ctx, working, mandate, payload.get("setAside"))


def _as_approved(
    ctx: Context, agent: Agent, approval: Approval, payload: Mapping[str, Any]
) -> Agent:
    """The agent that waits, made what was approved, whatever became of its row meanwhile."""
    if (agent.id, agent.boss_id) != (payload["agentId"], payload["reportsTo"]):
        raise Conflict(
            f"{agent.name} was to report to another.", "Reject it; it can be asked anew."
        )
    now = configuration_of(agent)
    # A hire of an older version may lack what a configuration has gained since.
    wanted = {**now, **payload["requestedConfigurationSnapshot"]}
    if wanted != now:
        agent = configuration.apply(ctx, agent, wanted, RevisionSource.RESUBMIT, approval)
    # Its level is given next; whoever waits has none but the first.
    said, first = read_permissions(payload["permissions"]), PermissionLevel.STANDARD
    if (read_permissions(json.loads(agent.permissions)), agent.permission_level) != (said, first):
        permit(ctx, agent, said, first)
    found = lookup.agent_row(ctx, agent.id)
    assert found is not None
    return found


def _set_aside(
    ctx: Context, agent: Agent, mandate: Outcome, amounts: Mapping[str, int] | None
) -> None:
    boss = lookup.agent_row(ctx, agent.boss_id or "")
    if boss is not None and amounts:
        given = {Kind(kind): amount for kind, amount in amounts.items()}
        reservations.set_aside(ctx, boss, agent, mandate.id, given)


def _check_owner(mandate: Outcome, agent: Agent) -> None:
    """Whoever was hired for an outcome works for its owner, also when that is another by now."""
    if mandate.owner_id != agent.boss_id:
        raise Conflict(
            f"{mandate.title!r} has another owner by now.", "Reject it; the new owner can hire."
        )


def turned_down(ctx: Context, approval: Approval, why: str) -> None:
    """The agent is not taken on; its name is free again, and the outcome stays with its owner."""
    agent = lookup.agent_row(ctx, approval.agent_id or "")
    if agent is not None and agent.status is AgentStatus.PENDING_APPROVAL:
        finishing.not_hired(ctx, agent, why)


def resubmitted(ctx: Context, approval: Approval, given: Mapping[str, Any]) -> dict[str, Any]:
    """The hire as it is asked for now; the waiting agent is changed to fit."""
    payload = json.loads(approval.payload)
    agent = _limbo(ctx, approval)
    inner = given.get("requestedConfigurationSnapshot")
    if inner is not None and not isinstance(inner, Mapping):
        raise BadInput("requestedConfigurationSnapshot: must be an object.")
    asked = {**(inner or {}), **given}
    current = configuration_of(agent)
    wanted = {
        **current,
        **{key: restore(asked[key], current[key]) for key in CONFIG_KEYS if key in asked},
    }
    if wanted != current:
        agent = configuration.apply(ctx, agent, wanted, RevisionSource.RESUBMIT, approval)
    wishes = payload["grants"]
    if "grants" in given:
        mandate = outcomes.require(ctx, agent.id)
        wishes = _wishes(given["grants"], mandate, for_outcome=payload["outcomeId"] is not None)
        for wish in wishes:
            grants.weigh(ctx, agent, wish)
    reason = _reason(given.get("reason", payload.get("reason")))
    return {
        **posts.hire_payload(
            agent,
            requested_by=payload["requestedByAgentId"],
            outcome=payload["outcomeId"],
            grants=wishes,
        ),
        "permissionLevel": payload.get("permissionLevel"),
        **({"reason": reason} if reason else {}),
        **({"setAside": payload["setAside"]} if "setAside" in payload else {}),
    }


def _wishes(given: object, mandate: Outcome, *, for_outcome: bool) -> list[dict[str, Any]]:
    """What the new agent is to get; what comes with an outcome ends with it."""
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) > MOST_GRANTS:
        raise BadInput(f"grants: must be a list of at most {MOST_GRANTS}.")
    found = []
    for number, wish in enumerate(given):
        if not isinstance(wish, Mapping):
            raise BadInput(f"grants.{number}: must be an object.")
        expires_at = wish.get("expiresAt", wish.get("expires_at"))
        scope = mandate.id if for_outcome else wish.get("scope") or mandate.id
        found.append(
            {
                "resource": wish.get("resource"),
                "level": wish.get("level"),
                "mode": wish.get("mode"),
                "scope": scope,
                "expires_at": expires_at,
            }
        )
    return found


def _limbo(ctx: Context, approval: Approval) -> Agent:
    agent = lookup.agent_row(ctx, approval.agent_id or "")
    if agent is None or agent.status is not AgentStatus.PENDING_APPROVAL:
        raise Conflict("The agent does not wait for this any more.", "Look at the agent.")
    return agent
