"""Telling an author that all checks passed: at most once for each head.

A letter starts a run, so there is none where it would change nothing: somebody decided about these
commits already, or what the change is for waits for an answer, which starts its author anyway. The
evidence of the merge names the checks in any case.
"""

import json

from remit.model.connections.change import Change, ChangeStatus, Errand
from remit.model.connections.check import CheckResult
from remit.model.connections.forge import CheckState
from remit.services.changes import authors, changes, checks
from remit.services.command import Context
from remit.services.work import waits
from remit.store.connections import changes as statements
from remit.store.connections import forges as forge_statements

_KEY = "passed"


def tell(ctx: Context, change: Change) -> None:
    """A check of it passed: its author hears of it if that was the last one, and hears it once."""
    seen = json.loads(change.request_seen or "{}")
    if seen.get(_KEY) == change.head_commit or _is_seen_to(ctx, change):
        return
    own = checks.of_change(ctx, change)
    there = [one for one in seen.get("checks", ()) if one.get("commit") == change.head_commit]
    if not there and changes.repo_of(ctx, change).forge is not None:
        return  # those of the forge have not begun, or there are none
    good = [one.result is CheckResult.PASSED for one in own]
    good += [one["state"] == CheckState.PASSED for one in there]
    if not good or not all(good):
        return
    told = json.dumps({**seen, _KEY: change.head_commit})
    ctx.tx.run(forge_statements.SET_SEEN, change=change.id, new_request_seen=told)
    names = [f"{one.name} (kb_file:{one.evidence_id})" for one in own]
    names += [f"{one['name']} (at the forge)" for one in there]
    authors.tell(
        ctx,
        change,
        f"All checks passed: {change.title}",
        f"On {change.head_commit[:12]}: {', '.join(names)}. Nobody has decided about it yet: ask "
        "somebody who may merge it, unless you did. There is nothing else to do.",
        [one.evidence_id for one in own if one.evidence_id is not None],
    )


def _is_seen_to(ctx: Context, change: Change) -> bool:
    if change.status is not ChangeStatus.OPEN or change.is_decided:
        return True
    errands = ctx.tx.all(statements.UNFINISHED_OF, change=change.id)
    if any(one.kind is Errand.MERGE for one in errands):
        return True
    return change.outcome_id is not None and bool(waits.of_outcome(ctx, change.outcome_id))
