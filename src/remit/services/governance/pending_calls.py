"""Parked calls, which wait for approval.

A capability in mode `ask` needs approval for each use. The call is parked with exactly the
arguments it had. Approval carries it out, once, in the requester's name; a query is run when it is
made again, because its answer is of use to the requester alone.
"""

import hmac
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from remit.clock import DAY
from remit.errors import AwaitsApproval, BadInput, Conflict, Refused
from remit.model.organisation.approval import OPEN, Approval, ApprovalStatus, ApprovalType
from remit.model.organisation.decision import Decision, Effect, deny
from remit.model.text import digest_of
from remit.services.command import (
    Answer,
    Call,
    Context,
    Denied,
    Kind,
    Ticket,
    Verb,
    approved,
    verb_named,
)
from remit.services.governance import approval_engine
from remit.services.verbs import Arguments
from remit.store.organisation import governance as statements

#: How long a parked call waits before it expires.
PARKED_FOR = 7 * DAY
#: How long an answer is reused for the same call: a rejected requester cannot ask again at once.
ANSWER_HOLDS = DAY
_ASKING = Decision(Effect.ALLOW, "asks", "A person is asked.", "rule:asks")


class CallsAwaitingApproval:
    """The gate's handling of calls that need approval."""

    def admit(self, ctx: Context, denied: Denied, call: Call) -> Ticket | Answer | Refused:
        action, on, decision = denied
        digest = _digest(call.verb, call.arguments)
        before = _asked_before(ctx, call, digest)
        ctx.allow_by_rule(_ASKING)
        answer = _answer_that_holds(ctx, before, decision, digest) if before is not None else None
        if answer is not None:
            return answer
        if call.vet is not None:
            call.vet(ctx)
        approval = approval_engine.ask(
            ctx,
            ApprovalType.CAPABILITY_USE,
            {
                "action": action.value,
                "resource": on,
                "because": decision.sentence,
                "basis": decision.basis,
                "options": ["yes", "no"],
                "verb": call.verb.name,
                "version": call.verb.version,
                "arguments": _plain(call.arguments, prepared=False),
                "prepared": _plain(call.arguments, prepared=True),
            },
            expires_at=ctx.now + PARKED_FOR,
            call_digest=digest,
            blob=_blob(call.arguments),
        )
        return _pending(approval, decision)

    def used(self, ctx: Context, ticket: Ticket) -> None:
        if not ctx.tx.run(statements.USE_APPROVAL, approval=ticket.approval, new_result=None):
            raise Conflict("That approval was used already.", "Ask again.")
        ctx.tx.run(statements.COLLECT_RESULT, approval=ticket.approval)
        ctx.record("approval.use", f"approval:{ticket.approval}", None, approved(ticket.approval))


def _asked_before(ctx: Context, call: Call, digest: str) -> Approval | None:
    """Return the last approval that was requested for the same call, including by an older version
    of the verb."""
    before = ctx.tx.one(statements.OF_CALL, agent=ctx.actor.id, digest=digest)
    if before is not None or call.verb.version == 1:
        return before
    since = ctx.now - ANSWER_HOLDS
    older = ctx.tx.all(statements.CALLS_THAT_HOLD, agent=ctx.actor.id, since=since)
    return next(
        (approval for approval in older if _is_older_form_of(call.verb, digest, approval)), None
    )


def _is_older_form_of(verb: Verb[..., Any], digest: str, approval: Approval) -> bool:
    if json.loads(approval.payload)["verb"] != verb.name:
        return False
    try:
        return hmac.compare_digest(_digest(*_stored_call(approval)), digest)
    except Conflict:
        return False


def _stored_call(approval: Approval) -> tuple[Verb[..., Any], Arguments]:
    """Return the parked verb, and its arguments carried over to their present names."""
    payload = json.loads(approval.payload)
    verb = verb_named(payload["verb"])
    stored = {**payload["arguments"], **payload["prepared"]}
    # Calls without a stored version are from before versions were counted: version 1.
    return verb, verb.carry_over(stored, payload.get("version", 1))


def _answer_that_holds(
    ctx: Context, before: Approval, decision: Decision, digest: str
) -> Ticket | Answer | Refused | None:
    """Return the reusable answer of the same call made before; None if a new approval is needed."""
    if before.status in OPEN and not before.expired(ctx.now):
        ctx.record("approval.remind", f"approval:{before.id}")
        return _pending(before, decision)
    recent = ctx.now < (before.decided_at or 0) + ANSWER_HOLDS
    if before.status is ApprovalStatus.REJECTED and recent:
        return _rejected(ctx, before)
    if before.status is not ApprovalStatus.APPROVED:
        return None
    if before.used_at is None:
        # An approval that was not used in time does not cover a call that comes much later.
        if before.expires_at is not None and ctx.now >= before.expires_at:
            return None
        if _is_this_call(ctx, before, digest):
            return Ticket(before.id)
        # The stored call differs from the one that was seen and approved, so ask anew.
        refusal = approval_engine.altered(before)
        ctx.record("approval.refer", f"approval:{before.id}", None, refusal)
        return None
    # After that, the same call counts as a new use.
    uncollected = before.collected_at is None and before.result is not None
    return _collect(ctx, before) if uncollected and recent else None


def take_effect(ctx: Context, approval: Approval) -> Approval | None:
    """Carry out the parked command in the requester's name; returns the approval with the stored
    answer. None for a query, which is run when it is made again."""
    verb, arguments = _stored_call(approval)
    if verb.kind is not Kind.COMMAND:
        return None
    with approval_engine.in_their_name(ctx, approval, "Reject it, and say why."):
        answer = verb.body(ctx, **arguments)
    result = json.dumps(answer)
    used = ctx.tx.run(statements.USE_APPROVAL, approval=approval.id, new_result=result)
    assert used, "it was approved in this very transaction"
    return replace(approval, used_at=ctx.now, result=result)


def _collect(ctx: Context, approval: Approval) -> Answer:
    """Return the stored answer of a call that was carried out when it was approved."""
    assert approval.result is not None
    ctx.tx.run(statements.COLLECT_RESULT, approval=approval.id)
    ctx.record("approval.collect", f"approval:{approval.id}", None, approved(approval.id))
    answer: Answer = json.loads(approval.result)
    return answer


def _pending(approval: Approval, decision: Decision) -> AwaitsApproval:
    return AwaitsApproval(
        f"It needs approval, which approval:{approval.id} asks for. Nothing was done.",
        details={
            "approval_id": approval.id,
            "status": approval.status.value,
            "decision": decision.as_dict(),
        },
    )


def _rejected(ctx: Context, approval: Approval) -> Refused:
    note = f" ({approval.decision_note})" if approval.decision_note else ""
    refusal = deny("rejected", f"Exactly this was rejected{note}.", f"approval:{approval.id}")
    ctx.record("approval.refer", f"approval:{approval.id}", None, refusal)
    step = "Ask for something else, or talk to your boss."
    return refusal.refusal(step, approval_id=approval.id, status=approval.status.value)


def _is_this_call(ctx: Context, approval: Approval, digest: str) -> bool:
    """Return whether this call is exactly the approved one."""
    if approval_engine.is_altered(ctx, approval):
        return False
    return hmac.compare_digest(_digest(*_stored_call(approval)), digest)


def _plain(arguments: Mapping[str, Any], *, prepared: bool) -> dict[str, object]:
    """Return the arguments of a call, or the values that Remit prepared for it, as JSON."""
    chosen = {
        name: value for name, value in arguments.items() if name.startswith("new_") is prepared
    }
    try:
        plain: dict[str, object] = json.loads(json.dumps(chosen))
    except (TypeError, ValueError):
        raise BadInput(
            "This cannot wait for an approval.", "Ask the board to allow it without."
        ) from None
    return plain


def _digest(verb: Verb[..., Any], arguments: Mapping[str, Any]) -> str:
    """Digest of a call, independent of the ids that Remit chose for it."""
    content = {name: value for name, value in arguments.items() if name != "new_id"}
    return digest_of([verb.name, content])


def _blob(arguments: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the file and hash of bytes that were stored for a call, if any, so that they are not
    swept while it waits."""
    stored = arguments.get("new_stored") or {}
    sha256 = arguments.get("sha256") or stored.get("sha256")
    file_id = arguments.get("new_id") or arguments.get("file")
    return (file_id, sha256) if sha256 and file_id else None
