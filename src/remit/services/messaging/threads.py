"""Reading mail: an inbox, a thread, sent mail. Reading takes nothing up."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Annotated

from remit.authority import Action
from remit.errors import BadInput, NotFound
from remit.ids import END_OF_IDS
from remit.model.messaging.mail import BACKGROUND, AddressKind, Delivery, DeliveryStatus, Message
from remit.model.organisation.principal import ActorKind
from remit.services import lookup, shapes, views
from remit.services.command import Context, logged, query
from remit.services.connections import outbox
from remit.services.fields import CompanyRef, Help, MessageRef
from remit.services.messaging import letter_trace, letters
from remit.services.surfaces import AsRoute
from remit.services.verbs import Added
from remit.store.execution import jobs as job_statements
from remit.store.messaging import mail as mail_statements
from remit.store.messaging import threads as statements
from remit.store.organisation import agents as agent_statements
from remit.store.organisation import people
from remit.store.work import wishes as wish_statements

#: Longest body in a list.
LONGEST_LISTED = 4096
#: Longest thread; its end is cut.
LONGEST_THREAD = 100
_AT_A_TIME = 200
#: A position after all others.
LAST_POSITION = (1 << 62) - 1
_UNREAD = (DeliveryStatus.QUEUED, DeliveryStatus.LEASED)


@query("threads.own_inbox")
def own_inbox(
    ctx: Context,
    *,
    company: str | None = None,
    everything: bool = False,
    after: tuple[str, int] = ("", 0),
    limit: int = 100,
) -> list[shapes.ReceivedMessageShape]:
    """The caller's mail, oldest first: unread, or all. `after` continues a page."""
    if ctx.actor.agent_id is not None:
        lookup.company_of_caller(ctx, company)
        return _inbox_of(ctx, ctx.actor.agent_id, everything, after[1], limit)
    if company is not None:
        lookup.company_of_caller(ctx, company)
    deliveries = ctx.tx.all(
        statements.INBOX_OF_USER,
        user=ctx.actor.id,
        everything=everything,
        any_company=company is None,
        only_company=ctx.company or "",
        company=after[0],
        position=after[1],
        limit=limit,
    )
    return _received(ctx, deliveries)


@query("threads.newest")
def newest(
    ctx: Context,
    *,
    company: str | None,
    everything: bool = False,
    before: int = LAST_POSITION,
    limit: int = 100,
) -> list[shapes.ReceivedMessageShape]:
    """The calling person's mail in a company, newest first: unread, or all."""
    lookup.company_of_caller(ctx, company)
    deliveries = ctx.tx.all(
        statements.NEWEST_OF_USER,
        user=ctx.actor.id,
        everything=everything,
        position=before,
        limit=limit,
    )
    return _received(ctx, deliveries)


@query("threads.inbox_of")
def inbox_of(
    ctx: Context,
    *,
    agent: str,
    everything: bool = False,
    after: tuple[str, int] = ("", 0),
    limit: int = 100,
) -> list[shapes.ReceivedMessageShape]:
    """Mail of an agent, unread or all, for a caller who may read it."""
    receiver = lookup.agent_anywhere(ctx, agent)
    return _inbox_of(ctx, receiver.id, everything, after[1], limit)


def _inbox_of(
    ctx: Context, agent: str, everything: bool, after: int, limit: int
) -> list[shapes.ReceivedMessageShape]:
    ctx.require(Action.MESSAGE_READ, over=agent)
    statement = statements.EVERYTHING_FOR_AGENT if everything else statements.UNREAD_BY_AGENT
    deliveries = ctx.tx.all(statement, agent=agent, position=after, limit=limit)
    return _received(ctx, deliveries)


@query(
    "threads.listing",
    Added("sent", False),
    AsRoute("GET /companies/{companyId}/messages", "list_messages", page="id"),
)
def listing(
    ctx: Context,
    *,
    company: CompanyRef | None = None,
    before: str = END_OF_IDS,
    limit: int = 100,
    sent: Annotated[bool, Help("Letters of the calling person, and their state.")] = False,
) -> list[shapes.ListedMessageShape | shapes.FollowedMessageShape]:
    """Messages of a company, as far as the caller may see them, newest first."""
    lookup.company_of_caller(ctx, company)
    if sent:
        return [*_sent_by_me(ctx, before, limit)]
    if ctx.actor.agent_id is not None:
        ctx.require(Action.MESSAGE_READ, on="messages", place=(ctx.actor.agent_id,))
        messages = ctx.tx.all(
            statements.MESSAGES_WITH_AGENT, agent=ctx.actor.agent_id, before=before, limit=limit
        )
        letters.look_ahead(ctx, messages)
        return [_sent(ctx, message) for message in messages]
    seen = (message for message in _all_messages(ctx, before) if letters.sees(ctx, message))
    return [_sent(ctx, message) for message in islice(seen, limit)]


@logged("threads.show", AsRoute("GET /messages/{id}", "show_message"))
def show(ctx: Context, *, message: MessageRef) -> shapes.MessageInFullShape:
    """A message, and of its thread what the caller may see, oldest first."""
    letter = lookup.find(ctx, letters.MESSAGE, message)
    letters.require_reading(ctx, letter)
    thread = ctx.tx.all(mail_statements.THREAD, thread=letter.thread_id, limit=LONGEST_THREAD)
    letters.look_ahead(ctx, thread)
    return {
        **_read(ctx, letter),
        "thread": [_read(ctx, other) for other in thread if letters.sees(ctx, other)],
        "trace": _trace(ctx, letter),
    }


@query("threads.trace", AsRoute("GET /messages/{id}/trace", "trace_message"))
def trace(ctx: Context, *, message: MessageRef) -> shapes.TraceShape:
    """Trace of a letter from a person: its state, runs, outcomes, hires and replies."""
    letter = lookup.find(ctx, letters.MESSAGE, message)
    letters.require_reading(ctx, letter)
    traced = _trace(ctx, letter)
    if traced is None:
        raise NotFound("Only letters from people to agents are followed.", "Read the message.")
    return traced


def _trace(ctx: Context, message: Message) -> shapes.TraceShape | None:
    """The trace of a person's letter; for a message that came of one, the trace of that letter."""
    if message.origin_id is not None:
        behind = ctx.tx.one(mail_statements.MESSAGE_ANYWHERE, message=message.origin_id)
        if behind is not None and letters.sees(ctx, behind):
            message = behind
    traced = letter_trace.trace(ctx, message)
    return None if traced is None else {"message_id": message.id, **traced}


def _sent_by_me(ctx: Context, before: str, limit: int) -> list[shapes.FollowedMessageShape]:
    if ctx.actor.kind is not ActorKind.USER:
        raise BadInput("Only people have such a list.", "List your messages without it.")
    messages = ctx.tx.all(
        wish_statements.SENT_BY_USER, user=ctx.actor.id, before=before, limit=limit
    )
    ctx.allow_by_rule(views.OWN)
    letters.look_ahead(ctx, messages)
    return [
        {**_sent(ctx, message), **letter_trace.state(ctx, message), **_preview(ctx, message)}
        for message in messages
    ]


def _preview(ctx: Context, message: Message) -> shapes.BodyShape:
    body, whole = letters.body_of(ctx, message)
    return {"body": body[:LONGEST_LISTED], "body_cut": not whole or len(body) > LONGEST_LISTED}


def _all_messages(ctx: Context, before: str) -> Iterator[Message]:
    while page := ctx.tx.all(mail_statements.MESSAGES, before=before, limit=_AT_A_TIME):
        letters.look_ahead(ctx, page)
        yield from page
        before = page[-1].id


def _received(ctx: Context, inbox: Sequence[Delivery]) -> list[shapes.ReceivedMessageShape]:
    """The messages of an inbox; every delivery has one."""
    statement = mail_statements.MESSAGE_ANYWHERE
    ctx.tx.look_ahead(statement, [delivery.message_id for delivery in inbox])
    messages = [ctx.tx.existing(statement, message=delivery.message_id) for delivery in inbox]
    letters.look_ahead(ctx, messages)
    return [_in_inbox(ctx, *both) for both in zip(inbox, messages, strict=True)]


def _in_inbox(ctx: Context, delivery: Delivery, message: Message) -> shapes.ReceivedMessageShape:
    return {
        **_named(ctx, message),
        "status": delivery.status.value,
        "attempt": delivery.attempt,
        "may_have_been_handled": delivery.may_have_been_handled,
        "position": delivery.position,
        "delivered_at": views.time(max(delivery.deliver_at, message.created_at)),
        **_preview(ctx, message),
    }


def _sent(ctx: Context, message: Message) -> shapes.ListedMessageShape:
    """A message with its deliveries."""
    reached = ctx.tx.all(mail_statements.DELIVERIES_OF, message=message.id)
    return {
        **_named(ctx, message),
        "unread": any(
            delivery.status in _UNREAD and ctx.actor.id in (delivery.agent_id, delivery.user_id)
            for delivery in reached
        ),
        "deliveries": [
            *(_delivery(ctx, delivery) for delivery in reached),
            *_to_background(ctx, message),
            *_to_channel(ctx, message),
        ],
    }


def _read(ctx: Context, message: Message) -> shapes.ReadMessageShape:
    """A message with its text; the read is recorded in the access log."""
    return {**letters.shown(ctx, message), **_sent(ctx, message)}


def _delivery(ctx: Context, delivery: Delivery) -> shapes.DeliveryShape:
    kind = "agent" if delivery.agent_id is not None else "user"
    address = f"{kind}:{delivery.agent_id or delivery.user_id}"
    return {
        "to": address,
        "to_name": _name(ctx, address),
        "status": delivery.status.value,
        "attempt": delivery.attempt,
        "deliver_at": views.time(delivery.deliver_at),
        "ended_at": views.time(delivery.ended_at),
        "ended_why": delivery.ended_why,
    }


def _to_background(ctx: Context, message: Message) -> Iterator[shapes.DeliveryShape]:
    """State of mail to the background: done once it is accepted; the rest is the job's state."""
    if message.address != BACKGROUND:
        return
    job = ctx.tx.one(job_statements.JOB_OF_MESSAGE, message=message.id)
    if job is not None:
        yield {
            "to": BACKGROUND,
            "to_name": AddressKind.BACKGROUND.value,
            "status": DeliveryStatus.DONE.value,
            "attempt": 1,
            "deliver_at": views.time(job.due_at),
            "ended_at": views.time(job.created_at),
            "ended_why": "accepted as a job",
            "job_id": job.id,
        }


def _to_channel(ctx: Context, message: Message) -> Iterator[shapes.DeliveryShape]:
    delivery = outbox.of(ctx, message)
    if delivery is not None:
        yield outbox.view(delivery)


def _named(ctx: Context, message: Message) -> shapes.NamedMessageShape:
    shown = views.message(message)
    return {**shown, "sender_name": _name(ctx, shown["sender"]), "to_name": _name(ctx, shown["to"])}


def _name(ctx: Context, address: str) -> str:
    """The display name of an address; `remit` for the system, the board as it is."""
    kind, _, who = address.partition(":")
    if kind == "agent":
        agent = ctx.tx.one(agent_statements.AGENT_ANYWHERE, agent=who)
        return agent.name if agent else who
    if kind == "user":
        user = ctx.tx.one(people.USER, user=who)
        return user.name if user else who
    if kind == "channel":
        return who
    return "remit" if kind == "system" else address
