"""What agents say to channels, until the outside has it: leased, tried again, and never lost.

It is in line in the transaction that sends the message. Whoever delivers it holds it by a lease
with an epoch; who was silent too long has lost it, and it is tried again under the same id. So it
gets through at least once, or is dead after three attempts and awaits a person.
"""

from __future__ import annotations

import json
from typing import Any

from remit.authority import Action
from remit.clock import MINUTE, SECOND, Micros
from remit.errors import BadInput, Conflict
from remit.ids import AgentId, MessageId
from remit.model.channel import LARGEST_TEXT, ChannelDelivery
from remit.model.file import File
from remit.model.mail import MOST_ATTEMPTS, DeliveryStatus, Message
from remit.services import halts, letters, lookup, views
from remit.services.command import Answer, Context, command, logged, query
from remit.services.running import system_only
from remit.store import channels as statements
from remit.store import mail as mail_statements
from remit.store.statement import row

#: Between the attempts.
BACKOFF = (10 * SECOND, 2 * MINUTE)
#: Longer than any attempt takes; then somebody else tries.
LEASE_TIME = 90 * SECOND
#: Whoever says more than the outside takes has to wait.
MOST_UNFINISHED = 1000
MOST_AT_ONCE = 100
#: An agent, and a kind of channel.
Sender = tuple[str, str]
GONE = "the binding is gone"
_LONGEST_WHY = 300


def put(ctx: Context, message: Message, kind: str, body: File, due: Micros) -> None:
    """Put a message of the calling agent in line."""
    sender = message.sender_agent_id
    assert sender is not None, "only agents are bound"
    if json.loads(message.attachments):
        raise BadInput(
            "A channel takes no attachments: nobody outside can read files here.",
            "Write what matters into the message.",
        )
    if body.size > LARGEST_TEXT or not body.is_text:
        raise BadInput(f"A channel takes text of at most {LARGEST_TEXT >> 10} KiB.", "Send less.")
    if (ctx.tx.one(statements.COUNT_UNFINISHED, agent=sender) or 0) >= MOST_UNFINISHED:
        raise Conflict(
            f"{MOST_UNFINISHED} of your messages have not gone out yet.",
            "Wait until the outside takes them.",
            code="too_many_messages",
        )
    waiting = ChannelDelivery(
        message_id=message.id,
        company_id=message.company_id,
        agent_id=sender,
        adapter_type=kind,
        address=message.address,
        status=DeliveryStatus.QUEUED,
        deliver_at=due,
        next_at=due,
        attempt=0,
        worker=None,
        epoch=0,
        lease_until=None,
        ended_at=None,
        ended_why=None,
    )
    ctx.tx.run(statements.INSERT_DELIVERY, **row(waiting))


# ── for the process that delivers ───────────────────────────────────────────────────────────────


@query("outbox.ready")
def ready(ctx: Context) -> list[tuple[str, Sender]]:
    """Messages that can go out now, each with who sends it and through what."""
    system_only(ctx)
    found = ctx.tx.all(statements.READY, now=ctx.now, limit=MOST_AT_ONCE)
    return [(one.message_id, (one.agent_id, one.adapter_type)) for one in found]


@query("outbox.next_due")
def next_due(ctx: Context) -> Micros | None:
    """When a message becomes due that has to wait for its time."""
    system_only(ctx)
    return ctx.tx.one(statements.NEXT_DUE, now=ctx.now)


@query("outbox.expired")
def expired(ctx: Context) -> list[tuple[str, int]]:
    """What somebody set out to deliver who has not been heard of."""
    system_only(ctx)
    found = ctx.tx.all(statements.EXPIRED, now=ctx.now, limit=MOST_AT_ONCE)
    return [(one.message_id, one.epoch) for one in found]


@query("outbox.under_way")
def under_way(ctx: Context) -> list[tuple[str, int]]:
    """All that is thought to be on its way."""
    system_only(ctx)
    return [(one.message_id, one.epoch) for one in ctx.tx.all(statements.LEASED)]


@logged("outbox.claim")
def claim(
    ctx: Context, *, message: str, worker: str, lease: Micros = LEASE_TIME
) -> dict[str, Any] | None:
    """Set out to deliver a message: what is needed for it. None when somebody else does, or its
    sender is stopped."""
    found = _entered(ctx, message)
    ctx.take_turn()
    stopped = halts.covering(ctx, found.agent_id) is not None
    if stopped or not ctx.tx.run(
        statements.CLAIM, message=message, now=ctx.now, until=ctx.now + lease, new_worker=worker
    ):
        return None
    binding = ctx.tx.one(statements.BOUND, agent=found.agent_id, kind=found.adapter_type)
    assert binding is not None, "what is in line goes with its binding"
    sent = _sent(ctx, message)
    agent = lookup.agent_row(ctx, found.agent_id)
    body, _ = letters.body_of(ctx, sent)
    return {
        "epoch": found.epoch + 1,
        "company_id": found.company_id,
        "adapter_type": found.adapter_type,
        "adapter_config": json.loads(binding.adapter_config),
        "adapter_token": binding.adapter_token,
        "parcel": {
            "id": sent.id,
            "sender": f"agent:{agent.name if agent else found.agent_id}",
            "address": found.address,
            "conversation": found.address.split(":", 2)[2],
            "subject": sent.subject,
            "body": body,
            "thread": sent.thread_id,
            "reply_to": sent.reply_to,
            "reply_to_outside": ctx.tx.one(statements.OUTSIDE_ID, message=sent.reply_to or ""),
            "created_at": sent.created_at,
            "attempt": found.attempt + 1,
        },
    }


@command("outbox.delivered")
def delivered(ctx: Context, *, message: str, epoch: int) -> Answer:
    """The outside has it."""
    found = _entered(ctx, message)
    _end(ctx, found, epoch, DeliveryStatus.DONE, "delivered")
    ctx.record("message.deliver", f"message:{message}", _about(found))
    return {"id": message, "status": DeliveryStatus.DONE.value}


@command("outbox.failed")
def failed(
    ctx: Context,
    *,
    message: str,
    epoch: int,
    why: str,
    for_good: bool = False,
    backoff: tuple[Micros, ...] = BACKOFF,
) -> Answer:
    """It did not get through: it is tried again later, or is dead if that happened too often."""
    found = _entered(ctx, message)
    why = why[:_LONGEST_WHY]
    once = _sent(ctx, message).at_most_once
    over = for_good or once or found.attempt >= MOST_ATTEMPTS
    if over:
        _end(ctx, found, epoch, DeliveryStatus.DEAD, why)
    elif not ctx.tx.run(
        statements.RETRY,
        message=message,
        epoch=epoch,
        new_next=ctx.now + backoff[min(found.attempt, len(backoff)) - 1],
        why=why,
    ):
        raise _lost()
    ctx.record("message.undelivered", f"message:{message}", {**_about(found), "why": why})
    status = DeliveryStatus.DEAD if over else DeliveryStatus.QUEUED
    return {"id": message, "status": status.value}


@command("outbox.take_over")
def take_over(ctx: Context, *, message: str, epoch: int, alone: bool = False) -> Answer:
    """Whoever set out to deliver it is silent; it may have got through, so the id stays the same.

    With `alone` there is no other process, so whoever held it is gone.
    """
    found = _entered(ctx, message)
    if found.epoch != epoch or (not alone and (found.lease_until or 0) > ctx.now):
        raise _lost()
    why = f"{found.worker} was not heard of any more; the outside may have it"
    return failed.body(ctx, message=message, epoch=epoch, why=why, backoff=(0,))


@command("outbox.put_back")
def put_back(ctx: Context, *, message: str, epoch: int) -> Answer:
    """Its process is being stopped; somebody else delivers it."""
    found = _entered(ctx, message)
    if _sent(ctx, message).at_most_once:
        why = "it was interrupted; the outside may have it"
        return failed.body(ctx, message=message, epoch=epoch, why=why)
    if not ctx.tx.run(statements.PUT_BACK, message=message, epoch=epoch):
        raise _lost()
    ctx.record("message.put_back", f"message:{message}", _about(found))
    return {"id": message, "status": DeliveryStatus.QUEUED.value}


def _entered(ctx: Context, message: str) -> ChannelDelivery:
    """A delivery as it is, for Remit itself."""
    system_only(ctx)
    found = ctx.tx.one(statements.DELIVERY, message=message)
    assert found is not None
    ctx.enter(found.company_id)
    ctx.require(Action.RUN_CHANGE, on=f"message:{message}")
    again = ctx.tx.one(statements.DELIVERY, message=message)  # the turn may have taken a while
    assert again is not None
    return again


def _sent(ctx: Context, message: str) -> Message:
    found = ctx.tx.one(mail_statements.MESSAGE_ANYWHERE, message=message)
    assert found is not None, "what goes out is a message"
    return found


def _end(
    ctx: Context, found: ChannelDelivery, epoch: int, status: DeliveryStatus, why: str
) -> None:
    if not ctx.tx.run(
        statements.END_HELD,
        message=found.message_id,
        epoch=epoch,
        new_status=status.value,
        now=ctx.now,
        why=why,
    ):
        raise _lost()


def _lost() -> Conflict:
    return Conflict("The message is over, or somebody else's.", code="lost")


def _about(found: ChannelDelivery) -> dict[str, Any]:
    return {"to": found.address, "agent_id": found.agent_id, "attempt": found.attempt}


# ── for people, and for those over the sender ───────────────────────────────────────────────────


def of(ctx: Context, message: Message) -> ChannelDelivery | None:
    """How a message went out, if it was for a channel."""
    if not message.address.startswith("channel:"):
        return None
    return ctx.tx.one(statements.DELIVERY, message=message.id)


def dead(ctx: Context, message: Message) -> ChannelDelivery | None:
    found = of(ctx, message)
    return found if found is not None and found.status is DeliveryStatus.DEAD else None


def held_back(ctx: Context, message: Message) -> ChannelDelivery | None:
    """What waits for its time and can be taken back."""
    found = of(ctx, message)
    waits = found is not None and found.status is DeliveryStatus.QUEUED
    return found if found is not None and waits and found.deliver_at > ctx.now else None


def cancel(ctx: Context, found: ChannelDelivery) -> None:
    _close(ctx, found, DeliveryStatus.CANCELLED, "cancelled")


def revive(ctx: Context, found: ChannelDelivery) -> None:
    if ctx.tx.one(statements.BOUND, agent=found.agent_id, kind=found.adapter_type) is None:
        raise Conflict("Its sender is not bound any more.", "Bind it again, or discard this.")
    ctx.tx.run(statements.REVIVE, message=found.message_id, now=ctx.now)


def discard(ctx: Context, found: ChannelDelivery) -> None:
    ctx.tx.run(statements.DISCARD, message=found.message_id, now=ctx.now)


def bury(ctx: Context, agent: AgentId, kind: str) -> list[MessageId]:
    """What an agent said that has not gone out awaits a person when the binding is gone. Answers
    what had not been begun, so that it certainly did not arrive."""
    unsent = []
    for found in ctx.tx.all(statements.UNFINISHED_OF, agent=agent, kind=kind):
        _close(ctx, found, DeliveryStatus.DEAD, GONE)
        if found.status is DeliveryStatus.QUEUED and found.attempt == 0:
            unsent.append(found.message_id)
    return unsent


def unbury(ctx: Context, message: MessageId) -> bool:
    """Put something back in line whose sender is bound again; whether it was still there."""
    found = ctx.tx.one(statements.DELIVERY, message=message)
    if found is None or found.status is not DeliveryStatus.DEAD or found.ended_why != GONE:
        return False
    if ctx.tx.one(statements.BOUND, agent=found.agent_id, kind=found.adapter_type) is None:
        return False
    ctx.tx.run(statements.REVIVE, message=found.message_id, now=max(ctx.now, found.deliver_at))
    return True


def _close(ctx: Context, found: ChannelDelivery, status: DeliveryStatus, why: str) -> None:
    ctx.tx.run(
        statements.END, message=found.message_id, new_status=status.value, now=ctx.now, why=why
    )


def view(found: ChannelDelivery) -> dict[str, Any]:
    """As one of a message's deliveries."""
    waits = found.status is DeliveryStatus.QUEUED and found.attempt == 0
    return {
        "to": found.address,
        "to_name": found.address.partition(":")[2],
        "status": found.status.value,
        "attempt": max(found.attempt, 1),
        "deliver_at": views.time(found.deliver_at if waits else found.next_at),
        "ended_at": views.time(found.ended_at),
        "ended_why": found.ended_why,
    }
