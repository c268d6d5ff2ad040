"""Receivers: for each binding whose channel is listened to, one process listens, by a lease."""

from __future__ import annotations

import json
from typing import Annotated

from remit.authority import Action
from remit.channels import registry
from remit.clock import MINUTE, SECOND, Micros
from remit.errors import Conflict
from remit.ids import BindingId, TokenKind, new_token, token_digest
from remit.model.messaging.channel import Binding
from remit.model.messaging.chat import Intake, Post, Receiver
from remit.services import lookup, shapes, views
from remit.services.command import FOR_REMIT, Context, logged, query
from remit.services.fields import CompanyRef, Help
from remit.services.queues import MOST_AT_ONCE, Leases
from remit.services.shape_basics import JsonObject
from remit.services.surfaces import AsRoute
from remit.store.messaging import channels as channel_statements
from remit.store.messaging import chat as statements
from remit.store.queues import LONGEST_PAUSE

#: Renewed while a process listens; once it expires, another may.
LEASE = 20 * SECOND
#: Before the next try, after failures in a row.
PAUSES = (2 * SECOND, 10 * SECOND, MINUTE, 5 * MINUTE)
_LONGEST_PROBLEM = 300
_LEASES = Leases(statements.RECEIVERS)


def begin(ctx: Context, binding: Binding) -> None:
    """Start a receiver for a binding, or restart it, if its channel has one."""
    if not registry.get(binding.adapter_type).receives:
        return
    if not ctx.tx.run(statements.RESTART_RECEIVER, binding=binding.id):
        receiver = Receiver(binding_id=binding.id, company_id=binding.company_id, next_at=ctx.now)
        ctx.tx.add(receiver)


def try_secret(ctx: Context, name: str) -> None:
    """Restart at once the receivers that failed and use this secret, which has changed."""
    for receiver in ctx.tx.all(statements.RECEIVERS_OF):
        binding = ctx.tx.existing(channel_statements.BINDING_EVER, binding=receiver.binding_id)
        if receiver.problem and registry.secret_of(json.loads(binding.adapter_config)) == name:
            ctx.tx.run(statements.RESTART_RECEIVER, binding=receiver.binding_id)


@query("receivers.ready", FOR_REMIT)
def ready(ctx: Context) -> list[str]:
    """Return the bindings that should be listened to and are not."""
    return [row.binding_id for row in ctx.tx.all(statements.UNHEARD, limit=MOST_AT_ONCE)]


@query("receivers.next_due", FOR_REMIT)
def next_due(ctx: Context) -> Micros | None:
    """Return when the next receiver is to be started."""
    return ctx.tx.one(statements.NEXT_RECEIVER)


@logged("receivers.claim", FOR_REMIT)
def claim(
    ctx: Context, *, binding: str, worker: str, lease: Micros = LEASE
) -> shapes.ReceivingShape | None:
    """Claim the receiver of a binding. Returns what it needs; None if another process has it."""
    binding_row = ctx.tx.one(channel_statements.BINDING_EVER, binding=binding)
    if binding_row is None or binding_row.removed_at is not None:
        return None
    if not _LEASES.claim(ctx, binding, worker, lease):
        return None
    receiver = ctx.tx.existing(statements.RECEIVERS.row, binding=binding)
    proof = new_token(TokenKind.CHANNEL)
    _LEASES.fenced(
        ctx, statements.PROVE_BY, (binding, receiver.epoch), new_proof_digest=token_digest(proof)
    )
    return {"epoch": receiver.epoch, "proof": proof, **about(binding_row)}


def posted(ctx: Context, binding: Binding) -> shapes.PostedShape:
    """Return what a post of the binding's chat system is checked with."""
    receiver = of(ctx, binding.id)
    digest = receiver.proof_digest if receiver is not None else None
    return {"proof_digest": digest or "", **about(binding)}


def about(binding: Binding) -> shapes.ConnectionShape:
    """Parts of a binding that a `Connection` is made of."""
    return {
        "binding": binding.id,
        "company_id": binding.company_id,
        "adapter_type": binding.adapter_type,
        "adapter_config": json.loads(binding.adapter_config),
        "adapter_token": binding.adapter_token,
    }


def source_of(ctx: Context, item: Intake | Post) -> tuple[Binding, JsonObject]:
    """Return the binding of an inbound message or a post, and its stored document."""
    binding = ctx.tx.existing(channel_statements.BINDING_EVER, binding=item.binding_id)
    return binding, json.loads(item.document)


held, renew = _LEASES.holds("receivers"), _LEASES.renews("receivers")


@logged("receivers.heard", FOR_REMIT)
def heard(ctx: Context, *, binding: str, epoch: int) -> None:
    """Record that the channel answered: the receiver works."""
    _LEASES.fenced(ctx, statements.HEARD, (binding, epoch), now=ctx.now)


@logged("receivers.ended", FOR_REMIT)
def ended(
    ctx: Context,
    *,
    binding: str,
    epoch: int,
    problem: str | None = None,
    retry_after: Micros | None = None,
) -> None:
    """Release a receiver: after a problem, or because its process stops."""
    receiver = ctx.tx.existing(statements.RECEIVERS.row, binding=binding)
    failures = receiver.failures + 1 if problem is not None else 0
    pause = PAUSES[min(failures, len(PAUSES)) - 1] if problem is not None else 0
    _LEASES.fenced(
        ctx,
        statements.RELEASE_RECEIVER,
        (binding, epoch),
        due=ctx.now + min(max(pause, retry_after or 0), LONGEST_PAUSE),
        new_failures=failures,
        new_problem=None if problem is None else problem[:_LONGEST_PROBLEM],
    )


@logged("receivers.take_over", FOR_REMIT)
def take_over(ctx: Context, *, binding: str, epoch: int, until: Micros) -> None:
    """Take the lease of a silent process away, so that another may listen; `until` is the end of
    the lease when it was last renewed."""
    _LEASES.seize(ctx, (binding, epoch), until)
    receiver = ctx.tx.existing(statements.RECEIVERS.row, binding=binding)
    as_before = {"new_failures": receiver.failures, "new_problem": receiver.problem}
    _LEASES.fenced(ctx, statements.RELEASE_RECEIVER, (binding, epoch), due=ctx.now, **as_before)


@logged("receivers.free", FOR_REMIT)
def free(ctx: Context) -> None:
    """Free all leases: there is no other process."""
    ctx.tx.run(statements.FREE_RECEIVERS)


@query(
    "receivers.listing",
    AsRoute("GET /companies/{companyId}/receivers", "list_receivers", page="binding_id"),
)
def listing(
    ctx: Context, *, company: Annotated[CompanyRef, Help("The company.")] | None
) -> list[shapes.ReceiverShape]:
    """The receiver of each binding whose channel listens: its state, and its problem."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.BINDING_READ, on="bindings")
    return [view(ctx, receiver) for receiver in ctx.tx.all(statements.RECEIVERS_OF)]


@query("receivers.worked_for", FOR_REMIT)
def worked_for(ctx: Context, *, limit: int) -> list[tuple[shapes.ConnectionShape, str]]:
    """Return the conversations for which runs are at work now, each with its binding."""
    conversations = []
    for agent, address in ctx.tx.all(statements.WORKED_FOR, limit=limit):
        _, kind, conversation = address.split(":", 2)
        binding = ctx.tx.one(channel_statements.BOUND, agent=agent, kind=kind)
        if binding is not None:
            conversations.append((about(binding), conversation))
    return conversations


def lost() -> Conflict:
    return _LEASES.lost()


def end(ctx: Context, binding: BindingId) -> None:
    """Stop listening for a binding that is gone."""
    ctx.tx.run(statements.RESTART_RECEIVER, binding=binding)


def of(ctx: Context, binding: BindingId) -> Receiver | None:
    return ctx.tx.one(statements.RECEIVERS.row, binding=binding)


def view(ctx: Context, receiver: Receiver) -> shapes.ReceiverShape:
    live = receiver.lease_until is not None and receiver.lease_until > ctx.now
    answered = live and receiver.heard_at is not None
    state = "failing" if receiver.problem else "listening" if answered else "waiting"
    return {
        "binding_id": receiver.binding_id,
        "state": state,
        "problem": receiver.problem,
        "heard_at": views.time(receiver.heard_at),
        "worker": receiver.worker if live else None,
    }
