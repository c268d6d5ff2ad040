"""What waits for somebody: for a person in one list, for an agent over itself and those below."""

from __future__ import annotations

import contextlib
import json
from functools import cache
from typing import Any

from remit.authority import Action
from remit.clock import Micros
from remit.errors import BadInput, Conflict, NotFound
from remit.ids import AgentId
from remit.model.approval import Approval
from remit.model.budget import Stop
from remit.model.channel import ChannelDelivery
from remit.model.decision import Decision
from remit.model.job import Job
from remit.model.mail import Delivery, DeliveryStatus, Message
from remit.model.principal import ActorKind
from remit.model.run import Run
from remit.model.text import plural
from remit.model.user import UserRole
from remit.model.wish import UNREAD_SHOWN
from remit.services import (
    accounts,
    approval_engine,
    budgets,
    inbox,
    jobs,
    letters,
    limits,
    lookup,
    loose,
    mail,
    outbox,
    questions,
    runaway,
    schedules,
    signs,
    tracing,
    views,
    wishes,
)
from remit.services.command import Answer, Context, command, query
from remit.store import agents as agent_statements
from remit.store import channels as channel_statements
from remit.store import governance, looking, people
from remit.store import jobs as job_statements
from remit.store import leases as lease_statements
from remit.store import mail as statements
from remit.store import runs as run_statements
from remit.store import waits as wait_statements
from remit.store import wishes as wish_statements
from remit.store.statement import Statement

MOST = 500
#: Of the letters that a person wrote; each takes a few questions to the database.
MOST_WISHES = 100


@query("waiting.needs_you")
def needs_you(ctx: Context, *, company: str | None = None) -> list[dict[str, Any]]:
    """Everything that awaits the calling person, oldest first."""
    if ctx.actor.kind is not ActorKind.USER:
        raise BadInput("This list is for people.", "Use loose_ends.")
    if company is not None:
        lookup.company_of_caller(ctx, company)
        companies = [ctx.company]
    else:
        mine = ctx.tx.all(people.COMPANIES_OF_USER, user=ctx.actor.id, after="", limit=MOST)
        companies = [one.id for one in mine]
    found: list[dict[str, Any]] = []
    for one in companies:
        assert one is not None
        ctx.leave()
        ctx.enter(one)
        found += here(ctx)
    return sorted(found, key=lambda item: str(item["since"]))


#: What a person types next, by the kind of what awaits them.
_NEXT = {
    "mail": "remit read {id}",
    "approval": "remit approval approve {id}, or reject {id} …",
    "question": "remit question answer {id} …",
    "submission": "remit outcome accept {id}, or return {id} …",
    "dead_letter": "remit read {id} --revive, or --discard",
    "failed_run": "remit run show {id}",
    "budget_stop": "remit agent budget {id}, then remit agent set",
    "unanswered": "remit read {id}, or remit cancel {id}",
    "held": "remit account show {id}, then remit account retry {id}",
    "agent_error": "remit agent why-idle {id}, then remit agent resume {id}",
}


def here(ctx: Context) -> list[dict[str, Any]]:
    """What awaits the acting person in the company that was entered, each with its cause and the
    command that deals with it."""
    items = _of_company(ctx)
    for item in items:
        item.setdefault("cause", "")
        item.setdefault("next", _NEXT.get(item["kind"], "").format(id=item["id"]))
    return items


def _of_company(ctx: Context) -> list[dict[str, Any]]:
    membership = ctx.membership
    assert membership is not None
    # What a row of its own tells is not told by the letter about it as well.
    told = {account.told_at for account in accounts.held(ctx)}
    items: list[dict[str, Any]] = [
        {
            "kind": "mail",
            "id": letter.message_id,
            "company_id": ctx.company,
            "title": letter.subject or f"Letter from {letter.sender_name or 'remit'}",
            "agent_id": None,
            "cause": f"From {letter.sender_name or 'remit'}.",
            "since": views.time(letter.deliver_at),
        }
        for letter in ctx.tx.all(
            looking.LETTERS_OF_USER, company=ctx.company, user=ctx.actor.id, limit=MOST
        )
        if letter.sender_name is not None or letter.deliver_at not in told
    ]
    items += _mail_of_seats(ctx)
    items += _handed_in(ctx)
    if membership.role is not UserRole.BOARD:
        return items + _unanswered(ctx, set())
    items += _mail_of_vacant_seats(ctx)
    held_up = _held_up(ctx)
    items += [
        _about_agent(
            ctx,
            "approval",
            asked_for.id,
            approval_engine.summary(asked_for),
            asked_for.requested_by_agent_id or asked_for.agent_id or "",
            asked_for.created_at,
            held_up.get(asked_for.id, ""),
        )
        for asked_for in _to_decide(ctx)
    ]
    items += [
        _about_agent(
            ctx,
            "question",
            asked.id,
            asked.text.splitlines()[0],
            asked.agent_id,
            asked.created_at,
            held_up.get(asked.id, ""),
        )
        for asked in ctx.tx.all(statements.OPEN_FOR_BOARD, company=ctx.company, limit=MOST)
        if _in_reach(ctx, asked.agent_id)
    ]
    stops = budgets.stopped(ctx)
    held = {stop.agent_id for stop in stops}
    dead: set[str] = set()
    for delivery in ctx.tx.all(statements.DEAD, company=ctx.company, limit=MOST):
        if delivery.agent_id is not None and _in_reach(ctx, delivery.agent_id):
            dead.add(delivery.message_id)
            items.append(_dead_item(ctx, delivery))
    for unsent in ctx.tx.all(channel_statements.DEAD, company=ctx.company, limit=MOST):
        if _in_reach(ctx, unsent.agent_id):
            cause = _sentence(f"It did not get to {unsent.address}: {unsent.ended_why}")
            title = _subject(ctx, unsent)
            items.append(_item(ctx, "dead_letter", unsent.message_id, title, unsent, cause))
    items += _failed_runs(ctx, held, dead)
    items += _unanswered(ctx, dead)
    items += [
        runaway.silent_item(ctx, run, last)
        for run, last in runaway.silent(ctx)
        if _in_reach(ctx, run.agent_id)
    ]
    items += [limits.item(ctx, reached) for reached in limits.awaiting(ctx)]
    return items + _budget_stops(ctx, stops) + _held(ctx) + _in_error(ctx)


def _held(ctx: Context) -> list[dict[str, Any]]:
    """Once for each account or set-up that is closed, however many wait for it."""
    items = []
    for account in accounts.held(ctx):
        waiting = ctx.tx.one(lease_statements.COUNT_HELD_BY, account=account.id) or 0
        cause = accounts.sentence(account)
        if waiting:
            cause += f" {plural(waiting, 'agent')} {'wait' if waiting > 1 else 'waits'} for it."
        title = f"{account.name} cannot be used"
        item = _about_agent(ctx, "held", account.id, title, "", account.since, cause)
        items.append({**item, "agent_id": None})
    return items


def _in_error(ctx: Context) -> list[dict[str, Any]]:
    """Agents that do not work before a person mends something, each with the cause."""
    return [
        _about_agent(
            ctx,
            "agent_error",
            agent.id,
            f"{agent.name} does not work: {(lease.told or 'all its runs failed').rstrip('.')}",
            agent.id,
            lease.failing_since or agent.updated_at,
        )
        for agent in ctx.tx.all(agent_statements.IN_ERROR, company=ctx.company, limit=MOST)
        if _in_reach(ctx, agent.id)
        and (lease := ctx.tx.one(lease_statements.LEASE, agent=agent.id)) is not None
    ]


def _dead_item(ctx: Context, delivery: Delivery) -> dict[str, Any]:
    """A letter that nobody could handle, with what the last who tried said."""
    error = tracing.last_error(ctx, delivery)
    why = delivery.ended_why or "it was tried too often"
    cause = _sentence(f"{why}; last: {error}" if error else why)
    return _item(ctx, "dead_letter", delivery.message_id, _subject(ctx, delivery), delivery, cause)


def _failed_runs(ctx: Context, held: set[AgentId], dead: set[str]) -> list[dict[str, Any]]:
    """Agents whose last run failed, unless another row tells of it: what they could not handle,
    a budget, or a letter to the same person that says so."""
    told = _told_at(ctx)
    found = []
    for run in ctx.tx.all(run_statements.FAILED_RUNS, company=ctx.company, limit=MOST):
        if not _in_reach(ctx, run.agent_id) or run.agent_id in held:
            continue
        too_much = runaway.runaway_item(ctx, run)
        if too_much is not None:
            found.append(too_much)
            continue
        agent = lookup.agent_row(ctx, run.agent_id)
        by_mail = agent is not None and agent.boss_user_id == ctx.actor.id
        if _is_told_of(ctx, run, dead) or (by_mail and _was_told(ctx, run.agent_id, told)):
            continue
        cause = _sentence(run.error or run.status.value)
        title = f"A run {run.status.value}"
        found.append(
            _about_agent(ctx, "failed_run", run.id, title, run.agent_id, run.ended_at, cause)
        )
    return found


def _is_told_of(ctx: Context, run: Run, dead: set[str]) -> bool:
    """Whether what it took up is a dead letter, or was one that somebody put away."""
    return any(
        message in dead
        or any(
            delivery.status is DeliveryStatus.CANCELLED
            for delivery in ctx.tx.all(statements.DELIVERIES_OF, message=message)
        )
        for message in json.loads(run.message_ids)
    )


def _told_at(ctx: Context) -> set[Micros]:
    """When Remit wrote the letters to the acting person that are unread."""
    unread = ctx.tx.all(looking.LETTERS_OF_USER, company=ctx.company, user=ctx.actor.id, limit=MOST)
    return {letter.deliver_at for letter in unread if letter.sender_name is None}


def _was_told(ctx: Context, agent: AgentId, told: set[Micros]) -> bool:
    """Whether one of these was written when a run of the agent failed: the same moment."""
    if not told:
        return False
    runs = ctx.tx.all(
        run_statements.RUNS,
        company=ctx.company,
        agent=agent,
        any_agent=False,
        ended_too=True,
        before=lookup.AFTER,
        limit=20,
    )
    return any(run.ended_at in told for run in runs)


def _unanswered(ctx: Context, dead: set[str]) -> list[dict[str, Any]]:
    """What the acting person wrote and nobody will answer by themselves; `dead` is told of."""
    found = []
    for wish in ctx.tx.all(
        wish_statements.OPEN_OF_USER, company=ctx.company, user=ctx.actor.id, limit=MOST_WISHES
    ):
        if wish.message_id in dead:
            continue
        letter = ctx.tx.one(statements.MESSAGE_ANYWHERE, message=wish.message_id)
        assert letter is not None
        stands = tracing.state(ctx, letter)
        kept = (
            stands["state"] == "queued"
            and wish.created_at + UNREAD_SHOWN <= ctx.now
            and mail.not_started(ctx, letter) is not None
        )
        if kept or stands["state"] in ("unanswered", "dead"):
            title = letter.subject or wishes.first_words(ctx, letter)
            about = (wish.agent_id, wish.created_at, stands["sentence"])
            found.append(_about_agent(ctx, "unanswered", letter.id, title, *about))
    return found


def _held_up(ctx: Context) -> dict[str, str]:
    """By question or approval, who waits for it and with what."""
    found: dict[str, tuple[str, list[str]]] = {}
    for subject, name, title in ctx.tx.all(
        wait_statements.HELD_UP, company=ctx.company, limit=10 * MOST
    ):
        found.setdefault(subject, (name, []))[1].append(title)
    return {
        subject: f"{name} waits for it with {', '.join(repr(title) for title in titles[:3])}."
        for subject, (name, titles) in found.items()
    }


def _sentence(text: str) -> str:
    """One full stop at the end, however many there were."""
    return f"{text.strip().rstrip('.')}."


def _handed_in(ctx: Context) -> list[dict[str, Any]]:
    """What awaits the verdict of the calling person: as a boss, in a seat, or on the board."""
    membership = ctx.membership
    assert membership is not None
    found = [
        wait
        for wait in ctx.tx.all(
            wait_statements.SUBMITTED_TO_PEOPLE, company=ctx.company, user=ctx.actor.id, limit=MOST
        )
        if wait.awaited_user_id is not None or membership.role is UserRole.BOARD
    ]
    for seat in ctx.tx.all(agent_statements.SEATS_OF, company=ctx.company, user=ctx.actor.id):
        found += ctx.tx.all(wait_statements.SUBMITTED_TO_AGENT, agent=seat, limit=MOST)
    return [
        _about_agent(ctx, "submission", outcome.id, outcome.title, wait.agent_id, wait.since)
        for wait in found
        for outcome in ctx.tx.all(wait_statements.OUTCOMES_OF_WAIT, wait=wait.id)
    ]


def _budget_stops(ctx: Context, stops: list[Stop]) -> list[dict[str, Any]]:
    """Once for each budget that is used up, however many wait for it."""
    found: dict[tuple[str, str], list[Stop]] = {}
    for stop in stops:
        if _in_reach(ctx, stop.holder_id):
            found.setdefault((stop.holder_id, stop.kind.value), []).append(stop)
    items = []
    for (holder, kind), waiting in found.items():
        who = lookup.agent_row(ctx, holder)
        title = f"The budget of {who.name if who else holder} is used up ({kind})"
        if len(waiting) > 1:
            title += f"; {len(waiting)} agents wait"
        items.append(_about_agent(ctx, "budget_stop", holder, title, holder, waiting[0].since))
    return items


def _mail_of_seats(ctx: Context) -> list[dict[str, Any]]:
    """No program is started for a person, so what waits for their seat is shown to them."""
    return [
        _item(ctx, "mail", delivery.message_id, _subject(ctx, delivery), delivery)
        for seat in ctx.tx.all(agent_statements.SEATS_OF, company=ctx.company, user=ctx.actor.id)
        for delivery in ctx.tx.all(
            statements.WAITING_FOR_AGENT, agent=seat, any_run=True, run="", limit=MOST
        )
    ]


def _mail_of_vacant_seats(ctx: Context) -> list[dict[str, Any]]:
    """What waits for seats that nobody holds, unless it came to the caller as well."""
    found = []
    for seat in ctx.tx.all(agent_statements.VACANT_SEATS, company=ctx.company):
        if not _in_reach(ctx, seat.id):
            continue
        for delivery in ctx.tx.all(
            statements.WAITING_FOR_AGENT, agent=seat.id, any_run=True, run="", limit=MOST
        ):
            all_ = ctx.tx.all(statements.DELIVERIES_OF, message=delivery.message_id)
            if all(one.user_id != ctx.actor.id for one in all_):
                title = f"{_subject(ctx, delivery)} (for {seat.name}, a seat that nobody holds)"
                found.append(_item(ctx, "mail", delivery.message_id, title, delivery))
    return found


def _to_decide(ctx: Context) -> list[Approval]:
    """What the calling board member may decide, oldest first; others' parts are passed over."""
    found: list[Approval] = []
    in_reach = cache(lambda agent: _in_reach(ctx, agent))
    after = ""
    while len(found) < MOST:
        page = ctx.tx.all(governance.PENDING, company=ctx.company, after=after, limit=MOST)
        found += [
            one
            for one in page
            if not one.expired(ctx.now) and in_reach(one.home_agent_id or one.agent_id)
        ]
        if len(page) < MOST:
            break
        after = page[-1].id
    return found[:MOST]


def _about_agent(
    ctx: Context,
    kind: str,
    subject: str,
    title: str,
    agent: str,
    since: Micros | None,
    cause: str = "",
) -> dict[str, Any]:
    return {
        "kind": kind,
        "id": subject,
        "company_id": ctx.company,
        "title": title,
        "agent_id": agent,
        "since": views.time(since),
        "cause": cause,
    }


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
            _item(ctx, kind, found.message_id, _subject(ctx, found), found)
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
            "title": _subject(ctx, delivery),
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


def _own(ctx: Context, message: Message) -> bool:
    return _may_cancel(ctx, message.sender_agent_id).allowed


def _may_cancel(ctx: Context, owner: str | None) -> Decision:
    return ctx.decide(Action.THREAD_CANCEL, home=owner, place=ctx.place(owner))


def _item(
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


def _subject(ctx: Context, delivery: Delivery | ChannelDelivery) -> str:
    message = ctx.tx.one(statements.MESSAGE_ANYWHERE, message=delivery.message_id)
    assert message is not None
    return message.subject or wishes.first_words(ctx, message)


def _in_reach(ctx: Context, agent: str | None) -> bool:
    scope = ctx.membership.scope_agent_id if ctx.membership else None
    return scope is None or scope in ctx.place(agent)
