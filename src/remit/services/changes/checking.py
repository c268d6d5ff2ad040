"""Execution of checks: leased, retried after a crash, with one result each.

A result is evidence that belongs to the author of the change. A failure is mailed to the author
with the tail of its output, and wakes the owner of the outcome; success is told once.
"""

import json
from collections.abc import Sequence

from remit.authority import Action
from remit.clock import MINUTE, Micros
from remit.errors import Conflict
from remit.model.connections import check as model
from remit.model.connections.change import Change, ChangeStatus
from remit.model.connections.check import ChangeCheck, CheckResult
from remit.model.connections.folder import FolderKind
from remit.model.connections.forge import CheckState
from remit.services import shapes
from remit.services.changes import changes, checks, errands
from remit.services.command import FOR_REMIT, Context, command, logged, query
from remit.services.fields import ChangeRef
from remit.services.queues import Deliveries, Held
from remit.services.redaction import program_text
from remit.services.surfaces import AsCommand, AsRoute, AsTool
from remit.services.work import waits
from remit.store.connections import checks as statements
from remit.store.connections import folders as folder_statements
from remit.store.connections import forges as forge_statements

#: Renewed while the check runs.
LEASE: Micros = MINUTE
#: Longest tail of the output in a mail, in characters.
_IN_LETTER = 4000
_QUEUE = Deliveries(
    statements.CHECKS,
    delivered="check.end",
    failed="check.fail",
    about=lambda check: {
        "change": check.change_id,
        "check": check.name,
        "head": check.head_commit,
        "attempt": check.attempt,
    },
)


@query(
    "changes.checks",
    AsTool(
        "repo_checks",
        "Results of checks, run on the author's code.",
        answer="checks",
        offer="changes",
    ),
)
def of(ctx: Context, *, change: ChangeRef) -> list[shapes.ChangeCheckShape]:
    """Checks of a change as it is proposed now, with their results."""
    change_row = changes.required(ctx, change, Action.CHANGE_READ)
    own = [checks.view(check) for check in checks.of_change(ctx, change_row)]
    return [*own, *checks.at_forge(change_row)]


@command(
    "changes.check",
    AsRoute("POST /changes/{id}/checks", "check_change", 202),
    AsCommand("change check", said="Its checks are run again."),
)
def again(ctx: Context, *, change: ChangeRef) -> shapes.ChangeDetailShape:
    """Run the checks of its repository on a change again, as they are now."""
    change_row = changes.required(ctx, change, Action.CHANGE_COMMENT)
    if change_row.status is not ChangeStatus.OPEN:
        raise Conflict(f"The change is {change_row.status.value}.", "Only what is open is checked.")
    errands.refuse_merging(ctx, change_row)
    new_checks = checks.begin(ctx, change_row, changes.repo_of(ctx, change_row))
    if not new_checks:
        raise Conflict(
            "Its repository has no checks.", "Name one: `remit repo check REPO NAME COMMAND`."
        )
    about = {"head": change_row.head_commit, "checks": [check.name for check in new_checks]}
    ctx.record("change.check", f"change:{change_row.id}", about)
    return changes.detail(ctx, change_row)


# ── for the worker that runs them ───────────────────────────────────────────────────────────────

ready = _QUEUE.readies("checks", statements.READY, "repo_id")
next_due, expired, under_way = _QUEUE.looks("checks")


def _brief(ctx: Context, check: ChangeCheck) -> shapes.ClaimedCheckShape:
    change = changes.existing(ctx, check.change_id)
    owner = {"company": change.company_id, "agent": change.agent_id}
    shown = ctx.tx.all(folder_statements.FOLDERS_OF, **owner)
    return {
        "epoch": check.epoch,
        "check": check.id,
        "wanted": model.read_one(json.loads(check.details)),
        "change": change,
        **changes.source(ctx, change),
        "tools": [folder for folder in shown if folder.kind is FolderKind.TOOLS],
    }


claim = _QUEUE.claims("checks", LEASE, _brief)


@logged("checks.renew", FOR_REMIT)
def renew(ctx: Context, *, held: Sequence[Held], lease: Micros = LEASE) -> list[Held]:
    """Renew these leases; returns those that are lost or whose checks are not wanted any more."""
    return _QUEUE.renew(ctx, held, lease)


@command("checks.delivered", FOR_REMIT)
def delivered(
    ctx: Context,
    *,
    check: str,
    epoch: int,
    code: int | None,
    log: str,
    cut: bool = False,
    why: str | None = None,
) -> shapes.EndedShape:
    """Record the result of a check. `code` is its exit code, or None if it was ended, for the
    reason in `why` or else because its time was over; `log` is the tail of its output."""
    check_row = _QUEUE.entered(ctx, check)
    answer = _QUEUE.delivered(ctx, check, epoch)
    change = changes.existing(ctx, check_row.change_id)
    wanted = model.read_one(json.loads(check_row.details))
    result = CheckResult.PASSED if code == 0 else CheckResult.FAILED
    how = why or f"took longer than {wanted.seconds} seconds"
    if code is not None:
        how = f"ended with {code}"
    # Colour codes could split a secret and hide it from redaction.
    log = program_text.without(model.printed(log))[-model.LONGEST_LOG :]
    evidence = changes.evidence(
        ctx,
        change,
        f"Check {check_row.name} {result.value}: {change.title}",
        _EVIDENCE.format(
            name=check_row.name,
            result=result.value,
            title=change.title,
            how=how,
            repo=changes.repo_of(ctx, change).name,
            change=change.id,
            head=check_row.head_commit,
            base=check_row.base_commit,
            log=_quoted(log),
            command=wanted.command,
            protected=", ".join(wanted.protected) or "none",
            network="yes" if wanted.network else "no",
            cut=" (the end of it)" if cut or len(log) >= model.LONGEST_LOG else "",
        ),
    )
    came = {"new_result": result.value, "new_log": log, "new_evidence_id": evidence.id}
    ctx.tx.run(statements.RESULT, check=check, epoch=epoch, **came)
    about = {"check": check_row.name, "result": result.value, "head": check_row.head_commit}
    ctx.record("change.checked", f"change:{change.id}", {**about, "evidence": evidence.id})
    if result is CheckResult.FAILED:
        kept = ", ".join(wanted.protected) or "nothing"
        changes.tell(
            ctx,
            change,
            f"Check {check_row.name} failed: {change.title}",
            f"`{wanted.command}` {how} on {check_row.head_commit[:12]}. It printed at last:\n\n"
            f"{_quoted(log[-_IN_LETTER:])}\n\nMend it on the same branch and propose that again. "
            f"Files that match {kept} were taken from the base.",
            [evidence.id],
        )
    else:
        tell_passed(ctx, change)
    return answer


_EVIDENCE = """# {name} {result}: {title}

Run by Remit on the author's code: the command and the protected files are the repository's, \
whatever else ran is the author's.

- result: {result}, it {how}
- command: `{command}`
- repository: {repo}
- change: {change}
- commit: {head}
- from: {base}
- taken from there: {protected}
- network: {network}

Printed{cut}:

{log}
"""


def _quoted(log: str) -> str:
    """Indent a log, so that no line of it is read as Markdown or as Remit's own words."""
    return "\n".join(f"    {line}" for line in (log or "nothing").splitlines())


@command("checks.take_over", FOR_REMIT)
def take_over(ctx: Context, *, check: str, epoch: int, alone: bool = False) -> shapes.EndedShape:
    """Requeue a check whose lease has expired; with `alone` there is no other process."""
    return _QUEUE.take_over(ctx, check, epoch, alone=alone, gave_up=_tell_lost)


put_back = _QUEUE.puts_back("checks", "check.put_back")


def _tell_broken(ctx: Context, check: ChangeCheck, why: str) -> None:
    change = changes.existing(ctx, check.change_id)
    changes.tell(
        ctx,
        change,
        f"Check {check.name} could not be run: {change.title}",
        f"That says nothing about your change: {why}. Proposing it again runs it again.",
    )


def _tell_lost(ctx: Context, check: ChangeCheck, _: str) -> None:
    _tell_broken(ctx, check, "its worker stopped responding in each attempt")


failed = _QUEUE.fails("checks", gave_up=_tell_broken)


# ── success ─────────────────────────────────────────────────────────────────────────────────────

_KEY = "passed"


def tell_passed(ctx: Context, change: Change) -> None:
    """Tell the author that all checks passed, at most once for each head.

    A mail starts a run, so none is sent where it would change nothing: where these commits are
    decided already, or the outcome waits for an answer, which starts its author anyway. The
    evidence of the merge names the checks in any case.
    """
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
    changes.tell(
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
    if errands.is_merging(ctx, change):
        return True
    return change.outcome_id is not None and bool(waits.of_outcome(ctx, change.outcome_id))
