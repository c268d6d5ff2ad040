"""Approvals: request, read, comment, decide. A decision and its consequences are one commit."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, TypedDict, Unpack

from remit.authority import Action
from remit.clock import Micros, from_iso
from remit.errors import BadInput, Conflict, NotFound
from remit.ids import END_OF_IDS, CommentId, CompanyId
from remit.model.organisation.agent import Agent, AgentStatus
from remit.model.organisation.agent_spec import amount
from remit.model.organisation.approval import (
    ASKED_DIRECTLY,
    LONGEST_COMMENT,
    LONGEST_NOTE,
    OPEN,
    Approval,
    ApprovalStatus,
    ApprovalType,
    Comment,
    Revision,
)
from remit.model.organisation.configuration import RevisionSource, configuration_of
from remit.model.organisation.principal import ActorKind
from remit.services import lookup, shapes, views
from remit.services.command import FOR_REMIT, Context, command, logged, query
from remit.services.fields import (
    ApprovalRef,
    CompanyRef,
    Help,
    Moment,
    Range,
    Reference,
    Text,
    Words,
)
from remit.services.governance import approval_engine, pending_calls, statement
from remit.services.hiring import configuration, hiring
from remit.services.organisation import termination
from remit.services.surfaces import AsCommand, AsRoute, AsTool
from remit.store.organisation import governance as statements
from remit.store.record import events as event_log

MOST_DUE = 100
#: Ids begin with the time, so approvals of the same minute share a prefix.
_MOST_WITH_PREFIX = 1000
_BUDGETS = frozenset({"budgetMonthlyCents", "budgetMonthlyTokens"})
DecisionNote = Annotated[str, Text(LONGEST_NOTE, empty=True), Help("Why; whoever asked reads it.")]
SeenRevision = Annotated[int, Range(1, 2**30), Help("The revision that was seen.")]
_NOTE = {"note": "decisionNote"}


class Deciding(TypedDict, total=False):
    """Parameters of each decision about an approval."""

    note: DecisionNote | None
    expected_revision: SeenRevision | None


@dataclass(frozen=True)
class Consequence:
    """The consequences of the decisions about one type of approval."""

    #: Returns the approval if carrying it out changed it, else None.
    approved: Callable[[Context, Approval], Approval | None] = lambda _ctx, _approval: None
    turned_down: Callable[[Context, Approval, str], None] = lambda _ctx, _approval, _why: None
    #: Returns the payload of the next revision.
    resubmitted: Callable[[Context, Approval, Mapping[str, Any]], dict[str, object]] = (
        lambda _ctx, approval, changes: {**json.loads(approval.payload), **changes}
    )


def _set_budget(ctx: Context, approval: Approval) -> None:
    payload, agent = configuration.proposed(ctx, approval, "Reject it.")
    wanted = {**configuration_of(agent), **{key: payload[key] for key in _BUDGETS & set(payload)}}
    configuration.apply(ctx, agent, wanted, RevisionSource.PROPOSAL, approval)


def _next_budget(_: Context, approval: Approval, changes: Mapping[str, Any]) -> dict[str, object]:
    payload = {**json.loads(approval.payload), **changes}
    return {**payload, **_budget(payload)}


def _same_call(_: Context, approval: Approval, changes: Mapping[str, Any]) -> dict[str, object]:
    """Return the payload of a parked call unchanged: a different call has to be made anew."""
    if changes:
        raise BadInput("A call cannot be changed.", "Cancel it, and make the call you want.")
    payload: dict[str, object] = json.loads(approval.payload)
    return payload


CONSEQUENCES: dict[ApprovalType, Consequence] = {
    ApprovalType.HIRE_AGENT: Consequence(
        hiring.take_effect, hiring.turned_down, hiring.resubmitted
    ),
    ApprovalType.CONFIG_CHANGE: Consequence(
        configuration.take_effect, resubmitted=configuration.resubmitted
    ),
    ApprovalType.CAPABILITY_USE: Consequence(pending_calls.take_effect, resubmitted=_same_call),
    ApprovalType.BUDGET: Consequence(_set_budget, resubmitted=_next_budget),
    ApprovalType.APPROVE_CEO_STRATEGY: Consequence(),
    ApprovalType.REQUEST_BOARD_APPROVAL: Consequence(),
}


@command(
    "approvals.request",
    AsRoute(
        "POST /companies/{companyId}/approvals",
        "request_approval",
        201,
        words="approve_ceo_strategy, budget or request_board_approval; the others ask by "
        "themselves.",
        spelled={"kind": "type"},
    ),
)
def request(
    ctx: Context,
    *,
    company: CompanyRef | None,
    kind: Annotated[str, Words(tuple(sorted(ASKED_DIRECTLY)))],
    payload: dict[str, object] | None = None,
    expires_at: Annotated[Moment, Help("ISO 8601; then it is given up.")] | None = None,
) -> shapes.ApprovalShape:
    """Ask the board for something: a strategy, a budget, or whatever it should decide."""
    asked_for = ApprovalType(kind)
    until = _expiry(ctx, expires_at)
    lookup.company_of_caller(ctx, company)
    about: Agent | None = None
    contents = dict(payload or {})
    if asked_for is ApprovalType.BUDGET:
        named = contents.get("agentId") or ctx.actor.agent_id
        if not isinstance(named, str):
            raise BadInput("payload.agentId: is required.", "Say whose budget it is.")
        about = lookup.agent(ctx, named)
        about.require_operational("Budgets are for agents that can act.")
        contents |= {"agentId": about.id, **_budget(contents)}
    mine = ctx.actor.agent_id if about is None else about.id
    ctx.require(Action.APPROVAL_REQUEST, on=f"agent:{mine}" if mine else "approvals", over=mine)
    approval = approval_engine.ask(
        ctx, asked_for, contents, agent=about, home=about, expires_at=until
    )
    return views.approval(approval)


@query(
    "approvals.listing",
    AsRoute("GET /companies/{companyId}/approvals", "list_approvals", page="id"),
)
def listing(
    ctx: Context,
    *,
    company: CompanyRef | None,
    status: Annotated[str, ApprovalStatus] | None = None,
    before: str = END_OF_IDS,
    limit: int = 100,
) -> list[shapes.ApprovalShape]:
    """Newest first: what the caller may decide or asked for; for the board, what is in reach."""
    lookup.company_of_caller(ctx, company)
    if ctx.actor.kind is not ActorKind.AGENT:
        ctx.require(Action.COMPANY_READ, on="approvals")
    page: list[shapes.ApprovalShape] = []
    sees = _reader(ctx)
    while len(page) < limit:
        rows = ctx.tx.all(
            statements.APPROVALS,
            before=before,
            status=status,
            requester=ctx.actor.agent_id,
            limit=limit,
        )
        page += [_view(ctx, row) for row in rows if sees(row)]
        if len(rows) < limit:
            break
        before = rows[-1].id
    return page[:limit]


@query("approvals.show")
def show(ctx: Context, *, approval: str) -> shapes.ApprovalInFullShape:
    """An approval in full; nobody is remembered to have looked."""
    return _in_full(ctx, _require(ctx, Action.APPROVAL_READ, approval))


@logged("approvals.look", AsRoute("GET /approvals/{id}", "show_approval"))
def look(ctx: Context, *, approval: ApprovalRef) -> shapes.ApprovalInFullShape:
    """An approval: the statement of all that it would apply, its payload, its revisions, and the
    comments on it. A reader who may decide is remembered to have seen this revision."""
    row = _require(ctx, Action.APPROVAL_READ, approval)
    view = _in_full(ctx, row)
    statement.looked(ctx, row, view["statement"])
    return view


def _in_full(ctx: Context, row: Approval) -> shapes.ApprovalInFullShape:
    return {
        **_view(ctx, row),
        "revisions": _revisions(ctx, row),
        "comments": _comments(ctx, row, "", 500),
        "statement": statement.of(ctx, row),
        "altered": row.status in OPEN and approval_engine.is_altered(ctx, row),
    }


def _revisions(ctx: Context, row: Approval) -> list[shapes.ApprovalRevisionShape]:
    revisions = ctx.tx.all(statements.REVISIONS, approval=row.id)
    earlier: list[Revision | None] = [None, *revisions]
    return [
        {
            **configuration.as_seen(ctx, views.approval_revision(revision)),
            "changes": [] if before is None else statement.changes(before, revision),
        }
        for before, revision in zip(earlier, revisions, strict=False)
    ]


@query("approvals.content")
def content(ctx: Context, *, approval: str) -> shapes.StoredContentShape:
    """Name the content that an undecided call would write, for its requester and its deciders."""
    row = _require(ctx, Action.APPROVAL_READ, approval)
    mine = row.requester == ctx.actor.address or approval_engine.may_be_decided(ctx, row)
    if row.blob_file_id is None or row.blob_sha256 is None or not mine:
        raise NotFound(
            "There is no content here that waits to be written.",
            "Look at the file itself, if it was approved.",
        )
    return {"file_id": row.blob_file_id, "sha256": row.blob_sha256}


@command("approvals.approve", AsRoute("POST /approvals/{id}/approve", "approve", spelled=_NOTE))
def approve(
    ctx: Context, *, approval: ApprovalRef, **decision: Unpack[Deciding]
) -> shapes.ApprovalShape:
    """Say yes to what was asked, as it was seen. It takes effect with the decision."""
    new, remark = _decide(ctx, approval, ApprovalStatus.APPROVED, **decision)
    new = CONSEQUENCES[new.type].approved(ctx, new) or new
    approval_engine.tell_requester(ctx, new, "Approved", remark)
    return _view(ctx, new)


@command("approvals.reject", AsRoute("POST /approvals/{id}/reject", "reject", spelled=_NOTE))
def reject(
    ctx: Context, *, approval: ApprovalRef, **decision: Unpack[Deciding]
) -> shapes.ApprovalShape:
    """Say no to what was asked; an agent that was to be hired is terminated."""
    new, remark = _decide(ctx, approval, ApprovalStatus.REJECTED, **decision)
    CONSEQUENCES[new.type].turned_down(ctx, new, remark or "rejected")
    approval_engine.tell_requester(ctx, new, "Rejected", remark)
    return _view(ctx, new)


@command(
    "approvals.request_revision",
    AsRoute("POST /approvals/{id}/request-revision", "request_revision", spelled=_NOTE),
    AsCommand(
        "approval revise",
        "Send an approval back for changes; say which with --note.",
        spelled={"expected_revision": "revision"},
    ),
)
def request_revision(
    ctx: Context, *, approval: ApprovalRef, **decision: Unpack[Deciding]
) -> shapes.ApprovalShape:
    """Send it back; it cannot be approved before it was submitted again."""
    new, remark = _decide(ctx, approval, ApprovalStatus.REVISION_REQUESTED, **decision)
    step = "Change it and submit it again with approval_resubmit, or withdraw it."
    approval_engine.tell_requester(ctx, new, "To be revised", remark, step)
    return _view(ctx, new)


_DECIDED = {
    ApprovalStatus.APPROVED: "approval.approve",
    ApprovalStatus.REJECTED: "approval.reject",
    ApprovalStatus.REVISION_REQUESTED: "approval.revise",
}


def _decide(
    ctx: Context,
    approval: str,
    wanted: ApprovalStatus,
    note: str | None = None,
    expected_revision: int | None = None,
) -> tuple[Approval, str | None]:
    row, remark = require_deciding(ctx, approval), note or None
    if wanted is not ApprovalStatus.REJECTED:  # rejecting is the way to get rid of an altered one
        approval_engine.refuse_altered(ctx, row)
    approval_engine.check_seen(row, expected_revision)
    if wanted is ApprovalStatus.APPROVED and not statement.of(ctx, row)["whole"]:
        raise Conflict(
            "Not all of what it would apply can be shown, so it cannot be approved.",
            "Look at its statement for the reason; reject it, and have it asked for anew.",
            code="not_whole",
        )
    new = approval_engine.move(ctx, row, wanted, remark)
    ctx.record(_DECIDED[wanted], f"approval:{new.id}", _details(new))
    _keep_note(ctx, new)
    return new, remark


@command(
    "approvals.resubmit",
    AsTool("approval_resubmit", id="approval", offer="approvals"),
    AsRoute("POST /approvals/{id}/resubmit", "resubmit"),
    AsCommand("approval resubmit", said="Submitted as revision {revision}; it awaits a decision."),
)
def resubmit(
    ctx: Context,
    *,
    approval: ApprovalRef,
    payload: Annotated[dict[str, object], Help("Fields to change; the rest stays", model=True)]
    | None = None,
) -> shapes.ApprovalShape:
    """Submit again what was sent back to you for revision."""
    row = _require(ctx, Action.APPROVAL_RESUBMIT, approval)
    _refuse_expired(ctx, row)
    if row.status is not ApprovalStatus.REVISION_REQUESTED:
        raise Conflict(
            f"It is {row.status.value.replace('_', ' ')}; nobody asked for a revision.",
            "Wait for the decision, or cancel it and ask anew.",
            code="wrong_status",
            details={"status": row.status.value},
        )
    approval_engine.refuse_altered(ctx, row)
    changed = CONSEQUENCES[row.type].resubmitted(ctx, row, dict(payload or {}))
    new = approval_engine.revise(ctx, row, changed)
    new = approval_engine.move(ctx, new, ApprovalStatus.PENDING, None)
    ctx.record("approval.resubmit", f"approval:{new.id}", _details(new))
    return _view(ctx, approval_engine.route_again(ctx, new))


@command(
    "approvals.cancel",
    AsRoute("POST /approvals/{id}/cancel", "cancel_approval", spelled=_NOTE),
    AsCommand("approval cancel", "Withdraw an approval that you asked for, or somebody below you."),
)
def cancel(
    ctx: Context, *, approval: ApprovalRef, note: DecisionNote | None = None
) -> shapes.ApprovalShape:
    """Withdraw one's own request, or one of somebody below."""
    remark = note or None
    row = _require(ctx, Action.APPROVAL_CANCEL, approval)
    new = approval_engine.move(ctx, row, ApprovalStatus.CANCELLED, remark)
    ctx.record("approval.cancel", f"approval:{new.id}", _details(new))
    _keep_note(ctx, new)
    CONSEQUENCES[new.type].turned_down(ctx, new, remark or "cancelled")
    if row.requester != ctx.actor.address:
        approval_engine.tell_requester(ctx, new, "Cancelled", remark)
    return _view(ctx, new)


@command(
    "approvals.comment",
    AsTool("approval_comment", id="approval", offer="approvals"),
    AsRoute("POST /approvals/{id}/comments", "add_comment", 201),
)
def comment(
    ctx: Context,
    *,
    approval: ApprovalRef,
    body: Annotated[str, Text(LONGEST_COMMENT)],
    reply_to: Annotated[str, Reference("comment"), Help("Comment id", model=True)] | None = None,
) -> shapes.CommentShape:
    """Say something about an approval."""
    row = _require(ctx, Action.APPROVAL_COMMENT, approval)
    answered = None
    if reply_to is not None:
        answered = ctx.tx.one(statements.COMMENT, comment=reply_to, approval=row.id)
        if answered is None:
            raise NotFound("There is no such comment here.", "List the comments.")
    new_comment = _add_comment(ctx, row, body, answered)
    ctx.record("approval.comment", f"approval:{row.id}", {"comment": new_comment.id})
    concerned = {row.requester} if row.decided_at is None else set()
    if row.decided_at is None and row.routed_to_agent_id is not None:
        concerned.add(f"agent:{row.routed_to_agent_id}")
    if answered is not None:
        concerned.add(_author(answered))
    for address in sorted(concerned - {ctx.actor.address, ""}):
        approval_engine.tell(
            ctx,
            address,
            f"Comment on: {approval_engine.summary(row)}",
            f"{ctx.actor.name} on approval:{row.id}:\n\n{body}",
        )
    return views.comment(new_comment)


def _add_comment(
    ctx: Context, approval: Approval, body: str, answered: Comment | None = None
) -> Comment:
    new_comment = Comment(
        id=CommentId(ctx.ids.new()),
        company_id=CompanyId(approval.company_id),
        approval_id=approval.id,
        author_agent_id=ctx.actor.agent_id,
        author_user_id=ctx.actor.user_id,
        reply_to=answered.id if answered else None,
        body=body,
        created_at=ctx.now,
        updated_at=ctx.now,
    )
    ctx.tx.add(new_comment)
    return new_comment


def _author(comment: Comment) -> str:
    if comment.author_agent_id is not None:
        return f"agent:{comment.author_agent_id}"
    return f"user:{comment.author_user_id}" if comment.author_user_id else ""


def _keep_note(ctx: Context, approval: Approval) -> None:
    """Store the note of a decision as a comment, so that it survives a resubmission."""
    if approval.decision_note:
        _add_comment(ctx, approval, approval.decision_note)


@query("approvals.comments", AsRoute("GET /approvals/{id}/comments", "list_comments", page="id"))
def comments(
    ctx: Context, *, approval: ApprovalRef, after: str = "", limit: int = 100
) -> list[shapes.CommentShape]:
    """Comments on an approval, oldest first."""
    row = _require(ctx, Action.APPROVAL_READ, approval)
    return _comments(ctx, row, after, limit)


@query("approvals.history")
def history(ctx: Context, *, approval: str, limit: int = 200) -> list[shapes.HappeningShape]:
    """Events of an approval, oldest first; only the newest `limit` of them."""
    row = _require(ctx, Action.APPROVAL_READ, approval)
    newest = ctx.tx.all(event_log.NEWEST_ON, resource=f"approval:{row.id}", limit=limit)
    return [views.happening(event) for event in reversed(newest) if event.allowed]


@command(
    "approvals.delete_agent", AsRoute("DELETE /approvals/{id}/agent", "delete_disapproved_agent")
)
def delete_agent(ctx: Context, *, approval: ApprovalRef) -> shapes.DeletedAgentShape:
    """Delete an agent that was not taken on. The approval and what was said about it stay."""
    row = _require(ctx, Action.APPROVAL_READ, approval)
    ctx.require(
        Action.AGENT_APPOINT, on=f"approval:{row.id}", home=row.home_agent_id or row.agent_id
    )
    agent = lookup.agent_row(ctx, row.agent_id or "")
    if row.type is not ApprovalType.HIRE_AGENT or agent is None:
        raise NotFound("There is no agent to delete here.")
    never_hired = row.status in (ApprovalStatus.REJECTED, ApprovalStatus.CANCELLED)
    if not never_hired or agent.status is not AgentStatus.TERMINATED:
        raise Conflict(
            f"{agent.name} was not disapproved.", "Only who was never taken on can be deleted."
        )
    ctx.record("agent.delete", f"agent:{agent.id}", {"name": agent.name, "approval": row.id})
    termination.delete(ctx, agent)
    return {"id": agent.id, "deleted": True, "approval_id": row.id}


@query("approvals.due", FOR_REMIT)
def due(ctx: Context) -> list[str]:
    """Return the approvals that expired undecided."""
    return ctx.tx.all(statements.DUE, limit=MOST_DUE)


@command("approvals.expire", FOR_REMIT)
def expire(ctx: Context, *, approval: str) -> shapes.ApprovalShape:
    """Cancel an approval that expired undecided, and tell the requester."""
    row = lookup.find(ctx, APPROVAL, approval)
    ctx.require(Action.APPROVAL_CANCEL, on=f"approval:{row.id}")
    if not row.expired(ctx.now):
        raise Conflict("It is not due.")
    new = approval_engine.move(ctx, row, ApprovalStatus.CANCELLED, "timeout")
    ctx.record("approval.expire", f"approval:{new.id}", _details(new))
    CONSEQUENCES[new.type].turned_down(ctx, new, "timeout")
    approval_engine.tell_requester(ctx, new, "Cancelled: nobody decided in time", None)
    return views.approval(new)


def require_deciding(ctx: Context, text: str) -> Approval:
    """Return an approval that the caller may decide and that has not expired."""
    row = _require(ctx, Action.APPROVAL_DECIDE, text)
    _refuse_expired(ctx, row)
    return row


def _refuse_expired(ctx: Context, approval: Approval) -> None:
    if approval.expired(ctx.now):
        raise Conflict("Nobody decided it in time.", "Ask anew.", code="expired")


def _require(ctx: Context, action: Action, text: str) -> Approval:
    row = lookup.find(ctx, APPROVAL, text)
    ctx.require(
        action,
        approval_engine.DECIDING,
        on=f"approval:{row.id}",
        over=row.home_agent_id or row.agent_id,
        requester=row.requested_by_agent_id,
        listed=False,
        for_people=approval_engine.is_closed_to_caller(ctx, row),
    )
    return row


def _reader(ctx: Context) -> Callable[[Approval], bool]:
    """Return a predicate: whether the caller may see an approval. Caches chains of bosses, for
    lists."""
    place = cache(ctx.boss_chain)

    def sees(approval: Approval) -> bool:
        home = approval.home_agent_id or approval.agent_id
        return ctx.decide(
            Action.APPROVAL_READ,
            place=place(home),
            requester=approval.requested_by_agent_id,
            listed=False,
        ).allowed

    return sees


APPROVAL = lookup.Noun(
    "approval",
    statements.APPROVAL_ANYWHERE,
    statements.APPROVALS_BY_PREFIX,
    _reader,
    parameters=lambda _: {"limit": _MOST_WITH_PREFIX},
)


def _expiry(ctx: Context, at: str | None) -> Micros | None:
    if at is None:
        return None
    until = from_iso(at)
    if until <= ctx.now:
        raise BadInput("expiresAt: lies in the past.", "Choose a later time, or none.")
    return until


def _view(ctx: Context, approval: Approval) -> shapes.ApprovalShape:
    return configuration.as_seen(ctx, views.approval(approval))


def _comments(
    ctx: Context, approval: Approval, after: str, limit: int
) -> list[shapes.CommentShape]:
    return [
        views.comment(row)
        for row in ctx.tx.all(statements.COMMENTS, approval=approval.id, after=after, limit=limit)
    ]


def _budget(payload: Mapping[str, Any]) -> dict[str, int]:
    """Return the requested monthly budget: money, tokens, or both."""
    amounts = {key: amount(payload.get(key), key) for key in sorted(_BUDGETS)}
    known = {key: value for key, value in amounts.items() if value is not None}
    if not known:
        raise BadInput(
            "payload.budgetMonthlyCents: is required, or budgetMonthlyTokens.",
            "Send whole cents or whole tokens.",
        )
    return known


def _details(approval: Approval) -> dict[str, object]:
    return {**approval_engine.details(approval), "note": approval.decision_note}
