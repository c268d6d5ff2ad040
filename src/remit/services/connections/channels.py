"""Inbound channel messages: mail to the agent that the token is bound to, and nothing else."""

from __future__ import annotations

import hmac

from remit.errors import BadInput, KeyReused, Unauthenticated, Unavailable
from remit.ids import is_id
from remit.model.messaging.channel import (
    LARGEST_TEXT,
    Binding,
    Receipt,
    channel_address,
    outside_id,
)
from remit.model.messaging.mail import LONGEST_SUBJECT, Message
from remit.model.text import clean_line, digest_of
from remit.services import shapes
from remit.services.chat import receivers
from remit.services.chat import shapes as chat_shapes
from remit.services.command import FOR_REMIT, Context, logged, query
from remit.services.messaging import mail
from remit.store.messaging import channels as statements
from remit.store.messaging import mail as mail_statements

#: A sender that writes faster than the agent reads is refused for now.
MOST_WAITING = 1000


@query("channels.admit", FOR_REMIT)
def admit(ctx: Context, *, kind: str, digest: str) -> None:
    """Check that a token is bound, before the body of its request is read."""
    _bound(ctx, kind, digest)


@query("channels.posted", FOR_REMIT)
def posted(ctx: Context, *, kind: str, binding: str) -> chat_shapes.PostedShape:
    """Return the settings and the key for a webhook of a binding, whose request has to prove its
    origin."""
    bound = ctx.tx.one(statements.BINDING_EVER, binding=binding) if is_id(binding) else None
    if bound is None or bound.adapter_type != kind or bound.removed_at is not None or bound.held:
        raise unproven()
    return receivers.posted(ctx, bound)


def unproven() -> Unauthenticated:
    """Error of an unproven request, the same when the binding does not exist."""
    return Unauthenticated("That does not come from a binding of this channel.", "")


@logged("channels.receive", FOR_REMIT)
def receive(
    ctx: Context,
    *,
    kind: str,
    digest: str,
    outside: object,
    conversation: object,
    body: object,
    subject: object = "",
    reply_to: object = None,
) -> shapes.TakenInShape:
    """Deliver a message as mail, once, from the bearer of the binding's token; for Remit itself.

    `digest` is that of the token. A duplicate gets the answer of the first one.
    """
    binding = _bound(ctx, kind, digest)
    called = outside_id(outside)
    address = channel_address(kind, conversation)
    text = _text(body)
    line = clean_line(subject, "subject", longest=LONGEST_SUBJECT, empty_ok=True)
    if reply_to is not None and not isinstance(reply_to, str):
        raise BadInput("replyTo must be the id of a message.", "Leave it out.")
    ctx.enter(binding.company_id)
    ctx.lock_company()
    binding = _bound(ctx, kind, digest)  # it may have been removed while this waited for the lock
    fingerprint = digest_of([address, line, text, reply_to])
    before = ctx.tx.one(statements.RECEIPT, binding=binding.id, outside_id=called)
    if before is not None:
        if not hmac.compare_digest(before.digest, fingerprint):
            raise KeyReused(
                "This id was used for a different message.", "Give every message its own id."
            )
        message = ctx.tx.existing(mail_statements.MESSAGE_ANYWHERE, message=before.message_id)
        return _answer(message, duplicate=True)
    if (ctx.tx.one(mail_statements.COUNT_WAITING, agent=binding.agent_id) or 0) >= MOST_WAITING:
        raise Unavailable(
            "The agent has more unread mail than it can take.",
            "Send it again later, with the same id.",
            code="inbox_full",
        )
    message = mail.post(
        ctx,
        to=f"agent:{binding.agent_id}",
        text=text,
        subject=line,
        reply_to=_answered(ctx, binding, address, reply_to),
        from_channel=address,
    )
    receipt = Receipt(binding.id, called, binding.company_id, message.id, fingerprint)
    ctx.tx.add(receipt)
    return _answer(message, duplicate=False)


def _bound(ctx: Context, kind: str, digest: str) -> Binding:
    """Return the binding of a token. Looked up by digest, so that timing reveals nothing."""
    binding = ctx.tx.one(statements.BOUND_BY_TOKEN, kind=kind, digest=digest)
    if binding is None or not hmac.compare_digest(binding.adapter_token, digest):
        raise Unauthenticated(
            "The token is not bound to this channel.", "Ask the board for a new binding."
        )
    return binding


def _answered(ctx: Context, binding: Binding, address: str, text: str | None) -> Message | None:
    """Return the message that is replied to; only one sent to this very place, so that nothing is
    learned of others."""
    if text is None:
        return None
    message = ctx.tx.one(mail_statements.MESSAGE_ANYWHERE, message=text) if is_id(text) else None
    sent_there = message is not None and (message.sender_agent_id, message.address) == (
        binding.agent_id,
        address,
    )
    if not sent_there:
        raise BadInput(
            "replyTo is no message that was sent there.", "Leave it out to begin a new thread."
        )
    return message


def _text(body: object) -> str:
    if not isinstance(body, str) or not body.strip():
        raise BadInput("body must be text.", "Say something.")
    try:
        size = len(body.encode())
    except UnicodeEncodeError:
        raise BadInput("body has a character that is not text.", "Send UTF-8.") from None
    if size > LARGEST_TEXT:
        raise BadInput(f"body is larger than {LARGEST_TEXT >> 10} KiB.", "Send less.")
    return body


def _answer(message: Message, *, duplicate: bool) -> shapes.TakenInShape:
    return {"id": message.id, "thread": message.thread_id, "duplicate": duplicate}
