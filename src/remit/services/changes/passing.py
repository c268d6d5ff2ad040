"""Mail to an author that all checks passed: at most once for each head.

A mail starts a run, so none is sent where it would change nothing: where these commits are decided
already, or the outcome waits for an answer, which starts its author anyway. The evidence of the
merge names the checks in any case.
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
    """Tell the author, after a check passed, if all checks have and this head was not told of
    yet."""
    seen = json.loads(change.request_seen or "{}")
    if seen.get(_KEY) == change.head_commit or _is_seen_to(ctx, change):
        return
    own = checks.of_change(ctx, change)
    there = [check for check in seen.get("checks", ()) if check.get("commit") == change.head_commit]
    if not there and changes.repo_of(ctx, change).forge is not None:
        return  # the forge's checks have not begun, or it has none
    good = [check.result is CheckResult.PASSED for check in own]
    good += [check["state"] == CheckState.PASSED for check in there]
    if not good or not all(good):
        return
    told = json.dumps({**seen, _KEY: change.head_commit})
    ctx.tx.run(forge_statements.SET_SEEN, change=change.id, new_request_seen=told)
    names = [f"{check.name} (kb_file:{check.evidence_id})" for check in own]
    names += [f"{check['name']} (at the forge)" for check in there]
    authors.tell(
        ctx,
        change,
        f"All checks passed: {change.title}",
        f"On {change.head_commit[:12]}: {', '.join(names)}. Nobody has decided about it yet: ask "
        "somebody who may merge it, unless you did. There is nothing else to do.",
        [check.evidence_id for check in own if check.evidence_id is not None],
    )


def _is_seen_to(ctx: Context, change: Change) -> bool:
    if change.status is not ChangeStatus.OPEN or change.is_decided:
        return True
    errands = ctx.tx.all(statements.UNFINISHED_OF, change=change.id)
    if any(errand.kind is Errand.MERGE for errand in errands):
        return True
    return change.outcome_id is not None and bool(waits.of_outcome(ctx, change.outcome_id))
