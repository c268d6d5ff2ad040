"""What an agent's grants on one resource add up to."""

from __future__ import annotations

from collections.abc import Iterable

from remit.clock import Micros
from remit.model.decision import Decision, Effect
from remit.model.grant import Grant, Level, Mode

_FOREVER = 1 << 62


def holding(held: Iterable[Grant], need: Level, now: Micros) -> Decision:
    """Decide whether these grants, all of one holder on one resource, give `need`.

    A right must first be conferred, by an `allow` or an `ask` of at least that level. Then it can
    be taken away: a `deny` of this level or a lower one forbids it, and an `ask` of this level or
    a lower one puts a person in between. So deny beats ask, and ask beats allow.
    """
    live = [grant for grant in held if grant.live(now)]
    denied = strongest(grant for grant in live if grant.mode is Mode.DENY and grant.level <= need)
    if denied:
        return Decision(
            Effect.DENY, "denied_by_grant", "This was denied explicitly.", f"grant:{denied.id}"
        )
    conferred = strongest(
        grant for grant in live if grant.mode is Mode.ALLOW and grant.level >= need
    )
    asked = strongest(grant for grant in live if grant.mode is Mode.ASK and grant.level >= need)
    if conferred is None and asked is None:
        return Decision(
            Effect.DENY,
            "no_capability",
            f"You hold no capability that gives {need.word} here.",
            "rule:nothing_matches",
        )
    if conferred is None:
        assert asked is not None
        return _ask(asked)
    return condition(live, need, now) or Decision(
        Effect.ALLOW, "granted", f"A grant gives {conferred.level.word}.", f"grant:{conferred.id}"
    )


def condition(held: Iterable[Grant], need: Level, now: Micros) -> Decision | None:
    """The approval that these grants put before `need`, wherever the right itself comes from."""
    gate = strongest(
        grant
        for grant in held
        if grant.live(now) and grant.mode is Mode.ASK and grant.level <= need
    )
    return None if gate is None else _ask(gate)


def _ask(gate: Grant) -> Decision:
    return Decision(
        Effect.ASK,
        "needs_approval",
        "Each use of this capability needs a person's approval.",
        f"grant:{gate.id}",
    )


def strongest(grants: Iterable[Grant]) -> Grant | None:
    """The grant to rest on: the most generous, then the longest-lived, then the oldest."""
    return max(grants, key=_strength, default=None)


def _strength(grant: Grant) -> tuple[bool, int, bool, int, str]:
    return (
        grant.mode is Mode.ALLOW,
        grant.level,
        grant.scope_id is None,
        _FOREVER if grant.expires_at is None else grant.expires_at,
        grant.id,
    )
