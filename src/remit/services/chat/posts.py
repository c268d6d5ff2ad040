"""Posts of Remit itself in chats: answers to commands, approvals, questions, notices.

A post is queued in the transaction that makes it, like messages of agents. It is delivered once and
edited in place from then on: `revise` replaces its content, `withdraw` removes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from remit.channels import registry
from remit.channels.contract import Channel
from remit.clock import Micros
from remit.ids import new_reference, token_digest
from remit.model.messaging.channel import Binding
from remit.model.messaging.chat import BUTTON_LASTS, LONGEST_POST, ButtonReference, Post
from remit.model.messaging.mail import DeliveryStatus
from remit.services import shapes
from remit.services.chat import receivers
from remit.services.command import FOR_REMIT, Context, command
from remit.services.queues import DELIVERY_LEASE, MAY_HAVE_IT, Deliveries
from remit.store.messaging import channels as channel_statements
from remit.store.messaging import chat as statements

GONE = "the binding is gone"
#: A label, and the act of its button: `act` and the act's arguments.
Act = tuple[str, Mapping[str, Any]]
_QUEUE = Deliveries(
    statements.POSTS,
    delivered="post.deliver",
    failed="post.undelivered",
    about=lambda post: {
        "binding": post.binding_id,
        "subject": post.subject,
        "attempt": post.attempt,
    },
)


def put(
    ctx: Context,
    binding: Binding,
    conversation: str,
    text: str,
    *,
    subject: str = "",
    buttons: Sequence[Sequence[Act]] = (),
    reply_to: str | None = None,
    due: Micros | None = None,
) -> Post:
    """Queue a post in a conversation. The channel gets the references of its buttons; only their
    digests are stored."""
    post = Post(
        id=ctx.ids.new(),
        company_id=binding.company_id,
        binding_id=binding.id,
        conversation=conversation,
        subject=subject,
        document="{}",
        version=1,
        status=DeliveryStatus.QUEUED,
        created_at=ctx.now,
        next_at=due or ctx.now,
    )
    ctx.tx.add(post)
    _fill(ctx, post, text, buttons, reply_to)
    return post


def revise(
    ctx: Context, post: Post, text: str, *, buttons: Sequence[Sequence[Act]] = (), by: str = ""
) -> None:
    """Replace the content of a post. The buttons that it had before do nothing any more."""
    before = json.loads(post.document)
    ctx.tx.run(statements.USE_REFERENCES_OF, post=post.id, by=by)
    _fill(ctx, post, text, buttons, before.get("reply_to"))
    binding = ctx.tx.existing(channel_statements.BINDING_EVER, binding=post.binding_id)
    if can_edit(binding.adapter_type):
        ctx.tx.run(statements.REOPEN_POST, post=post.id)


def withdraw(ctx: Context, post: Post, by: str = "") -> None:
    """Withdraw a post; one that was not sent yet is not sent. Its buttons do nothing any more."""
    ctx.tx.run(statements.USE_REFERENCES_OF, post=post.id, by=by)
    ctx.tx.run(statements.REVISE_POST, post=post.id, new_document=post.document, new_withdrawn=True)
    ctx.tx.run(statements.REOPEN_POST, post=post.id)


def can_edit(kind: str) -> bool:
    """Return whether a channel can change what it delivered."""
    return kind in registry.installed.types() and (
        type(registry.get(kind)).edit is not Channel.edit
    )


def about(ctx: Context, subject: str) -> list[Post]:
    """Return the posts about an item, such as `approval:<id>`, in every conversation."""
    return ctx.tx.all(statements.POSTS_ABOUT, subject=subject)


def _fill(
    ctx: Context, post: Post, text: str, buttons: Sequence[Sequence[Act]], reply_to: str | None
) -> None:
    rows = [[_button(ctx, post, label, act) for label, act in line] for line in buttons]
    shown = text if len(text) <= LONGEST_POST else f"{text[: LONGEST_POST - 1]}…"
    document = json.dumps({"text": shown, "buttons": rows, "reply_to": reply_to})
    ctx.tx.run(statements.REVISE_POST, post=post.id, new_document=document, new_withdrawn=False)


def _button(ctx: Context, post: Post, label: str, act: Mapping[str, Any]) -> list[str]:
    # Short enough for any channel, long enough not to be guessed.
    reference = new_reference()
    button = ButtonReference(
        digest=token_digest(reference),
        company_id=post.company_id,
        post_id=post.id,
        act=json.dumps(dict(act)),
        expires_at=ctx.now + BUTTON_LASTS,
    )
    ctx.tx.add(button)
    return [label, reference]


# ── for the process that delivers them ──────────────────────────────────────────────────────────


ready = _QUEUE.readies("posts", statements.READY_POSTS, "binding_id")
next_due, expired, under_way = _QUEUE.looks("posts")
held, renew = _QUEUE.holds("posts"), _QUEUE.renews("posts")


def _brief(ctx: Context, post: Post) -> shapes.ClaimedPostShape:
    binding, document = receivers.source_of(ctx, post)
    return {
        "epoch": post.epoch,
        "version": post.version,
        "gone": binding.removed_at is not None,
        "outside": post.outside_id,
        "withdrawn": post.withdrawn,
        **receivers.about(binding),
        "parcel": {
            "id": post.id,
            "sender": "remit",
            "address": f"channel:{binding.adapter_type}:{post.conversation}",
            "conversation": post.conversation,
            "subject": "",
            "body": document["text"],
            "thread": post.id,
            "reply_to": None,
            "reply_to_outside": document["reply_to"],
            "created_at": post.created_at,
            "attempt": post.attempt,
            "again": post.outside_id is None and (post.ended_why or "").endswith(MAY_HAVE_IT),
        },
        "buttons": document["buttons"],
    }


claim = _QUEUE.claims("posts", DELIVERY_LEASE, _brief)


@command("posts.delivered", FOR_REMIT)
def delivered(
    ctx: Context, *, post: str, epoch: int, version: int, outside: str | None = None
) -> shapes.EndedShape:
    """Record that the channel shows this version; if there is a newer one, requeue the post."""
    post_row = _QUEUE.entered(ctx, post)
    if outside is not None:
        _QUEUE.fenced(ctx, statements.SHOWN, (post, epoch), outside=outside)
    if post_row.version == version:
        return _QUEUE.delivered(ctx, post, epoch)
    return _QUEUE.put_back(ctx, "post.revise", post, epoch)


failed = _QUEUE.fails("posts")
take_over = _QUEUE.takes_over("posts")
put_back = _QUEUE.puts_back("posts", "post.put_back")


def bury(ctx: Context, binding: Binding) -> None:
    """Cancel the undelivered posts of a binding that is gone."""
    for post in ctx.tx.all(statements.UNSHOWN, binding=binding.id):
        _QUEUE.close(ctx, post.id, DeliveryStatus.CANCELLED, GONE)
