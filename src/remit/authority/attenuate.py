"""Passing rights on: a grant by an agent is never wider than what the agent holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from remit.authority.capability import holding, strongest
from remit.clock import Micros
from remit.model.decision import Decision, Effect
from remit.model.grant import Grant, Level, Mode


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody wants to pass on."""

    level: Level
    #: None asks for as long as the source lasts.
    expires_at: Micros | None = None


@dataclass(frozen=True, slots=True)
class Attenuation:
    decision: Decision
    #: Present exactly when the decision allows: what the new grant rests on, and its bounds.
    parent: Grant | None = None
    mode: Mode = Mode.ALLOW
    expires_at: Micros | None = None


def attenuate(held: Iterable[Grant], wish: Wish, now: Micros) -> Attenuation:
    """Find the held grant that can carry the wish, and what of it may be passed on."""
    held = tuple(held)
    verdict = holding(held, wish.level, now)
    if verdict.effect is Effect.DENY:
        return Attenuation(
            Decision(
                Effect.DENY,
                "not_held" if verdict.reason == "no_capability" else verdict.reason,
                f"You cannot pass on {wish.level.word}: {_lower(verdict.sentence)}",
                verdict.basis,
            )
        )
    mode = Mode.ALLOW if verdict.effect is Effect.ALLOW else Mode.ASK
    sources = [
        grant
        for grant in held
        if grant.live(now)
        and grant.level >= wish.level
        and (grant.mode is Mode.ALLOW or (mode is Mode.ASK and grant.mode is Mode.ASK))
    ]
    lasting = [grant for grant in sources if _outlasts(grant.expires_at, wish.expires_at)]
    parent = strongest(lasting or sources)  # there is one, or holding() had said no
    if wish.expires_at is not None and not lasting:
        return Attenuation(
            Decision(
                Effect.DENY,
                "outlives_source",
                "The grant would outlive the capability it comes from.",
                f"grant:{parent.id}",
            )
        )
    if wish.expires_at is not None and wish.expires_at <= now:
        return Attenuation(
            Decision(Effect.DENY, "already_expired", "The expiry lies in the past.", "rule:expiry")
        )
    expires_at = wish.expires_at if wish.expires_at is not None else parent.expires_at
    return Attenuation(
        Decision(Effect.ALLOW, "held", "You hold what you pass on.", f"grant:{parent.id}"),
        parent,
        mode,
        expires_at,
    )


def covers(held: Sequence[Grant], grant: Grant, now: Micros) -> bool:
    """Whether somebody holding `held` could give `grant` as it stands."""
    if grant.mode is Mode.DENY:
        return True  # a prohibition gives nothing, so it exceeds nothing
    verdict = holding(held, grant.level, now)
    if verdict.effect is Effect.DENY:
        return False
    return verdict.effect is Effect.ALLOW or grant.mode is Mode.ASK


def excessive(held: Iterable[Grant], given: Iterable[Grant], now: Micros) -> list[Grant]:
    """Of what a holder gave on this resource, that which it could not give any more."""
    held = tuple(held)
    return [grant for grant in given if grant.live(now) and not covers(held, grant, now)]


def _outlasts(source: Micros | None, wanted: Micros | None) -> bool:
    return source is None or (wanted is not None and wanted <= source)


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
