"""Allowed actions of the caller, so that pages offer none that would be refused.

Decisions are taken here but not recorded; the verbs decide again when they are called.
"""

from remit.authority import Action
from remit.model.organisation.agent import AgentStatus
from remit.model.organisation.decision import Effect
from remit.model.organisation.grant import ResourceKind
from remit.model.work.file import FileKind
from remit.model.work.outcome import OutcomeStatus
from remit.services import lookup, shapes, views
from remit.services.command import Context, query
from remit.services.fields import FileRef, OutcomeRef
from remit.services.rights import grants
from remit.services.subjects import (
    decide_file,
    decide_outcome,
    require_file,
    require_named_outcome,
)
from remit.services.surfaces import AsRoute
from remit.services.work import submissions
from remit.store.organisation import agents as agent_statements
from remit.store.record import search

MOST_REPORTS = 200
MOST_HOLDERS = 100


@query("choices.outcome", AsRoute("GET /outcomes/{id}/choices", "list_choices"))
def outcome(ctx: Context, *, outcome: OutcomeRef) -> shapes.OutcomeChoicesShape:
    """With an outcome: each verb that would be carried out, and to whom it could be handed."""
    outcome_row = require_named_outcome(ctx, Action.OUTCOME_READ, outcome)

    def may(action: Action) -> bool:
        return decide_outcome(ctx, action, outcome_row).effect is not Effect.DENY

    is_open = outcome_row.status is OutcomeStatus.OPEN
    finish = may(Action.OUTCOME_FINISH)
    handed_in = submissions.handed_in(ctx, outcome_row)
    delegate = may(Action.OUTCOME_DELEGATE) and is_open
    delegate = delegate and not outcome_row.delegated and not outcome_row.perpetual
    reports = ctx.tx.all(agent_statements.REPORTS, agent=outcome_row.owner_id) if delegate else []
    able = [report for report in reports if report.status is not AgentStatus.PENDING_APPROVAL]
    return {
        "create": is_open and may(Action.OUTCOME_CREATE),
        "change": is_open and may(Action.OUTCOME_CHANGE),
        "complete": is_open
        and finish
        and not outcome_row.perpetual
        and (outcome_row.delegated or not outcome_row.open_prereqs),
        "submit": is_open
        and outcome_row.delegated
        and not outcome_row.perpetual
        and not outcome_row.open_prereqs
        and handed_in is None
        and may(Action.OUTCOME_SUBMIT),
        "return": handed_in is not None and finish,
        "close": is_open and finish,
        "reopen": not is_open and finish,
        "delegate": delegate,
        "reclaim": is_open
        and outcome_row.delegated
        and outcome_row.delegator_id is not None
        and may(Action.OUTCOME_RECLAIM),
        "reports": [{"id": report.id, "name": report.name} for report in able[:MOST_REPORTS]],
    }


@query("choices.file")
def file(ctx: Context, *, file: str) -> shapes.FileChoicesShape:
    """Return whether the caller may read and write a file, and see its access log."""
    file_row = lookup.file(ctx, file)
    require_file(ctx, Action.FILE_SEE, file_row)

    def may(action: Action) -> bool:
        return decide_file(ctx, action, file_row).effect is not Effect.DENY

    kept = file_row.kind in (FileKind.OUTCOME, FileKind.LOG)
    return {
        "read": may(Action.FILE_READ),
        "write": not kept and may(Action.FILE_WRITE),
        "audit": may(Action.FILE_AUDIT),
    }


@query("choices.holders", AsRoute("GET /files/{id}/holders", "list_holders"))
def holders(ctx: Context, *, file: FileRef) -> shapes.HoldersShape:
    """Holders of grants on a file, for those who may read its access log."""
    file_row = lookup.file(ctx, file)
    require_file(ctx, Action.FILE_AUDIT, file_row)
    kind = ResourceKind.OUTCOME if file_row.kind is FileKind.OUTCOME else ResourceKind.KB_FILE
    held = ctx.tx.all(search.HOLDING, kind=kind.value, resource=file_row.id, limit=MOST_HOLDERS + 1)
    return {
        "home_agent_id": file_row.home_agent_id,
        "grants": [views.grant(grant, grants.reason(grant)) for grant in held[:MOST_HOLDERS]],
        "more": len(held) > MOST_HOLDERS,
    }
