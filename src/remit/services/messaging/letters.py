"""Messages for readers: who may read one, and its text."""

from collections.abc import Sequence

from remit.authority import Action
from remit.model.messaging.mail import AddressKind, Message, heading
from remit.model.organisation.decision import BY_REMIT, Decision, deny
from remit.model.organisation.principal import ActorKind
from remit.model.work.file import Access
from remit.services import lookup, shapes, views
from remit.services.command import Context
from remit.store.messaging import mail as statements
from remit.store.organisation import agents, people
from remit.store.work import files as file_statements

#: Longest body that is shown; the rest is in its file.
LONGEST_SHOWN = 64 * 1024


def require_reading(ctx: Context, message: Message) -> Message:
    """Refuse the call unless the caller may read the message."""
    ctx.accept(Action.MESSAGE_READ, f"message:{message.id}", _reading(ctx, message))
    return message


def sees(ctx: Context, message: Message) -> bool:
    return _reading(ctx, message).allowed


def _reading(ctx: Context, message: Message) -> Decision:
    """Return the decision whether the caller may read it: a party, or somebody with control of
    one."""
    if ctx.actor.kind is ActorKind.SYSTEM:
        return BY_REMIT
    me = ctx.actor.id
    # Deferred mail is unknown to its receiver until it is delivered.
    reached = [
        delivery
        for delivery in ctx.tx.all(statements.DELIVERIES_OF, message=message.id)
        if delivery.position is not None
    ]
    parties = [(delivery.agent_id, delivery.user_id) for delivery in reached]
    if any(me in party for party in [(message.sender_agent_id, message.sender_user_id), *parties]):
        return views.OWN
    receivers = [delivery.agent_id for delivery in reached]
    among = any(_both_report_here(ctx, message.sender_agent_id, agent) for agent in receivers)
    for party in (message.sender_agent_id, *receivers):
        if party is not None:
            place = ctx.boss_chain(party)
            say = ctx.decide(Action.MESSAGE_READ, home=party, place=place, among_reports=among)
            if say.allowed:
                return say
    return deny("not_yours", "It is between others.", conceal=True)


def _both_report_here(ctx: Context, sender: str | None, receiver: str | None) -> bool:
    """Return whether the calling agent is the boss of both."""
    if ctx.actor.agent_id is None or sender is None or receiver is None:
        return False
    parties = [lookup.agent_row(ctx, agent) for agent in (sender, receiver)]
    return all(agent is not None and agent.boss_id == ctx.actor.id for agent in parties)


def shown(ctx: Context, message: Message) -> shapes.LetterShape:
    """A message with its body; the read is recorded in the file's access log."""
    body, whole = body_of(ctx, message)
    if ctx.tx.writable:
        ctx.tx.run(
            file_statements.INSERT_ACCESS,
            file_id=message.body_file_id,
            at=ctx.now,
            access=Access.READ.value,
            version=message.body_version,
            **ctx.author,
        )
    return {
        **views.message(message),
        "sender_name": sender_name(ctx, message),
        "body": body,
        "body_cut": not whole,
    }


def look_ahead(ctx: Context, listed: Sequence[Message]) -> None:
    """Find together what a list shows of each message: its text, its deliveries and the names."""
    bodies: dict[int, list[str]] = {}
    for message in listed:
        bodies.setdefault(message.body_version, []).append(message.body_file_id)
    for number, files in bodies.items():
        ctx.tx.look_ahead(file_statements.VERSION, files, number=number)
    ids = [letter.id for letter in listed]
    ctx.tx.look_ahead(statements.DELIVERIES_OF, ids)
    receivers = [
        to for message_id in ids for to in ctx.tx.all(statements.DELIVERIES_OF, message=message_id)
    ]
    parties = [(letter.sender_agent_id, letter.sender_user_id) for letter in listed]
    parties += [(to.agent_id, to.user_id) for to in receivers]
    ctx.tx.look_ahead(agents.AGENT_ANYWHERE, [agent for agent, _ in parties if agent])
    ctx.tx.look_ahead(people.USER, [user for _, user in parties if user])


def body_of(ctx: Context, message: Message) -> tuple[str, bool]:
    """Return the text of a message as it was sent, and whether it is complete."""
    # A message names a version that exists.
    version = ctx.tx.existing(
        file_statements.VERSION, file=message.body_file_id, number=message.body_version
    )
    with ctx.blobs.open(message.body_file_id, version.sha256) as stream:
        content = stream.read(LONGEST_SHOWN)
    whole = version.size <= LONGEST_SHOWN
    # The cut may split a character; its first bytes are dropped.
    return content.decode(errors="replace" if whole else "ignore"), whole


def title(ctx: Context, message: Message) -> str:
    """Return the subject of a message, or else the first line of its text."""
    return message.subject or heading("", body_of(ctx, message)[0]).removeprefix(": ").strip()


def sender_name(ctx: Context, message: Message) -> str:
    """Return the name of who sent a message, or the place outside that it came from."""
    if message.background:
        return AddressKind.BACKGROUND.value
    if message.channel is not None and message.sender_user_id is None:
        return message.channel.partition(":")[2]
    if message.sender_agent_id is not None:
        return lookup.name_of(ctx, message.sender_agent_id)
    if message.sender_user_id is not None:
        user = ctx.tx.one(people.USER, user=message.sender_user_id)
        return user.name if user else message.sender_user_id
    return "remit"


def _parties(ctx: Context) -> dict[str, object]:
    """Limit the query to an agent's own mail and that of its reports."""
    return {"me": ctx.actor.id, "any_party": ctx.actor.kind is not ActorKind.AGENT}


MESSAGE = lookup.Noun(
    "message",
    statements.MESSAGE_ANYWHERE,
    statements.MESSAGES_BY_PREFIX,
    lambda ctx: lambda message: sees(ctx, message),
    parameters=_parties,
)
