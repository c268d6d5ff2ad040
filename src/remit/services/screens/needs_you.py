"""The list of what awaits a person: each row with its cause and the command that settles it."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import islice

from remit.authority import Action
from remit.clock import Micros, moment
from remit.errors import BadInput
from remit.ids import END_OF_IDS, AgentId
from remit.model.event import Event
from remit.model.execution.account import Account
from remit.model.execution.budget import Stop
from remit.model.execution.run import Run
from remit.model.execution.transcript import denials
from remit.model.messaging.mail import Delivery, DeliveryStatus
from remit.model.organisation.agent import AgentStatus
from remit.model.organisation.approval import Approval, ApprovalType, is_as_asked
from remit.model.organisation.decision import Effect
from remit.model.organisation.principal import ActorKind
from remit.model.organisation.user import UserRole
from remit.model.spelling import spelled
from remit.model.text import monthly, plural
from remit.model.work.wish import STILL_SHOWN, UNREAD_SHOWN
from remit.services import lookup, shapes, views
from remit.services.changes import changes
from remit.services.command import Context, query
from remit.services.execution import accounts, runaway, running
from remit.services.governance import approval_engine
from remit.services.messaging import inbox, letter_trace, mail, pending_items, wishes
from remit.services.organisation import halts
from remit.services.screens import name_lookup, standing
from remit.services.spending import budgets, limits
from remit.services.work import submissions
from remit.store.connections import changes as change_statements
from remit.store.execution import jobs as job_statements
from remit.store.execution import leases as lease_statements
from remit.store.execution import runs as run_statements
from remit.store.messaging import channels as channel_statements
from remit.store.messaging import confirmations as confirmation_statements
from remit.store.messaging import mail as statements
from remit.store.organisation import agents as agent_statements
from remit.store.organisation import governance, people
from remit.store.organisation import halts as halt_statements
from remit.store.paging import each
from remit.store.record import events, overview, search
from remit.store.record.overview import Stopped
from remit.store.work import waits as wait_statements
from remit.store.work import wishes as wish_statements

MOST = 500
#: Most letters of a person that are checked; each takes a few queries.
MOST_WISHES = 100
#: From this number on, stopped agents with the same cause share one row.
SAME_CAUSE = 4
_ALTERED = "The request was altered. Reject it, and have it asked for anew."
#: The next command of a person, by the kind of the item.
_NEXT = {
    "mail": "remit read {id}",
    "confirmation": "remit confirm {id}, or --dismiss",
    "approval": "remit approval show {id}, then approve or reject it",
    "question": "remit question answer {id} …",
    "change": "remit change show {id}, then remit change push {id} …",
    "submission": "remit outcome accept {id}, or return {id} …",
    "dead_letter": "remit read {id} --revive, or --discard",
    "failed_run": "remit run show {id}",
    "budget_stop": "remit agent budget {id}, then remit agent set",
    "unanswered": "remit read {id}, or remit cancel {id}",
    "agent_error": "remit agent why-idle {id}, then remit agent resume {id}",
}


#: Default causes by kind; the row names the requester.
_CAUSES = {
    "mail": "It is for a seat, whose mail no program reads.",
    "submission": "It was handed in and waits for the verdict.",
    "budget_stop": "Nobody who needs it starts until there is some again.",
}


@query("waiting.needs_you")
def listing(ctx: Context, *, company: str | None = None) -> list[shapes.AwaitingShape]:
    """Everything that awaits the calling person, oldest first."""
    if ctx.actor.kind is not ActorKind.USER:
        raise BadInput("This list is for people.", "Use loose_ends.")
    if company is not None:
        lookup.company_of_caller(ctx, company)
        companies = [ctx.company]
    else:
        mine = ctx.tx.all(people.COMPANIES_OF_USER, user=ctx.actor.id, after="", limit=MOST)
        companies = [own_company.id for own_company in mine]
    items: list[shapes.AwaitingShape] = []
    for company_id in companies:
        assert company_id is not None
        ctx.leave()
        ctx.enter(company_id)
        items += here(ctx)
    return sorted(items, key=lambda item: str(item["since"]))


def here(ctx: Context) -> list[shapes.AwaitingShape]:
    """Items that await the acting person in the entered company, each with its cause and the
    command that settles it."""
    items = _to_accept(ctx) + _of_company(ctx)
    for item in items:
        item["cause"] = item.get("cause") or _CAUSES.get(item["kind"], "")
        item.setdefault("next", _NEXT.get(item["kind"], "").format(id=item["id"]))
    return items


def _to_accept(ctx: Context) -> list[shapes.AwaitingShape]:
    """The company itself, if it came from outside and waits for somebody who may accept it."""
    halt = ctx.tx.one(halt_statements.UNACCEPTED)
    if halt is None or not ctx.decide(Action.COMPANY_ACCEPT).allowed:
        return []
    name = ctx.tx.existing(people.COMPANY).name
    title, cause = f"{name} waits to be accepted", halts.sentence(ctx, halt)
    item = views.awaiting(
        ctx.company, "acceptance", halt.company_id, title, None, halt.created_at, cause
    )
    return [{**item, "next": halts.command_for(ctx, halt)}]


def _of_company(ctx: Context) -> list[shapes.AwaitingShape]:
    membership = ctx.membership
    assert membership is not None
    # Letters about an item that has a row of its own are left out.
    held_accounts = accounts.held(ctx)
    told = {account.told_at for account in held_accounts}
    letters = ctx.tx.all(search.LETTERS_OF_USER, user=ctx.actor.id, limit=MOST)
    seats = ctx.tx.all(agent_statements.SEATS_OF, user=ctx.actor.id)
    items = [
        views.awaiting(
            ctx.company,
            "mail",
            letter.message_id,
            letter.subject or f"Letter from {letter.sender_name or 'Remit'}",
            None,
            letter.deliver_at,
            f"From {letter.sender_name or 'Remit'}.",
        )
        for letter in letters
        if letter.sender_name is not None or letter.deliver_at not in told
    ]
    items += _to_confirm(ctx)
    items += _mail_of_seats(ctx, seats)
    items += _handed_in(ctx, seats)
    if membership.role is not UserRole.BOARD:
        return items + _unanswered(ctx, {item["id"] for item in items})
    items += _mail_of_vacant_seats(ctx)
    held_up = _held_up(ctx)
    submitted = {event.resource: event for event in ctx.tx.all(events.SUBMISSIONS_OF_PENDING)}
    items += [
        views.awaiting(
            ctx.company,
            "approval",
            asked_for.id,
            _summary(ctx, asked_for),
            asked_for.requested_by_agent_id or asked_for.agent_id or "",
            asked_for.created_at,
            _request(ctx, asked_for, held_up) if _is_intact(asked_for, submitted) else _ALTERED,
        )
        for asked_for in _to_decide(ctx)
    ]
    items += [
        views.awaiting(
            ctx.company,
            "question",
            question.id,
            question.text.splitlines()[0],
            question.agent_id,
            question.created_at,
            held_up.get(question.id, ""),
        )
        for question in ctx.tx.all(statements.OPEN_FOR_BOARD, limit=MOST)
        if _in_reach(ctx, question.agent_id)
    ]
    items += _to_look_at(ctx)
    stops = budgets.stopped(ctx)
    held = {stop.agent_id for stop in stops}
    dead: set[str] = set()
    for delivery in ctx.tx.all(statements.DEAD, limit=MOST):
        if delivery.agent_id is not None and _in_reach(ctx, delivery.agent_id):
            dead.add(delivery.message_id)
            items.append(_dead_item(ctx, delivery))
    for unsent in ctx.tx.all(channel_statements.DEAD, limit=MOST):
        if _in_reach(ctx, unsent.agent_id):
            cause = _sentence(f"It did not get to {unsent.address}: {unsent.ended_why}")
            title = pending_items.subject(ctx, unsent)
            items.append(
                pending_items.item(ctx, "dead_letter", unsent.message_id, title, unsent, cause)
            )
    by_remit = {letter.deliver_at for letter in letters if letter.sender_name is None}
    failed = _failed_runs(ctx, held, dead, by_remit)
    covered = _told_of_runaways(ctx, failed) & by_remit
    if covered:
        doubled = {
            letter.message_id
            for letter in letters
            if letter.sender_name is None and letter.deliver_at in covered
        }
        items = [item for item in items if item["id"] not in doubled]
    items += failed
    items += _unanswered(ctx, dead | {item["id"] for item in items})
    items += [
        runaway.silent_item(ctx, run, last)
        for run, last in runaway.silent(ctx)
        if _in_reach(ctx, run.agent_id)
    ]
    items += [limits.item(ctx, reached) for reached in limits.awaiting(ctx)]
    return items + _budget_stops(ctx, stops) + _held(ctx, held_accounts) + _in_error(ctx)


def _to_confirm(ctx: Context) -> list[shapes.AwaitingShape]:
    """Decisions by e-mail in the person's name, as long as they can be confirmed."""
    items = []
    for row in ctx.tx.all(confirmation_statements.WAITING, user=ctx.actor.id):
        act = json.loads(row.act)
        if "approval" in act:
            approval = ctx.tx.existing(governance.APPROVAL_ANYWHERE, approval=act["approval"])
            if not approval_engine.still_asks(approval, act["revision"], act["digest"]):
                continue
        if "outcome" in act and not submissions.is_open(ctx, act["outcome"], act["submission"]):
            continue
        cause = f"It came from {row.account} and can be confirmed until {moment(row.expires_at)}."
        about = (row.id, row.title, None, row.created_at, cause)
        items.append(views.awaiting(ctx.company, "confirmation", *about))
    return items


def _held(ctx: Context, held: Sequence[Account]) -> list[shapes.AwaitingShape]:
    """One row for each closed account or set-up, however many agents wait for it."""
    items: list[shapes.AwaitingShape] = []
    for account in held:
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
        title = f"{account.title} cannot be used"
        item = views.awaiting(ctx.company, "held", account.id, title, "", account.since, cause)
        items.append({**item, "agent_id": None, "next": accounts.command_for(account)})
    return items


def _in_error(ctx: Context) -> list[shapes.AwaitingShape]:
    """Agents in error, each with the cause; many with the same cause share one row."""
    by_cause: dict[str, list[Stopped]] = {}
    for agent in ctx.tx.all(overview.IN_ERROR, **standing.scope(ctx)):
        cause = (agent.told or "all runs failed").rstrip(".")
        by_cause.setdefault(cause, []).append(agent)
    items = []
    for cause, agents in by_cause.items():
        many = len(agents) >= SAME_CAUSE
        for agent in agents[:1] if many else agents:
            who = f"{plural(len(agents), 'agent')} do" if many else f"{agent.name} does"
            about = (agent.id, f"{who} not work: {cause}", agent.id, agent.since)
            item = views.awaiting(ctx.company, "agent_error", *about)
            items.append({**item, "agents": len(agents)} if many else item)
    return items


def _dead_item(ctx: Context, delivery: Delivery) -> shapes.AwaitingShape:
    """A dead letter, with the error of the last run that had it."""
    error = letter_trace.last_error(ctx, delivery)
    why = delivery.ended_why or "it was tried too often"
    cause = _sentence(f"{why}; last: {error}" if error else why)
    item = pending_items.item(
        ctx,
        "dead_letter",
        delivery.message_id,
        pending_items.subject(ctx, delivery),
        delivery,
        cause,
    )
    if delivery.ended_why == inbox.GONE:
        item["next"] = f"remit read {delivery.message_id} --discard"
    return item


def _failed_runs(
    ctx: Context, held: set[AgentId], dead: set[str], told: set[Micros]
) -> list[shapes.AwaitingShape]:
    """Agents whose last run failed, unless another row covers that: a dead letter, a budget, or a
    letter from Remit to the same person (`told`)."""
    rows: list[shapes.AwaitingShape] = []
    alike: dict[str, list[shapes.AwaitingShape]] = {}
    failed = [
        run
        for run in ctx.tx.all(run_statements.FAILED_RUNS, limit=MOST)
        if _in_reach(ctx, run.agent_id) and run.agent_id not in held
    ]
    refused = running.denials(ctx, failed)
    for run in failed:
        too_much = runaway.runaway_item(ctx, run)
        if too_much is not None:
            rows.append(too_much)
            continue
        if _is_told_of(ctx, run, dead) or (told and _was_told(ctx, run, told)):
            continue
        counted = denials(refused.get(run.id, []))
        cause = _sentence(
            "; ".join(part for part in (_bare(run.error or run.status.value), counted) if part)
        )
        title = f"A run {run.status.value}"
        item = views.awaiting(
            ctx.company, "failed_run", run.id, title, run.agent_id, run.ended_at, cause
        )
        alike.setdefault(cause, []).append(item)
    for cause, items in alike.items():
        if len(items) < SAME_CAUSE:
            rows += items
        else:
            title = f"{plural(len(items), 'agent')} failed: {_bare(cause)}"
            rows.append({**items[0], "title": title, "agents": len(items)})
    return rows


def _told_of_runaways(ctx: Context, rows: list[shapes.AwaitingShape]) -> set[Micros]:
    """Return when the last runs of the agents with a row of kind `runaway` ended: what Remit wrote
    at these moments says the same."""
    agents = {row["agent_id"] for row in rows if row["kind"] == "runaway"}
    return {
        run.ended_at
        for agent in agents
        for run in ctx.tx.all(run_statements.NEWEST_OF_AGENT, agent=agent, limit=20)
        if run.ended_at is not None
    }


def _is_told_of(ctx: Context, run: Run, dead: set[str]) -> bool:
    """Return whether a letter that the run took up is dead, or was and is discarded."""
    return any(
        message in dead
        or any(
            delivery.status is DeliveryStatus.CANCELLED
            for delivery in ctx.tx.all(statements.DELIVERIES_OF, message=message)
        )
        for message in json.loads(run.message_ids)
    )


def _was_told(ctx: Context, run: Run, told: set[Micros]) -> bool:
    """Return whether the calling person is the agent's boss, and a letter was written at the moment
    when a run of the agent failed."""
    agent = lookup.agent_row(ctx, run.agent_id)
    if agent is None or agent.boss_user_id != ctx.actor.id:
        return False
    last = {"ended_too": True, "before": END_OF_IDS, "limit": 20}
    return any(
        run.ended_at in told for run in ctx.tx.all(run_statements.RUNS, agent=agent.id, **last)
    )


def _unanswered(ctx: Context, listed: set[str]) -> list[shapes.AwaitingShape]:
    """Letters of the acting person that no agent will answer without help; what is `listed` has a
    row already."""
    items = []
    for wish in ctx.tx.all(wish_statements.OPEN_OF_USER, user=ctx.actor.id, limit=MOST_WISHES):
        if wish.message_id in listed:
            continue
        letter = ctx.tx.existing(statements.MESSAGE_ANYWHERE, message=wish.message_id)
        stands = letter_trace.state(ctx, letter)
        kept = (
            stands["state"] in ("queued", "failing")
            and wish.created_at + UNREAD_SHOWN <= ctx.now
            and mail.not_started(ctx, letter, by_itself=True) is not None
        )
        sentence = stands["sentence"]
        # An agent that has to answer or decide may never do so.
        waits = stands["state"] == letter_trace.WAITING
        is_left = stands["state"] == "in_work" or (
            waits and letter_trace.awaited(ctx, letter) not in listed
        )
        if is_left and wish.created_at + STILL_SHOWN <= ctx.now:
            still = letter_trace.still_since(ctx, letter)
            kept = still is not None and still + STILL_SHOWN <= ctx.now
            sentence = f"Nothing has happened to it since {moment(still or 0)}. {sentence}"
        if kept or stands["state"] in ("unanswered", "dead"):
            title = letter.subject or wishes.first_words(ctx, letter)
            about = (wish.agent_id, wish.created_at, sentence)
            item = views.awaiting(ctx.company, "unanswered", letter.id, title, *about)
            receiver = lookup.agent_row(ctx, wish.agent_id)
            if receiver is not None and receiver.status is AgentStatus.TERMINATED:
                item["next"] = f"remit send … to another agent, then remit cancel {letter.id}"
            items.append(item)
    return items


def _held_up(ctx: Context) -> dict[str, str]:
    """By question or approval: who waits for it, and with which outcomes."""
    waiters: dict[str, tuple[str, list[str]]] = {}
    for subject, name, title in ctx.tx.all(wait_statements.HELD_UP, limit=10 * MOST):
        waiters.setdefault(subject, (name, []))[1].append(title)
    return {
        subject: f"{name} waits for it with {', '.join(repr(title) for title in titles[:3])}."
        for subject, (name, titles) in waiters.items()
    }


def _summary(ctx: Context, approval: Approval) -> str:
    """The request in a few words; what a call uses is named, where it has a name."""
    words = approval_engine.summary(approval)
    if approval.type is not ApprovalType.CAPABILITY_USE:
        return words
    resource = str(json.loads(approval.payload).get("resource"))
    name = name_lookup.known_titles(ctx, [resource]).get(resource)
    return words if name is None else words.replace(resource, f"“{spelled(name)}”")


def _request(ctx: Context, approval: Approval, held_up: dict[str, str]) -> str:
    """The request in one sentence, and who waits for it."""
    payload = json.loads(approval.payload)
    asker = approval_engine.principal(ctx, approval).name
    words = _summary(ctx, approval)
    match approval.type:
        case ApprovalType.HIRE_AGENT:
            title = f" ({payload['title']})" if payload.get("title") else ""
            above = payload.get("reportsTo")
            boss = lookup.name_of(ctx, above) if above else "the board"
            budget = monthly(payload.get("requestedConfigurationSnapshot") or {})
            limit = f"a budget of {budget}" if budget else "no budget of its own"
            sentence = f"{asker} asks to {words}{title}, reporting to {boss}, with {limit}."
        case ApprovalType.CONFIG_CHANGE:
            sentence = f"{asker} asks to {words}."
        case ApprovalType.BUDGET:
            whose = lookup.name_of(ctx, approval.agent_id) if approval.agent_id else asker
            sentence = f"{asker} asks for {words}{f' for {whose}' if whose != asker else ''}."
        case ApprovalType.CAPABILITY_USE:
            sentence = f"{asker} asks for {words}."
        case _:
            sentence = f"{asker} asks for a decision."  # the title is the request
    return f"{sentence} {held_up.get(approval.id, '')}".rstrip()


def _sentence(text: str) -> str:
    """Return the text with exactly one full stop at its end."""
    return f"{_bare(text)}."


def _bare(text: str) -> str:
    return text.strip().rstrip(".")


def _handed_in(ctx: Context, seats: Sequence[AgentId]) -> list[shapes.AwaitingShape]:
    """Submissions for the verdict of the calling person: as a boss, in a seat, or on the board."""
    membership = ctx.membership
    assert membership is not None
    waits = [
        wait
        for wait in ctx.tx.all(wait_statements.SUBMITTED_TO_PEOPLE, user=ctx.actor.id, limit=MOST)
        if wait.awaited_user_id is not None or membership.role is UserRole.BOARD
    ]
    for seat in seats:
        waits += ctx.tx.all(wait_statements.SUBMITTED_TO_AGENT, agent=seat, limit=MOST)
    return [
        views.awaiting(
            ctx.company, "submission", outcome.id, outcome.title, wait.agent_id, wait.since
        )
        for wait in waits
        for outcome in ctx.tx.all(wait_statements.OUTCOMES_OF_WAIT, wait=wait.id)
    ]


def _budget_stops(ctx: Context, stops: list[Stop]) -> list[shapes.AwaitingShape]:
    """One row for each budget that is used up, however many agents wait for it."""
    by_budget: dict[tuple[str, str], list[Stop]] = {}
    for stop in stops:
        if _in_reach(ctx, stop.holder_id):
            by_budget.setdefault((stop.holder_id, stop.kind.value), []).append(stop)
    items = []
    for (holder, kind), waiting in by_budget.items():
        title = f"The budget of {lookup.name_of(ctx, holder)} is used up ({kind})"
        if len(waiting) > 1:
            title += f"; {len(waiting)} agents wait"
        items.append(
            views.awaiting(ctx.company, "budget_stop", holder, title, holder, waiting[0].since)
        )
    return items


def _mail_of_seats(ctx: Context, seats: Sequence[AgentId]) -> list[shapes.AwaitingShape]:
    """Mail of the person's seats, for which no program is started."""
    return [
        pending_items.item(
            ctx, "mail", delivery.message_id, pending_items.subject(ctx, delivery), delivery
        )
        for seat in seats
        for delivery in ctx.tx.all(statements.WAITING_FOR_AGENT, agent=seat, run=None, limit=MOST)
    ]


def _mail_of_vacant_seats(ctx: Context) -> list[shapes.AwaitingShape]:
    """Mail of vacant seats, unless it was also delivered to the caller."""
    items = []
    for delivery in ctx.tx.all(statements.WAITING_FOR_NOBODY, limit=MOST):
        if not _in_reach(ctx, delivery.agent_id):
            continue
        copies = ctx.tx.all(statements.DELIVERIES_OF, message=delivery.message_id)
        if all(copy.user_id != ctx.actor.id for copy in copies):
            seat = lookup.known_agent(ctx, delivery.agent_id or "")
            subject = pending_items.subject(ctx, delivery)
            title = f"{subject} (for {seat.name}, a seat that nobody holds)"
            items.append(pending_items.item(ctx, "mail", delivery.message_id, title, delivery))
    return items


def _is_intact(approval: Approval, submitted: Mapping[str, Event]) -> bool:
    """Whether a request is as it was made, and as its latest submission was recorded."""
    event = submitted.get(f"approval:{approval.id}")
    recorded = event is not None and approval_engine.submits(event, approval)
    return recorded and is_as_asked(approval)


def _to_decide(ctx: Context) -> list[Approval]:
    """Approvals for the calling board member, oldest first, limited to their part."""
    in_reach = cache(lambda agent: _in_reach(ctx, agent))
    approvals = (
        approval
        for approval in each(ctx.tx, governance.PENDING)
        if not approval.expired(ctx.now) and in_reach(approval.home_agent_id or approval.agent_id)
    )
    return list(islice(approvals, MOST))


def _to_look_at(ctx: Context) -> list[shapes.AwaitingShape]:
    """Proposals that are pushed once a person has looked at them, for those who may decide."""
    return [
        views.awaiting(
            ctx.company,
            "change",
            change.id,
            f"push {change.title}",
            change.agent_id,
            change.updated_at,
            f"{plural(len(change.touched), 'file')} for {change.target} of "
            f"{changes.repo_of(ctx, change).name}; the forge runs it once it is pushed.",
        )
        for change in ctx.tx.all(change_statements.AWAITING_LOOK, limit=MOST)
        if changes.decide(ctx, Action.CHANGE_MERGE, change).effect is not Effect.DENY
    ]


def _in_reach(ctx: Context, agent: str | None) -> bool:
    scope = ctx.membership.scope_agent_id if ctx.membership else None
    return scope is None or scope in ctx.boss_chain(agent)
