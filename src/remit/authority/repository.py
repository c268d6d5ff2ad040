"""The rules for changes of a repository: an agent's grants, applied to the files and the target
branch of one change.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from remit.authority.capability import condition, holding
from remit.clock import Micros
from remit.model.connections.file_roles import FileRole, is_guarded, names_guarded, roles
from remit.model.organisation.decision import Decision, Effect, deny
from remit.model.organisation.grant import Grant, Level, Mode
from remit.model.organisation.path_pattern import matches

#: Reasons for which a file is refused to a capability that does not name it.
UNNAMED = frozenset({"executed_by_forge", "configures_programs"})
_NO_FILES = ""


def changing(
    held: Sequence[Grant], need: Level, branch: str, paths: Iterable[str], now: Micros
) -> Decision:
    """Decide about a change of these files that goes into this branch.

    Each file needs a grant that reaches it. A file that a forge executes, or that configures a
    program, is reached only by a grant that names it. One file that is denied denies the change,
    and one that must be asked about asks.
    """
    there = [grant for grant in held if _reaches_branch(grant, branch)]
    verdict: Decision | None = None
    for path in sorted(set(paths)) or [_NO_FILES]:
        decision = holding(
            [_unlimited(grant) for grant in there if _reaches(grant, path)], need, now
        )
        if decision.allowed and is_guarded(path):
            # An approval that the whole repository needs is needed here, too.
            decision = (
                condition([grant for grant in there if grant.paths is None], need, now) or decision
            )
        if decision.effect is Effect.DENY:
            return _about(decision, path, branch, held, need, now)
        if verdict is None or (decision.effect is Effect.ASK and verdict.effect is Effect.ALLOW):
            verdict = decision
    assert verdict is not None
    return verdict


def _about(
    decision: Decision, path: str, branch: str, held: Sequence[Grant], need: Level, now: Micros
) -> Decision:
    """Name the file that is refused, unless the whole change is."""
    if holding(held, need, now).effect is Effect.DENY or path == _NO_FILES:
        return decision
    if decision.reason == "denied_by_grant":
        return deny(decision.reason, f"{path} was denied explicitly.", decision.basis)
    if FileRole.EXECUTED in roles(path):
        return deny(
            "executed_by_forge",
            f"A forge would execute {path}: no capability of yours names it.",
            "rule:executed_by_forge",
        )
    if is_guarded(path):
        return deny(
            "configures_programs",
            f"{path} configures programs that start there: no capability of yours names it.",
            "rule:configures_programs",
        )
    return deny(
        "outside_limits",
        f"No capability of yours gives {need.word} for {path} into {branch}.",
        "rule:outside_limits",
    )


def _reaches_branch(grant: Grant, branch: str) -> bool:
    limits = grant.limited_branches
    return limits is None or any(matches(branch, pattern) for pattern in limits)


def _reaches(grant: Grant, path: str) -> bool:
    limits = grant.limited_paths
    if path == _NO_FILES:
        return True
    if grant.mode is Mode.DENY:
        return limits is None or any(matches(path, pattern) for pattern in limits)
    if is_guarded(path):
        return any(matches(path, pattern) and names_guarded(pattern) for pattern in limits or ())
    return limits is None or any(matches(path, pattern) for pattern in limits)


def _unlimited(grant: Grant) -> Grant:
    """Drop the limits of a grant that was found to reach the file."""
    return replace(grant, paths=None, branches=None) if grant.is_limited else grant
