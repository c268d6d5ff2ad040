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
    OUTCOME,
    decide_file,
    decide_outcome,
    require_file,
    require_outcome,
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
    found = lookup.find(ctx, OUTCOME, outcome)
    require_outcome(ctx, Action.OUTCOME_READ, found)

    def may(action: Action) -> bool:
        return decide_outcome(ctx, action, found).effect is not Effect.DENY

    is_open = found.status is OutcomeStatus.OPEN
    finish = may(Action.OUTCOME_FINISH)
    handed_in = submissions.handed_in(ctx, found)
    delegate = may(Action.OUTCOME_DELEGATE) and is_open
    delegate = delegate and not found.delegated and not found.perpetual
    reports = ctx.tx.all(agent_statements.REPORTS, agent=found.owner_id) if delegate else []
    able = [one for one in reports if one.status is not AgentStatus.PENDING_APPROVAL]
    return {
        "create": is_open and may(Action.OUTCOME_CREATE),
        "change": is_open and may(Action.OUTCOME_CHANGE),
        "complete": is_open
        and finish
        and not found.perpetual
        and (found.delegated or not found.open_prereqs),
        "submit": is_open
        and found.delegated
        and not found.perpetual
        and not found.open_prereqs
        and handed_in is None
        and may(Action.OUTCOME_SUBMIT),
        "return": handed_in is not None and finish,
        "close": is_open and finish,
        "reopen": not is_open and finish,
        "delegate": delegate,
        "reclaim": is_open
        and found.delegated
        and found.delegator_id is not None
        and may(Action.OUTCOME_RECLAIM),
        "reports": [{"id": one.id, "name": one.name} for one in able[:MOST_REPORTS]],
    }


@query("choices.file")
def file(ctx: Context, *, file: str) -> shapes.FileChoicesShape:
    """Return whether the caller may read and write a file, and see its access log."""
    found = lookup.file(ctx, file)
    require_file(ctx, Action.FILE_SEE, found)

    def may(action: Action) -> bool:
        return decide_file(ctx, action, found).effect is not Effect.DENY

    kept = found.kind in (FileKind.OUTCOME, FileKind.LOG)
    return {
        "read": may(Action.FILE_READ),
        "write": not kept and may(Action.FILE_WRITE),
        "audit": may(Action.FILE_AUDIT),
    }


@query("choices.holders", AsRoute("GET /files/{id}/holders", "list_holders"))
def holders(ctx: Context, *, file: FileRef) -> shapes.HoldersShape:
    """Holders of grants on a file, for those who may read its access log."""
    found = lookup.file(ctx, file)
    require_file(ctx, Action.FILE_AUDIT, found)
    kind = ResourceKind.OUTCOME if found.kind is FileKind.OUTCOME else ResourceKind.KB_FILE
    held = ctx.tx.all(search.HOLDING, kind=kind.value, resource=found.id, limit=MOST_HOLDERS + 1)
    return {
        "home_agent_id": found.home_agent_id,
        "grants": [views.grant(one, grants.reason(one)) for one in held[:MOST_HOLDERS]],
        "more": len(held) > MOST_HOLDERS,
    }
