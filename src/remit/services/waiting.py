"""What agents left open, over themselves and those below: looking at it, and taking it back."""

from __future__ import annotations

import contextlib
from typing import Any

from remit.authority import Action
from remit.errors import BadInput, Conflict, NotFound
from remit.model.decision import Decision
from remit.model.job import Job
from remit.model.mail import DeliveryStatus, Message
from remit.services import (
    dead_letters,
    jobs,
    letters,
    lookup,
    loose,
    outbox,
    questions,
    schedules,
    signs,
    views,
    wishes,
)
from remit.services.command import Answer, Context, command, query
from remit.store import agents as agent_statements
from remit.store import channels as channel_statements
from remit.store import jobs as job_statements
from remit.store import mail as statements
from remit.store.statement import Statement

MOST = 500


@query("waiting.loose_ends")
def loose_ends(
    ctx: Context, *, agent: str | None = None, company: str | None = None
) -> dict[str, Any]:
    """Open questions, schedules, jobs, deferred and dead mail of an agent and everybody below.

    The oldest of each kind, when there are very many; and signs that it, or somebody who reports
    to it, has more to do than it gets on with.
    """
    if company is not None or not agent:
        lookup.company_of_caller(ctx, company)
    top = lookup.agent_anywhere(ctx, agent).id if agent else ctx.actor.agent_id
    if top is None:
        raise BadInput("Whose loose ends?", "Name the agent.")
    loose.look(ctx, top)
    whose: dict[str, Any] = {"company": ctx.company, "agent": top, "limit": MOST, "now": ctx.now}
    ends = [
        {"kind": "question", **views.question(found)}
        for found in ctx.tx.all(statements.QUESTIONS_BELOW, **whose)
    ]
    ends += [
        {"kind": "schedule", **views.schedule(found)}
        for found in ctx.tx.all(statements.SCHEDULES_BELOW, **whose)
    ]
    ends += [
        {"kind": "job", **views.job(found)}
        for found in ctx.tx.all(job_statements.UNFINISHED_BELOW, **whose)
    ]
    lines: tuple[tuple[str, Statement[Any]], ...] = (
        ("deferred_mail", statements.DEFERRED_BELOW),
        ("deferred_mail", channel_statements.DEFERRED_BELOW),
        ("dead_letter", statements.DEAD_BELOW),
        ("dead_letter", channel_statements.DEAD_BELOW),
    )
    for kind, statement in lines:
        ends += [
            dead_letters.item(ctx, kind, found.message_id, dead_letters.subject(ctx, found), found)
            for found in ctx.tx.all(statement, **whose)
        ]
    here = [lookup.agent_row(ctx, top), *ctx.tx.all(agent_statements.REPORTS, agent=top)]
    ends += signs.of(ctx, [agent for agent in here if agent is not None])
    return {"loose_ends": ends}


@query("waiting.has_loose_ends")
def has_loose_ends(ctx: Context) -> bool:
    """Whether the calling agent has reports, or something of its own that it could cancel."""
    me = ctx.actor.agent_id
    if me is None:
        return False
    if ctx.tx.all(agent_statements.REPORTS, agent=me):
        return True
    own: dict[str, Any] = {"company": ctx.actor.company_id, "agent": me, "limit": 1}
    own |= {"after": "", "any_agent": False, "ended_too": False}
    return bool(
        ctx.tx.all(statements.QUESTIONS, **own)
        or ctx.tx.all(statements.SCHEDULES, **own)
        or ctx.tx.all(statements.DEFERRED_BY, agent=me, limit=1)
        or ctx.tx.one(job_statements.COUNT_UNFINISHED, agent=me)
    )


@command("waiting.cancel")
def cancel(ctx: Context, *, thread: str) -> Answer:
    """Cancel a question, a schedule, a job or a deferred message: by its owner, or from above."""
    with contextlib.suppress(NotFound):
        asked = lookup.question(ctx, thread, lambda one: _may_cancel(ctx, one.agent_id).allowed)
        return questions.cancel(ctx, asked)
    with contextlib.suppress(NotFound):
        planned = lookup.schedule(ctx, thread, lambda one: _may_cancel(ctx, one.agent_id).allowed)
        return schedules.cancel(ctx, planned)
    with contextlib.suppress(NotFound):
        job = lookup.job(ctx, thread, lambda one: jobs.may_end(ctx, one))
        return jobs.cancel_one(ctx, job)
    return _take_back(ctx, thread)


@command("waiting.cancel_message")
def cancel_message(ctx: Context, *, message: str) -> Answer:
    return _take_back(ctx, message)


def _take_back(ctx: Context, text: str) -> Answer:
    """A message that was not delivered yet; or what its thread has under way in the background."""
    message = lookup.message(ctx, text, lambda one: letters.sees(ctx, one) or _own(ctx, one))
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
        ctx.accept_rule(views.OWN)
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
            now=ctx.now,
            why="cancelled",
        )
    wishes.end(ctx, message.id, "taken back")
    ctx.record("message.cancel", f"message:{message.id}", {})
    return {"id": message.id, "status": "cancelled"}


def _under_way(ctx: Context, message: Message) -> list[Job]:
    """Jobs that the caller may end: of this message or, if it began the thread, of all of it."""
    return [
        job
        for job in ctx.tx.all(job_statements.UNFINISHED_IN_THREAD, thread=message.thread_id)
        if message.id in (job.message_id, message.thread_id) and jobs.may_end(ctx, job)
    ]


@command("waiting.cancel_question")
def cancel_question(ctx: Context, *, question: str, company: str | None = None) -> Answer:
    if company is not None:
        lookup.company_of_caller(ctx, company)
    asked = lookup.question(ctx, question, lambda one: _may_cancel(ctx, one.agent_id).allowed)
    return questions.cancel(ctx, asked)


@command("waiting.cancel_schedule")
def cancel_schedule(ctx: Context, *, schedule: str, company: str | None = None) -> Answer:
    if company is not None:
        lookup.company_of_caller(ctx, company)
    planned = lookup.schedule(ctx, schedule, lambda one: _may_cancel(ctx, one.agent_id).allowed)
    return schedules.cancel(ctx, planned)


def _own(ctx: Context, message: Message) -> bool:
    return _may_cancel(ctx, message.sender_agent_id).allowed


def _may_cancel(ctx: Context, owner: str | None) -> Decision:
    return ctx.decide(Action.THREAD_CANCEL, home=owner, place=ctx.place(owner))
