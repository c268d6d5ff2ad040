"""Dead letters, which nobody could handle: revived or discarded by people and supervisors."""

from collections.abc import Callable
from dataclasses import replace

from remit.authority import Action
from remit.errors import Conflict
from remit.model.messaging.channel import ChannelDelivery
from remit.model.messaging.mail import Delivery, DeliveryStatus, Message
from remit.model.organisation.principal import ActorKind
from remit.services import lookup, shapes, views
from remit.services.command import Context, command, query
from remit.services.connections import outbox
from remit.services.fields import CompanyRef, MessageRef
from remit.services.messaging import inbox, letters, wishes
from remit.services.surfaces import AsRoute
from remit.store.messaging import mail as statements


@command("waiting.revive", AsRoute("POST /messages/{id}/revive", "revive_message"))
def revive(ctx: Context, *, message: MessageRef) -> shapes.EndedShape:
    """Queue a dead letter again, after somebody looked at it."""
    letter = _each_dead(ctx, message, outbox.revive, inbox.revive)
    ctx.record("message.revive", f"message:{letter.id}", {})
    return {"id": letter.id, "status": "queued"}


@query(
    "waiting.revivable",
    AsRoute("GET /companies/{companyId}/dead-letters", "list_dead_letters", page="id"),
)
def revivable(ctx: Context, *, company: CompanyRef | None = None) -> list[shapes.DeadLetterShape]:
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


@command(
    "waiting.revive_all",
    AsRoute("POST /companies/{companyId}/dead-letters/revive", "revive_dead_letters"),
)
def revive_all(ctx: Context, *, company: CompanyRef | None = None) -> shapes.RevivedShape:
    """Put all these letters back in line, as far as the caller has a say over their receivers."""
    lookup.company_of_caller(ctx, company)
    if ctx.actor.kind is ActorKind.USER:
        scope = ctx.membership.scope_agent_id if ctx.membership else None
        ctx.require(Action.AGENT_CONTROL, on=f"company:{ctx.company}", home=scope)
    else:
        ctx.require(Action.COMPANY_READ, on=f"company:{ctx.company}")
    deliveries = _revivable(ctx)
    for delivery in deliveries:
        inbox.revive(ctx, delivery)
    revived: list[str] = [delivery.message_id for delivery in deliveries]
    ctx.record("message.revive", f"company:{ctx.company}", {"messages": revived})
    return {"revived": revived}


def _revivable(ctx: Context) -> list[Delivery]:
    gone, broke, unreadable = inbox.OWN_FAULT
    deliveries = ctx.tx.all(
        statements.DEAD_BY_OTHERS, gone=gone, broke=broke, unreadable=unreadable
    )
    return [
        delivery
        for delivery in deliveries
        if ctx.decide(Action.AGENT_CONTROL, over=delivery.agent_id).allowed
    ]


@command("waiting.discard", AsRoute("POST /messages/{id}/discard", "discard_message"))
def discard(ctx: Context, *, message: MessageRef) -> shapes.EndedShape:
    """Dismiss a dead letter: it is not delivered again."""
    letter = _each_dead(ctx, message, outbox.discard, inbox.discard)
    wishes.end(ctx, letter.id, "discarded")
    ctx.record("message.discard", f"message:{letter.id}", {})
    return {"id": letter.id, "status": "cancelled"}


def _each_dead(
    ctx: Context,
    text: str,
    outside: Callable[[Context, ChannelDelivery], object],
    inside: Callable[[Context, Delivery], object],
) -> Message:
    """Apply an act to every dead delivery of a letter, to channels and to inboxes. The caller needs
    control of its receiver, or of its sender if it was for a channel: supervision, not mail."""
    letter = lookup.find(ctx, _DEAD_LETTER, text)
    if not _supervises(ctx, letter):
        letters.require_reading(ctx, letter)
    dead = _dead(ctx, letter)
    receiver = dead[0].agent_id if dead else letter.sender_agent_id
    ctx.require(Action.AGENT_CONTROL, on=f"message:{letter.id}", over=receiver)
    if not dead:
        raise Conflict("It is not a dead letter.")
    for delivery in dead:
        if isinstance(delivery, ChannelDelivery):
            outside(ctx, delivery)
        else:
            inside(ctx, delivery)
    return letter


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
    """Return whether the caller has control of an agent that could not handle the letter."""
    return any(
        ctx.decide(Action.AGENT_CONTROL, over=delivery.agent_id).allowed
        for delivery in _dead(ctx, message)
    )


_DEAD_LETTER = replace(
    letters.MESSAGE,
    sees=lambda ctx: lambda message: letters.sees(ctx, message) or _supervises(ctx, message),
)


def item(
    ctx: Context,
    kind: str,
    item: str,
    title: str,
    delivery: Delivery | ChannelDelivery,
    cause: str = "",
) -> shapes.AwaitingShape:
    since = delivery.ended_at or delivery.deliver_at
    return views.awaiting(ctx.company, kind, item, title, delivery.agent_id, since, cause)


def subject(ctx: Context, delivery: Delivery | ChannelDelivery) -> str:
    message = ctx.tx.existing(statements.MESSAGE_ANYWHERE, message=delivery.message_id)
    return message.subject or wishes.first_words(ctx, message)
