"""Outbound queue of channel messages: leased, retried, and never lost.

A message is queued in the transaction that sends it. So it is delivered at least once, or is dead
after three attempts and awaits a person.
"""

from __future__ import annotations

import json

from remit.channels import registry
from remit.clock import DAY, Micros
from remit.errors import BadInput, Conflict
from remit.ids import AgentId, MessageId
from remit.model.messaging import authorship
from remit.model.messaging.channel import LARGEST_TEXT, ChannelDelivery
from remit.model.messaging.mail import DeliveryStatus, Message, answer_subject
from remit.model.work.file import File
from remit.services import lookup, shapes, views
from remit.services.chat import outside_threads, receivers
from remit.services.command import FOR_REMIT, Context, command, logged, query
from remit.services.messaging import letters
from remit.services.organisation import halts
from remit.services.queues import DELIVERY_LEASE, MAY_HAVE_IT, MOST_AT_ONCE, Deliveries
from remit.services.verbs import Added
from remit.store.messaging import channels as statements
from remit.store.messaging import mail as mail_statements
from remit.store.work import files as file_statements

#: An agent that sends faster than the outside takes is refused for now.
MOST_UNFINISHED = 1000
#: A channel that asks for pauses is retried for at most this long.
PATIENCE = DAY
#: An agent, and a kind of channel.
Sender = tuple[str, str]
GONE = "the binding is gone"
_QUEUE = Deliveries(
    statements.QUEUE,
    delivered="message.deliver",
    failed="message.undelivered",
    about=lambda delivery: {
        "to": delivery.address,
        "agent_id": delivery.agent_id,
        "attempt": delivery.attempt,
    },
)


def put(ctx: Context, message: Message, kind: str, body: File, due: Micros) -> None:
    """Queue a message of the calling agent."""
    sender = message.sender_agent_id
    assert sender is not None, "only agents are bound"
    files = _carried(ctx, kind, json.loads(message.attachments))
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
        files=json.dumps(files) if files else None,
    )
    ctx.tx.add(waiting)


def _carried(ctx: Context, kind: str, attached: list[str]) -> list[dict[str, object]]:
    """Return the files of a message as they are now: later versions are not sent."""
    if not attached:
        return []
    channel = registry.get(kind)
    if not channel.most_files:
        raise BadInput(
            "A channel takes no attachments: nobody outside can read files here.",
            "Write what matters into the message.",
        )
    files = [ctx.tx.existing(file_statements.FILE_ANYWHERE, file=file) for file in attached]
    if len(files) > channel.most_files or sum(file.size for file in files) > channel.largest_files:
        raise BadInput(
            f"The channel {kind} carries {channel.most_files} files at most, of "
            f"{channel.largest_files >> 20} MiB together.",
            "Send less, or in several messages.",
        )
    kept = ("id", "sha256", "size", "description", "is_text")
    return [{name: getattr(file, name) for name in kept} for file in files]


# ── for the process that delivers them ──────────────────────────────────────────────────────────


@query("outbox.ready", FOR_REMIT)
def ready(ctx: Context) -> list[tuple[str, Sender]]:
    """Return the messages that are due, each with its sender and channel."""
    rows = ctx.tx.all(statements.READY, limit=MOST_AT_ONCE)
    return [(row.message_id, (row.agent_id, row.adapter_type)) for row in rows]


next_due, expired, under_way = _QUEUE.looks("outbox")
held, renew = _QUEUE.holds("outbox"), _QUEUE.renews("outbox")


@logged("outbox.claim", FOR_REMIT)
def claim(
    ctx: Context, *, message: str, worker: str, lease: Micros = DELIVERY_LEASE
) -> shapes.ClaimedMessageShape | None:
    """Claim a message. Returns what its delivery needs; None if another process has it, or its
    sender is stopped."""
    delivery = _QUEUE.entered(ctx, message)
    ctx.lock_company()
    stopped = halts.covering(ctx, delivery.agent_id) is not None
    if stopped or not _QUEUE.claim(ctx, message, worker, lease):
        return None
    again = (delivery.ended_why or "").endswith(MAY_HAVE_IT)
    # A binding that ends buries its messages, so a queued message has one.
    binding = ctx.tx.existing(statements.BOUND, agent=delivery.agent_id, kind=delivery.adapter_type)
    sent = _sent(ctx, message)
    body, _ = letters.body_of(ctx, sent)
    author = lookup.name_of(ctx, delivery.agent_id)
    conversation = delivery.address.split(":", 2)[2]
    answered = _sent(ctx, sent.reply_to) if sent.reply_to is not None else None
    thread = outside_threads.of(ctx, binding, conversation, answered)
    if not registry.get(delivery.adapter_type).names_authors:
        body = authorship.by_agent(author, body)
    return {
        "epoch": delivery.epoch + 1,
        **receivers.about(binding),
        "files": json.loads(delivery.files or "[]"),
        "parcel": {
            "id": sent.id,
            "sender": f"agent:{author}",
            "address": delivery.address,
            "conversation": conversation,
            "subject": sent.subject,
            "title": answer_subject(thread.subject),
            "body": body,
            "thread": sent.thread_id,
            "reply_to": sent.reply_to,
            "reply_to_outside": _answered_there(ctx, delivery, answered),
            "earlier": list(thread.ids),
            "created_at": sent.created_at,
            "attempt": delivery.attempt + 1,
            "again": again,
        },
    }


def _answered_there(
    ctx: Context, delivery: ChannelDelivery, answered: Message | None
) -> str | None:
    """Return the chat system's id of the message that one answers, if it came from the very place
    that the answer goes to: an answer may go to whoever wrote, and to nobody else."""
    if answered is None or answered.channel != delivery.address:
        return None
    receipt = ctx.tx.one(statements.RECEIPT_OF, message=answered.id)
    return None if receipt is None else receipt.outside_id


@command("outbox.delivered", FOR_REMIT, Added("outside", None))
def delivered(
    ctx: Context, *, message: str, epoch: int, outside: str | None = None
) -> shapes.EndedShape:
    """Mark a message as delivered, with the outside's id of it, if it has one."""
    if outside is not None:
        _QUEUE.fenced(ctx, statements.TAKEN, (message, epoch), outside=outside)
    return _QUEUE.delivered(ctx, message, epoch)


failed = _QUEUE.fails(
    "outbox",
    Added("retry_after", None),
    once=lambda ctx, delivery: _sent(ctx, delivery.message_id).at_most_once,
    patient=lambda ctx, delivery: ctx.now - delivery.deliver_at < PATIENCE,
)


@command("outbox.take_over", FOR_REMIT, Added("until", None))
def take_over(
    ctx: Context, *, message: str, epoch: int, alone: bool = False, until: Micros | None = None
) -> shapes.EndedShape:
    """Retry a message whose worker is silent: its lease expired, or was not renewed and still ends
    at `until`. With `alone` there is no other process."""
    once = _sent(ctx, message).at_most_once
    return _QUEUE.take_over(ctx, message, epoch, alone=alone, until=until, for_good=once)


@command("outbox.put_back", FOR_REMIT)
def put_back(ctx: Context, *, message: str, epoch: int) -> shapes.EndedShape:
    """Requeue a message because its process stops. One to be sent at most once is dead instead."""
    if _sent(ctx, message).at_most_once:
        why = "it was interrupted; the outside may have it"
        return _QUEUE.failed(ctx, message, epoch, why, for_good=True)
    return _QUEUE.put_back(ctx, "message.put_back", message, epoch)


def _sent(ctx: Context, message: str) -> Message:
    # Rows of this queue always have a message.
    return ctx.tx.existing(mail_statements.MESSAGE_ANYWHERE, message=message)


# ── for people, and for the agents above the sender ─────────────────────────────────────────────


def of(ctx: Context, message: Message) -> ChannelDelivery | None:
    """Return the delivery of a message, if it was for a channel."""
    if not message.address.startswith("channel:"):
        return None
    return ctx.tx.one(statements.QUEUE.row, message=message.id)


def dead(ctx: Context, message: Message) -> ChannelDelivery | None:
    delivery = of(ctx, message)
    return delivery if delivery is not None and delivery.status is DeliveryStatus.DEAD else None


def held_back(ctx: Context, message: Message) -> ChannelDelivery | None:
    """Return the delivery of a message that is deferred, so that it can still be taken back."""
    delivery = of(ctx, message)
    waits = delivery is not None and delivery.status is DeliveryStatus.QUEUED
    return delivery if delivery is not None and waits and delivery.deliver_at > ctx.now else None


def cancel(ctx: Context, delivery: ChannelDelivery) -> None:
    _QUEUE.close(ctx, delivery.message_id, DeliveryStatus.CANCELLED, "cancelled")


def revive(ctx: Context, delivery: ChannelDelivery) -> None:
    if ctx.tx.one(statements.BOUND, agent=delivery.agent_id, kind=delivery.adapter_type) is None:
        raise Conflict("Its sender is not bound any more.", "Bind it again, or discard this.")
    ctx.tx.run(statements.REVIVE, message=delivery.message_id)


def discard(ctx: Context, delivery: ChannelDelivery) -> None:
    ctx.tx.run(statements.DISCARD, message=delivery.message_id)


def bury(ctx: Context, agent: AgentId, kind: str) -> list[MessageId]:
    """Mark unsent messages of an agent as dead when the binding is gone. Returns those that were
    never tried, which certainly did not arrive."""
    unsent = []
    for delivery in ctx.tx.all(statements.UNFINISHED_OF, agent=agent, kind=kind):
        _QUEUE.close(ctx, delivery.message_id, DeliveryStatus.DEAD, GONE)
        if delivery.status is DeliveryStatus.QUEUED and delivery.attempt == 0:
            unsent.append(delivery.message_id)
    return unsent


def unbury(ctx: Context, message: MessageId) -> bool:
    """Requeue a dead message whose binding is back; returns whether that was possible."""
    delivery = ctx.tx.one(statements.QUEUE.row, message=message)
    if delivery is None or delivery.status is not DeliveryStatus.DEAD or delivery.ended_why != GONE:
        return False
    if ctx.tx.one(statements.BOUND, agent=delivery.agent_id, kind=delivery.adapter_type) is None:
        return False
    ctx.tx.run(
        statements.REVIVE, message=delivery.message_id, now=max(ctx.now, delivery.deliver_at)
    )
    return True


def view(delivery: ChannelDelivery) -> shapes.DeliveryShape:
    """A channel delivery, as one of a message's deliveries."""
    waits = delivery.status is DeliveryStatus.QUEUED and delivery.attempt == 0
    return {
        "to": delivery.address,
        "to_name": delivery.address.partition(":")[2],
        "status": delivery.status.value,
        "attempt": max(delivery.attempt, 1),
        "deliver_at": views.time(delivery.deliver_at if waits else delivery.next_at),
        "ended_at": views.time(delivery.ended_at),
        "ended_why": delivery.ended_why,
    }
