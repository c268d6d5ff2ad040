"""Combination of an agent's grants on one resource."""

from collections.abc import Iterable, Sequence

from remit.clock import Micros
from remit.model.organisation.decision import Decision, Effect, allow, deny
from remit.model.organisation.grant import Grant, Level, Mode

_FOREVER = 1 << 62


def holding(held: Sequence[Grant], need: Level, now: Micros) -> Decision:
    """Decide whether these grants, all of one holder on one resource, give `need`.

    A right must first be conferred, by an `allow` or an `ask` of at least that level. Then it can
    be taken away: a `deny` of this level or a lower one forbids it, and an `ask` of this level or
    a lower one puts a person in between. So deny beats ask, and ask beats allow.

    A grant limited to some files or branches confers here, an `ask` with an approval, but takes
    nothing away from what other grants confer: `repository.changing` applies its limits.
    """
    denied: list[Grant] = []
    conferred: list[Grant] = []
    asks: list[Grant] = []
    gates: list[Grant] = []
    for grant in held:
        if not grant.live(now):
            continue
        if grant.mode is Mode.ALLOW:
            if grant.level >= need:
                conferred.append(grant)
        elif grant.mode is Mode.DENY:
            if grant.level <= need and not grant.is_limited:
                denied.append(grant)
        else:
            if grant.level >= need:
                asks.append(grant)
            if grant.level <= need and not grant.is_limited:
                gates.append(grant)
    if denied:
        basis = strongest(denied)
        return deny("denied_by_grant", "This was denied explicitly.", f"grant:{basis.id}")
    if not conferred and not asks:
        return deny(
            "no_capability",
            f"The capability that gave you {need.word} here has expired."
            if any(_has_expired(grant, need, now) for grant in held)
            else f"You hold no capability that gives {need.word} here.",
            "rule:nothing_matches",
        )
    if not conferred:
        return _ask(strongest(asks))
    if gates:
        return _ask(strongest(gates))
    basis = strongest(conferred)
    return allow("granted", f"A grant gives {basis.level.word}.", f"grant:{basis.id}")


def _has_expired(grant: Grant, need: Level, now: Micros) -> bool:
    expired = grant.expires_at is not None and grant.expires_at <= now
    gave = grant.mode is not Mode.DENY and grant.level >= need
    return expired and gave and grant.revoked_at is None


def condition(held: Iterable[Grant], need: Level, now: Micros) -> Decision | None:
    """Return the approval that these grants demand before `need`, whatever the right rests on;
    None if they demand none."""
    gates = [
        grant
        for grant in held
        if grant.mode is Mode.ASK and grant.level <= need and grant.live(now)
    ]
    return _ask(strongest(gates)) if gates else None


def _ask(gate: Grant) -> Decision:
    return Decision(
        Effect.ASK,
        "needs_approval",
        "Each use of this capability needs a person's approval.",
        f"grant:{gate.id}",
    )


def strongest(grants: Sequence[Grant]) -> Grant:
    """Return the grant to rest on: an `allow` before others, then the highest level, then the
    longest-lived, then the newest."""
    return grants[0] if len(grants) == 1 else max(grants, key=_strength)


def _strength(grant: Grant) -> tuple[bool, int, bool, int, str]:
    return (
        grant.mode is Mode.ALLOW,
        grant.level,
        grant.scope_id is None,
        _FOREVER if grant.expires_at is None else grant.expires_at,
        grant.id,
    )
