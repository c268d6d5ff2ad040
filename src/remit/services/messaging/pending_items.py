"""Loose ends of agents and those below, and dead letters, which nobody could handle: listed,
cancelled, revived and discarded."""

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

from remit.authority import Action
from remit.errors import BadInput, Conflict, NotFound
from remit.model.execution.job import Job
from remit.model.messaging.channel import ChannelDelivery
from remit.model.messaging.mail import Delivery, DeliveryStatus, Message
from remit.model.organisation.decision import Decision
from remit.model.organisation.principal import ActorKind
from remit.services import lookup, shapes, views
from remit.services.command import Context, command, query
from remit.services.connections import outbox
from remit.services.execution import jobs
from remit.services.fields import (
    CompanyRef,
    Help,
    MessageRef,
    OfAnother,
    QuestionRef,
    Reference,
    ScheduleRef,
)
from remit.services.messaging import inbox, letters, questions, schedules, visible_pages, wishes
from remit.services.messaging.visible_pages import QUESTION, SCHEDULE
from remit.services.organisation import overload
from remit.services.surfaces import AsCommand, AsRoute, AsTool
from remit.store.engine.statement import Statement
from remit.store.execution import jobs as job_statements
from remit.store.messaging import channels as channel_statements
from remit.store.messaging import mail as statements
from remit.store.organisation import agents as agent_statements


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


# ── loose ends ──────────────────────────────────────────────────────────────────────────────────

MOST = 500


@query(
    "waiting.loose_ends",
    # The HTTP route returns a list, so it is written by hand.
    AsTool(
        "loose_ends",
        "Loose ends of yours and of those below you.",
        without=("company",),
        offer="loose_ends",
    ),
)
def loose_ends(
    ctx: Context, *, agent: OfAnother | None = None, company: CompanyRef | None = None
) -> shapes.LooseEndsShape:
    """Open questions, schedules, jobs, deferred and dead mail of an agent and everybody below.

    The oldest of each kind, when there are very many; and signs that it, or somebody who reports
    to it, is overloaded.
    """
    if company is not None or not agent:
        lookup.company_of_caller(ctx, company)
    top = lookup.agent_anywhere(ctx, agent).id if agent else ctx.actor.agent_id
    if top is None:
        raise BadInput("Whose loose ends?", "Name the agent.")
    visible_pages.require_look(ctx, top)
    whose: dict[str, object] = {"company": ctx.company, "agent": top, "limit": MOST, "now": ctx.now}
    ends: list[shapes.LooseEndShape] = [
        {"kind": "question", **views.question(question)}
        for question in ctx.tx.all(statements.QUESTIONS_BELOW, **whose)
    ]
    ends += [
        {"kind": "schedule", **views.schedule(schedule)}
        for schedule in ctx.tx.all(statements.SCHEDULES_BELOW, **whose)
    ]
    ends += [
        {"kind": "job", **views.job(job)}
        for job in ctx.tx.all(job_statements.UNFINISHED_BELOW, **whose)
    ]
    lines: tuple[tuple[str, Statement[Any]], ...] = (
        ("deferred_mail", statements.DEFERRED_BELOW),
        ("deferred_mail", channel_statements.DEFERRED_BELOW),
        ("dead_letter", statements.DEAD_BELOW),
        ("dead_letter", channel_statements.DEAD_BELOW),
    )
    ends += [
        item(ctx, kind, delivery.message_id, subject(ctx, delivery), delivery)
        for kind, statement in lines
        for delivery in ctx.tx.all(statement, **whose)
    ]
    here = [lookup.agent_row(ctx, top), *ctx.tx.all(agent_statements.REPORTS, agent=top)]
    ends += overload.of(ctx, [agent for agent in here if agent is not None])
    return {"loose_ends": ends}


@command("waiting.cancel", AsTool("thread_cancel", id="thread", offer="loose_ends"))
def cancel(
    ctx: Context,
    *,
    thread: Annotated[
        str,
        Reference("thread"),
        Help("Of a question, schedule, background job or deferred message"),
    ],
) -> shapes.EndedShape | shapes.EndedMailShape:
    """Cancel a question, schedule, background job or deferred message."""
    with contextlib.suppress(NotFound):
        return questions.cancel(ctx, lookup.find(ctx, QUESTION, thread))
    with contextlib.suppress(NotFound):
        return schedules.cancel(ctx, lookup.find(ctx, SCHEDULE, thread))
    with contextlib.suppress(NotFound):
        return jobs.cancel_one(ctx, lookup.find(ctx, jobs.JOB, thread))
    return take_back(ctx, thread)


@command("waiting.cancel_message")
def cancel_message(ctx: Context, *, message: str) -> shapes.EndedMailShape:
    return take_back(ctx, message)


def take_back(ctx: Context, text: str) -> shapes.EndedMailShape:
    """Cancel a message that was not delivered yet, or else the unfinished jobs of its thread."""
    message = lookup.find(ctx, _WAITING, text)
    if not _own(ctx, message):
        letters.require_reading(ctx, message)
    waiting = [
        delivery
        for delivery in ctx.tx.all(statements.DELIVERIES_OF, message=message.id)
        if delivery.status is DeliveryStatus.DEFERRED
    ]
    unsent = outbox.held_back(ctx, message)
    if not waiting and (under_way := _under_way(ctx, message)):
        for job in under_way:
            jobs.cancel_one(ctx, job)
        return {"id": message.id, "status": "cancelled", "jobs": [job.id for job in under_way]}
    if message.sender_user_id == ctx.actor.id:
        ctx.allow_by_rule(views.OWN)
    else:
        decision = _may_cancel(ctx, message.sender_agent_id)
        ctx.accept(Action.THREAD_CANCEL, f"message:{message.id}", decision)
    if not waiting and unsent is None:
        raise Conflict("The message was delivered already.")
    if unsent is not None:
        outbox.cancel(ctx, unsent)
    for delivery in waiting:
        ctx.tx.run(
            statements.END_DELIVERY,
            delivery=delivery.id,
            new_status=DeliveryStatus.CANCELLED.value,
            why="cancelled",
        )
    wishes.end(ctx, message.id, "taken back")
    ctx.record("message.cancel", f"message:{message.id}", {})
    return {"id": message.id, "status": "cancelled", "jobs": []}


def _under_way(ctx: Context, message: Message) -> list[Job]:
    """Return unfinished jobs that the caller may end: of this message or, if it began the thread,
    of the whole thread."""
    return [
        job
        for job in ctx.tx.all(job_statements.UNFINISHED_IN_THREAD, thread=message.thread_id)
        if message.id in (job.message_id, message.thread_id) and jobs.may_end(ctx, job)
    ]


@command(
    "waiting.cancel_question",
    AsRoute("DELETE /companies/{companyId}/questions/{id}", "cancel_question_in_company"),
    AsRoute("DELETE /questions/{id}", "cancel_question", without=("company",)),
    AsCommand("question cancel", said="Question {id} is {status}."),
)
def cancel_question(
    ctx: Context, *, question: QuestionRef, company: CompanyRef | None = None
) -> shapes.EndedShape:
    """Cancel a question; nobody has to answer it any more."""
    if company is not None:
        lookup.company_of_caller(ctx, company)
    return questions.cancel(ctx, lookup.find(ctx, QUESTION, question))


@command(
    "waiting.cancel_schedule",
    AsRoute("DELETE /companies/{companyId}/schedules/{id}", "cancel_schedule_in_company"),
    AsRoute("DELETE /schedules/{id}", "cancel_schedule", without=("company",)),
    AsCommand("schedule cancel", said="Schedule {id} is {status}."),
)
def cancel_schedule(
    ctx: Context, *, schedule: ScheduleRef, company: CompanyRef | None = None
) -> shapes.EndedShape:
    """End a schedule."""
    if company is not None:
        lookup.company_of_caller(ctx, company)
    return schedules.cancel(ctx, lookup.find(ctx, SCHEDULE, schedule))


def _own(ctx: Context, message: Message) -> bool:
    return _may_cancel(ctx, message.sender_agent_id).allowed


_WAITING = replace(
    letters.MESSAGE,
    sees=lambda ctx: lambda message: letters.sees(ctx, message) or _own(ctx, message),
)


def _may_cancel(ctx: Context, owner: str | None) -> Decision:
    return ctx.decide(Action.THREAD_CANCEL, over=owner)
