"""Letters that nobody could handle: putting them back in line, and letting them rest."""

from __future__ import annotations

from typing import Any

from remit.authority import Action
from remit.errors import Conflict
from remit.model.channel import ChannelDelivery
from remit.model.mail import Delivery, DeliveryStatus, Message
from remit.model.principal import ActorKind
from remit.services import (
    inbox,
    letters,
    lookup,
    outbox,
    views,
    wishes,
)
from remit.services.command import Answer, Context, command, query
from remit.store import mail as statements


@command("waiting.revive")
def revive(ctx: Context, *, message: str) -> Answer:
    """Put a dead letter back in line, after somebody looked at it."""
    found, dead = _dead_letter(ctx, message)
    for delivery in dead:
        if isinstance(delivery, ChannelDelivery):
            outbox.revive(ctx, delivery)
        else:
            inbox.revive(ctx, delivery)
    ctx.record("message.revive", f"message:{found.id}", {})
    return {"id": found.id, "status": "queued"}


@query("waiting.revivable")
def revivable(ctx: Context, *, company: str | None = None) -> list[dict[str, Any]]:
    """Dead letters that died through no fault of theirs, oldest first: all but those whose receiver
    is gone and those that broke whoever read them."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.COMPANY_READ, on="messages")
    return [
        {
            "id": delivery.message_id,
            "title": subject(ctx, delivery),
            "agent_id": delivery.agent_id,
            "why": delivery.ended_why,
            "since": views.time(delivery.ended_at),
        }
        for delivery in _revivable(ctx)
    ]


@command("waiting.revive_all")
def revive_all(ctx: Context, *, company: str | None = None) -> Answer:
    """Put all these letters back in line, as far as the caller has a say over their receivers."""
    lookup.company_of_caller(ctx, company)
    if ctx.actor.kind is ActorKind.USER:
        scope = ctx.membership.scope_agent_id if ctx.membership else None
        ctx.require(Action.AGENT_CONTROL, on=f"company:{ctx.company}", home=scope)
    else:
        ctx.require(Action.COMPANY_READ, on=f"company:{ctx.company}")
    found = _revivable(ctx)
    for delivery in found:
        inbox.revive(ctx, delivery)
    revived = [delivery.message_id for delivery in found]
    ctx.record("message.revive", f"company:{ctx.company}", {"messages": revived})
    return {"revived": revived}


def _revivable(ctx: Context) -> list[Delivery]:
    gone, broke, unreadable = inbox.OWN_FAULT
    found = ctx.tx.all(
        statements.DEAD_BY_OTHERS,
        company=ctx.company,
        gone=gone,
        broke=broke,
        unreadable=unreadable,
    )
    return [
        delivery
        for delivery in found
        if ctx.decide(
            Action.AGENT_CONTROL, home=delivery.agent_id, place=ctx.place(delivery.agent_id)
        ).allowed
    ]


@command("waiting.discard")
def discard(ctx: Context, *, message: str) -> Answer:
    """A person has seen a dead letter and lets it rest."""
    found, dead = _dead_letter(ctx, message)
    for delivery in dead:
        if isinstance(delivery, ChannelDelivery):
            outbox.discard(ctx, delivery)
        else:
            ctx.tx.run(statements.DISCARD, delivery=delivery.id, now=ctx.now)
    wishes.end(ctx, found.id, "discarded")
    ctx.record("message.discard", f"message:{found.id}", {})
    return {"id": found.id, "status": "cancelled"}


def _dead_letter(ctx: Context, text: str) -> tuple[Message, list[Delivery | ChannelDelivery]]:
    """For whoever has a say over its receiver, or its sender if it was for a channel:
    supervision, not mail."""
    found = lookup.message(ctx, text, lambda one: letters.sees(ctx, one) or _supervises(ctx, one))
    dead = _dead(ctx, found)
    receiver = dead[0].agent_id if dead else found.sender_agent_id
    ctx.require(
        Action.AGENT_CONTROL, on=f"message:{found.id}", home=receiver, place=ctx.place(receiver)
    )
    if not dead:
        raise Conflict("It is not a dead letter.")
    return found, dead


def _dead(ctx: Context, message: Message) -> list[Delivery | ChannelDelivery]:
    unsent = outbox.dead(ctx, message)
    return [
        *([] if unsent is None else [unsent]),
        *(
            delivery
            for delivery in ctx.tx.all(statements.DELIVERIES_OF, message=message.id)
            if delivery.status is DeliveryStatus.DEAD and delivery.agent_id is not None
        ),
    ]


def _supervises(ctx: Context, message: Message) -> bool:
    """Whether the caller has a say over somebody who could not handle it."""
    return any(
        ctx.decide(
            Action.AGENT_CONTROL, home=delivery.agent_id, place=ctx.place(delivery.agent_id)
        ).allowed
        for delivery in _dead(ctx, message)
    )


def item(
    ctx: Context,
    kind: str,
    item: str,
    title: str,
    delivery: Delivery | ChannelDelivery,
    cause: str = "",
) -> dict[str, Any]:
    return {
        "kind": kind,
        "id": item,
        "company_id": ctx.company,
        "title": title,
        "agent_id": delivery.agent_id,
        "since": views.time(delivery.ended_at or delivery.deliver_at),
        "cause": cause,
    }


def subject(ctx: Context, delivery: Delivery | ChannelDelivery) -> str:
    message = ctx.tx.one(statements.MESSAGE_ANYWHERE, message=delivery.message_id)
    assert message is not None
    return message.subject or wishes.first_words(ctx, message)
