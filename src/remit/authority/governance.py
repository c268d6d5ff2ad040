"""Rights around hiring, configuration and approvals.

Hiring is a permission that the CEO has by default; only the board and the CEO edit permissions, so
that no agent widens its own. Approvals are decided by people, and by agents above the requester
that have that capability from the board. No agent decides its own requests, nor any about secrets,
the whole machine, levels, or a gain of an agent with the level `boss`.
"""

from collections.abc import Sequence

from remit.authority.capability import condition, holding
from remit.authority.facts import Facts
from remit.model.organisation.decision import Decision, Effect, allow, deny
from remit.model.organisation.grant import Grant, Level

GOVERNING = frozenset(
    {
        "agent.create",
        "agent.permit",
        "level.change",
        "config.read",
        "config.change",
        "config.propose",
        "approval.request",
        "approval.read",
        "approval.comment",
        "approval.decide",
        "approval.resubmit",
        "approval.cancel",
    }
)


def decide_governance(action: str, agent: str, held: Sequence[Grant], facts: Facts) -> Decision:
    """Decide on an action of governance by the agent's place and its grants."""
    place, is_ceo, requester = facts.place, facts.is_ceo, facts.requester
    may_hire = _may_hire(held, facts)
    if action == "agent.create":
        return may_hire
    if action == "config.read":
        if is_ceo:
            return allow("ceo", "You lead the company.")
        if may_hire.effect is not Effect.DENY:
            return allow("may_hire", "Agents that may hire see how others are configured.")
        return deny("no_configurations", "Configurations are for those who may hire.")
    if action == "agent.permit":
        if is_ceo and (not place or place[0] != agent):
            return allow("ceo", "You lead the company.")
        sentence = (
            "Nobody changes their own permissions."
            if is_ceo
            else "Permissions are edited by the board and the CEO."
        )
        return deny("not_ceo" if not is_ceo else "own_permissions", sentence)
    if action == "level.change":
        return deny("board_only", "The board gives levels.")
    if action == "config.change":
        return deny("board_only", "The board changes configurations; others propose.")
    if action == "config.propose":
        if agent in place[1:]:
            return allow("ancestor", "It works below you.")
        return deny("not_below_you", "You propose configurations for who works below you.")
    if action == "approval.decide":
        return _may_decide(agent, held, facts)
    if action == "approval.resubmit":
        if requester == agent:
            return allow("requester", "You asked for it.")
        return deny(
            "not_yours", "Only who asked for it submits it again.", conceal=agent not in place
        )
    # Request, view, comment and withdraw: for the agents concerned, and those above them.
    if agent not in place:
        return deny("not_concerned", "It concerns others.", conceal=True)
    if action == "approval.cancel" and requester is None:
        return deny("not_yours", "A person asked for it, and withdraws it.")
    return allow("concerned", "It concerns you, or somebody below you.")


def _may_hire(held: Sequence[Grant], facts: Facts) -> Decision:
    by_rule = _may_hire_by_rule(facts)
    if not held:
        return by_rule
    granted = holding(held, Level.USE, facts.now)
    if granted.reason == "denied_by_grant":
        return granted
    if facts.can_create_agents is False:
        return by_rule
    if facts.can_create_agents or facts.is_ceo:
        return condition(held, Level.USE, facts.now) or by_rule
    return by_rule if granted.effect is Effect.DENY else granted


def _may_hire_by_rule(facts: Facts) -> Decision:
    """Decide on hiring by permission, role and delegation, without grants."""
    permission = facts.can_create_agents
    if permission or (permission is None and facts.is_ceo):
        return allow("permission" if permission else "ceo", "You are permitted to create agents.")
    if permission is None and facts.for_delegation:
        return allow("delegation", "You may have help with what you hand over.")
    return deny("may_not_hire", "You are not permitted to create agents.")


def _may_decide(agent: str, held: Sequence[Grant], facts: Facts) -> Decision:
    place, requester = facts.place, facts.requester
    if requester == agent:
        return deny("own_request", "Nobody decides about what they asked for.")
    if agent not in place:
        return deny("not_concerned", "It concerns others.", conceal=True)
    if facts.for_people:
        return deny("people_decide", "Only people decide this.")
    granted = holding(held, Level.USE, facts.now)
    if granted.reason == "denied_by_grant":
        return granted
    # No agent is above a person, so a person's request is for the board.
    if requester is not None and agent in place[1:] and granted.effect is Effect.ALLOW:
        return granted
    return deny("board_decides", "The board decides this.")
