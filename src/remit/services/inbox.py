"""What awaits an agent: deliveries, leases, and the outcome that is open while there is mail."""

from __future__ import annotations

from typing import Any

from remit.authority import Action
from remit.clock import Micros, from_iso
from remit.errors import BadInput, NotFound
from remit.ids import AgentId, UserId
from remit.model.file import Access
from remit.model.mail import (
    MOST_ATTEMPTS,
    MOST_PER_TURN,
    Delivery,
    DeliveryStatus,
    Message,
)
from remit.model.outcome import OutcomeKind, OutcomeStatus
from remit.model.principal import ActorKind
from remit.model.turn import Letter, render_turn
from remit.services import lookup, views, waking
from remit.services.command import Answer, Context, command, logged, query
from remit.services.opening import open_outcome, write_document
from remit.store import files as file_statements
from remit.store import mail as statements
from remit.store import outcomes as outcome_statements
from remit.store import people

#: More than this of a body is read from its file.
LONGEST_SHOWN = 64 * 1024
PROCESS_INBOX = "Process inbox"


def deliver(
    ctx: Context,
    message: Message,
    due: Micros,
    *,
    agent: AgentId | None = None,
    user: UserId | None = None,
) -> None:
    """Put a message in line, or aside until its time."""
    later = due > ctx.now
    ctx.tx.run(
        statements.INSERT_DELIVERY,
        company_id=message.company_id,
        message_id=message.id,
        agent_id=agent,
        user_id=user,
        status="deferred" if later else "queued",
        deliver_at=due,
        position=None if later else _next_position(ctx),
        attempt=1,
        run_id=None,
        ended_at=None,
        ended_why=None,
    )
    if agent is not None and not later:
        update_inbox_outcome(ctx, agent, arrived=True)


@logged
def take(ctx: Context, *, limit: int = MOST_PER_TURN) -> dict[str, Any]:
    """The caller's mail, oldest first. A run takes it up; another caller only looks."""
    me = _me(ctx)
    run = ctx.actor.run_id
    waiting = ctx.tx.all(
        statements.WAITING_FOR_AGENT,
        agent=me,
        run=run or "",
        any_run=run is None,
        limit=min(limit, MOST_PER_TURN),
    )
    if run is not None:
        for delivery in waiting:
            if delivery.status is DeliveryStatus.QUEUED:
                ctx.tx.run(statements.LEASE, delivery=delivery.id, run=run)
    return {
        "messages": [_shown(ctx, delivery) for delivery in waiting],
        "waiting": ctx.tx.one(statements.COUNT_WAITING, agent=me) or 0,
    }


@logged
def turn(ctx: Context) -> dict[str, Any]:
    """The text that begins a turn of the calling run, with the mail that it takes up."""
    me = _me(ctx)
    taken = take.body(ctx)
    letters = [_letter(message) for message in taken["messages"]]
    return {
        "agent_id": me,
        "text": render_turn(letters, taken["waiting"], ctx.now),
        "ids": [message["id"] for message in taken["messages"]],
    }


@command
def acknowledge(ctx: Context, *, ids: list[str]) -> Answer:
    """Say that messages were dealt with; they do not come again."""
    if not 1 <= len(ids) <= 100:
        raise BadInput("Give 1 to 100 messages.", "Acknowledge them in several calls.")
    done = []
    for text in ids:
        message = lookup.message(ctx, text)
        delivery = next(
            (
                delivery
                for delivery in ctx.tx.all(statements.DELIVERIES_OF, message=message.id)
                if ctx.actor.id in (delivery.agent_id, delivery.user_id)
            ),
            None,
        )
        if delivery is None:
            raise NotFound("There is no such message for you.", "Look into your inbox.")
        ctx.accept_rule(views.OWN)
        if delivery.status in (DeliveryStatus.QUEUED, DeliveryStatus.LEASED):
            _end(ctx, delivery, DeliveryStatus.DONE, "acknowledged")
        done.append(message.id)
    if ctx.actor.agent_id is not None:
        update_inbox_outcome(ctx, ctx.actor.agent_id)
    ctx.record("message.ack", ctx.actor.address, {"ids": done})
    return {"acknowledged": done}


@query
def for_user(
    ctx: Context,
    *,
    company: str | None = None,
    everything: bool = False,
    before: int = 1 << 62,
    limit: int = 100,
) -> list[dict[str, Any]]:
    """A person's mail, newest first: what is unread, or all of it."""
    lookup.company_of_caller(ctx, company)
    if ctx.actor.kind is not ActorKind.USER:
        raise BadInput("An agent reads its mail with mail_inbox.", "Use that tool.")
    found = ctx.tx.all(
        statements.FOR_USER,
        company=ctx.company,
        user=ctx.actor.id,
        everything=everything,
        before=before,
        limit=limit,
    )
    return [_shown(ctx, delivery) for delivery in found]


@query
def of_agent(ctx: Context, *, agent: str, limit: int = 100) -> list[dict[str, Any]]:
    """What waits for an agent, seen from above; nothing is taken up."""
    found = lookup.agent_anywhere(ctx, agent)
    ctx.require(
        Action.AGENT_CONTROL, on=f"agent:{found.id}", home=found.id, place=ctx.place(found.id)
    )
    waiting = ctx.tx.all(
        statements.WAITING_FOR_AGENT, agent=found.id, run="", any_run=True, limit=limit
    )
    return [_shown(ctx, delivery) for delivery in waiting]


def run_ended(ctx: Context, run: str, agent: AgentId, *, well: bool) -> None:
    """What a run had taken up is done when it ended well, and comes again when it did not."""
    for delivery in ctx.tx.all(statements.LEASED_TO, run=run):
        message = _message(ctx, delivery)
        if well:
            _end(ctx, delivery, DeliveryStatus.DONE, "the run ended well")
        elif message.at_most_once:
            _end(ctx, delivery, DeliveryStatus.DONE, "tried once, as asked")
        elif delivery.attempt >= MOST_ATTEMPTS:
            _end(ctx, delivery, DeliveryStatus.DEAD, f"failed {delivery.attempt} times")
        else:
            ctx.tx.run(statements.RETURN, delivery=delivery.id)
    update_inbox_outcome(ctx, agent)


def bury(ctx: Context, agent: AgentId) -> None:
    """Mail for somebody who is gone awaits a person."""
    for delivery in ctx.tx.all(
        statements.WAITING_FOR_AGENT, agent=agent, run="", any_run=True, limit=1 << 30
    ):
        _end(ctx, delivery, DeliveryStatus.DEAD, "its receiver is gone")
    update_inbox_outcome(ctx, agent)


def update_inbox_outcome(ctx: Context, agent: AgentId, *, arrived: bool = False) -> None:
    """Open exactly while there is unread mail: so having something to do is one question."""
    mail = bool(
        ctx.tx.all(statements.WAITING_FOR_AGENT, agent=agent, run="", any_run=True, limit=1)
    )
    found = ctx.tx.one(outcome_statements.INBOX_OF, owner=agent)
    if found is None:
        if mail:
            new = open_outcome(
                ctx, title=PROCESS_INBOX, owner=agent, kind=OutcomeKind.INBOX, important=True
            )
            write_document(ctx, new, "")
    elif mail and found.status is not OutcomeStatus.OPEN:
        ctx.tx.run(outcome_statements.REOPEN_OUTCOME, outcome=found.id, now=ctx.now)
    elif not mail and found.status is OutcomeStatus.OPEN:
        ctx.tx.run(
            outcome_statements.FINISH_OUTCOME,
            outcome=found.id,
            new_status=OutcomeStatus.COMPLETED.value,
            new_verdict=None,
            now=ctx.now,
        )
    if arrived:
        waking.wake(ctx, agent, "mail")


def arrive(ctx: Context, delivery: Delivery) -> None:
    """A deferred message's time has come."""
    ctx.tx.run(statements.ARRIVE, delivery=delivery.id, new_position=_next_position(ctx))
    if delivery.agent_id is not None:
        update_inbox_outcome(ctx, delivery.agent_id, arrived=True)


def revive(ctx: Context, delivery: Delivery) -> None:
    assert delivery.agent_id is not None
    ctx.tx.run(statements.REVIVE, delivery=delivery.id, new_position=_next_position(ctx))
    update_inbox_outcome(ctx, delivery.agent_id, arrived=True)


def _end(ctx: Context, delivery: Delivery, status: DeliveryStatus, why: str) -> None:
    ctx.tx.run(
        statements.END_DELIVERY,
        delivery=delivery.id,
        new_status=status.value,
        now=ctx.now,
        why=why,
    )


def _next_position(ctx: Context) -> int:
    position = ctx.tx.one(statements.NEXT_POSITION, company=ctx.company)
    assert position is not None
    return int(position)


def _me(ctx: Context) -> AgentId:
    if ctx.actor.agent_id is None:
        raise BadInput("Only an agent has this inbox.", "Use GET /api/inbox, or `remit inbox`.")
    lookup.company_of_caller(ctx, None)
    ctx.require(Action.MESSAGE_READ, on="inbox", place=(ctx.actor.agent_id,))
    return ctx.actor.agent_id


def _message(ctx: Context, delivery: Delivery) -> Message:
    found = ctx.tx.one(statements.MESSAGE_ANYWHERE, message=delivery.message_id)
    assert found is not None, "a delivery is of a message"
    return found


def _shown(ctx: Context, delivery: Delivery) -> dict[str, Any]:
    message = _message(ctx, delivery)
    body, whole = body_of(ctx, message)
    if ctx.tx.writable:
        ctx.tx.run(
            file_statements.INSERT_ACCESS,
            file_id=message.body_file_id,
            at=ctx.now,
            access=Access.READ.value,
            version=message.body_version,
            agent_id=ctx.actor.agent_id,
            user_id=ctx.actor.user_id,
            run_id=ctx.actor.run_id,
        )
    return {
        **views.message(message),
        "sender_name": _sender_name(ctx, message),
        "status": delivery.status.value,
        "attempt": delivery.attempt,
        "may_have_been_handled": delivery.attempt > 1,
        "position": delivery.position,
        "body": body,
        "body_cut": not whole,
    }


def body_of(ctx: Context, message: Message) -> tuple[str, bool]:
    """The text of a message as it was sent, and whether that is all of it."""
    version = ctx.tx.one(
        file_statements.VERSION, file=message.body_file_id, number=message.body_version
    )
    assert version is not None, "a message names a version that exists"
    with ctx.blobs.open(message.body_file_id, version.sha256) as stream:
        content = stream.read(LONGEST_SHOWN)
    return content.decode(errors="replace"), version.size <= LONGEST_SHOWN


def _sender_name(ctx: Context, message: Message) -> str:
    if message.sender_agent_id is not None:
        found = lookup.agent_row(ctx, message.sender_agent_id)
        return found.name if found else message.sender_agent_id
    if message.sender_user_id is not None:
        user = ctx.tx.one(people.USER, user=message.sender_user_id)
        return user.name if user else message.sender_user_id
    return "remit"


def _letter(shown: dict[str, Any]) -> Letter:
    kind = shown["sender"].partition(":")[0]
    return Letter(
        id=shown["id"],
        sender=f"{kind}:{shown['sender_name']}" if kind != "system" else "remit",
        description=f"{shown['sender_name']} ({kind})",
        from_board=shown["from_board"],
        subject=shown["subject"],
        created_at=from_iso(shown["created_at"]),
        attempt=shown["attempt"],
        attachments=tuple(shown["attachments"]),
        body=shown["body"],
    )
