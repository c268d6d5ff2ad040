"""Schedules: what an agent will send at set times, and the clock that sees to it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from remit.authority import Action
from remit.clock import Micros, from_iso
from remit.errors import BadInput, Conflict, NotFound, Refused, RemitError
from remit.ids import AgentId, CompanyId, ScheduleId
from remit.model.agent import Agent
from remit.model.decision import Decision, Effect
from remit.model.mail import LONGEST_SUBJECT, heading, parse_address
from remit.model.principal import ActorKind, Principal
from remit.model.schedule import Schedule, ScheduleStatus, next_time, zone
from remit.model.text import clean_line, clean_text
from remit.services import inbox, lookup, loose, mail, tree, views
from remit.services.command import Answer, Context, command, query
from remit.store import mail as statements
from remit.store.statement import row

T = TypeVar("T")

LONGEST_BODY = 20_000
LONGEST_CRON = 100
#: What is handled in one transaction.
BATCH = 100

_SYSTEM = Decision(Effect.ALLOW, "system", "Its time has come.", "rule:system")


@command("schedules.add")
def add(
    ctx: Context,
    *,
    company: str | None = None,
    agent: str | None = None,
    to: object = None,
    body: object,
    subject: object = "",
    cron: object = None,
    timezone: object = "UTC",
    at: object = None,
) -> Answer:
    """Send something again and again, or once at a time; to oneself unless told otherwise."""
    if (cron is None) == (at is None):
        raise BadInput("Give either cron or at.", "Use one of the two.")
    text = clean_text(body, "body", longest=LONGEST_BODY)
    line = clean_line(subject, "subject", longest=LONGEST_SUBJECT, empty_ok=True)
    lookup.company_of_caller(ctx, company)
    whose = lookup.agent(ctx, agent) if agent else _myself(ctx)
    decision = ctx.require(
        Action.SCHEDULE_CHANGE, on=f"agent:{whose.id}", home=whose.id, place=ctx.place(whose.id)
    )
    tree.check_assignable(ctx, whose.id)
    address = destination(ctx, whose, to)
    ctx.accept_rule(decision)
    cron = None if cron is None else clean_line(cron, "cron", longest=LONGEST_CRON)
    timezone = clean_line(timezone, "timezone", longest=60)
    zone(timezone)
    due = next_time(cron, timezone, ctx.now) if cron is not None else _time(at)
    if due <= ctx.now:
        raise BadInput("That time is over.", "Choose a later time.")
    schedule = Schedule(
        id=ScheduleId(ctx.ids.new()),
        company_id=whose.company_id,
        agent_id=whose.id,
        cron=cron,
        timezone=timezone,
        address=address,
        subject=line,
        body=text,
        status=ScheduleStatus.ACTIVE,
        next_at=due,
        last_at=None,
        created_at=ctx.now,
    )
    ctx.tx.run(statements.INSERT_SCHEDULE, **row(schedule))
    ctx.record(
        "schedule.add",
        f"schedule:{schedule.id}",
        {"agent": whose.id, "cron": cron, "next_at": views.time(due), "to": schedule.address},
    )
    return views.schedule(schedule)


def destination(ctx: Context, whose: Agent, to: object) -> str:
    """Whom an agent writes to, so that it stays the same when names change hands."""
    address = parse_address(f"agent:{whose.id}" if to is None else to)
    return mail.written(address, _as(ctx, whose, lambda: mail.receivers_of(ctx, address)))


@query("schedules.listing")
def listing(
    ctx: Context,
    *,
    company: str | None = None,
    agent: str | None = None,
    ended_too: bool = False,
    after: str = "",
    limit: int = 100,
) -> list[dict[str, Any]]:
    lookup.company_of_caller(ctx, company)
    found = loose.listed(
        ctx, statements.SCHEDULES, agent=agent, ended_too=ended_too, after=after, limit=limit
    )
    return [views.schedule(one) for one in found]


def cancel(ctx: Context, found: Schedule) -> Answer:
    """By its owner, or by somebody above."""
    ctx.require(
        Action.THREAD_CANCEL,
        on=f"schedule:{found.id}",
        home=found.agent_id,
        place=ctx.place(found.agent_id),
    )
    if found.status is not ScheduleStatus.ACTIVE:
        raise Conflict(f"The schedule is {found.status.value}.")
    _move(ctx, found, ScheduleStatus.CANCELLED, None, found.last_at)
    ctx.record("schedule.cancel", f"schedule:{found.id}", {"agent": found.agent_id})
    return {"id": found.id, "status": "cancelled"}


@query("schedules.next_due")
def next_due(ctx: Context) -> Micros | None:
    """When something has to be done next; for Remit itself."""
    times = [ctx.tx.one(statements.NEXT_DUE), ctx.tx.one(statements.NEXT_SCHEDULE)]
    known = [int(time) for time in times if time is not None]
    return min(known) if known and ctx.actor.kind is ActorKind.SYSTEM else None


@query("schedules.companies_due")
def companies_due(ctx: Context) -> list[str]:
    """Where something has come due; for Remit itself."""
    if ctx.actor.kind is not ActorKind.SYSTEM:
        return []
    found = ctx.tx.all(statements.COMPANIES_DUE, now=ctx.now)
    found += ctx.tx.all(statements.COMPANIES_WITH_SCHEDULES_DUE, now=ctx.now)
    return list(dict.fromkeys(found))


@command("schedules.run_due")
def run_due(ctx: Context, *, company: str) -> Answer:
    """Deliver what has come due in a company, in order, each once."""
    assert ctx.actor.kind is ActorKind.SYSTEM
    ctx.enter(company)
    ctx.accept_rule(_SYSTEM)
    due = {"company": company, "now": ctx.now, "limit": BATCH}
    arrived = []
    for delivery in ctx.tx.all(statements.DUE, **due):
        inbox.arrive(ctx, delivery)
        arrived.append(delivery.message_id)
    fired = []
    for schedule in ctx.tx.all(statements.SCHEDULES_DUE, **due):
        _fire(ctx, schedule)
        fired.append(schedule.id)
    ctx.accept_rule(_SYSTEM)
    ctx.record("mail.due", f"company:{company}", {"arrived": arrived, "fired": fired}, _SYSTEM)
    return {"arrived": len(arrived), "fired": len(fired)}


def _fire(ctx: Context, schedule: Schedule) -> None:
    """Send it in its owner's name. What was missed while nobody watched is sent once."""
    owner = lookup.agent_row(ctx, schedule.agent_id)
    assert owner is not None
    post = partial(
        mail.post, ctx, to=schedule.address, text=schedule.body, subject=schedule.subject
    )
    try:
        _as(ctx, owner, post)
    except (Refused, Conflict, NotFound, BadInput) as error:
        _give_up(ctx, schedule, owner, error)
        return
    if schedule.cron is None:
        _move(ctx, schedule, ScheduleStatus.DONE, None, ctx.now)
    else:
        following = next_time(schedule.cron, schedule.timezone, ctx.now)
        _move(ctx, schedule, ScheduleStatus.ACTIVE, following, ctx.now)


def _give_up(ctx: Context, schedule: Schedule, owner: Agent, error: RemitError) -> None:
    """What cannot be sent any more is not tried again and again; its owner is told."""
    _move(ctx, schedule, ScheduleStatus.CANCELLED, None, schedule.last_at)
    ctx.record("schedule.failed", f"schedule:{schedule.id}", {"why": error.sentence}, _SYSTEM)
    mail.post(
        ctx,
        to=f"agent:{owner.id}",
        text=f"Your schedule {schedule.id} to {schedule.address} ended.\n\n"
        f"{error.sentence} {error.step}\n",
        subject=heading("Schedule ended", schedule.subject or schedule.body),
    )


def _as(ctx: Context, agent: Agent, act: Callable[[], T]) -> T:
    """Do something in an agent's name."""
    caller, ctx.actor = ctx.actor, _acting(agent)
    try:
        return act()
    finally:
        ctx.actor = caller


def _acting(agent: Agent) -> Principal:
    return Principal(
        ActorKind.AGENT,
        agent.id,
        agent.name,
        CompanyId(agent.company_id),
        agent_status=agent.status,
    )


def _move(
    ctx: Context,
    schedule: Schedule,
    status: ScheduleStatus,
    next_at: Micros | None,
    last_at: Micros | None,
) -> None:
    ctx.tx.run(
        statements.MOVE_SCHEDULE,
        schedule=schedule.id,
        new_status=status.value,
        new_next=next_at,
        new_last=last_at,
    )


def _time(text: object) -> Micros:
    if not isinstance(text, str):
        raise BadInput("at must be a time.", "Write it like 2026-05-01T09:00:00Z.")
    return from_iso(text)


def _myself(ctx: Context) -> Agent:
    if ctx.actor.agent_id is None:
        raise BadInput("Whose schedule is it?", "Name the agent.")
    found = lookup.agent_row(ctx, AgentId(ctx.actor.agent_id))
    assert found is not None
    return found
