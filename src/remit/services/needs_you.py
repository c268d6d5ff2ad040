"""What awaits a person, in one list: each row with its cause and the command that deals with it."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, cast

from remit.clock import Micros
from remit.errors import BadInput
from remit.ids import AgentId
from remit.model.approval import Approval, is_as_asked
from remit.model.budget import Stop
from remit.model.mail import Delivery, DeliveryStatus
from remit.model.principal import ActorKind
from remit.model.run import Run
from remit.model.text import plural
from remit.model.transcript import denials
from remit.model.user import UserRole
from remit.model.wish import UNREAD_SHOWN
from remit.services import (
    accounts,
    approval_engine,
    budgets,
    dead_letters,
    limits,
    lookup,
    mail,
    runaway,
    running,
    shapes,
    tracing,
    views,
    wishes,
)
from remit.services.command import Context, query
from remit.store import agents as agent_statements
from remit.store import channels as channel_statements
from remit.store import governance, looking, people
from remit.store import jobs as job_statements
from remit.store import leases as lease_statements
from remit.store import mail as statements
from remit.store import runs as run_statements
from remit.store import waits as wait_statements
from remit.store import wishes as wish_statements

MOST = 500
#: Of the letters that a person wrote; each takes a few questions to the database.
MOST_WISHES = 100
_ALTERED = "What it says is not what was asked for any more. Reject it, and have it asked for anew."
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


#: Why something awaits a person, where nothing more is known; who asks stands in the row.
_CAUSES = {
    "mail": "It is for a seat, whose mail no program reads.",
    "submission": "It was handed in and waits for the verdict.",
    "budget_stop": "Nobody who needs it starts until there is some again.",
}


@query("waiting.needs_you")
def listing(ctx: Context, *, company: str | None = None) -> list[dict[str, Any]]:
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


def here(ctx: Context) -> list[dict[str, Any]]:
    """What awaits the acting person in the company that was entered, each with its cause and the
    command that deals with it."""
    items = _of_company(ctx)
    for item in items:
        item["cause"] = item.get("cause") or _CAUSES.get(item["kind"], "")
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
            held_up.get(asked_for.id, "") if is_as_asked(asked_for) else _ALTERED,
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
            title = dead_letters.subject(ctx, unsent)
            items.append(
                dead_letters.item(ctx, "dead_letter", unsent.message_id, title, unsent, cause)
            )
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
        agents = ctx.tx.one(lease_statements.COUNT_HELD_BY, account=account.id) or 0
        jobs = ctx.tx.one(job_statements.COUNT_HELD_BY, account=account.id) or 0
        waiting = [
            plural(count, what)
            for count, what in ((agents, "agent"), (jobs, "background job"))
            if count
        ]
        cause = accounts.sentence(account)
        if waiting:
            verb = "wait" if agents + jobs > 1 else "waits"
            cause += f" {' and '.join(waiting)} {verb} for it."
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
    return dead_letters.item(
        ctx,
        "dead_letter",
        delivery.message_id,
        dead_letters.subject(ctx, delivery),
        delivery,
        cause,
    )


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
        counted = denials(running.denials(ctx, [run]).get(run.id, []))
        cause = _sentence(
            "; ".join(part for part in (_bare(run.error or run.status.value), counted) if part)
        )
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
            and mail.not_started(ctx, letter, by_itself=True) is not None
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
    return f"{_bare(text)}."


def _bare(text: str) -> str:
    return text.strip().rstrip(".")


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
        dead_letters.item(
            ctx, "mail", delivery.message_id, dead_letters.subject(ctx, delivery), delivery
        )
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
                subject = dead_letters.subject(ctx, delivery)
                title = f"{subject} (for {seat.name}, a seat that nobody holds)"
                found.append(dead_letters.item(ctx, "mail", delivery.message_id, title, delivery))
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
    item: shapes.AwaitingShape = {
        "kind": kind,
        "id": subject,
        "company_id": ctx.company,
        "title": title,
        "agent_id": agent,
        "since": views.time(since),
        "cause": cause,
    }
    return cast(dict[str, Any], item)


def _in_reach(ctx: Context, agent: str | None) -> bool:
    scope = ctx.membership.scope_agent_id if ctx.membership else None
    return scope is None or scope in ctx.place(agent)
