"""Posts of Remit itself in chats: answers to commands, approvals, questions, notices.

A post is queued in the transaction that makes it, like messages of agents. It is delivered once and
edited in place from then on: `mark` adds a result, `revise` replaces its content, `withdraw`
removes it.

A post may have several parts, sent in order. Its buttons are under the last part and stand for all:
they are shown, and do something, only while each part is there as it was made.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from remit.channels import parts, registry
from remit.channels.contract import Channel
from remit.ids import new_reference, token_digest
from remit.model.messaging import authorship
from remit.model.messaging.channel import Binding
from remit.model.messaging.chat import (
    BUTTON_LASTS,
    MAX_PARTS,
    NO_THREAD,
    ButtonReference,
    OutsideThread,
    Post,
)
from remit.model.messaging.mail import DeliveryStatus, answer_subject
from remit.model.spelling import spelled
from remit.services import shapes
from remit.services.chat import receivers
from remit.services.chat.offers import Offer
from remit.services.command import FOR_REMIT, Context, command
from remit.services.queues import DELIVERY_LEASE, MAY_HAVE_IT, Deliveries
from remit.store.messaging import channels as channel_statements
from remit.store.messaging import chat as statements

GONE = "the binding is gone"
#: Room for the first line of a part.
_ROOM_FOR_AUTHOR = 40
#: Longest result below an item, and room for it.
_LONGEST_MARK = 360
_BEFORE_MARK = "\n\n→ "
_ROOM_FOR_MARK = _LONGEST_MARK + 10
_INCOMPLETE = "Not every part of this arrived, so it cannot be decided here. /needs shows it anew."
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
    title: str = "",
    thread: OutsideThread = NO_THREAD,
    reply_to: str | None = None,
) -> Post:
    """Queue a post of one part in a conversation; a text that is too long is cut."""
    channel = registry.get(binding.adapter_type)
    shown = parts.cut(text, channel.longest_shown - _ROOM_FOR_AUTHOR, channel.size)
    about: Any = {"subject": subject, "title": title, "thread": thread, "reply_to": reply_to}
    return put_item(ctx, binding, conversation, [shown], **about)


def put_item(
    ctx: Context,
    binding: Binding,
    conversation: str,
    texts: Sequence[str],
    *,
    subject: str,
    buttons: Sequence[Sequence[Offer]] = (),
    mark: str = "",
    shows: str = "",
    title: str = "",
    thread: OutsideThread = NO_THREAD,
    reply_to: str | None = None,
) -> Post:
    """Queue a post in parts, such as `parts_of` makes; returns the last one, which has the buttons.

    `shows` identifies the state of the item that it shows. `title` is its subject line unless it
    goes on with a thread, whose subject it keeps. The channel gets the references of the buttons;
    only their digests are stored.
    """
    ids = [ctx.ids.new() for _ in texts]  # in order, because posts are sent in that order
    rows = [[(offer, new_reference()) for offer in line] for line in buttons]
    # Acts without a button are taken in words; `decisions` finds them by their references.
    taps = registry.get(binding.adapter_type).taps
    tappable = [[(offer.label, ref) for offer, ref in line if offer.label] for line in rows if taps]
    shown = [line for line in tappable if line]
    content: dict[str, object] = {"mark": _mark_of(binding, mark), "reply_to": reply_to}
    content |= {"title": answer_subject(thread.subject) or title, "earlier": thread.ids}
    content["shows"] = shows
    for number, (post_id, text) in enumerate(zip(ids, texts, strict=True), 1):
        is_last = number == len(ids)
        post = Post(
            id=post_id,
            company_id=binding.company_id,
            binding_id=binding.id,
            conversation=conversation,
            subject=subject,
            document=json.dumps({"text": text, "buttons": shown if is_last else [], **content}),
            version=1,
            status=DeliveryStatus.QUEUED,
            created_at=ctx.now,
            next_at=ctx.now,
            last_id=None if is_last else ids[-1],
            part=number,
            parts=len(ids),
        )
        ctx.tx.add(post)
    for offer, reference in (button for line in rows for button in line):
        # Short enough for any channel, long enough not to be guessed.
        button = ButtonReference(
            digest=token_digest(reference),
            company_id=post.company_id,
            post_id=post.id,
            act=json.dumps(dict(offer.act)),
            expires_at=ctx.now + BUTTON_LASTS,
        )
        ctx.tx.add(button)
    return post


def parts_of(binding: Binding, text: str, ending: str = "") -> list[str]:
    """Return the parts in which a text is shown, with room for the result. If they are too many, a
    single one: the beginning, with `ending` below it."""
    channel = registry.get(binding.adapter_type)
    most = channel.longest_shown - _ROOM_FOR_AUTHOR - _ROOM_FOR_MARK
    texts = parts.split(text, most, channel.size)
    if len(texts) <= MAX_PARTS or not ending:
        return texts[:MAX_PARTS]
    ending = f"\n\n{ending}"
    return [f"{parts.cut(text, most - channel.size(ending), channel.size)}{ending}"]


def fits(binding: Binding, text: str) -> bool:
    """Return whether a text is shown whole."""
    channel = registry.get(binding.adapter_type)
    most = channel.longest_shown - _ROOM_FOR_AUTHOR - _ROOM_FOR_MARK
    return len(parts.split(text, most, channel.size)) <= MAX_PARTS


def revise(ctx: Context, post: Post, text: str, by: str = "") -> None:
    """Replace the content of a post of one part."""
    channel = registry.get(_binding(ctx, post).adapter_type)
    shown = parts.cut(text, channel.longest_shown - _ROOM_FOR_AUTHOR, channel.size)
    _change(ctx, post, by, text=shown)


def mark(ctx: Context, post: Post, result: str, by: str = "") -> bool:
    """Show the result of an item below its post, and below each part; its buttons do nothing any
    more. Returns whether that changed it."""
    shown = _mark_of(_binding(ctx, post), result)
    if json.loads(post.document).get("mark") == shown:
        return False
    for row in (*_earlier(ctx, post), post):
        _change(ctx, row, by, mark=shown)
    return True


def withdraw(ctx: Context, post: Post, by: str = "") -> None:
    """Withdraw a post; what was not sent yet is not sent. Its buttons do nothing any more."""
    for row in (*_earlier(ctx, post), post):
        _change(ctx, row, by, withdrawn=True)


def about(ctx: Context, subject: str) -> list[Post]:
    """Return the posts about an item, such as `approval:<id>`, in every conversation."""
    return ctx.tx.all(statements.POSTS_ABOUT, subject=subject)


def is_whole(ctx: Context, post: Post) -> bool:
    """Return whether all earlier parts of a post are shown as they were made."""
    earlier = _earlier(ctx, post)
    return len(earlier) == post.parts - 1 and all(
        part.status is DeliveryStatus.DONE and not part.withdrawn and part.version == 1
        for part in earlier
    )


def can_edit(kind: str) -> bool:
    """Return whether a kind of channel changes what it delivered."""
    return kind in registry.installed.types() and (
        type(registry.get(kind)).edit is not Channel.edit
    )


def _change(ctx: Context, post: Post, by: str, *, withdrawn: bool = False, **new: object) -> None:
    """Store a new version of a part, and queue it; what cannot be edited stays as it was sent."""
    ctx.tx.run(statements.USE_REFERENCES_OF, post=post.id, by=by)
    document = json.loads(post.document)
    document |= {**new, "buttons": [] if new else document["buttons"]}
    content = {"new_document": json.dumps(document), "new_withdrawn": withdrawn}
    ctx.tx.run(statements.REVISE_POST, post=post.id, **content)
    if can_edit(_binding(ctx, post).adapter_type):
        ctx.tx.run(statements.REOPEN_POST, post=post.id)


def _mark_of(binding: Binding, result: str) -> str:
    """Return a result as one line, for it may have words of who decided."""
    line = spelled(" ".join(result.split()))
    return parts.cut(line, _LONGEST_MARK, registry.get(binding.adapter_type).size)


def _earlier(ctx: Context, post: Post) -> list[Post]:
    return ctx.tx.all(statements.EARLIER_PARTS, last=post.id) if post.parts > 1 else []


def _binding(ctx: Context, post: Post) -> Binding:
    return ctx.tx.existing(channel_statements.BINDING_EVER, binding=post.binding_id)


# ── for the process that delivers them ──────────────────────────────────────────────────────────


ready = _QUEUE.readies("posts", statements.READY_POSTS, "binding_id")
next_due, expired, under_way = _QUEUE.looks("posts")
held, renew = _QUEUE.holds("posts"), _QUEUE.renews("posts")


def _brief(ctx: Context, post: Post) -> shapes.ClaimedPostShape:
    binding, document = receivers.source_of(ctx, post)
    text, buttons = document["text"], document["buttons"]
    if document.get("mark"):
        text += f"{_BEFORE_MARK}{document['mark']}"
    if buttons and not is_whole(ctx, post):
        ctx.tx.run(statements.USE_REFERENCES_OF, post=post.id, by="")
        text, buttons = f"{text}{_BEFORE_MARK}{_INCOMPLETE}", []
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
            "title": document.get("title", ""),
            "body": authorship.by_remit(text, post.part, post.parts),
            "thread": post.id,
            "reply_to": None,
            "reply_to_outside": document["reply_to"] if post.part == 1 else None,
            "earlier": document.get("earlier", []),
            "created_at": post.created_at,
            "attempt": post.attempt,
            "again": post.outside_id is None and (post.ended_why or "").endswith(MAY_HAVE_IT),
        },
        "buttons": buttons,
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
    if post_row.version == version or not can_edit(_binding(ctx, post_row).adapter_type):
        return _QUEUE.delivered(ctx, post, epoch)
    return _QUEUE.put_back(ctx, "post.revise", post, epoch)


failed = _QUEUE.fails("posts")
take_over = _QUEUE.takes_over("posts")
put_back = _QUEUE.puts_back("posts", "post.put_back")


def bury(ctx: Context, binding: Binding) -> None:
    """Cancel the undelivered posts of a binding that is gone."""
    for post in ctx.tx.all(statements.UNSHOWN, binding=binding.id):
        _QUEUE.close(ctx, post.id, DeliveryStatus.CANCELLED, GONE)
