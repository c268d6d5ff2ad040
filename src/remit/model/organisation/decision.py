"""Decisions of authority: effect, reason, and the grant or rule they rest on."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from remit.errors import Refused

Effect = StrEnum("Effect", "ALLOW DENY ASK")


#: Reasons of missing rights, which statistics of calls distinguish from mistakes.
REFUSALS = frozenset(
    {
        *("refused", "stopped", "rejected", "no_full_access", "no_capability", "denied_by_grant"),
        *("agent_inactive", "agents_only", "board_decides", "board_only", "people_decide"),
        *("delegated_away", "not_delegated", "own_mandate", "skip_level", "read_only"),
        *("yours_to_judge", "kept_by_remit", "may_not_hire", "no_configurations", "not_ceo"),
        *("not_a_member", "not_asked", "not_below_you", "not_bound", "not_concerned"),
        *("not_in_reach", "not_operator", "not_your_grant", "not_your_log", "not_your_report"),
        "not_yours",
        *("observer", "outside_scope", "own_permissions", "own_request", "not_held"),
        *("paused_by_person", "stopped_by_person", "stopped_from_above", "outlives_source"),
        *("altered", "outside_limits", "executed_by_forge", "configures_programs"),
        *("own_change", "not_author"),
    }
)


@dataclass(frozen=True, slots=True)
class Decision:
    effect: Effect
    #: Stable; programs may branch on it.
    reason: str
    sentence: str
    #: `grant:<id>` or `rule:<name>`.
    basis: str
    #: Whether the resource's existence is hidden from the caller.
    conceal: bool = False

    @property
    def allowed(self) -> bool:
        return self.effect is Effect.ALLOW

    def refusal(self, next_step: str | None = None, **details: Any) -> Refused:
        """Make the error for the caller; all refusals of authority are made here."""
        facts = {**details, "decision": self.as_dict()}
        return Refused(self.sentence, next_step, code=self.reason, details=facts)

    def enforce(self, next_step: str | None = None) -> None:
        """Raise the refusal unless the decision allows."""
        if not self.allowed:
            raise self.refusal(next_step)

    def as_dict(self) -> dict[str, Any]:
        return {
            "effect": self.effect.value,
            "reason": self.reason,
            "sentence": self.sentence,
            "basis": self.basis,
        }


def allow(reason: str, sentence: str, basis: str | None = None) -> Decision:
    return Decision(Effect.ALLOW, reason, sentence, basis or f"rule:{reason}")


def deny(
    reason: str, sentence: str, basis: str | None = None, *, conceal: bool = False
) -> Decision:
    return Decision(Effect.DENY, reason, sentence, basis or f"rule:{reason}", conceal)


#: The decision for Remit's own actions.
BY_REMIT = allow("system", "Remit does this by itself.")
