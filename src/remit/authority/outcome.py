"""Rights on outcomes: derived from ownership and delegation, not stored row by row.

Delegation moves responsibility. The delegator keeps the verdict on that very outcome and sees
everything below it, but does not change it; the receiver works below it and does not judge it.
Explicit grants add to these rules.
"""

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

from remit.authority.capability import condition, holding
from remit.clock import Micros
from remit.model.organisation.decision import Decision, Effect, allow, deny
from remit.model.organisation.grant import Grant, Level


class Relation(StrEnum):
    """The relation of an agent to an outcome; the first that applies."""

    OWNER = "owner"
    #: Delegated it, and judges it.
    DELEGATOR = "delegator"
    #: Above its owner; judges it because its delegator did not.
    JUDGE = "judge"
    #: The direct boss of its owner.
    BOSS = "boss"
    #: Further above its owner.
    ABOVE = "above"
    #: It is an ancestor of an outcome that was delegated to the agent.
    REASON = "reason"
    NONE = "none"


_SEES = {
    Relation.OWNER: "It is your outcome.",
    Relation.DELEGATOR: "You delegated it.",
    Relation.JUDGE: "It was handed in, and you are to judge it.",
    Relation.BOSS: "Your report owns it.",
    Relation.ABOVE: "Somebody below you owns it.",
    Relation.REASON: "It is a reason for your own work.",
}


def decide_outcome(
    action: str, held: Sequence[Grant], relation: Relation, delegated: bool, now: Micros
) -> Decision:
    """Decide on an action of an agent in this relation to an outcome."""
    need = Level.READ if action == "outcome.read" else Level.WRITE
    granted = holding(held, need, now)
    known = relation is not Relation.NONE or (
        holding(held, Level.READ, now).effect is not Effect.DENY
    )
    if granted.reason == "denied_by_grant":
        return replace(granted, conceal=not known)
    if relation is Relation.OWNER and delegated and action in _JUDGING:
        # Before any grant: no agent judges its own mandate.
        return deny("own_mandate", _JUDGING[action])
    if relation is Relation.OWNER and not delegated and action == "outcome.submit":
        return deny("yours_to_judge", "Nobody delegated it to you, so you judge it yourself.")
    by_rule = _by_rule(action, relation)
    if by_rule.allowed:
        # An explicit grant precedes a rule of the tree.
        return condition(held, need, now) or by_rule
    if granted.effect is not Effect.DENY and action not in _ONLY_BY_RULE:
        return granted
    if by_rule.conceal and known:
        return deny("read_only", "You may read it, and no more.")
    return by_rule


#: Rights that come with responsibility, and not with a grant.
_ONLY_BY_RULE = frozenset(
    {"outcome.create", "outcome.submit", "outcome.delegate", "outcome.reclaim"}
)

_JUDGING = {
    "outcome.change": "You may read your mandate; whoever delegated it changes it.",
    "outcome.finish": "You cannot judge your own mandate; hand it in with outcome_submit.",
    "outcome.delegate": "You cannot hand on your own mandate; delegate what is below it.",
}


def _by_rule(action: str, relation: Relation) -> Decision:
    if action == "outcome.read":
        if relation in _SEES:
            return allow(relation.value, _SEES[relation])
        return _hidden()
    if relation is Relation.NONE:
        return _hidden()
    if relation is Relation.OWNER:
        if action == "outcome.reclaim":
            return deny("not_delegated", "It is yours; there is nothing to reclaim.")
        return allow("owner", "It is your outcome.")
    if relation is Relation.DELEGATOR:
        if action in ("outcome.change", "outcome.finish", "outcome.reclaim"):
            return allow("delegator", "You delegated it.")
        return deny("delegated_away", "You handed it over; its owner works inside it.")
    if relation is Relation.JUDGE and action == "outcome.finish":
        return allow("judge", _SEES[relation])
    if relation in (Relation.JUDGE, Relation.BOSS):
        return deny("delegated_away", "It lies inside what you delegated; its owner works on it.")
    if relation is Relation.ABOVE:
        return deny("skip_level", "It lies with a report of your report; talk to your own report.")
    return deny("read_only", "You see it as a reason for your work, and do not change it.")


def _hidden() -> Decision:
    return deny("no_relation", "You have nothing to do with it.", conceal=True)
