"""Passing rights on: a grant by an agent is never wider than what the agent holds."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from remit.authority.capability import holding, strongest
from remit.clock import Micros
from remit.model.connections.file_roles import names_guarded
from remit.model.organisation.decision import Decision, Effect, allow, deny
from remit.model.organisation.grant import Grant, Level, Mode
from remit.model.organisation.path_pattern import apart, within


@dataclass(frozen=True, slots=True)
class Wish:
    """A capability to be passed on."""

    level: Level
    #: None asks for as long as the source lasts.
    expires_at: Micros | None = None
    #: Patterns of files and branches of a repository; None asks for as much as the source has.
    paths: tuple[str, ...] | None = None
    branches: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Attenuation:
    decision: Decision
    #: Set exactly when the decision allows: the source of the new grant, and its bounds.
    parent: Grant | None = None
    mode: Mode = Mode.ALLOW
    expires_at: Micros | None = None
    paths: tuple[str, ...] | None = None
    branches: tuple[str, ...] | None = None


def attenuate(held: Iterable[Grant], wish: Wish, now: Micros) -> Attenuation:
    """Find the held grant that can be the source of the wish, and bound the new grant by it."""
    held = tuple(held)
    verdict = holding(held, wish.level, now)
    if verdict.effect is Effect.DENY:
        return Attenuation(
            deny(
                "not_held" if verdict.reason == "no_capability" else verdict.reason,
                f"You cannot pass on {wish.level.word}: {_lower(verdict.sentence)}",
                verdict.basis,
            )
        )
    restraints = _restraints(held, wish, now)
    if Mode.DENY in restraints:
        return Attenuation(
            deny(
                "outside_limits",
                "Part of what you pass on was denied to you: name files or branches without it.",
                f"grant:{restraints[Mode.DENY].id}",
            )
        )
    asks = verdict.effect is not Effect.ALLOW or Mode.ASK in restraints
    mode = Mode.ASK if asks else Mode.ALLOW
    sources = [
        grant
        for grant in held
        if grant.live(now)
        and grant.level >= wish.level
        and (grant.mode is Mode.ALLOW or (mode is Mode.ASK and grant.mode is Mode.ASK))
        and _lies_within(wish.paths, grant.limited_paths, of_files=True)
        and _lies_within(wish.branches, grant.limited_branches)
    ]
    if not sources:
        return Attenuation(
            deny(
                "outside_limits",
                "You cannot pass on files or branches that your own capability does not name.",
                "rule:outside_limits",
            )
        )
    # An unlimited grant is the source, whatever other grants the agent holds.
    sources = [grant for grant in sources if not grant.is_limited] or sources
    lasting = [grant for grant in sources if _outlasts(grant.expires_at, wish.expires_at)]
    parent = strongest(lasting or sources)  # there is one, or holding() had said no
    if wish.expires_at is not None and not lasting:
        return Attenuation(
            deny(
                "outlives_source",
                "The grant would outlive the capability it comes from.",
                f"grant:{parent.id}",
            )
        )
    if wish.expires_at is not None and wish.expires_at <= now:
        return Attenuation(deny("already_expired", "The expiry lies in the past.", "rule:expiry"))
    expires_at = wish.expires_at if wish.expires_at is not None else parent.expires_at
    return Attenuation(
        allow("held", "You hold what you pass on.", f"grant:{parent.id}"),
        parent,
        mode,
        expires_at,
        wish.paths if wish.paths is not None else parent.limited_paths,
        wish.branches if wish.branches is not None else parent.limited_branches,
    )


def _restraints(held: Iterable[Grant], wish: Wish, now: Micros) -> dict[Mode, Grant]:
    """Held grants that deny or ask, limited to some files or branches, except those that are known
    not to overlap the wish."""
    return {
        grant.mode: grant
        for grant in held
        if grant.live(now)
        and grant.mode is not Mode.ALLOW
        and grant.is_limited
        and grant.level <= wish.level
        and not _lies_apart(wish.paths, grant.limited_paths)
        and not _lies_apart(wish.branches, grant.limited_branches)
    }


def _lies_within(
    wanted: tuple[str, ...] | None, source: tuple[str, ...] | None, *, of_files: bool = False
) -> bool:
    """Return whether the patterns lie within those of the source. Guarded files lie within no
    source that does not name them."""
    if wanted is None:
        return True
    if source is None:
        return not (of_files and any(names_guarded(pattern) for pattern in wanted))
    return all(
        any(
            within(pattern, other)
            and not (of_files and names_guarded(pattern) and not names_guarded(other))
            for other in source
        )
        for pattern in wanted
    )


def _lies_apart(wanted: tuple[str, ...] | None, source: tuple[str, ...] | None) -> bool:
    if wanted is None or source is None:
        return False
    return all(apart(pattern, other) for pattern in wanted for other in source)


def covers(held: Sequence[Grant], grant: Grant, now: Micros) -> bool:
    """Return whether a holder of `held` could give `grant` as it stands."""
    if grant.mode is Mode.DENY:
        return True  # a prohibition gives nothing, so it exceeds nothing
    if not grant.is_limited and not any(held_grant.is_limited for held_grant in held):
        verdict = holding(held, grant.level, now)
        return verdict.effect is Effect.ALLOW or (
            verdict.effect is Effect.ASK and grant.mode is Mode.ASK
        )
    wish = Wish(grant.level, None, grant.limited_paths, grant.limited_branches)
    source = attenuate(held, wish, now)
    return (
        source.decision.allowed
        and (source.mode is Mode.ALLOW or grant.mode is Mode.ASK)
        # The grant must fit unnarrowed.
        and (source.paths, source.branches) == (grant.limited_paths, grant.limited_branches)
    )


def excessive(held: Iterable[Grant], grants: Iterable[Grant], now: Micros) -> list[Grant]:
    """Return the live grants that a holder gave on this resource and could not give any more."""
    held = tuple(held)
    return [grant for grant in grants if grant.live(now) and not covers(held, grant, now)]


def _outlasts(source: Micros | None, wanted: Micros | None) -> bool:
    return source is None or (wanted is not None and wanted <= source)


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
