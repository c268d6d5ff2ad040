"""Schedules: mail that an agent sends at set times, and the verb that delivers what is due."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated, TypeVar

from remit.authority import Action
from remit.clock import Micros, given_time
from remit.errors import BadInput, Conflict, NotFound, Refused, RemitError
from remit.model.messaging.mail import heading, parse_address
from remit.model.messaging.schedule import Schedule, ScheduleStatus, next_time, zone
from remit.model.organisation.agent import Agent
from remit.model.organisation.decision import Decision, Effect
from remit.model.organisation.principal import ActorKind, Principal
from remit.services import lookup, shapes, views
from remit.services.command import FOR_REMIT, Context, command, query
from remit.services.fields import Address, AgentRef, CompanyRef, Help, Moment, Subject, Text
from remit.services.messaging import inbox, mail, visible_pages
from remit.services.new_rows import new_row
from remit.services.organisation import tree
from remit.services.surfaces import AsRoute, AsTool
from remit.services.verbs import preview_of
from remit.store.engine.statement import renewed
from remit.store.messaging import mail as statements

T = TypeVar("T")

LONGEST_BODY = 20_000
#: Most schedules, and most deliveries, in one transaction.
BATCH = 100

_SYSTEM = Decision(Effect.ALLOW, "system", "Its time has come.", "rule:system")


@command(
    "schedules.add",
    AsTool("remind", without=("company", "agent")),
    AsRoute("POST /companies/{companyId}/schedules", "add_schedule", 201),
)
def add(
    ctx: Context,
    *,
    company: CompanyRef | None = None,
    agent: AgentRef | None = None,
    to: Annotated[Address, Help("Default: yourself", model=True)] | None = None,
    body: Annotated[str, Text(LONGEST_BODY)],
    subject: Subject = "",
    cron: Annotated[str, Text(100, one_line=True), Help("Five fields", model=True)] | None = None,
    timezone: Annotated[str, Text(60, one_line=True)] = "UTC",
    at: Moment | None = None,
) -> shapes.ScheduleShape:
    """Send mail at a time or at set times, to yourself by default."""
    if (cron is None) == (at is None):
        raise BadInput("Give either cron or at.", "Use one of the two.")
    lookup.company_of_caller(ctx, company)
    nobody = BadInput("Whose schedule is it?", "Name the agent.")
    whose = lookup.agent(ctx, agent) if agent else lookup.myself(ctx, nobody)
    decision = ctx.require(Action.SCHEDULE_CHANGE, over=whose.id)
    tree.check_assignable(ctx, whose.id)
    address = destination(ctx, whose, to)
    ctx.allow_by_rule(decision)
    zone(timezone)
    due = next_time(cron, timezone, ctx.now) if cron is not None else given_time(at, "at")
    if due <= ctx.now:
        raise BadInput("That time is over.", "Choose a later time.")
    schedule = Schedule(
        **new_row(ctx),
        agent_id=whose.id,
        cron=cron,
        timezone=timezone,
        address=address,
        subject=subject,
        body=body,
        next_at=due,
    )
    ctx.tx.add(schedule)
    ctx.record(
        "schedule.add",
        f"schedule:{schedule.id}",
        {
            "agent": whose.id,
            "cron": cron,
            "timezone": timezone,
            "next_at": views.time(due),
            "to": schedule.address,
        },
    )
    return views.schedule(schedule)


#: The schedule as it would be, with its first time.
preview = preview_of("schedules.preview", add)


def destination(ctx: Context, whose: Agent, to: object) -> str:
    """Return the address of a schedule by ids, so that it stays the same when names change."""
    address = parse_address(f"agent:{whose.id}" if to is None else to)
    return mail.written(address, _as(ctx, whose, lambda: mail.receivers_of(ctx, address)))


listing = visible_pages.lists(
    "schedule",
    statements.SCHEDULES,
    views.schedule,
    shapes.ScheduleShape,
    "schedules",
    "Mail that goes out at set times; an agent sees its own.",
)


def cancel(ctx: Context, schedule: Schedule) -> shapes.EndedShape:
    """Cancel a schedule, as its owner or somebody above."""
    ctx.require(Action.THREAD_CANCEL, on=f"schedule:{schedule.id}", over=schedule.agent_id)
    if schedule.status is not ScheduleStatus.ACTIVE:
        raise Conflict(f"The schedule is {schedule.status.value}.")
    _move(ctx, schedule, ScheduleStatus.CANCELLED, None, schedule.last_at)
    ctx.record("schedule.cancel", f"schedule:{schedule.id}", {"agent": schedule.agent_id})
    return {"id": schedule.id, "status": "cancelled"}


@query("schedules.next_due", FOR_REMIT)
def next_due(ctx: Context) -> Micros | None:
    """Return the time of the next deferred message or schedule; None if there is none."""
    times = [ctx.tx.one(statements.NEXT_DUE), ctx.tx.one(statements.NEXT_SCHEDULE)]
    return min((int(time) for time in times if time is not None), default=None)


@query("schedules.companies_due", FOR_REMIT)
def companies_due(ctx: Context) -> list[str]:
    """Return the companies with a deferred message or a schedule that is due."""
    companies = ctx.tx.all(statements.COMPANIES_DUE)
    companies += ctx.tx.all(statements.COMPANIES_WITH_SCHEDULES_DUE)
    return list(dict.fromkeys(companies))


@command("schedules.run_due")
def run_due(ctx: Context, *, company: str) -> shapes.DueMailShape:
    """Deliver the deferred mail of a company that is due and fire its schedules, in order, each
    once."""
    assert ctx.actor.kind is ActorKind.SYSTEM
    ctx.enter(company)
    ctx.allow_by_rule(_SYSTEM)
    due = {"company": company, "now": ctx.now, "limit": BATCH}
    arrived = []
    for delivery in ctx.tx.all(statements.DUE, **due):
        inbox.arrive(ctx, delivery)
        arrived.append(delivery.message_id)
    fired = []
    for schedule in ctx.tx.all(statements.SCHEDULES_DUE, **due):
        _fire(ctx, schedule)
        fired.append(schedule.id)
    ctx.allow_by_rule(_SYSTEM)
    ctx.record("mail.due", f"company:{company}", {"arrived": arrived, "fired": fired}, _SYSTEM)
    return {"arrived": len(arrived), "fired": len(fired)}


def _fire(ctx: Context, schedule: Schedule) -> None:
    """Send a schedule's mail in its owner's name. Times that were missed while nothing ran are made
    up by one message."""
    owner = lookup.known_agent(ctx, schedule.agent_id)
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
    """End a schedule whose mail is refused for good, and tell its owner."""
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
    """Call a function in an agent's name."""
    caller, ctx.actor = ctx.actor, Principal.of(agent)
    try:
        return act()
    finally:
        ctx.actor = caller


def _move(
    ctx: Context,
    schedule: Schedule,
    status: ScheduleStatus,
    next_at: Micros | None,
    last_at: Micros | None,
) -> None:
    new = replace(schedule, status=status, next_at=next_at, last_at=last_at)
    ctx.tx.run(statements.MOVE_SCHEDULE, schedule=schedule.id, **renewed(new))
