"""Mail: sending, with the rules for who may write to whom. No message is lost, none is forged.

The sender is the owner of the token. A delivery is `queued`, then `leased` to a run, then `done`; a
run that fails returns it, and one that failed too often is `dead` and awaits a person.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from remit.authority import Action, GivenFacts
from remit.channels import registry
from remit.clock import given_time, moment
from remit.errors import BadInput, Conflict
from remit.ids import AgentId, MessageId, QuestionId, UserId
from remit.model.messaging.mail import (
    BACKGROUND,
    LONGEST_SUBJECT,
    MOST_ATTACHMENTS,
    MOST_HOPS,
    Address,
    AddressKind,
    DeliveryStatus,
    Mark,
    Message,
    parse_address,
)
from remit.model.organisation.agent import Agent, AgentStatus
from remit.model.organisation.decision import Decision
from remit.model.organisation.grant import IN_BACKGROUND, Level, Resource, ResourceKind
from remit.model.organisation.principal import ActorKind
from remit.model.text import clean_line
from remit.model.work.file import File, FileKind
from remit.model.work.outcome import Outcome
from remit.model.work.wait import WaitKind
from remit.services import lookup, shapes, views
from remit.services.command import Context, command
from remit.services.connections import bindings, outbox
from remit.services.execution import background
from remit.services.fields import (
    AboutOutcome,
    CompanyRef,
    FileRef,
    FileRefs,
    Help,
    MessageRef,
    Moment,
    Reference,
    Stored,
    Subject,
)
from remit.services.knowledge import documents
from remit.services.messaging import (
    answering,
    inbox,
    letter_context,
    letters,
    origins,
    own_letters,
)
from remit.services.organisation import tree
from remit.services.people import users
from remit.services.rights import grants
from remit.services.subjects import OUTCOME, require_file
from remit.services.surfaces import AsRoute, AsTool
from remit.services.verbs import Added
from remit.services.work import cycles, waits
from remit.store.messaging import mail as statements
from remit.store.organisation import people
from remit.store.work import waits as wait_statements


@dataclass(frozen=True)
class Receivers:
    """The receivers of an address, and the decision that the caller may write to it."""

    agents: tuple[Agent, ...]
    users: tuple[UserId, ...]
    decision: Decision


@command(
    "mail.send",
    Added("expects_reply", False),
    Added("outcome", None),
    AsTool(
        "mail_send",
        "Write to somebody, or answer with reply_to; you go on meanwhile. For what you have to "
        "know to go on: ask.",
        spelled={"file": "file_id", "outcome": "outcome_id"},
        without=("company", "at_most_once", "body_hash"),
    ),
    AsRoute(
        "POST /companies/{companyId}/messages",
        "send_message",
        201,
        spelled={"file": "fileId"},
        without=("expects_reply", "outcome", "body_hash"),
    ),
)
def send(
    ctx: Context,
    *,
    to: Annotated[
        str,
        Reference("address"),
        Help(
            "agent:<name>, user:<name>, boss, board, channel:<kind>:<id>, or agent:background to "
            "have the text run once",
            model=True,
        ),
    ],
    company: CompanyRef | None = None,
    body: Annotated[str, Stored(), Help("The text", model=True)] | None = None,
    file: Annotated[FileRef, Help("Or a file that is the message", model=True)] | None = None,
    subject: Subject = "",
    attachments: Annotated[FileRefs, Help("Files; the receiver may read them", model=True)] = (),
    reply_to: Annotated[MessageRef, Help("Message id", model=True)] | None = None,
    deliver_at: Moment | None = None,
    at_most_once: Annotated[
        bool, Help("Never hand it out a second time, even if the first attempt failed.")
    ] = False,
    expects_reply: Annotated[bool, Help("Your outcome waits for the reply", model=True)] = False,
    outcome: AboutOutcome | None = None,
    body_hash: str | None = None,
    new_id: str | None = None,
    new_stored: documents.Stored | None = None,
) -> shapes.SentMessageShape:
    """Send a message now, or at a later time. Nobody waits for an answer.

    `body_hash` tells two requests apart whose bodies were stored beforehand.
    """
    assert body_hash is None or new_stored is not None
    lookup.company_of_caller(ctx, company)
    about = lookup.find(ctx, OUTCOME, outcome) if outcome else None
    message = post(
        ctx,
        to=to,
        text=body,
        file=file,
        subject=subject,
        attachments=attachments,
        reply_to=reply_to,
        deliver_at=deliver_at,
        at_most_once=at_most_once,
        expects_reply=expects_reply,
        outcome=about.id if about else None,
        body_id=new_id,
        stored=new_stored,
    )
    told: shapes.CycleToldShape = {}
    why_not = not_started(ctx, message)
    if expects_reply:
        told = _await_reply(ctx, message, about)
    return {**views.message(message), "not_started": why_not, **told}


#: Reasons why an agent is not started for its mail until somebody acts.
_KEPT = frozenset({"halted", "paused", "stopped", "budget", "no_adapter", "no_person"})
#: Reasons that pass with time.
_KEPT_FOR_NOW = frozenset({"held", "limit"})


def not_started(ctx: Context, message: Message, *, by_itself: bool = False) -> str | None:
    """Return the reason why the receiver will not read it soon; None if it will.

    `by_itself` ignores reasons that pass with time.
    """
    from remit.services.organisation import idleness  # it imports mail indirectly

    kind, _, who = message.address.partition(":")
    receiver = lookup.agent_row(ctx, who) if kind == "agent" else None
    if receiver is None:
        return None
    if receiver.id == ctx.actor.agent_id:
        return _arrives_later(ctx, message) if message.is_to_itself else None
    kept = idleness.kept_from_starting(ctx, receiver)
    if kept is None:
        return None
    word, sentence = kept
    if word not in (_KEPT if by_itself else _KEPT | _KEPT_FOR_NOW):
        return None
    # The sentence, which may show spending and who paused the agent, is for people.
    why = word.replace("_", " ") if ctx.actor.kind is ActorKind.AGENT else sentence
    return f"{receiver.name} does not start for it now: {why}"


def _arrives_later(ctx: Context, message: Message) -> str | None:
    """Say when a letter of an agent to itself arrives."""
    for delivery in ctx.tx.all(statements.DELIVERIES_OF, message=message.id):
        if delivery.status is DeliveryStatus.DEFERRED:
            return f"your own letter reaches you at {moment(delivery.deliver_at)}"
    return None


def _await_reply(ctx: Context, message: Message, outcome: Outcome | None) -> shapes.CycleToldShape:
    """Let the sender wait, with the outcome that it is about, until the receiver replies."""
    me = ctx.actor.agent_id
    if me is None:
        raise BadInput("expects_reply: only agents wait.", "Leave it out.")
    about = waits.own(outcome, me) if outcome else None
    kind, _, who = message.address.partition(":")
    if kind not in ("agent", "user", "board") or who == me:
        raise BadInput(
            "expects_reply: nobody replies there.", "Use it for agents, people and the board."
        )
    wait = waits.begin(
        ctx,
        WaitKind.REPLY,
        message.id,
        me,
        to_agent=AgentId(who) if kind == "agent" else None,
        to_user=UserId(who) if kind == "user" else None,
        about=about,
    )
    return cycles.told(ctx, wait)


def post(
    ctx: Context,
    *,
    to: object,
    text: object = None,
    file: str | None = None,
    subject: object = "",
    attachments: Sequence[str] = (),
    reply_to: str | Message | None = None,
    deliver_at: object = None,
    at_most_once: bool = False,
    expects_reply: bool = False,
    body_id: str | None = None,
    stored: documents.Stored | None = None,
    question: QuestionId | None = None,
    request: str | None = None,
    from_background: bool = False,
    from_channel: str | None = None,
    outside_sender: str | None = None,
    origin: MessageId | None = None,
    mark: Mark | None = None,
    about: str | None = None,
    to_know: bool = False,
    outcome: str | None = None,
    answers: bool = False,
    wishes: bool = True,
) -> Message:
    """Send a message; every way of sending ends here. With `answers`, an answer to a question may
    go to the asker, wherever that is in the tree. Without `wishes`, a person's message asks for
    nothing, so it is no wish. `about` names the matter with which a letter of Remit goes, and
    `to_know` one that starts no run."""
    assert not (from_background or to_know) or ctx.actor.kind is ActorKind.SYSTEM
    assert not from_channel or ctx.actor.kind is not ActorKind.AGENT
    subject = clean_line(subject, "subject", longest=LONGEST_SUBJECT, empty_ok=True)
    if len(attachments) > MOST_ATTACHMENTS:
        raise BadInput(f"At most {MOST_ATTACHMENTS} attachments.", "Put a list into a file.")
    address = parse_address(_boss_of_caller(ctx) or to if _is_boss(to) else to)
    if isinstance(reply_to, str):
        reply_to = letters.require_reading(ctx, lookup.find(ctx, letters.MESSAGE, reply_to))
    answered = reply_to
    receivers = receivers_of(ctx, address, answered, answers=answers)
    by_person = ctx.actor.kind is ActorKind.USER
    if answered is not None and answered.hops >= MOST_HOPS and not by_person and mark is None:
        raise Conflict(
            f"The thread has gone to and fro {MOST_HOPS} times.",
            "Begin a new thread if there is something new to say.",
            code="hop_limit",
        )
    files = [
        require_file(ctx, Action.FILE_READ, lookup.file(ctx, attachment))
        for attachment in attachments
    ]
    sent = list({file.id: file for file in files}.values())
    if text is not None and not (subject or sent) and _is_empty(str(text), stored):
        raise BadInput("The message is empty.", "Write a body, or attach a file.")
    content = _body(ctx, text, file, subject, receivers, body_id, stored)
    new_id = MessageId(ctx.ids.new())
    message = Message(
        id=new_id,
        company_id=content.company_id,
        thread_id=answered.thread_id if answered else new_id,
        reply_to=answered.id if answered else None,
        sender_kind=ctx.actor.kind,
        sender_agent_id=ctx.actor.agent_id,
        sender_user_id=ctx.actor.user_id,
        sender_run_id=ctx.actor.run_id,
        from_board=ctx.actor.kind is ActorKind.USER,
        address=written(address, receivers),
        subject=subject,
        body_file_id=content.id,
        body_version=content.version,
        attachments=json.dumps([other.id for other in sent]),
        hops=_hops(ctx, answered),
        at_most_once=at_most_once,
        expects_reply=expects_reply,
        origin_id=origins.for_letter(ctx, answered, origin),
        mark=mark,
        about=about,
        to_know=to_know,
        outcome_id=letter_context.outcome_about(ctx, answered, outcome),
        question_id=question,
        request=request,
        background=from_background,
        channel=from_channel,
        outside_sender=outside_sender,
        created_at=ctx.now,
    )
    due = ctx.now if deliver_at is None else given_time(deliver_at, "deliver_at") or ctx.now
    if message.is_to_itself:
        due = own_letters.due(ctx, receivers.agents[0].id, message.origin_id, due)
    ctx.accept(Action.MESSAGE_SEND, message.address, receivers.decision)
    ctx.tx.add(message)
    if wishes:
        origins.open_wish(ctx, message, receivers.agents)
    for agent in receivers.agents:
        inbox.deliver(
            ctx, message, due, agent=agent.id, files=(content, *sent), new_body=file is None
        )
    for user in (*receivers.users, *_board_for_vacant(ctx, receivers.agents)):
        inbox.deliver(ctx, message, due, user=user)
    job = None
    if address.kind is AddressKind.BACKGROUND:
        job = background.accept(ctx, message, content, due)
    if address.kind is AddressKind.CHANNEL:
        outbox.put(ctx, message, address.who.partition(":")[0], content, due)
    ctx.record(
        "message.send",
        f"message:{message.id}",
        {
            "to": message.address,
            "thread": message.thread_id,
            "body": content.id,
            "attachments": [other.id for other in sent],
            "deliver_at": views.time(due),
            **({"job": job.id} if job is not None else {}),
            **({"from": from_channel} if from_channel is not None else {}),
        },
        receivers.decision,
    )
    if answered is not None and answered.question_id is not None:
        answering.answered_by_mail(ctx, message, answered.question_id)
    if answered is not None:
        _end_waits_for_reply(ctx, message, answered, receivers)
        if by_person:
            inbox.answered_by(ctx, answered, ctx.actor)
    return message


def _is_boss(to: object) -> bool:
    """Return whether an address is the word for an agent's own boss."""
    return isinstance(to, str) and to.strip().casefold() == "boss"


def _boss_of_caller(ctx: Context) -> str | None:
    """Return the address of the calling agent's boss; None for a person, who may mean an agent of
    that name."""
    me = lookup.agent_row(ctx, ctx.actor.agent_id or "")
    if me is None:
        return None
    if me.boss_id is not None:
        return f"agent:{me.boss_id}"
    return "board" if me.boss_user_id is None else f"user:{me.boss_user_id}"


def _hops(ctx: Context, answered: Message | None) -> int:
    """Count the hops of a thread between agents since a person wrote in it; Remit's own letters do
    not count."""
    if answered is None or ctx.actor.kind is ActorKind.USER:
        return 0
    return answered.hops + (1 if ctx.actor.kind is ActorKind.AGENT else 0)


def _end_waits_for_reply(
    ctx: Context, reply: Message, answered: Message, receivers: Receivers
) -> None:
    for agent in receivers.agents:
        if agent.id != ctx.actor.agent_id:
            for wait in ctx.tx.all(
                wait_statements.REPLIES_AWAITED,
                agent=agent.id,
                message=answered.id,
                thread=reply.thread_id,
            ):
                waits.end_one(ctx, wait)


def receivers_of(
    ctx: Context, address: Address, answered: Message | None = None, *, answers: bool = False
) -> Receivers:
    """Return the receivers of an address; refuses a caller who may not write to it."""
    if address.kind is AddressKind.AGENT:
        receiver = lookup.agent_ever(ctx, address.who)
        awaits_answer = answers or answering.is_awaited(ctx, answered, receiver.id)
        return _to_agent(ctx, receiver, awaits_answer)
    if address.kind is AddressKind.BOARD:
        return _to_board(ctx)
    if address.kind is AddressKind.USER:
        return _to_user(ctx, address.who)
    if address.kind is AddressKind.BACKGROUND:
        return _to_background(ctx)
    return _to_channel(ctx, address.who)


def _to_agent(ctx: Context, receiver: Agent, awaits_answer: bool) -> Receivers:
    if receiver.status is AgentStatus.TERMINATED:
        raise Conflict(f"{receiver.name} is terminated.", "Write to its boss.")
    if receiver.status is AgentStatus.PENDING_APPROVAL:
        raise Conflict(
            f"{receiver.name} awaits approval.", "Write to it when its hire is approved."
        )
    facts: GivenFacts = {"target_boss": receiver.boss_id, "awaits_answer": awaits_answer}
    if ctx.actor.agent_id is not None:
        me = lookup.known_agent(ctx, ctx.actor.agent_id)
        bosses = [(agent.boss_id, agent.boss_user_id) for agent in (me, receiver)]
        facts["own_boss"] = me.boss_id
        facts["same_boss"] = bosses[0] == bosses[1]
        facts["messaging"] = ctx.tx.existing(people.COMPANY).messaging
    message = Resource(ResourceKind.MESSAGE, receiver.id)
    decision = ctx.require(Action.MESSAGE_SEND, message, over=receiver.id, **facts)
    return Receivers((receiver,), (), decision)


def _to_board(ctx: Context) -> Receivers:
    """Return the people with the board's role over the sender, without the sender."""
    board = tuple(user for user in _board_over(ctx) if user != ctx.actor.id)
    decision = ctx.require(Action.MESSAGE_SEND, on="board", receiver_is_board=True)
    if not board:
        raise Conflict("There is nobody else on the board.", "Write to a user or an agent.")
    return Receivers((), board, decision)


def _to_user(ctx: Context, who: str) -> Receivers:
    receiver = users.member(ctx, who)
    me = lookup.agent_row(ctx, ctx.actor.agent_id or "")
    over_me = receiver.id in _board_over(ctx) or (me is not None and me.boss_user_id == receiver.id)
    decision = ctx.require(Action.MESSAGE_SEND, on=f"user:{receiver.id}", receiver_is_board=over_me)
    return Receivers((), (receiver.id,), decision)


def _to_channel(ctx: Context, who: str) -> Receivers:
    """Check a place outside, for an agent that is bound to that kind of channel."""
    kind = who.partition(":")[0]
    me = ctx.actor.agent_id
    bound = None if me is None else bindings.speaking(ctx, me, kind)
    decision = ctx.require(
        Action.MESSAGE_SEND,
        Resource(ResourceKind.CHANNEL, kind),
        on=f"channel:{who}",
        to_channel=True,
        bound=bound is not None,
    )
    assert bound is not None, "only who is bound may"
    config = json.loads(bound.adapter_config)
    if not registry.get(kind).sends(registry.installed.read(kind, config)):
        raise Conflict(
            f"Your binding to {kind} only takes messages in.",
            "Ask the board to say where messages should go.",
            code="only_incoming",
        )
    return Receivers((), (), decision)


def _to_background(ctx: Context) -> Receivers:
    """Check mail to the background: it has no reader, but runs as a job of its sender."""
    decision = ctx.require(
        Action.MESSAGE_SEND,
        Resource(ResourceKind.MESSAGE, IN_BACKGROUND),
        on=BACKGROUND,
        to_background=True,
    )
    return Receivers((), (), decision)


def _board_for_vacant(ctx: Context, agents: Sequence[Agent]) -> list[UserId]:
    """Return the readers of mail for vacant seats: the board over them, without the sender."""
    readers = {
        user
        for agent in agents
        if tree.is_vacant(ctx, agent)
        for user in _board(ctx, ctx.boss_chain(agent.id))
    }
    return sorted(readers - {ctx.actor.id})


def _board_over(ctx: Context) -> list[UserId]:
    """Return the people with the board's role over the sender: over everything, or over a part that
    includes it."""
    scope = ctx.membership.scope_agent_id if ctx.membership else None
    return _board(ctx, ctx.boss_chain(ctx.actor.agent_id or scope))


def _board(ctx: Context, over: Sequence[str]) -> list[UserId]:
    return [
        UserId(user) for user, part in ctx.tx.all(statements.BOARD) if part is None or part in over
    ]


def _body(
    ctx: Context,
    text: object,
    file: str | None,
    subject: str,
    receivers: Receivers,
    body_id: str | None,
    stored: documents.Stored | None,
) -> File:
    """Return the file of the message: an existing one, or a new one with the text."""
    if (text is None) == (file is None):
        raise BadInput("Give either a body or a file.", "Use one of the two.")
    if file is not None:
        return require_file(ctx, Action.FILE_READ, lookup.file(ctx, file))
    if not isinstance(text, str):
        raise BadInput("The body must be text.", "Send it as a string, or attach a file.")
    home = ctx.actor.agent_id or next((agent.id for agent in receivers.agents), None)
    body = documents.create(
        ctx,
        FileKind.FILE,
        f"Message: {subject}" if subject else "Message",
        text,
        home=home,
        file_id=body_id,
        stored=stored,
        unlisted=True,
        letter=True,
    )
    if ctx.actor.agent_id is not None:
        # Its author may read it and pass it on, but not change it after it was sent.
        grants.give_by_rule(ctx, ctx.actor.agent_id, body.id, Level.READ)
    return body


def _is_empty(text: str, stored: documents.Stored | None) -> bool:
    """Return whether the message has no text; a body that was stored beforehand may come without
    it."""
    return not text.strip() and (stored is None or bool(text) or not stored["size"])


def written(address: Address, receivers: Receivers) -> str:
    """Return the address by ids, so that it stays the same when names change."""
    if address.kind is AddressKind.AGENT:
        return f"agent:{receivers.agents[0].id}"
    if address.kind is AddressKind.USER:
        return f"user:{receivers.users[0]}"
    if address.kind is AddressKind.CHANNEL:
        return f"channel:{address.who}"
    return BACKGROUND if address.kind is AddressKind.BACKGROUND else "board"
