"""Inbox of an agent: deliveries, their leases to runs, and the outcome that is open while there is
unread mail."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, NamedTuple

from remit.authority import Action
from remit.clock import Micros, from_iso
from remit.errors import BadInput, Conflict, NotFound
from remit.ids import AgentId, MessageId, RunId, UserId
from remit.model.execution.fault import CONSEQUENCES, Fault
from remit.model.execution.run import Run
from remit.model.messaging.mail import (
    LONGEST_UNKNOWN,
    MOST_ATTEMPTS,
    MOST_FAULTS_TOGETHER,
    MOST_PER_TURN,
    TRIED_ONCE,
    Delivery,
    DeliveryStatus,
    Message,
)
from remit.model.messaging.turn import Letter, Quote, Titled, render_turn
from remit.model.organisation.agent import AgentStatus
from remit.model.organisation.principal import ActorKind, Principal
from remit.model.work.file import File
from remit.model.work.outcome import OutcomeKind, OutcomeStatus
from remit.model.work.wait import WaitKind
from remit.services import lookup, shapes, views
from remit.services.command import Context, command, logged
from remit.services.execution import waking
from remit.services.fields import MessageRef, Most, Range
from remit.services.messaging import letter_context, letters
from remit.services.rights import grants
from remit.services.surfaces import AsTool
from remit.services.work import waits
from remit.services.work.outcome_creation import open_outcome, write_document
from remit.store.engine.statement import row
from remit.store.execution import runs as run_statements
from remit.store.messaging import mail as statements
from remit.store.work import files as file_statements
from remit.store.work import outcomes as outcome_statements

PROCESS_INBOX = "Process inbox"
#: Most letters to know that are looked at for one run.
MOST_LOOKED_AT = 200
GONE = "its receiver is gone"
#: Why a letter is dead that made its run fail.
BROKE = "whoever read it failed, while other letters were handled"
#: Why a letter is dead that its adapter called unreadable on every attempt.
UNREADABLE = f"it could not be read {MOST_ATTEMPTS} times"
#: Letters that died of these are not revived together with others.
OWN_FAULT = (GONE, BROKE, UNREADABLE)
_RECEIVED = replace(
    letters.MESSAGE, sees=lambda ctx: lambda message: _to_me(ctx, message) is not None
)


def deliver(
    ctx: Context,
    message: Message,
    due: Micros,
    *,
    agent: AgentId | None = None,
    user: UserId | None = None,
    files: Sequence[File] = (),
    new_body: bool = False,
) -> None:
    """Queue a message for one receiver, or defer it until it is due.

    An agent may read its files from then on: the first is its body, which was created for it if
    `new_body` is true. The files of a deferred message are shared when it arrives."""
    later = due > ctx.now
    if not later:
        # Mail that was due earlier gets its position first, even if the clock has not delivered it
        # yet.
        for earlier in ctx.tx.all(statements.DUE_FOR, receiver=agent or user):
            arrive(ctx, earlier)
    status = DeliveryStatus.DEFERRED if later else DeliveryStatus.QUEUED
    position = None if later else _next_position(ctx)
    # The database assigns the number.
    new = Delivery(0, message.company_id, message.id, agent, user, status, due, position)
    ctx.tx.run(statements.INSERT_DELIVERY, **row(new))
    if agent is not None and not later:
        for number, file in enumerate(files):
            grants.share(ctx, agent, file, new=new_body and number == 0)
        _show_common_boss(ctx, message, agent, files[0])
        update_inbox_outcome(ctx, agent, arrived=not message.to_know)


@logged(
    "inbox.take",
    AsTool(
        "mail_inbox", "Take up your mail, oldest first. Answer it with mail_send, then mail_ack."
    ),
)
def take(
    ctx: Context, *, limit: Annotated[int, Range(1, MOST_PER_TURN)] = MOST_PER_TURN
) -> shapes.InboxShape:
    """The caller's mail, oldest first. A run takes it up; another caller only looks. Letters
    to know come last, unless the run was shown them in its situation."""
    me = _require_inbox(ctx)
    run = ctx.actor.run_id
    if run is not None:
        ctx.lock_company()  # so that a run that just ended cannot take mail up
    most = max(1, min(limit, MOST_PER_TURN))
    statement = statements.WAITING_FOR_AGENT if run is None else statements.TO_ACT_ON
    waiting = ctx.tx.all(statement, agent=me, run=run, limit=most)
    if run is not None:
        new = _handed_over(waiting)
        waiting = [
            letter for letter in waiting if letter.status is DeliveryStatus.LEASED or letter in new
        ]
        for delivery in new:
            ctx.tx.run(statements.LEASE, delivery=delivery.id, run=run)
        _keep_taken(ctx, run, [delivery.message_id for delivery in new])
        waiting += _lease_to_know(ctx, me, run, most - len(waiting))
    return {
        "messages": [_in_turn(ctx, delivery) for delivery in waiting],
        "waiting": ctx.tx.one(statements.COUNT_WAITING, agent=me) or 0,
    }


def _handed_over(waiting: Sequence[Delivery]) -> list[Delivery]:
    """Return the letters to hand to a run: all of them, but suspect ones, which may break it, one
    at a time."""
    held = [letter for letter in waiting if letter.status is DeliveryStatus.LEASED]
    batch: list[Delivery] = []
    for delivery in waiting:
        if delivery.status is DeliveryStatus.LEASED:
            continue
        if any(_is_suspect(letter) for letter in (*held, *batch)):
            break
        if _is_suspect(delivery) and (held or batch):
            break
        batch.append(delivery)
    return batch


def _is_suspect(delivery: Delivery) -> bool:
    return delivery.faults >= MOST_FAULTS_TOGETHER


def _keep_taken(ctx: Context, run: RunId, messages: list[MessageId]) -> None:
    """Add messages to those that a run took up, and store that it was shown the events so far."""
    before = json.loads(ctx.tx.existing(run_statements.RUN, run=run).message_ids)
    taken = json.dumps(list(dict.fromkeys([*before, *messages])))
    ctx.tx.run(
        run_statements.TOOK_UP, run=run, new_message_ids=taken, new_shown=ctx.place_in_record
    )


def take_to_know(ctx: Context, run: Run, most: int) -> list[shapes.LetterShape]:
    """Return the letters to know that wait for the agent of a run, oldest first. They are with the
    run until it ends, but do not count as mail that it took up."""
    leased = _lease_to_know(ctx, run.agent_id, run.id, most)
    return [letters.shown(ctx, _message(ctx, delivery)) for delivery in leased]


def _lease_to_know(ctx: Context, agent: AgentId, run: RunId, most: int) -> list[Delivery]:
    """Give letters to know to a run, and return those that it did not have yet."""
    waiting = ctx.tx.all(statements.TO_KNOW, agent=agent, run=run, limit=MOST_LOOKED_AT)
    new = [delivery for delivery in waiting if delivery.status is DeliveryStatus.QUEUED][:most]
    for delivery in new:
        ctx.tx.run(statements.LEASE, delivery=delivery.id, run=run)
    return new


class Turn(NamedTuple):
    """The text that begins a turn of an agent, and the messages in it."""

    agent_id: str
    text: str
    ids: list[str]


@logged("inbox.turn")
def turn(ctx: Context) -> Turn:
    """The text that begins a turn of the calling run, with the mail that it takes up."""
    me = _require_inbox(ctx)
    taken = take.body(ctx)
    taken_up = [_letter(ctx, message) for message in taken["messages"]]
    text = render_turn(taken_up, taken["waiting"], ctx.now)
    return Turn(me, text, [message["id"] for message in taken["messages"]])


@command("inbox.acknowledge", AsTool("mail_ack"))
def acknowledge(
    ctx: Context, *, ids: Annotated[list[MessageRef], Most(100)]
) -> shapes.AcknowledgedShape:
    """Say that messages were dealt with, or they come again."""
    if not 1 <= len(ids) <= 100:
        raise BadInput("Give 1 to 100 messages.", "Acknowledge them in several calls.")
    done: list[str] = []
    for text in ids:
        message = lookup.find(ctx, _RECEIVED, text)
        if (delivery := _to_me(ctx, message)) is None:
            raise NotFound.of("message")
        ctx.allow_by_rule(views.OWN)
        if delivery.status in (DeliveryStatus.QUEUED, DeliveryStatus.LEASED):
            _end(ctx, delivery, DeliveryStatus.DONE, "acknowledged")
        if delivery.status is not DeliveryStatus.DEAD:
            done.append(message.id)
    if ctx.actor.agent_id is not None:
        ctx.require(Action.MESSAGE_READ, on="inbox", place=(ctx.actor.agent_id,))
        update_inbox_outcome(ctx, ctx.actor.agent_id)
    ctx.record("message.ack", ctx.actor.address, {"ids": done})
    return {"acknowledged": done}


def _to_me(ctx: Context, message: Message) -> Delivery | None:
    """Return the delivery of a message to the caller; None if it is deferred."""
    for delivery in ctx.tx.all(statements.DELIVERIES_OF, message=message.id):
        if ctx.actor.id in (delivery.agent_id, delivery.user_id) and delivery.position is not None:
            return delivery
    return None


def run_ended(ctx: Context, run: RunId, agent: AgentId, *, fault: Fault | None) -> None:
    """Settle a run's letters: done if it ended well, otherwise returned to the inbox.

    A letter is returned any number of times unless it is at fault itself: suspects are handed over
    one at a time; one that fails alone while others succeed, or that could not be read several
    times, is dead. A letter to be tried at most once is done, unless its run was only stopped.
    """
    held = ctx.tx.all(statements.LEASED_TO, run=run)
    to_know = {delivery.id for delivery in held if _message(ctx, delivery).to_know}
    for delivery in held:
        if fault is None:
            _end(ctx, delivery, DeliveryStatus.DONE, "the run ended well")
        elif delivery.id in to_know:
            _put_back(ctx, delivery)
        elif fault is not Fault.STOPPED and _message(ctx, delivery).at_most_once:
            _end(ctx, delivery, DeliveryStatus.DONE, TRIED_ONCE)
        else:
            _return(ctx, delivery, fault, alone=len(held) - len(to_know) == 1)
    update_inbox_outcome(ctx, agent)


def given_up_by(ctx: Context, run: RunId) -> bool:
    """Return whether a letter that a failed run took up is not handed over again."""
    return bool(ctx.tx.one(statements.GIVEN_UP_BY, run=run))


def _put_back(ctx: Context, delivery: Delivery) -> None:
    """Return a letter to the inbox as it was before the run."""
    ctx.tx.run(
        statements.RETURN,
        delivery=delivery.id,
        new_attempt=delivery.attempt,
        new_begun=delivery.begun,
        new_faults=delivery.faults,
        new_alone=delivery.alone_run_id,
        new_position=delivery.position,
    )


def _return(ctx: Context, delivery: Delivery, fault: Fault, *, alone: bool) -> None:
    consequence = CONSEQUENCES[fault]
    faults, alone_run, position = delivery.faults, delivery.alone_run_id, delivery.position
    if consequence.counts and not alone:
        faults = MOST_FAULTS_TOGETHER  # one of them is to blame, so each is tried alone
    elif consequence.isolates:
        faults += 1
        if alone and _is_suspect(delivery):
            if alone_run is not None and _others_succeeded(ctx, delivery, alone_run):
                _end(ctx, delivery, DeliveryStatus.DEAD, BROKE)
                return
            alone_run = delivery.run_id
            position = _next_position(ctx)  # letters behind it come first
    counts = consequence.counts and alone
    if counts and delivery.attempt >= MOST_ATTEMPTS:
        _end(ctx, delivery, DeliveryStatus.DEAD, UNREADABLE)
        return
    ctx.tx.run(
        statements.RETURN,
        delivery=delivery.id,
        new_attempt=delivery.attempt + counts,
        new_begun=delivery.begun or consequence.begun,
        new_faults=faults,
        new_alone=alone_run,
        new_position=position,
    )


def _others_succeeded(ctx: Context, delivery: Delivery, since: RunId) -> bool:
    """Return whether the receiver had a good run since the one that failed with this letter
    alone."""
    good_run = ctx.tx.one(run_statements.GOOD_RUN_SINCE, agent=delivery.agent_id, run=since)
    return good_run is not None


def bury(ctx: Context, agent: AgentId) -> shapes.BuriedMailShape:
    """End the mail of an agent that is gone: its letters are dead, its schedules and questions
    cancelled, waits for its replies ended, and other waits for it escalated, except approvals.
    Returns the letters and schedules."""
    from remit.services.messaging import escalation  # it imports mail, which imports this

    escalation.receiver_gone(ctx, agent)
    letters = ctx.tx.all(statements.WAITING_FOR_AGENT, agent=agent, run=None, limit=1 << 30)
    for delivery in letters:
        lost = DeliveryStatus.DONE if _message(ctx, delivery).to_know else DeliveryStatus.DEAD
        _end(ctx, delivery, lost, GONE)
    update_inbox_outcome(ctx, agent)
    planned = ctx.tx.all(statements.ACTIVE_SCHEDULES_OF, agent=agent)
    ctx.tx.run(statements.CANCEL_SCHEDULES_OF, agent=agent)
    for letter in ctx.tx.all(statements.LETTERS_OF_QUESTIONS_OF, agent=agent):
        settle(ctx, letter, "who asked is gone")
    ctx.tx.run(statements.CANCEL_QUESTIONS_OF, agent=agent, by=ctx.actor.address)
    return {
        "letters": [delivery.message_id for delivery in letters],
        "schedules": {schedule.id: schedule.next_at for schedule in planned},
    }


def unbury(ctx: Context, agent: AgentId, message: MessageId) -> bool:
    """Revive a letter that was buried with its receiver, who is restored; returns whether it was
    still dead."""
    for delivery in ctx.tx.all(statements.DELIVERIES_OF, message=message):
        dead = (delivery.agent_id, delivery.status, delivery.ended_why)
        if dead == (agent, DeliveryStatus.DEAD, GONE):
            revive(ctx, delivery)
            return True
    return False


def cancel(ctx: Context, delivery: Delivery, why: str) -> None:
    """Cancel a delivery, even one that a run took up: its sender took it back."""
    _end(ctx, delivery, DeliveryStatus.CANCELLED, why)
    waits.end(ctx, WaitKind.REPLY, delivery.message_id)
    if delivery.agent_id is not None:
        update_inbox_outcome(ctx, delivery.agent_id)


def settle(ctx: Context, message: Message, why: str) -> None:
    """Mark a message as done for every receiver that has not taken it up."""
    for delivery in ctx.tx.all(statements.DELIVERIES_OF, message=message.id):
        if delivery.status is DeliveryStatus.QUEUED:
            _end(ctx, delivery, DeliveryStatus.DONE, why)
            if delivery.agent_id is not None:
                update_inbox_outcome(ctx, delivery.agent_id)


def settle_about(ctx: Context, about: str, why: str) -> None:
    """Settle the unread letters that Remit wrote about a matter, because that is over."""
    for message in ctx.tx.all(statements.LETTERS_ABOUT, about=about):
        settle(ctx, message, why)


def answered_by(ctx: Context, message: Message, person: Principal) -> None:
    """Settle the unread copies of a letter that a person answered: their own, and those of the
    other people whom it reached, for whom nothing is left to do."""
    for delivery in ctx.tx.all(statements.DELIVERIES_OF, message=message.id):
        if delivery.user_id is not None and delivery.status is DeliveryStatus.QUEUED:
            _end(ctx, delivery, DeliveryStatus.DONE, f"{person.name} answered it")


def update_inbox_outcome(
    ctx: Context, agent: AgentId, *, arrived: bool = False, own: bool = False
) -> None:
    """Keep the inbox outcome open exactly while there is unread mail, so that outcomes alone decide
    whether an agent has something to do. While all of it is only to know, it is put off. `own` is
    for a letter that the agent wrote itself."""
    waiting = {"agent": agent, "run": None, "limit": 1}
    act = arrived or bool(ctx.tx.all(statements.TO_ACT_ON, **waiting))
    known = [] if act else ctx.tx.all(statements.TO_KNOW, **waiting)
    outcome = ctx.tx.one(outcome_statements.INBOX_OF, owner=agent)
    if act or known:
        if outcome is None:
            outcome = open_outcome(
                ctx, title=PROCESS_INBOX, owner=agent, kind=OutcomeKind.INBOX, important=True
            )
            write_document(ctx, outcome, "")
        elif outcome.status is not OutcomeStatus.OPEN:
            ctx.tx.run(outcome_statements.REOPEN_OUTCOME, outcome=outcome.id)
        until = known[0].deliver_at + LONGEST_UNKNOWN if known else None
        if until != outcome.deferred_until:
            ctx.tx.run(outcome_statements.PUT_OFF_INBOX, outcome=outcome.id, until=until)
    elif outcome is not None and outcome.status is OutcomeStatus.OPEN:
        ctx.tx.run(
            outcome_statements.FINISH_OUTCOME,
            outcome=outcome.id,
            new_status=OutcomeStatus.COMPLETED.value,
            new_verdict=None,
        )
    if arrived and own:
        waking.wake_for_own(ctx, agent, "mail")
    elif arrived:
        waking.wake(ctx, agent, "mail")


def arrive(ctx: Context, delivery: Delivery) -> None:
    """Deliver a deferred message whose time has come."""
    ctx.tx.run(statements.ARRIVE, delivery=delivery.id, new_position=_next_position(ctx))
    if delivery.agent_id is None:
        return
    receiver = lookup.agent_row(ctx, delivery.agent_id)
    if receiver is None or receiver.status is AgentStatus.TERMINATED:
        _end(ctx, delivery, DeliveryStatus.DEAD, GONE)
        return
    message = _message(ctx, delivery)
    system, ctx.actor = ctx.actor, _sender(ctx, message)
    try:
        for file_id in (message.body_file_id, *json.loads(message.attachments)):
            file = ctx.tx.existing(file_statements.FILE, file=file_id)
            grants.share(ctx, receiver.id, file, still_held=False)
            if file_id == message.body_file_id:
                _show_common_boss(ctx, message, receiver.id, file)
    finally:
        ctx.actor = system
    update_inbox_outcome(ctx, receiver.id, arrived=True, own=message.is_to_itself)


def _sender(ctx: Context, message: Message) -> Principal:
    """Return the principal in whose name the files of a message are shared."""
    if message.sender_agent_id is not None:
        return Principal(ActorKind.AGENT, message.sender_agent_id, "", message.company_id)
    if message.sender_user_id is not None:
        return Principal(ActorKind.USER, message.sender_user_id, "")
    return ctx.actor


def _show_common_boss(ctx: Context, message: Message, receiver: AgentId, body: File) -> None:
    """Let the common boss of two agents read what they write to each other."""
    if message.sender_agent_id is None or message.sender_agent_id == receiver:
        return
    sender, peer = (lookup.agent_row(ctx, party) for party in (message.sender_agent_id, receiver))
    if sender is not None and peer is not None and sender.boss_id == peer.boss_id is not None:
        assert sender.boss_id is not None
        grants.share(ctx, sender.boss_id, body, still_held=False)


def revive(ctx: Context, delivery: Delivery) -> None:
    assert delivery.agent_id is not None
    receiver = lookup.agent_row(ctx, delivery.agent_id)
    if receiver is None or receiver.status is AgentStatus.TERMINATED:
        raise Conflict("Its receiver is gone.", "Send it to somebody else, or discard it.")
    ctx.tx.run(statements.REVIVE, delivery=delivery.id, new_position=_next_position(ctx))
    update_inbox_outcome(ctx, delivery.agent_id, arrived=not _message(ctx, delivery).to_know)


def discard(ctx: Context, delivery: Delivery) -> None:
    ctx.tx.run(statements.DISCARD, delivery=delivery.id)


def _end(ctx: Context, delivery: Delivery, status: DeliveryStatus, why: str) -> None:
    ctx.tx.run(statements.END_DELIVERY, delivery=delivery.id, new_status=status.value, why=why)
    if status is DeliveryStatus.DEAD:
        # A letter that nobody reads gets no reply.
        sentence = f"Nobody will reply to your message (message:{delivery.message_id}): {why}."
        waits.end(ctx, WaitKind.REPLY, delivery.message_id, f"{sentence} A person looks at it.")


def _next_position(ctx: Context) -> int:
    return int(ctx.tx.existing(statements.NEXT_POSITION))


def _require_inbox(ctx: Context) -> AgentId:
    if ctx.actor.agent_id is None:
        raise BadInput("Only an agent has this inbox.", "Use GET /api/inbox, or `remit inbox`.")
    lookup.company_of_caller(ctx, None)
    ctx.require(Action.MESSAGE_READ, on="inbox", place=(ctx.actor.agent_id,))
    return ctx.actor.agent_id


def _message(ctx: Context, delivery: Delivery) -> Message:
    # Every delivery has a message.
    return ctx.tx.existing(statements.MESSAGE_ANYWHERE, message=delivery.message_id)


def _in_turn(ctx: Context, delivery: Delivery) -> shapes.TurnMessageShape:
    message = _message(ctx, delivery)
    return {
        **letters.shown(ctx, message),
        **letter_context.of_letter(ctx, message),
        "status": delivery.status.value,
        "attempt": delivery.attempt,
        "may_have_been_handled": delivery.may_have_been_handled,
        "position": delivery.position,
    }


def _letter(ctx: Context, shown: shapes.TurnMessageShape) -> Letter:
    kind, _, place = shown["sender"].partition(":")
    # A linked sender is a person of the company, even in a channel.
    outside = kind == "channel" and not shown["from_board"]
    sender = _spelled(shown["sender"], shown["sender_name"])
    who = "outside" if outside else "user" if kind == "channel" else kind
    spoke = shown.get("outside_sender")
    described = f"{shown['sender_name']} ({who})"
    if spoke:
        described = f"{spoke} in {place} ({who if outside else 'user:' + shown['sender_name']})"
    return Letter(
        id=shown["id"],
        sender=sender,
        description=described,
        outside=outside,
        from_board=shown["from_board"],
        subject=shown["subject"],
        created_at=from_iso(shown["created_at"]),
        attempt=shown["attempt"],
        begun=shown["may_have_been_handled"],
        file=shown["file_id"],
        attachments=tuple(shown["attachments"]),
        body=shown["body"],
        cut=shown["body_cut"],
        answers=_titled(shown["in_reply_to"]),
        about=_titled(shown["about"]),
        quotes=tuple(_quote(ctx, quote) for quote in shown["quotes"]),
    )


def _quote(ctx: Context, quote: shapes.QuoteShape) -> Quote:
    mine = quote["sender"] == ctx.actor.address
    return Quote(
        id=quote["id"],
        sender="you" if mine else _spelled(quote["sender"], quote["sender_name"]),
        created_at=from_iso(quote["created_at"]),
        body=quote["body"],
        cut=quote["body_cut"],
    )


def _spelled(sender: str, name: str) -> str:
    """Return the address of a sender, by name."""
    kind = sender.partition(":")[0]
    if kind == "channel":
        return sender
    return "remit" if kind == "system" else f"{kind}:{name}"


def _titled(thing: shapes.TitledIdShape | None) -> Titled | None:
    return None if thing is None else Titled(thing["id"], thing["title"])
