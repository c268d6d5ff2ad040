"""Hires: the agent exists and is shown from the start, and works once the hire is approved."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from remit.authority import Action
from remit.errors import BadInput, Conflict
from remit.model.execution.budget import Kind
from remit.model.organisation.agent import Agent, AgentStatus
from remit.model.organisation.agent_spec import FIELDS, AgentSpec
from remit.model.organisation.approval import Approval, ApprovalType
from remit.model.organisation.configuration import (
    CONFIG_KEYS,
    RevisionSource,
    configuration_of,
    is_for_people,
)
from remit.model.organisation.decision import Decision, Effect, deny
from remit.model.organisation.grant import is_over_machine
from remit.model.organisation.permission import PermissionLevel, permission_level
from remit.model.organisation.principal import ActorKind
from remit.model.text import clean_text
from remit.model.work.outcome import Outcome
from remit.services import lookup, shapes, views
from remit.services.command import Context, command
from remit.services.execution import waking
from remit.services.governance import approval_engine
from remit.services.hiring import agent_spec, configuration
from remit.services.knowledge import documents
from remit.services.organisation import tree
from remit.services.organisation.permissions import HIRING, permit, require_level, set_level
from remit.services.organisation.permissions import begin as begin_level
from remit.services.organisation.permissions import read as read_permissions
from remit.services.redaction import restore
from remit.services.rights import grants
from remit.services.spending import promises, reservations
from remit.services.subjects import OUTCOME
from remit.services.verbs import Added
from remit.services.work import outcome_ending, outcomes, responsibility
from remit.services.work.outcome_creation import open_outcome, write_document
from remit.store.organisation import people

MOST_GRANTS = 100
LONGEST_REASON = 2_000
#: Parts of a hire that a resubmission cannot change, and their names.
_KEPT = {
    "reportsTo": "boss",
    "outcomeId": "outcome",
    "perpetual": "kind of mandate",
    "setAside": "reservation",
}


@dataclass(frozen=True)
class Hired:
    """The new agent, its mandate, and the approval that is still needed."""

    agent: Agent
    mandate: Outcome
    approval: Approval | None
    #: How many outcomes moved along.
    moved: int = 0


@command("hiring.hire", Added("perpetual", None), Added("reason", None), described=FIELDS)
def hire(
    ctx: Context,
    /,
    *,
    company: str | None,
    reports_to: str | None = None,
    outcome: str | None = None,
    purpose: object = None,
    level: object = None,
    perpetual: object = None,
    reason: object = None,
    given: Sequence[Mapping[str, Any]] = (),
    **described: object,
) -> shapes.HireShape:
    """Hire an agent, for a post or for an outcome. If the company requires approval, a person
    decides, and reads the reason."""
    described["reason"] = reason
    lookup.company_of_caller(ctx, company)
    if outcome is not None:
        row = lookup.find(ctx, OUTCOME, outcome)
        boss = lookup.agent_anywhere(ctx, row.owner_id)
        if reports_to is not None and lookup.agent(ctx, reports_to).id != boss.id:
            raise BadInput(
                f"A hire for that outcome reports to {boss.name}, who owns it.",
                "Leave reportsTo out.",
            )
        responsibility.require_delegable(ctx, row)
        hired = hire_for(ctx, row, boss, described, given, level=level)
    else:
        above = _boss(ctx, reports_to)
        hired = _take_on(ctx, above, described, given, level, purpose=purpose, perpetual=perpetual)
    return answer(ctx, hired)


def answer(ctx: Context, hired: Hired) -> shapes.HireShape:
    return {
        "agent": views.agent(hired.agent),
        "approval": None if hired.approval is None else views.approval(hired.approval),
        **promises.warned(ctx, hired.agent),
    }


def hire_for(
    ctx: Context,
    outcome: Outcome,
    boss: Agent,
    described: Mapping[str, Any],
    wanted_grants: Sequence[Mapping[str, Any]],
    *,
    level: object = None,
    amounts: Mapping[Kind, int] | None = None,
) -> Hired:
    """Hire an agent for an outcome that its owner delegates, with a reservation out of the owner's
    budget."""
    responsibility.check_not_hired_for(ctx, outcome)
    return _take_on(
        ctx, boss, described, wanted_grants, level, outcome=outcome, amounts=amounts or {}
    )


def _take_on(
    ctx: Context,
    boss: Agent | None,
    described: Mapping[str, Any],
    wanted_grants: Sequence[Mapping[str, Any]],
    level: object,
    *,
    outcome: Outcome | None = None,
    purpose: object = None,
    perpetual: object = None,
    amounts: Mapping[Kind, int] | None = None,
) -> Hired:
    reason = _reason(described.get("reason"))
    description = {key: value for key, value in described.items() if key != "reason"}
    spec = agent_spec.new(ctx, description, boss)
    wanted_level = _level(ctx, spec, level, boss)
    waits = _may_hire(ctx, spec, boss, wanted_grants, for_delegation=outcome is not None)
    status = AgentStatus.PENDING_APPROVAL if waits else AgentStatus.IDLE
    agent, mandate = tree.create_with_mandate(
        ctx,
        spec,
        boss,
        mandate=None if outcome is None or boss is None else _free_mandate(ctx, outcome, boss),
        purpose=purpose,
        perpetual=perpetual,
        status=status,
    )
    wishes = _wishes(wanted_grants, mandate, for_outcome=outcome is not None)
    if not waits:
        moved = _begin(ctx, agent, mandate, wishes, wanted_level, for_outcome=outcome is not None)
        if boss is not None and amounts:
            reservations.set_aside(ctx, boss, agent, mandate.id, amounts)
        started = lookup.known_agent(ctx, agent.id)
        return Hired(started, mandate, None, moved)
    for wish in wishes:
        if not _is_for_people(ctx, wish):
            grants.weigh(ctx, agent, wish)  # refuse now what could not be granted later
    if boss is not None and amounts:
        reservations.weigh(ctx, boss, amounts)
    payload = approval_engine.hire_payload(
        agent,
        mandate,
        requested_by=ctx.actor.agent_id,
        outcome=mandate.id if outcome is not None else None,
        grants=wishes,
        permissionLevel=wanted_level.value if wanted_level else None,
        **({"reason": reason} if reason else {}),
        **({"setAside": {kind.value: amounts[kind] for kind in amounts}} if amounts else {}),
    )
    kind, home = ApprovalType.HIRE_AGENT, boss or agent
    approval = approval_engine.ask(ctx, kind, payload, agent=agent, mandate=mandate, home=home)
    return Hired(agent, mandate, approval)


def _may_hire(
    ctx: Context,
    spec: AgentSpec,
    boss: Agent | None,
    wanted_grants: object,
    *,
    for_delegation: bool,
) -> bool:
    """Return whether the hire needs approval; refuses one that is not permitted at all."""
    home = boss.id if boss else None
    decision = ctx.decide(Action.AGENT_CREATE, HIRING, home=home, for_delegation=for_delegation)
    company = ctx.tx.existing(people.COMPANY)
    if decision.effect is Effect.ASK and decision.basis:
        # The request of the hire is the approval that a capability in mode `ask` needs.
        ctx.allow_by_rule(Decision(Effect.ALLOW, "asks", "A person is asked.", decision.basis))
        return True
    ctx.accept(Action.AGENT_CREATE, f"agent:{spec.name}", decision)
    settings = {"adapterConfig": json.loads(spec.adapter_config)}
    if ctx.actor.kind is ActorKind.AGENT and (
        is_for_people(settings) or any(_is_for_people(ctx, wish) for wish in _listed(wanted_grants))
    ):
        # A person decides which agent gets a secret or the whole machine, and where requests with
        # a secret are sent, whatever the company's settings.
        return True
    return company.require_board_approval_for_new_agents


def _boss(ctx: Context, reports_to: str | None) -> Agent | None:
    """Return the boss of the new agent; an agent hires for itself or for those below it."""
    if ctx.actor.kind is not ActorKind.AGENT:
        return lookup.agent(ctx, reports_to) if reports_to else None
    if reports_to is None:
        return lookup.known_agent(ctx, ctx.actor.id)
    boss = lookup.agent(ctx, reports_to)
    if ctx.actor.id not in ctx.boss_chain(boss.id):
        ctx.accept(
            Action.AGENT_CREATE,
            f"agent:{boss.id}",
            deny("not_below_you", "You hire for yourself and for those below you."),
            step="Leave reportsTo out, or ask the board.",
        )
    return boss


def _reason(text: object) -> str:
    """Validate the reason for the hire, which the decider reads."""
    return clean_text("" if text is None else text, "reason", longest=LONGEST_REASON, empty_ok=True)


def _level(
    ctx: Context, spec: AgentSpec, level: object, boss: Agent | None
) -> PermissionLevel | None:
    """Validate the permission level; permissions come with a hire only from those who may edit
    them."""
    if spec.permissions != "{}" and ctx.actor.kind is ActorKind.AGENT:
        ctx.require(Action.AGENT_PERMIT, on=f"agent:{spec.name}")
    if level is None:
        return None
    wanted = permission_level(level)
    require_level(ctx, wanted, on=f"agent:{spec.name}", home=boss.id if boss else None)
    return wanted


def _free_mandate(ctx: Context, outcome: Outcome, boss: Agent) -> Outcome:
    """Return the outcome itself, or, if an earlier agent had its id, a new one inside it with the
    same title."""
    if lookup.agent_row(ctx, outcome.id) is None:
        return outcome
    rank = {key: getattr(outcome, key) for key in ("urgent", "important", "deferred_until")}
    again = open_outcome(ctx, title=outcome.title, owner=boss.id, **rank)
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
    """Give a new agent what its hire includes: the outcome, the grants, the level."""
    moved = responsibility.hand_to(ctx, mandate, agent, hired=True) if for_outcome else 0
    if level is not None:
        set_level(ctx, agent, level)  # before the grants: it replaces those of actions
    for wish in wishes:
        grants.give_to(ctx, agent, wish)
    return moved


# ── consequences of a decision ──────────────────────────────────────────────────────────────────


def take_effect(ctx: Context, approval: Approval) -> None:
    """Let the agent begin to work, with exactly what was approved."""
    payload = json.loads(approval.payload)
    agent = _as_approved(ctx, _limbo(ctx, approval), approval, payload)
    mandate = lookup.known_outcome(ctx, agent.id)
    _check_purpose(mandate, payload)
    working = tree.set_status(ctx, agent, AgentStatus.IDLE)
    level = payload.get("permissionLevel")
    ctx.record("agent.hire", f"agent:{agent.id}", {"name": agent.name, "approval": approval.id})
    if level is not None:
        set_level(ctx, working, permission_level(level))
    else:
        begin_level(ctx, working)
    waking.news(ctx, mandate, tree.WORK_FROM_THE_START)
    for_outcome = payload.get("outcomeId") is not None
    if not for_outcome and not payload["grants"]:
        return
    with approval_engine.in_their_name(ctx, approval, "Ask for a revision, or reject it."):
        if for_outcome:
            responsibility.require_delegable(ctx, mandate)
            if mandate.owner_id != agent.boss_id:
                raise Conflict(
                    f"{mandate.title!r} has another owner by now.",
                    "Reject it; the new owner can hire.",
                )
        by_people = [wish for wish in payload["grants"] if _is_for_people(ctx, wish)]
        others = [wish for wish in payload["grants"] if wish not in by_people]
        _begin(ctx, working, mandate, others, None, for_outcome=for_outcome)
        _set_aside(ctx, working, mandate, payload.get("setAside"))
    for wish in by_people:
        grants.give_to(ctx, working, wish)


def _as_approved(
    ctx: Context, agent: Agent, approval: Approval, payload: Mapping[str, Any]
) -> Agent:
    """Return the pending agent, set to what was approved, whatever its row became meanwhile."""
    if (agent.id, agent.boss_id) != (payload["agentId"], payload["reportsTo"]):
        raise Conflict(
            f"{agent.name} was to report to another.", "Reject it; it can be asked anew."
        )
    now = configuration_of(agent)
    # A hire that an older version stored may lack newer keys of a configuration.
    wanted = {**now, **payload["requestedConfigurationSnapshot"]}
    if wanted != now:
        agent = configuration.apply(ctx, agent, wanted, RevisionSource.RESUBMIT, approval)
    # The approved level is set next; a pending agent has the first one.
    may_create, first = read_permissions(payload["permissions"]), PermissionLevel.STANDARD
    if (agent.can_create_agents, agent.permission_level) != (may_create, first):
        permit(ctx, agent, may_create, first)
        agent = lookup.known_agent(ctx, agent.id)
    return agent


def _set_aside(
    ctx: Context, agent: Agent, mandate: Outcome, amounts: Mapping[str, int] | None
) -> None:
    boss = lookup.agent_row(ctx, agent.boss_id or "")
    if boss is not None and amounts:
        by_kind = {Kind(kind): amount for kind, amount in amounts.items()}
        reservations.set_aside(ctx, boss, agent, mandate.id, by_kind)


def _check_purpose(mandate: Outcome, payload: Mapping[str, Any]) -> None:
    """Check that the outcome is the one that was approved; a hire that an older version stored has
    no purpose."""
    terms = (payload.get("purpose", mandate.title), payload.get("perpetual", mandate.perpetual))
    if terms != (mandate.title, mandate.perpetual):
        raise Conflict(
            f"It was asked for {terms[0]!r}, which is {mandate.title!r} by now.",
            "Ask for a revision, or reject it.",
        )


def turned_down(ctx: Context, approval: Approval, why: str) -> None:
    """End the agent: its name is free again, and the outcome stays with its owner."""
    agent = lookup.agent_row(ctx, approval.agent_id or "")
    if agent is not None and agent.status is AgentStatus.PENDING_APPROVAL:
        outcome_ending.not_hired(ctx, agent, why)


def resubmitted(ctx: Context, approval: Approval, changes: Mapping[str, Any]) -> dict[str, object]:
    """Return the payload of the resubmitted hire; the pending agent is changed to match it."""
    payload = json.loads(approval.payload)
    agent = _limbo(ctx, approval)
    inner = changes.get("requestedConfigurationSnapshot")
    if inner is not None and not isinstance(inner, Mapping):
        raise BadInput("requestedConfigurationSnapshot: must be an object.")
    fields = {**(inner or {}), **changes}
    mandate = lookup.known_outcome(ctx, agent.id)
    _refuse_another_hire(ctx, {**payload, "perpetual": mandate.perpetual}, changes)
    agent, level = _permitted_again(ctx, agent, payload.get("permissionLevel"), changes)
    current = configuration_of(agent)
    changed = {key: restore(fields[key], current[key]) for key in CONFIG_KEYS if key in fields}
    wanted = {**current, **changed}
    if wanted != current:
        agent = configuration.apply(ctx, agent, wanted, RevisionSource.RESUBMIT, approval)
    wishes = payload["grants"]
    if changes.get("purpose", mandate.title) != mandate.title:
        if payload["outcomeId"] is not None:
            raise BadInput("purpose: is that of the outcome.", "Change the outcome.")
        mandate = outcomes.rename(ctx, mandate, changes["purpose"], "purpose")
    if "grants" in changes:
        wishes = _wishes(changes["grants"], mandate, for_outcome=payload["outcomeId"] is not None)
        for wish in wishes:
            if not _is_for_people(ctx, wish):
                grants.weigh(ctx, agent, wish)
    reason = _reason(changes.get("reason", payload.get("reason")))
    return approval_engine.hire_payload(
        agent,
        mandate,
        requested_by=payload["requestedByAgentId"],
        outcome=payload["outcomeId"],
        grants=wishes,
        permissionLevel=level,
        **({"reason": reason} if reason else {}),
        **({"setAside": payload["setAside"]} if "setAside" in payload else {}),
    )


def _permitted_again(
    ctx: Context, agent: Agent, level: str | None, changes: Mapping[str, Any]
) -> tuple[Agent, str | None]:
    """Set the resubmitted permissions, and check the level, for a caller who may edit them."""
    now = agent.can_create_agents
    wanted = read_permissions(changes["permissions"]) if "permissions" in changes else now
    if wanted != now:
        if ctx.actor.kind is ActorKind.AGENT:
            ctx.require(Action.AGENT_PERMIT, on=f"agent:{agent.name}")
        permit(ctx, agent, wanted, agent.permission_level)
        agent = lookup.known_agent(ctx, agent.id)
    wanted_level = changes.get("permissionLevel", level)
    if wanted_level != level and wanted_level is not None:
        wanted_level = permission_level(wanted_level).value
        require_level(
            ctx, PermissionLevel(wanted_level), on=f"agent:{agent.name}", home=agent.boss_id
        )
    return agent, wanted_level


def _refuse_another_hire(
    ctx: Context, payload: Mapping[str, Any], changes: Mapping[str, Any]
) -> None:
    """Refuse changes of what a resubmission cannot change, rather than ignore them."""
    boss = changes.get("reportsTo")
    named = lookup.agent(ctx, boss).id if isinstance(boss, str) else boss
    proposal = {**changes, "reportsTo": named}
    for key, words in _KEPT.items():
        if key in changes and (proposal[key] or None) != (payload.get(key) or None):
            raise BadInput(
                f"{key}: a hire that is submitted again keeps its {words}.",
                "Withdraw it, and ask anew.",
            )


def _listed(wanted_grants: object) -> Sequence[object]:
    if (
        not isinstance(wanted_grants, Sequence)
        or isinstance(wanted_grants, str)
        or len(wanted_grants) > MOST_GRANTS
    ):
        raise BadInput(f"grants: must be a list of at most {MOST_GRANTS}.")
    return wanted_grants


def _is_for_people(ctx: Context, wish: object) -> bool:
    """Return whether an agent wishes a right over the machine, which the person gives who approves
    the hire, and not the agent that asks."""
    return (
        ctx.actor.kind is ActorKind.AGENT
        and isinstance(wish, Mapping)
        and is_over_machine(wish.get("resource"))
    )


def _wishes(
    wanted_grants: object, mandate: Outcome, *, for_outcome: bool
) -> list[dict[str, object]]:
    """Validate the grants for the new agent; those of a hire for an outcome end with it."""
    wishes = []
    for number, wish in enumerate(_listed(wanted_grants)):
        if not isinstance(wish, Mapping):
            raise BadInput(f"grants.{number}: must be an object.")
        expires_at = wish.get("expiresAt", wish.get("expires_at"))
        scope = mandate.id if for_outcome else wish.get("scope") or mandate.id
        what = {key: wish.get(key) for key in ("resource", "level", "mode")}
        wishes.append({**what, "scope": scope, "expires_at": expires_at})
    return wishes


def _limbo(ctx: Context, approval: Approval) -> Agent:
    agent = lookup.agent_row(ctx, approval.agent_id or "")
    if agent is None or agent.status is not AgentStatus.PENDING_APPROVAL:
        raise Conflict("The agent does not wait for this any more.", "Look at the agent.")
    return agent
