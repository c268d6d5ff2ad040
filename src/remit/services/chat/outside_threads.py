"""Threads of mail as a conversation outside has them, so that an answer goes on with its thread."""

from __future__ import annotations

import json

from remit.model.messaging.channel import Binding, channel_address
from remit.model.messaging.chat import OutsideThread
from remit.model.messaging.mail import Message
from remit.services import lookup
from remit.services.command import Context
from remit.store.messaging import channels as channel_statements
from remit.store.messaging import chat as statements

#: Most messages of a thread that are looked at, newest first.
MOST = 20


def of(ctx: Context, binding: Binding, conversation: str, message: Message | None) -> OutsideThread:
    """Return the thread of a message as far as a conversation has it: the message, what it answers,
    and the letter that it results from. Its subject is that of the newest one."""
    ids: list[str] = []
    subject = ""
    origin = message.origin_id if message is not None else None
    for _ in range(MOST):
        if message is None:
            break
        seen = _seen_as(ctx, binding, conversation, message)
        if seen is not None:
            ids.append(seen[0])
            subject = subject or seen[1]
        origin = None if origin == message.id else origin
        before = message.reply_to
        if before is None:
            before, origin = origin, None
        message = lookup.message_row(ctx, before) if before is not None else None
    return OutsideThread(subject, tuple(reversed(ids)))


def _seen_as(
    ctx: Context, binding: Binding, conversation: str, message: Message
) -> tuple[str, str] | None:
    """Return the chat system's id of a message in a conversation, and its subject there; None if it
    is not in it."""
    address = channel_address(binding.adapter_type, conversation)
    receipt = ctx.tx.one(channel_statements.RECEIPT_OF, message=message.id)
    if receipt is not None and (
        address == message.channel or _is_of_sender(ctx, binding, conversation, message)
    ):
        return receipt.outside_id, message.subject
    sent = ctx.tx.one(channel_statements.QUEUE.row, message=message.id)
    if sent is not None and sent.outside_id and sent.address == address:
        return sent.outside_id, message.subject
    for post in ctx.tx.all(statements.POSTS_ABOUT, subject=f"message:{message.id}"):
        if (post.binding_id, post.conversation) == (binding.id, conversation) and post.outside_id:
            return post.outside_id, str(json.loads(post.document).get("title", ""))
    return None


def _is_of_sender(ctx: Context, binding: Binding, conversation: str, message: Message) -> bool:
    """Return whether a conversation is that of the person who sent a message through a binding to
    another agent than the bound one."""
    if message.channel is not None or message.sender_user_id is None:
        return False
    accounts = ctx.tx.all(statements.ACCOUNTS_OF_USER, user=message.sender_user_id)
    here = (binding.id, conversation)
    return any((account.binding_id, account.conversation) == here for account in accounts)
