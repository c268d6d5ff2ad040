"""What authority answers: yes or no, why, and on what it rests."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Effect(StrEnum):
    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"


@dataclass(frozen=True, slots=True)
class Decision:
    effect: Effect
    #: Stable; programs may branch on it.
    reason: str
    sentence: str
    #: `grant:<id>` or `rule:<name>`.
    basis: str
    #: The caller must not even learn that the thing exists.
    conceal: bool = False

    @property
    def allowed(self) -> bool:
        return self.effect is Effect.ALLOW

    def as_dict(self) -> dict[str, Any]:
        return {
            "effect": self.effect.value,
            "reason": self.reason,
            "sentence": self.sentence,
            "basis": self.basis,
        }
