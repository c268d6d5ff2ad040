"""Dispatch of inbound chat messages, each in one transaction.

    a code          links the account that sent it
    a command       calls the verb of the same name, as the linked person
    a tapped button takes its act, as the person who tapped
    a decision in words     such as `approve 3f2a91c0 r2`: as if its button was tapped
    a reply to what Remit showed            answers a question or a letter, or comments on a request
    anything else   is mail to the agent: from the person, or from outside

Where others could write in the person's name, as into a mailbox, what changes something waits for a
confirmation (`confirmations`). Messages of accounts that are not linked are mail from outside and
nothing else. A refused command changes nothing; the sender is told why.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, cast

from remit.clock import moment
from remit.errors import Conflict, NotFound, Unavailable
from remit.ids import FileId
from remit.model.messaging.channel import Receipt
from remit.model.messaging.chat import LinkedAccount
from remit.model.messaging.mail import MOST_PER_TURN, Message
from remit.model.organisation.decision import BY_REMIT, Decision, Effect
from remit.model.organisation.principal import ActorKind, Principal
from remit.model.work.file import FileKind
from remit.services import lookup, shapes
from remit.services.chat import (
    accounts,
    commands,
    confirmations,
    decisions,
    intake,
    posts,
    receivers,
    replies,
)
from remit.services.chat.said import Said, reply
from remit.services.command import FOR_REMIT, Context, command
from remit.services.knowledge import documents
from remit.services.messaging import mail
from remit.services.spending import limits
from remit.store.messaging import chat as statements
from remit.store.messaging import mail as mail_statements
from remit.store.organisation import people

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


@command("chat.handle")
def handle(
    ctx: Context, *, intake_id: str, epoch: int, files: Sequence[Mapping[str, Any]] = ()
) -> shapes.HandledShape:
    """Handle a message of a linked account with that person's authority; for Remit itself.

    `files` came with it: stored already, or left out for a reason.
    """
    incoming = _said(ctx, intake_id, epoch)
    account = intake.account_of(ctx, incoming.binding, incoming.document)
    if ctx.caller is None or account is None or ctx.caller.account != account.id:
        raise Conflict("The account is not linked any more.", code="lost")
    ctx.enter(incoming.binding.company_id)
    ctx.allow_by_rule(_OWN)
    ctx.tx.run(statements.USE_ACCOUNT, id_=account.id, new_label=incoming.sender["name"])
    why = _by_person(ctx, incoming, account, files)
    about = {"via": account.called, "what": why}
    ctx.record("chat.use", f"linked_account:{account.id}", about, _OWN)
    intake.end(ctx, incoming.id, epoch, why)
    return {"handled": why}


@command("chat.handle_outside", FOR_REMIT)
def handle_outside(
    ctx: Context, *, intake_id: str, epoch: int, files: Sequence[Mapping[str, Any]] = ()
) -> shapes.HandledShape:
    """Handle a message of a sender who is not linked; for Remit itself."""
    incoming = _said(ctx, intake_id, epoch)
    ctx.enter(incoming.binding.company_id)
    ctx.allow_by_rule(BY_REMIT)
    on = f"binding:{incoming.binding.id}"
    code = accounts.code_in(incoming.text)
    if code is not None and incoming.document["direct"] and incoming.document["sender"]["sure"]:
        why = _link(ctx, incoming, code)
    elif not incoming.document["heard"]:
        # Not answered either, so that the sender cannot find out that the address is read.
        ctx.record("chat.unheard", on, {"who": incoming.sender["name"]})
        why = "not heard"
    elif incoming.document["tapped"] or commands.parse(incoming.text):
        here = {"binding": incoming.binding.id, "conversation": incoming.conversation}
        if (ctx.tx.one(statements.SHOWING_HERE, **here) or 0) < MOST_TOLD:  # not a whole room
            reply(ctx, incoming, _NOT_LINKED.format(kind=incoming.binding.adapter_type))
        ctx.record("chat.unlinked", on, {"who": incoming.sender["name"]})
        why = "not linked"
    else:
        _refuse_flood(ctx, incoming)
        _as_mail(ctx, incoming, files)
        why = "mail"
    intake.end(ctx, incoming.id, epoch, why)
    return {"handled": why}


def _link(ctx: Context, incoming: Said, code: str) -> str:
    """Link the account that sent a code to the person who got it."""
    binding, sender = incoming.binding, incoming.sender
    redeemed = accounts.redeem(ctx, binding, code)
    user = ctx.tx.existing(people.USER, user=redeemed.user_id)
    with ctx.acting_as(Principal(ActorKind.USER, user.id, user.name, operator=user.operator)):
        if accounts.decisions_wait(ctx, binding):
            where = {"binding": binding.id, "conversation": incoming.conversation}
            act = {"act": "link", "sender": sender, **where, "made_with": redeemed.made_with}
            answer = confirmations.ask(ctx, binding, incoming.account, act)
            why = "link to be confirmed"
        else:
            accounts.link(ctx, binding, sender, incoming.conversation, redeemed.made_with)
            answer = decisions.LINKED.format(name=user.name)
            why = "linked"
    reply(ctx, incoming, answer)
    return why


@command("chat.refused", FOR_REMIT)
def refused(ctx: Context, *, intake_id: str, epoch: int, sentence: str) -> shapes.HandledShape:
    """Tell the sender why nothing happened."""
    incoming = _said(ctx, intake_id, epoch)
    ctx.enter(incoming.binding.company_id)
    ctx.allow_by_rule(BY_REMIT)
    reply(ctx, incoming, sentence)
    ctx.record("chat.refused", f"binding:{incoming.binding.id}", {"why": sentence[:300]})
    intake.end(ctx, incoming.id, epoch, "refused")
    return {"handled": "refused"}


def _said(ctx: Context, intake_id: str, epoch: int) -> Said:
    intake_row = ctx.tx.one(statements.INTAKE.row, intake=intake_id)
    if intake_row is None or intake_row.epoch != epoch or intake_row.document == "{}":
        raise Conflict("The message is handled, or another process holds its lease.", code="lost")
    binding, document = receivers.source_of(ctx, intake_row)
    if binding.removed_at is not None:
        raise NotFound("The agent is not bound here any more.")
    return Said(intake_row.id, epoch, binding, document)


def _by_person(
    ctx: Context, incoming: Said, account: LinkedAccount, files: Sequence[Mapping[str, Any]]
) -> str:
    to_confirm = accounts.decisions_wait(ctx, incoming.binding)
    if incoming.document["tapped"]:
        return _tap(ctx, incoming, str(incoming.document["tapped"]), to_confirm=to_confirm)
    named = commands.parse(incoming.text)
    if named is not None and to_confirm and commands.COMMANDS[named[0]].require is not None:
        return _ask(ctx, incoming, _act_of(incoming, *named))
    if named is not None:
        return _command(ctx, incoming, account, *named)
    answer = replies.answer_in_words(ctx, incoming.text)
    if answer is not None:
        return replies.answer(ctx, incoming, *answer)
    act = decisions.in_words(ctx, incoming.binding, incoming.conversation, incoming.text)
    if act is not None and to_confirm:
        return _ask(ctx, incoming, act)
    if act is not None:
        reply(ctx, incoming, decisions.carry_out(ctx, act))
        return f"{act['act']} {decisions.subject(act).replace(':', ' ')}"
    subject = replies.answered_subject(ctx, incoming)
    if (done := _reply_to(ctx, incoming, subject, files)) is not None:
        return done
    if incoming.text.strip().startswith("/"):
        reply(ctx, incoming, "There is no such command here. /help lists them.")
        return "unknown command"
    _as_mail(ctx, incoming, files)
    return "mail"


def _tap(ctx: Context, incoming: Said, reference: str, *, to_confirm: bool) -> str:
    here = incoming.binding, incoming.conversation
    act = commands.act_of(ctx, *here, reference) if to_confirm else None
    if act is not None and act["act"] != "answer":
        return _ask(ctx, incoming, decisions.bound(ctx, act))
    done = commands.tap(ctx, *here, reference)
    if done.say:
        reply(ctx, incoming, done.say)
    return done.what


def _ask(ctx: Context, incoming: Said, act: decisions.Act) -> str:
    """Have the person confirm what the message decides."""
    decisions.require(ctx, act)
    answer = confirmations.ask(ctx, incoming.binding, incoming.account, act)
    reply(ctx, incoming, answer)
    return f"{act['act']} to be confirmed"


def _act_of(incoming: Said, name: str, words: str) -> decisions.Act:
    return {
        "act": "command",
        "name": name,
        "words": words,
        "agent": incoming.binding.agent_id,
        "binding": incoming.binding.id,
        "conversation": incoming.conversation,
    }


def _command(ctx: Context, incoming: Said, account: LinkedAccount, name: str, words: str) -> str:
    """Carry out a command; an answer that a room may not see goes to the person's own
    conversation."""
    chosen = commands.COMMANDS[name]
    conversation = incoming.conversation
    if chosen.private and not incoming.document["direct"]:
        if account.binding_id != incoming.binding.id:
            reply(ctx, incoming, "Ask me that directly, not in a room with others.")
            return f"/{name} in a room"
        conversation = account.conversation
        reply(ctx, incoming, "I answered you directly.")
    agent = lookup.known_agent(ctx, incoming.binding.agent_id)
    request = commands.Asked(incoming.binding, agent, conversation, words)
    answer = chosen.run(ctx, request)
    if conversation == incoming.conversation:
        reply(ctx, incoming, answer)
    else:
        posts.put(ctx, incoming.binding, conversation, answer)
    return f"/{name}"


def _reply_to(
    ctx: Context, incoming: Said, subject: str, files: Sequence[Mapping[str, Any]]
) -> str | None:
    """Handle a reply to a post with a subject; None if it is ordinary mail."""
    kind, _, item = subject.partition(":")
    letter = lookup.message_row(ctx, item) if kind == "message" else None
    if letter is not None and replies.has_author(letter):
        _as_mail(ctx, incoming, files, letter)
        return f"reply to {subject}"
    text = incoming.text.strip()
    if not text or kind not in replies.TO_ITEMS:
        return None
    return replies.TO_ITEMS[kind](ctx, incoming, item, text)


def _as_mail(
    ctx: Context,
    incoming: Said,
    files: Sequence[Mapping[str, Any]],
    answered: Message | None = None,
) -> Message:
    """Send a message as mail: to the agent, whose answer goes back to the conversation, or to the
    author of the letter that it answers."""
    binding = incoming.binding
    attached = [_file(ctx, incoming, file) for file in files if "why" not in file]
    notes = [
        _LEFT_OUT.format(name=file["name"], why=file["why"]) for file in files if "why" in file
    ]
    text = "\n".join([*([incoming.text] if incoming.text.strip() else []), *notes])
    if answered is not None:
        message = replies.to_author(ctx, incoming, answered, text, attached)
    else:
        message = mail.post(
            ctx,
            to=f"agent:{binding.agent_id}",
            text=text,
            subject=incoming.document["subject"],
            attachments=attached,
            reply_to=_answered(ctx, incoming),
            from_channel=incoming.address,
            outside_sender=incoming.sender["name"],
        )
    if ctx.actor.kind is ActorKind.USER:
        why_not = mail.not_started(ctx, message)
        if why_not is not None:
            reply(ctx, incoming, why_not)
    digest = hashlib.sha256(text.encode()).hexdigest()
    receipt = Receipt(binding.id, incoming.document["id"], binding.company_id, message.id, digest)
    ctx.tx.add(receipt)
    return message


def _file(ctx: Context, incoming: Said, stored: Mapping[str, Any]) -> FileId:
    file = documents.create(
        ctx,
        FileKind.FILE,
        f"{stored['name']} (from {incoming.sender['name']}, {incoming.binding.adapter_type})",
        "",
        home=incoming.binding.agent_id,
        file_id=stored["id"],
        stored=cast(documents.Stored, stored),
    )
    return file.id


def _answered(ctx: Context, incoming: Said) -> Message | None:
    """Return the agent's message that this replies to, so that the thread goes on."""
    outside = incoming.document["reply_to"]
    if outside is None:
        return None
    message_id = ctx.tx.one(
        statements.MESSAGE_BY_OUTSIDE,
        agent=incoming.binding.agent_id,
        outside=outside,
        address=incoming.address,
    )
    return ctx.tx.one(mail_statements.MESSAGE_ANYWHERE, message=message_id) if message_id else None


def _refuse_flood(ctx: Context, incoming: Said) -> None:
    """Refuse mail of a stranger for now, in a place that writes faster than the agent reads, or
    whose runs used up their share of the hour."""
    agent = incoming.binding.agent_id
    here = ctx.tx.one(statements.UNREAD_FROM, agent=agent, channel=incoming.address) or 0
    waiting = ctx.tx.one(mail_statements.COUNT_WAITING, agent=agent) or 0
    if here >= MOST_UNREAD_HERE or waiting >= MOST_UNREAD:
        raise Unavailable("The agent has more unread mail than it can take.", code="inbox_full")
    until = limits.strangers_wait(ctx, agent, incoming.address)
    if until is not None:
        sentence = f"Strangers have used up their runs of this hour, until {moment(until)}."
        raise Unavailable(sentence, code=limits.REACHED)
