"""Notices in a chat: shown once, in the person's own direct conversation, and marked when their
items were dealt with elsewhere."""

import json
from collections.abc import Mapping
from typing import Any

from remit.channels import registry
from remit.channels.contract import Channel
from remit.model.messaging.channel import Binding
from remit.model.messaging.chat import LinkedAccount, Post
from remit.model.messaging.mail import DeliveryStatus
from remit.model.messaging.notice import TRIAL, Notice
from remit.model.organisation.principal import ActorKind, Principal
from remit.services.chat import items, posts
from remit.services.command import Context
from remit.services.shape_basics import JsonObject
from remit.store.messaging import channels as channel_statements
from remit.store.messaging import chat as chat_statements
from remit.store.messaging import notices as statements
from remit.store.organisation import people

_DEALT_WITH = "✓ Dealt with."
#: The default way is the channel that the person used last, e-mail after chats: it is read later.
_LATER = ("email",)


def ways(ctx: Context, user: str) -> tuple[list[str], list[str]]:
    """Return the default channel of a person, and all channels that they can be told by."""
    linked = [account for account in _linked(ctx, user) if _binding(ctx, account) is not None]
    linked.sort(key=lambda account: (account.kind in _LATER, -account.used_at))
    possible = list(dict.fromkeys(account.kind for account in linked))
    return possible[:1], possible


def show(ctx: Context, notice: Notice, document: Mapping[str, Any]) -> Post | None:
    """Post a notice in the person's own conversation; None if they are not linked there any
    more."""
    for account in _linked(ctx, notice.user_id):
        binding = _binding(ctx, account) if account.kind == notice.way else None
        if binding is not None:
            user = ctx.tx.existing(people.USER, user=notice.user_id)
            # The notice is rendered with its receiver's rights.
            with ctx.acting_as(Principal(ActorKind.USER, user.id, user.name)):
                return _post(ctx, binding, account.conversation, document)
    return None


def mark(ctx: Context, notice: Notice, needs: Mapping[tuple[str, str], object]) -> int:
    """Mark the settled items of a shown notice; returns 1 if its post changed."""
    content: JsonObject = json.loads(notice.told or "{}")
    told = content.get("items", [content])
    over = [entry for entry in told if (entry["kind"], entry["subject"]) not in needs]
    post = ctx.tx.one(chat_statements.POSTS.row, post=notice.post_id)
    if post is None or notice.kind == TRIAL or len(over) <= notice.settled:
        return 0
    ctx.tx.run(statements.SETTLE, notice=notice.id, number=len(over))
    if not _can_edit(notice.way):
        return 0
    user = ctx.tx.existing(people.USER, user=notice.user_id)
    with ctx.acting_as(Principal(ActorKind.USER, user.id, user.name)):
        if post.subject:
            items.refresh(ctx, post.subject)
        else:
            for item in over:
                item["settled"] = True
            posts.revise(ctx, post, text_of(content))
    return 1


def state(ctx: Context, notice: Notice) -> tuple[DeliveryStatus, str | None]:
    """State of a notice, or of its post, if it is shown in a chat."""
    post = ctx.tx.one(chat_statements.POSTS.row, post=notice.post_id) if notice.post_id else None
    return (notice.status, notice.ended_why) if post is None else (post.status, post.ended_why)


def text_of(document: Mapping[str, Any]) -> str:
    """Text of a notice in a chat."""
    lines = [f"{document['company']}: {document['title']}" if document["company"] else ""]
    if document.get("escalatedFrom"):
        lines.append(f"{document['escalatedFrom']} did not decide it in time.")
    for item in document.get("items", ()):
        done = " ✓" if item.get("settled") else ""
        lines.append(f"- {item['kind'].replace('_', ' ')}: {item['title']}{done}")
    if document.get("agent"):
        lines.append(f"{document['kind'].replace('_', ' ')}, from {document['agent']}")
    lines += [str(document[key]) for key in ("cause", "next") if document.get(key)]
    return "\n".join([*lines, *([_DEALT_WITH] if document.get("settled") else [])])


def _post(ctx: Context, binding: Binding, conversation: str, document: Mapping[str, Any]) -> Post:
    kind, subject = document["kind"], document["subject"]
    if kind == "question" and (question := items.question_of(ctx, subject)) is not None:
        return items.show_question(ctx, binding, conversation, question)
    if kind == "approval":
        approval = items.approval_of(ctx, subject)
        if registry.get(binding.adapter_type).taps:
            return items.show_approval(ctx, binding, conversation, approval)
        text = f"{items.approval_text(ctx, approval)[0]}\n\n{document['next']}"
        return posts.put(ctx, binding, conversation, text, subject=f"approval:{subject}")
    return posts.put(ctx, binding, conversation, text_of(document))


def _linked(ctx: Context, user: str) -> list[LinkedAccount]:
    """Return the accounts that are linked through bindings of this company. The operator of another
    company's bot could read what is sent through it."""
    accounts = ctx.tx.all(chat_statements.ACCOUNTS_OF_USER, user=user)
    return [account for account in accounts if account.company_id == ctx.company]


def _binding(ctx: Context, account: LinkedAccount) -> Binding | None:
    binding = ctx.tx.one(channel_statements.BINDING_EVER, binding=account.binding_id)
    return binding if binding is not None and binding.removed_at is None else None


def _can_edit(kind: str) -> bool:
    return kind in registry.installed.types() and (
        type(registry.get(kind)).edit is not Channel.edit
    )
