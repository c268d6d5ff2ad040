"""Dispatch of inbound chat messages, each in one transaction.

    a code          links the account that sent it
    a command       calls the verb of the same name, as the linked person
    a tapped button takes its act, as the person who tapped
    a reply to a question or an approval    answers it, or comments on it
    anything else   is mail to the agent: from the person, or from outside

Messages of accounts that are not linked are mail from outside and nothing else. A refused command
changes nothing; the sender is told why.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from remit.errors import Conflict, NotFound, Unavailable
from remit.ids import FileId
from remit.model.messaging.channel import Binding, Receipt, channel_address
from remit.model.messaging.chat import LinkedAccount
from remit.model.messaging.mail import MOST_PER_TURN, Message
from remit.model.organisation.decision import BY_REMIT, Decision, Effect
from remit.model.organisation.principal import ActorKind
from remit.model.work.file import FileKind
from remit.services import lookup, shapes, views
from remit.services.chat import accounts, buttons, commands, intake, items, posts, receivers
from remit.services.command import FOR_REMIT, Context, command
from remit.services.governance import approvals
from remit.services.knowledge import documents
from remit.services.messaging import mail, questions
from remit.services.spending import limits
from remit.store.messaging import chat as statements
from remit.store.messaging import mail as mail_statements

#: Unread mail of unknown senders in one place: no more than an agent reads in one turn, so that a
#: sender elsewhere waits for one turn of a busy room and no longer.
MOST_UNREAD_HERE = MOST_PER_TURN
#: Unread mail of an agent, in all.
MOST_UNREAD = 1000
#: Unlinked people in a room get `_NOT_LINKED` while fewer posts than this wait to be sent there.
MOST_TOLD = 3
_OWN = Decision(Effect.ALLOW, "self", "It is your own linked account.", "rule:self")
_NOT_LINKED = (
    "That is for people who are known here, and this account is not linked. Get a code on your "
    "account page or with `remit link {kind}`, and send it to me directly."
)
_LEFT_OUT = "[{name} was left out: {why}]"


@dataclass(frozen=True)
class Said:
    """An inbound message, with its binding."""

    id: str
    epoch: int
    binding: Binding
    document: Mapping[str, Any]

    @property
    def conversation(self) -> str:
        return str(self.document["conversation"])

    @property
    def text(self) -> str:
        return str(self.document["text"])

    @property
    def sender(self) -> dict[str, str]:
        return dict(self.document["sender"])

    @property
    def address(self) -> str:
        return channel_address(self.binding.adapter_type, self.conversation)


@command("chat.handle")
def handle(
    ctx: Context, *, intake_id: str, epoch: int, files: Sequence[Mapping[str, Any]] = ()
) -> shapes.HandledShape:
    """Handle a message of a linked account with that person's authority; for Remit itself.

    `files` came with it: stored already, or left out for a reason.
    """
    said = _said(ctx, intake_id, epoch)
    account = intake.account_of(ctx, said.binding, said.document)
    if ctx.caller is None or account is None or ctx.caller.account != account.id:
        raise Conflict("The account is not linked any more.", code="lost")
    ctx.enter(said.binding.company_id)
    ctx.allow_by_rule(_OWN)
    ctx.tx.run(statements.USE_ACCOUNT, id_=account.id, new_label=said.sender["name"])
    why = _by_person(ctx, said, account, files)
    ctx.record(
        "chat.use", f"linked_account:{account.id}", {"via": account.called, "what": why}, _OWN
    )
    intake.end(ctx, said.id, epoch, why)
    return {"handled": why}


@command("chat.handle_outside", FOR_REMIT)
def handle_outside(
    ctx: Context, *, intake_id: str, epoch: int, files: Sequence[Mapping[str, Any]] = ()
) -> shapes.HandledShape:
    """Handle a message of a sender who is not linked; for Remit itself."""
    said = _said(ctx, intake_id, epoch)
    ctx.enter(said.binding.company_id)
    ctx.allow_by_rule(BY_REMIT)
    code = accounts.code_in(said.text)
    if code is not None and said.document["direct"] and said.document["sender"]["sure"]:
        name = accounts.link(ctx, said.binding, code, said.sender, said.conversation)
        _reply(ctx, said, f"This account is linked to {name} now. /help says what you can do here.")
        why = "linked"
    elif not said.document["heard"]:
        # Not answered either, so that the sender cannot find out that the address is read.
        ctx.record("chat.unheard", f"binding:{said.binding.id}", {"who": said.sender["name"]})
        why = "not heard"
    elif said.document["tapped"] or commands.parse(said.text):
        here = {"binding": said.binding.id, "conversation": said.conversation}
        if (ctx.tx.one(statements.SHOWING_HERE, **here) or 0) < MOST_TOLD:  # not a whole room
            _reply(ctx, said, _NOT_LINKED.format(kind=said.binding.adapter_type))
        ctx.record("chat.unlinked", f"binding:{said.binding.id}", {"who": said.sender["name"]})
        why = "not linked"
    else:
        _refuse_flood(ctx, said)
        _as_mail(ctx, said, files)
        why = "mail"
    intake.end(ctx, said.id, epoch, why)
    return {"handled": why}


@command("chat.refused", FOR_REMIT)
def refused(ctx: Context, *, intake_id: str, epoch: int, sentence: str) -> shapes.HandledShape:
    """Tell the sender why nothing happened."""
    said = _said(ctx, intake_id, epoch)
    ctx.enter(said.binding.company_id)
    ctx.allow_by_rule(BY_REMIT)
    _reply(ctx, said, sentence)
    ctx.record("chat.refused", f"binding:{said.binding.id}", {"why": sentence[:300]})
    intake.end(ctx, said.id, epoch, "refused")
    return {"handled": "refused"}


def _said(ctx: Context, intake_id: str, epoch: int) -> Said:
    found = ctx.tx.one(statements.INTAKE.row, intake=intake_id)
    if found is None or found.epoch != epoch or found.document == "{}":
        raise Conflict("The message is handled, or another process holds its lease.", code="lost")
    binding, document = receivers.source_of(ctx, found)
    if binding.removed_at is not None:
        raise NotFound("The agent is not bound here any more.")
    return Said(found.id, epoch, binding, document)


def _by_person(
    ctx: Context, said: Said, account: LinkedAccount, files: Sequence[Mapping[str, Any]]
) -> str:
    if said.document["tapped"]:
        done = buttons.tap(ctx, said.binding, said.conversation, str(said.document["tapped"]))
        if done.say:
            _reply(ctx, said, done.say)
        return done.what
    named = commands.parse(said.text)
    if named is not None:
        return _command(ctx, said, account, *named)
    post = _answered_post(ctx, said)
    if post is not None and _reply_to_post(ctx, said, post.subject):
        return f"reply to {post.subject}"
    if said.text.strip().startswith("/"):
        _reply(ctx, said, "There is no such command here. /help lists them.")
        return "unknown command"
    _as_mail(ctx, said, files)
    return "mail"


def _command(ctx: Context, said: Said, account: LinkedAccount, name: str, words: str) -> str:
    """Carry out a command; an answer that a room may not see goes to the person's own
    conversation."""
    chosen = commands.COMMANDS[name]
    conversation = said.conversation
    if chosen.private and not said.document["direct"]:
        if account.binding_id != said.binding.id:
            _reply(ctx, said, "Ask me that directly, not in a room with others.")
            return f"/{name} in a room"
        conversation = account.conversation
        _reply(ctx, said, "I answered you directly.")
    agent = lookup.known_agent(ctx, said.binding.agent_id)
    asked = commands.Asked(said.binding, agent, conversation, words)
    answer = chosen.run(ctx, asked)
    answers = said.document["id"] if conversation == said.conversation else None
    posts.put(ctx, said.binding, conversation, answer, reply_to=answers)
    return f"/{name}"


def _answered_post(ctx: Context, said: Said) -> Any:
    outside = said.document["reply_to"]
    if outside is None:
        return None
    found = ctx.tx.one(statements.POST_BY_OUTSIDE, binding=said.binding.id, outside=outside)
    here = found is not None and found.conversation == said.conversation
    return found if here else None


def _reply_to_post(ctx: Context, said: Said, subject: str) -> bool:
    """Handle a reply to a post: an answer to a question, or a comment on an approval."""
    kind, _, item = subject.partition(":")
    if kind == "question" and said.text.strip():
        questions.answer.body(ctx, question=item, answer=said.text.strip())
        items.refresh(ctx, subject, ctx.actor.id)
        return True
    if kind == "approval" and said.text.strip():
        approvals.comment.body(ctx, approval=item, body=said.text.strip())
        _reply(ctx, said, "Your comment is with the approval.")
        return True
    return False


def _as_mail(ctx: Context, said: Said, files: Sequence[Mapping[str, Any]]) -> Message:
    """Send a message to the agent as mail; the agent's answer goes back to its conversation."""
    binding = said.binding
    attached = [_file(ctx, said, one) for one in files if "why" not in one]
    notes = [_LEFT_OUT.format(name=one["name"], why=one["why"]) for one in files if "why" in one]
    text = "\n".join([*([said.text] if said.text.strip() else []), *notes])
    message = mail.post(
        ctx,
        to=f"agent:{binding.agent_id}",
        text=text,
        subject=said.document["subject"],
        attachments=attached,
        reply_to=_answered(ctx, said),
        from_channel=said.address,
        outside_sender=said.sender["name"],
    )
    if ctx.actor.kind is ActorKind.USER:
        why_not = mail.not_started(ctx, message)
        if why_not is not None:
            _reply(ctx, said, why_not)
    digest = hashlib.sha256(text.encode()).hexdigest()
    receipt = Receipt(binding.id, said.document["id"], binding.company_id, message.id, digest)
    ctx.tx.add(receipt)
    return message


def _file(ctx: Context, said: Said, stored: Mapping[str, Any]) -> FileId:
    made = documents.create(
        ctx,
        FileKind.FILE,
        f"{stored['name']} (from {said.sender['name']}, {said.binding.adapter_type})",
        "",
        home=said.binding.agent_id,
        file_id=stored["id"],
        stored=cast(documents.Stored, stored),
    )
    return made.id


def _answered(ctx: Context, said: Said) -> Message | None:
    """Return the agent's message that this replies to, so that the thread goes on."""
    outside = said.document["reply_to"]
    if outside is None:
        return None
    found = ctx.tx.one(
        statements.MESSAGE_BY_OUTSIDE,
        agent=said.binding.agent_id,
        outside=outside,
        address=said.address,
    )
    return ctx.tx.one(mail_statements.MESSAGE_ANYWHERE, message=found) if found else None


def _refuse_flood(ctx: Context, said: Said) -> None:
    """Refuse mail of a stranger for now, in a place that writes faster than the agent reads, or
    whose runs used up their share of the hour."""
    agent = said.binding.agent_id
    here = ctx.tx.one(statements.UNREAD_FROM, agent=agent, channel=said.address) or 0
    waiting = ctx.tx.one(mail_statements.COUNT_WAITING, agent=agent) or 0
    if here >= MOST_UNREAD_HERE or waiting >= MOST_UNREAD:
        raise Unavailable("The agent has more unread mail than it can take.", code="inbox_full")
    until = limits.strangers_wait(ctx, agent, said.address)
    if until is not None:
        sentence = f"Strangers have used up their runs of this hour, until {views.time(until)}."
        raise Unavailable(sentence, code=limits.REACHED)


def _reply(ctx: Context, said: Said, text: str) -> None:
    posts.put(ctx, said.binding, said.conversation, text, reply_to=said.document["id"])
