"""Rights around hiring, configuration and approvals.

Hiring is a permission that the CEO has by default; editing permissions is for the board and the
CEO alone, so nobody widens their own. Deciding is for people, and for those agents above the
requester to whom the board gave that capability; nobody decides about what they asked for, and no
agent about secrets, the whole machine, levels, or what an agent with the level `boss` gains by.
"""

from __future__ import annotations

from collections.abc import Sequence

from remit.authority.capability import condition, holding
from remit.clock import Micros
from remit.ids import AgentId
from remit.model.decision import Decision, Effect
from remit.model.grant import Grant, Level

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


def decide_governance(
    action: str,
    agent: str,
    place: Sequence[AgentId],
    held: Sequence[Grant],
    now: Micros,
    *,
    is_ceo: bool,
    can_create_agents: bool | None,
    for_delegation: bool,
    requester: AgentId | None,
    for_people: bool,
) -> Decision:
    """May this agent, given where the matter lies in the tree and what it holds?"""
    may_hire = _may_hire(held, now, is_ceo=is_ceo, said=can_create_agents, asked=for_delegation)
    if action == "agent.create":
        return may_hire
    if action == "config.read":
        if is_ceo:
            return _allow("ceo", "You lead the company.")
        if may_hire.effect is not Effect.DENY:
            return _allow("may_hire", "Whoever may hire sees how others are configured.")
        return _deny("no_configurations", "Configurations are for those who may hire.")
    if action == "agent.permit":
        if is_ceo and (not place or place[0] != agent):
            return _allow("ceo", "You lead the company.")
        sentence = (
            "Nobody changes their own permissions."
            if is_ceo
            else "Permissions are edited by the board and the CEO."
        )
        return _deny("not_ceo" if not is_ceo else "own_permissions", sentence)
    if action == "level.change":
        return _deny("board_only", "The board gives levels.")
    if action == "config.change":
        return _deny("board_only", "The board changes configurations; others propose.")
    if action == "config.propose":
        if agent in place[1:]:
            return _allow("ancestor", "It works below you.")
        return _deny("not_below_you", "You propose configurations for who works below you.")
    if action == "approval.decide":
        return _may_decide(agent, place, held, now, requester, for_people=for_people)
    if action == "approval.resubmit":
        if requester == agent:
            return _allow("requester", "You asked for it.")
        return _deny(
            "not_yours", "Only who asked for it submits it again.", conceal=agent not in place
        )
    # To ask, to look, to comment, to withdraw: whoever it concerns, and those above.
    if agent not in place:
        return _deny("not_concerned", "It concerns others.", conceal=True)
    if action == "approval.cancel" and requester is None:
        return _deny("not_yours", "A person asked for it, and withdraws it.")
    return _allow("concerned", "It concerns you, or somebody below you.")


def _may_hire(
    held: Sequence[Grant], now: Micros, *, is_ceo: bool, said: bool | None, asked: bool
) -> Decision:
    granted = holding(held, Level.USE, now)
    if granted.reason == "denied_by_grant":
        return granted
    if said is False:
        return _deny("may_not_hire", "You are not permitted to create agents.")
    if said or is_ceo:
        by_rule = _allow("permission" if said else "ceo", "You are permitted to create agents.")
        return condition(held, Level.USE, now) or by_rule
    if granted.effect is not Effect.DENY:
        return granted
    if asked:
        return _allow("delegation", "You may have help with what you hand over.")
    return _deny("may_not_hire", "You are not permitted to create agents.")


def _may_decide(
    agent: str,
    place: Sequence[AgentId],
    held: Sequence[Grant],
    now: Micros,
    requester: AgentId | None,
    *,
    for_people: bool,
) -> Decision:
    if requester == agent:
        return _deny("own_request", "Nobody decides about what they asked for.")
    if agent not in place:
        return _deny("not_concerned", "It concerns others.", conceal=True)
    if for_people:
        return _deny("people_decide", "Only people decide this.")
    granted = holding(held, Level.USE, now)
    if granted.reason == "denied_by_grant":
        return granted
    # No agent is above a person, so what a person asked for is for the board.
    if requester is not None and agent in place[1:] and granted.effect is Effect.ALLOW:
        return granted
    return _deny("board_decides", "The board decides this.")


def _allow(reason: str, sentence: str) -> Decision:
    return Decision(Effect.ALLOW, reason, sentence, f"rule:{reason}")


def _deny(reason: str, sentence: str, *, conceal: bool = False) -> Decision:
    return Decision(Effect.DENY, reason, sentence, f"rule:{reason}", conceal)
