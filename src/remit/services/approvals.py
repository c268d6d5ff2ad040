"""Approvals: ask, look, comment, decide. A decision and what follows from it are one commit."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from remit.authority import Action
from remit.clock import Micros, from_iso
from remit.errors import BadInput, Conflict, NotFound
from remit.ids import AgentId, ApprovalId, CommentId, CompanyId
from remit.model.agent import AgentStatus
from remit.model.approval import (
    ASKED_DIRECTLY,
    LONGEST_COMMENT,
    LONGEST_NOTE,
    Approval,
    ApprovalStatus,
    ApprovalType,
    Comment,
)
from remit.model.configuration import RevisionSource, configuration_of
from remit.model.principal import ActorKind
from remit.model.text import clean_text
from remit.services import (
    approval_engine,
    configuration,
    hiring,
    lookup,
    parking,
    posts,
    removal,
    views,
)
from remit.services.command import Answer, Context, command, query
from remit.store import events as event_log
from remit.store import governance as statements
from remit.store.statement import row

END_OF_IDS = "g"
MOST_DUE = 100
_BUDGETS = frozenset({"budgetMonthlyCents", "budgetMonthlyTokens"})


@dataclass(frozen=True)
class Consequence:
    """What follows from the decisions about one type of approval."""

    approved: Callable[[Context, Approval], Any] = lambda _ctx, _approval: None
    turned_down: Callable[[Context, Approval, str], None] = lambda _ctx, _approval, _why: None
    #: The payload of the next revision.
    resubmitted: Callable[[Context, Approval, Mapping[str, Any]], dict[str, Any]] = (
        lambda _ctx, approval, given: {**json.loads(approval.payload), **given}
    )


def _set_budget(ctx: Context, approval: Approval) -> None:
    payload = json.loads(approval.payload)
    agent = lookup.agent_row(ctx, payload["agentId"])
    if agent is None or agent.status is AgentStatus.TERMINATED:
        raise Conflict("The agent is gone.", "Reject it.")
    wanted = {**configuration_of(agent), **{key: payload[key] for key in _BUDGETS & set(payload)}}
    configuration.apply(ctx, agent, wanted, RevisionSource.PROPOSAL, approval)


def _next_budget(_: Context, approval: Approval, given: Mapping[str, Any]) -> dict[str, Any]:
    payload = {**json.loads(approval.payload), **given}
    return {**payload, **_budget(payload)}


def _same_call(_: Context, approval: Approval, given: Mapping[str, Any]) -> dict[str, Any]:
    """A parked call is approved as it was made, or made anew."""
    if given:
        raise BadInput("A call cannot be changed.", "Cancel it, and make the call you want.")
    payload: dict[str, Any] = json.loads(approval.payload)
    return payload


CONSEQUENCES: dict[ApprovalType, Consequence] = {
    ApprovalType.HIRE_AGENT: Consequence(
        hiring.take_effect, hiring.turned_down, hiring.resubmitted
    ),
    ApprovalType.CONFIG_CHANGE: Consequence(
        configuration.take_effect, resubmitted=configuration.resubmitted
    ),
    ApprovalType.CAPABILITY_USE: Consequence(parking.take_effect, resubmitted=_same_call),
    ApprovalType.BUDGET: Consequence(_set_budget, resubmitted=_next_budget),
    ApprovalType.APPROVE_CEO_STRATEGY: Consequence(),
    ApprovalType.REQUEST_BOARD_APPROVAL: Consequence(),
}


@command("approvals.request")
def request(
    ctx: Context,
    *,
    company: str | None,
    kind: object,
    payload: Mapping[str, Any],
    expires_at: object = None,
) -> Answer:
    """Ask the board for something: a strategy, a budget, or whatever it should decide."""
    asked_for = _asked_type(kind)
    until = _expiry(ctx, expires_at)
    if not isinstance(payload, Mapping):
        raise BadInput("payload: must be an object.", "Say in an object what you ask for.")
    lookup.company_of_caller(ctx, company)
    about: AgentId | None = None
    asked = dict(payload)
    if asked_for is ApprovalType.BUDGET:
        named = asked.get("agentId") or ctx.actor.agent_id
        if not isinstance(named, str):
            raise BadInput("payload.agentId: is required.", "Say whose budget it is.")
        whose = lookup.agent(ctx, named)
        if whose.status in (AgentStatus.TERMINATED, AgentStatus.PENDING_APPROVAL):
            raise Conflict(
                f"{whose.name} is {whose.status.value.replace('_', ' ')}.",
                "Budgets are for agents that can act.",
            )
        about = whose.id
        asked |= {"agentId": about, **_budget(asked)}
    mine = about or ctx.actor.agent_id
    ctx.require(
        Action.APPROVAL_REQUEST,
        on=f"agent:{mine}" if mine else "approvals",
        home=mine,
        place=ctx.place(mine),
    )
    made = approval_engine.ask(ctx, asked_for, asked, agent=about, home=about, expires_at=until)
    return views.approval(made)


@query("approvals.listing")
def listing(
    ctx: Context,
    *,
    company: str | None,
    status: str | None = None,
    before: str = END_OF_IDS,
    limit: int = 100,
) -> list[dict[str, Any]]:
    """Newest first: what the caller may decide or asked for; for the board, what is in reach."""
    lookup.company_of_caller(ctx, company)
    if status is not None and status not in set(ApprovalStatus):
        known = ", ".join(one.value for one in ApprovalStatus)
        raise BadInput(f"status must be one of {known}.", "Choose one of these.")
    if ctx.actor.kind is not ActorKind.AGENT:
        ctx.require(Action.COMPANY_READ, on="approvals")
    found: list[dict[str, Any]] = []
    sees = _reader(ctx)
    while len(found) < limit:
        rows = ctx.tx.all(
            statements.APPROVALS,
            company=ctx.company,
            before=before,
            status=status or "",
            any_status=status is None,
            requester=ctx.actor.id,
            any_requester=ctx.actor.kind is not ActorKind.AGENT,
            limit=limit,
        )
        found += [_view(ctx, one) for one in rows if sees(one)]
        if len(rows) < limit:
            break
        before = rows[-1].id
    return found[:limit]


@query("approvals.show")
def show(ctx: Context, *, approval: str) -> dict[str, Any]:
    """What is asked for, all its revisions, and the comments on it."""
    found = _seen(ctx, approval, Action.APPROVAL_READ)
    return {
        **_view(ctx, found),
        "revisions": [
            configuration.as_seen(ctx, views.approval_revision(one))
            for one in ctx.tx.all(statements.REVISIONS, approval=found.id)
        ],
        "comments": _comments(ctx, found, "", 500),
    }


@command("approvals.approve")
def approve(
    ctx: Context, *, approval: str, note: object = None, expected_revision: int | None = None
) -> Answer:
    """Say yes to what was asked, as it was seen. It takes effect with the decision."""
    found, said = _deciding(ctx, approval, note)
    approval_engine.refuse_altered(ctx, found)
    new = approval_engine.move(ctx, found, ApprovalStatus.APPROVED, said, expected_revision)
    ctx.record("approval.approve", f"approval:{new.id}", _details(new))
    _keep_note(ctx, new)
    CONSEQUENCES[new.type].approved(ctx, new)
    approval_engine.tell_requester(ctx, new, "Approved", said)
    return _view(ctx, _again(ctx, new.id))


@command("approvals.reject")
def reject(
    ctx: Context, *, approval: str, note: object = None, expected_revision: int | None = None
) -> Answer:
    # Also what was altered: it is the way to be rid of it.
    found, said = _deciding(ctx, approval, note)
    new = approval_engine.move(ctx, found, ApprovalStatus.REJECTED, said, expected_revision)
    ctx.record("approval.reject", f"approval:{new.id}", _details(new))
    _keep_note(ctx, new)
    CONSEQUENCES[new.type].turned_down(ctx, new, said or "rejected")
    approval_engine.tell_requester(ctx, new, "Rejected", said)
    return _view(ctx, _again(ctx, new.id))


@command("approvals.request_revision")
def request_revision(
    ctx: Context, *, approval: str, note: object = None, expected_revision: int | None = None
) -> Answer:
    """Send it back: something about it should be different."""
    found, said = _deciding(ctx, approval, note)
    approval_engine.refuse_altered(ctx, found)
    new = approval_engine.move(
        ctx, found, ApprovalStatus.REVISION_REQUESTED, said, expected_revision
    )
    ctx.record("approval.revise", f"approval:{new.id}", _details(new))
    _keep_note(ctx, new)
    approval_engine.tell_requester(
        ctx,
        new,
        "To be revised",
        said,
        "Change it and submit it again with approval_resubmit, or withdraw it.",
    )
    return _view(ctx, _again(ctx, new.id))


@command("approvals.resubmit")
def resubmit(ctx: Context, *, approval: str, payload: Mapping[str, Any] | None = None) -> Answer:
    """Submit it again, changed or as it was, after a revision was requested."""
    found = _seen(ctx, approval, Action.APPROVAL_RESUBMIT)
    _refuse_expired(ctx, found)
    if found.status is not ApprovalStatus.REVISION_REQUESTED:
        raise Conflict(
            f"It is {found.status.value.replace('_', ' ')}; nobody asked for a revision.",
            "Wait for the decision, or cancel it and ask anew.",
            code="wrong_status",
            details={"status": found.status.value},
        )
    approval_engine.refuse_altered(ctx, found)
    changed = CONSEQUENCES[found.type].resubmitted(ctx, found, dict(payload or {}))
    new = approval_engine.revise(ctx, found, changed)
    new = approval_engine.move(ctx, new, ApprovalStatus.PENDING)
    ctx.record("approval.resubmit", f"approval:{new.id}", _details(new))
    approval_engine.route_again(ctx, new)
    return _view(ctx, _again(ctx, new.id))


@command("approvals.cancel")
def cancel(ctx: Context, *, approval: str, note: object = None) -> Answer:
    """Withdraw what one asked for, or what somebody below asked for."""
    said = _note(note)
    found = _seen(ctx, approval, Action.APPROVAL_CANCEL)
    new = approval_engine.move(ctx, found, ApprovalStatus.CANCELLED, said)
    ctx.record("approval.cancel", f"approval:{new.id}", _details(new))
    _keep_note(ctx, new)
    CONSEQUENCES[new.type].turned_down(ctx, new, said or "cancelled")
    if found.requester != ctx.actor.address:
        approval_engine.tell_requester(ctx, new, "Cancelled", said)
    return _view(ctx, _again(ctx, new.id))


@command("approvals.comment")
def comment(ctx: Context, *, approval: str, body: object, reply_to: str | None = None) -> Answer:
    """Say something about it; what was said stays."""
    text = clean_text(body, "body", longest=LONGEST_COMMENT)
    found = _seen(ctx, approval, Action.APPROVAL_COMMENT)
    answered = None
    if reply_to is not None:
        answered = ctx.tx.one(statements.COMMENT, comment=reply_to, approval=found.id)
        if answered is None:
            raise NotFound("There is no such comment here.", "List the comments.")
    made = _add_comment(ctx, found, text, answered)
    ctx.record("approval.comment", f"approval:{found.id}", {"comment": made.id})
    concerned = {found.requester} if found.decided_at is None else set()
    if found.decided_at is None and found.routed_to_agent_id is not None:
        concerned.add(f"agent:{found.routed_to_agent_id}")
    if answered is not None:
        concerned.add(_author(answered))
    for address in sorted(concerned - {ctx.actor.address, ""}):
        approval_engine.tell(
            ctx,
            address,
            f"Comment on: {approval_engine.summary(found)}",
            f"{ctx.actor.name} on approval:{found.id}:\n\n{text}",
        )
    return views.comment(made)


def _add_comment(
    ctx: Context, approval: Approval, body: str, answered: Comment | None = None
) -> Comment:
    made = Comment(
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
    ctx.tx.run(statements.INSERT_COMMENT, **row(made))
    return made


def _author(comment: Comment) -> str:
    if comment.author_agent_id is not None:
        return f"agent:{comment.author_agent_id}"
    return f"user:{comment.author_user_id}" if comment.author_user_id else ""


def _keep_note(ctx: Context, approval: Approval) -> None:
    """What a decision was given with stays among the comments, also after a resubmission."""
    if approval.decision_note:
        _add_comment(ctx, approval, approval.decision_note)


@query("approvals.comments")
def comments(
    ctx: Context, *, approval: str, after: str = "", limit: int = 100
) -> list[dict[str, Any]]:
    found = _seen(ctx, approval, Action.APPROVAL_READ)
    return _comments(ctx, found, after, limit)


@query("approvals.history")
def history(ctx: Context, *, approval: str, limit: int = 200) -> list[dict[str, Any]]:
    """What happened to it, oldest first; the newest of it when that is very much."""
    found = _seen(ctx, approval, Action.APPROVAL_READ)
    newest = ctx.tx.all(
        event_log.NEWEST_ON, company=ctx.company, resource=f"approval:{found.id}", limit=limit
    )
    return [views.happening(event) for event in reversed(newest) if event.allowed]


@command("approvals.delete_agent")
def delete_agent(ctx: Context, *, approval: str) -> Answer:
    """Delete an agent that was not taken on. The approval and what was said about it stay."""
    found = _seen(ctx, approval, Action.APPROVAL_READ)
    ctx.require(
        Action.AGENT_APPOINT, on=f"approval:{found.id}", home=found.home_agent_id or found.agent_id
    )
    agent = lookup.agent_row(ctx, found.agent_id or "")
    if found.type is not ApprovalType.HIRE_AGENT or agent is None:
        raise NotFound("There is no agent to delete here.")
    never_hired = found.status in (ApprovalStatus.REJECTED, ApprovalStatus.CANCELLED)
    if not never_hired or agent.status is not AgentStatus.TERMINATED:
        raise Conflict(
            f"{agent.name} was not disapproved.", "Only who was never taken on can be deleted."
        )
    ctx.record("agent.delete", f"agent:{agent.id}", {"name": agent.name, "approval": found.id})
    removal.delete(ctx, agent)
    return {"id": agent.id, "deleted": True, "approval_id": found.id}


@query("approvals.due")
def due(ctx: Context) -> list[str]:
    """Approvals that nobody decided in time; for Remit itself."""
    _system_only(ctx)
    return ctx.tx.all(statements.DUE, now=ctx.now, limit=MOST_DUE)


@command("approvals.expire")
def expire(ctx: Context, *, approval: str) -> Answer:
    """Give up an approval that nobody decided in time; who asked is told."""
    _system_only(ctx)
    found = lookup.approval(ctx, approval)
    ctx.require(Action.APPROVAL_CANCEL, on=f"approval:{found.id}")
    if not found.expired(ctx.now):
        raise Conflict("It is not due.")
    new = approval_engine.move(ctx, found, ApprovalStatus.CANCELLED, "timeout")
    ctx.record("approval.expire", f"approval:{new.id}", _details(new))
    CONSEQUENCES[new.type].turned_down(ctx, new, "timeout")
    approval_engine.tell_requester(ctx, new, "Cancelled: nobody decided in time", None)
    return views.approval(new)


def _deciding(ctx: Context, text: str, note: object) -> tuple[Approval, str | None]:
    said = _note(note)
    found = _seen(ctx, text, Action.APPROVAL_DECIDE)
    _refuse_expired(ctx, found)
    return found, said


def _refuse_expired(ctx: Context, approval: Approval) -> None:
    if approval.expired(ctx.now):
        raise Conflict("Nobody decided it in time.", "Ask anew.", code="expired")


def _seen(ctx: Context, text: str, action: Action) -> Approval:
    found = lookup.approval(ctx, text, _reader(ctx))
    ctx.require(action, approval_engine.DECIDING, on=f"approval:{found.id}", **_facts(ctx, found))
    return found


def _reader(ctx: Context) -> Callable[[Approval], bool]:
    """Whether the caller may see an approval, for walks that ask it of many."""
    place = cache(ctx.place)

    def sees(approval: Approval) -> bool:
        home = approval.home_agent_id or approval.agent_id
        return ctx.decide(
            Action.APPROVAL_READ,
            place=place(home),
            requester=approval.requested_by_agent_id,
            listed=False,
        ).allowed

    return sees


def _facts(ctx: Context, approval: Approval) -> dict[str, Any]:
    home = approval.home_agent_id or approval.agent_id
    return {
        "home": home,
        "place": ctx.place(home),
        "requester": approval.requested_by_agent_id,
        "listed": False,
        "for_people": ctx.actor.kind is ActorKind.AGENT and _is_for_people(ctx, approval),
    }


def _is_for_people(ctx: Context, approval: Approval) -> bool:
    """Whether the asking agent has no say in it, as every agent has or because it gains by it."""
    own = approval.agent_id is not None and approval.agent_id in ctx.place(ctx.actor.id)
    return own or approval_engine.is_for_people(ctx, approval)


def _expiry(ctx: Context, at: object) -> Micros | None:
    if at is None:
        return None
    if isinstance(at, bool) or not isinstance(at, (int, str)):
        raise BadInput("expiresAt: must be a time.", "Write it like 2026-05-01T09:00:00Z.")
    until = from_iso(at) if isinstance(at, str) else at
    if until <= ctx.now:
        raise BadInput("expiresAt: lies in the past.", "Choose a later time, or none.")
    return until


def _view(ctx: Context, approval: Approval) -> dict[str, Any]:
    return configuration.as_seen(ctx, views.approval(approval))


def _again(ctx: Context, approval: ApprovalId) -> Approval:
    found = ctx.tx.one(statements.APPROVAL_ANYWHERE, approval=approval)
    assert found is not None
    return found


def _comments(ctx: Context, approval: Approval, after: str, limit: int) -> list[dict[str, Any]]:
    return [
        views.comment(one)
        for one in ctx.tx.all(statements.COMMENTS, approval=approval.id, after=after, limit=limit)
    ]


def _asked_type(text: object) -> ApprovalType:
    if isinstance(text, str) and text in {kind.value for kind in ASKED_DIRECTLY}:
        return ApprovalType(text)
    known = ", ".join(sorted(kind.value for kind in ASKED_DIRECTLY))
    raise BadInput(
        f"type must be one of {known}.", "Hires, proposals and gated uses ask by themselves."
    )


def _budget(payload: Mapping[str, Any]) -> dict[str, int]:
    """What a monthly budget is to be: in money, in tokens, or both."""
    found = {key: posts.budget(payload.get(key), key) for key in sorted(_BUDGETS)}
    known = {key: value for key, value in found.items() if value is not None}
    if not known:
        raise BadInput(
            "payload.budgetMonthlyCents: is required, or budgetMonthlyTokens.",
            "Send whole cents or whole tokens.",
        )
    return known


def _note(note: object) -> str | None:
    if note is None:
        return None
    return clean_text(note, "decisionNote", longest=LONGEST_NOTE, empty_ok=True) or None


def _system_only(ctx: Context) -> None:
    if ctx.actor.kind is not ActorKind.SYSTEM:
        raise NotFound("There is nothing here with that id.")


def _details(approval: Approval) -> dict[str, Any]:
    return {
        "type": approval.type.value,
        "revision": approval.revision,
        "digest": approval.digest,
        "note": approval.decision_note,
        "agent": approval.agent_id,
    }
