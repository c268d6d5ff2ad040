"""Buttons: what tapping one does, as the person who tapped.

A button carries a single-use reference to one act in one conversation. It is no authority: the
person who taps must be allowed to take that very act.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from remit.errors import NotFound
from remit.ids import token_digest
from remit.model.messaging.channel import Binding
from remit.model.messaging.chat import Post
from remit.services.chat import items, posts
from remit.services.command import Context
from remit.services.governance import approvals
from remit.services.messaging import questions
from remit.store.messaging import chat as statements


@dataclass(frozen=True)
class Tapped:
    #: The act, for the record.
    what: str
    #: Reply to the person, if the post itself does not show the result.
    say: str = ""


def tap(ctx: Context, binding: Binding, conversation: str, reference: str) -> Tapped:
    """Take the act of a button. Of two taps at the same time, the second finds it used."""
    button = ctx.tx.one(statements.REFERENCE, digest=token_digest(reference))
    post = button and ctx.tx.one(statements.POSTS.row, post=button.post_id)
    known = (
        button is not None
        and isinstance(post, Post)
        and (post.binding_id, post.conversation) == (binding.id, conversation)
        and ctx.now < button.expires_at
    )
    if button is None or not known or not isinstance(post, Post):
        raise NotFound("That button is not known here, or too old.", "Send /needs for new ones.")
    act: Mapping[str, Any] = json.loads(button.act)
    if not ctx.tx.run(statements.USE_REFERENCE, reference=button.digest, by=ctx.actor.id):
        return Tapped(f"used {act['act']}", f"That was done already. {_state(ctx, post)}".strip())
    return ACTS[act["act"]](ctx, post, binding, act)


def _decide(ctx: Context, post: Post, binding: Binding, act: Mapping[str, Any]) -> Tapped:
    """Approve, reject or send back the revision that was shown; if it is stale, show the newer
    one."""
    approvals.show.body(ctx, approval=act["approval"])
    approval = items.approval_of(ctx, act["approval"])
    what = f"{act['act']} approval {approval.id}"
    stale = approval.revision != act["revision"]
    if stale or not items.approval_buttons(approval, whole=True):
        # A button of a stale revision decides nothing.
        text, _ = items.approval_text(ctx, approval)
        posts.revise(ctx, post, f"This was revision {act['revision']}.\n\n{text}", by=ctx.actor.id)
        if stale and items.approval_buttons(approval, whole=True):
            items.show_approval(ctx, binding, post.conversation, approval)
            return Tapped(f"stale {what}", "It was revised meanwhile; this is what is asked now.")
        return Tapped(f"late {what}", f"Nothing was done. {items.approval_state(ctx, approval)}")
    verb = _DECISIONS[act["act"]]
    verb.body(ctx, approval=approval.id, expected_revision=act["revision"])
    items.refresh(ctx, f"approval:{approval.id}", ctx.actor.id)
    return Tapped(what)


def _answer(ctx: Context, post: Post, binding: Binding, act: Mapping[str, Any]) -> Tapped:
    del post, binding
    questions.answer.body(ctx, question=act["question"], answer=act["answer"])
    items.refresh(ctx, f"question:{act['question']}", ctx.actor.id)
    return Tapped(f"answer question {act['question']}")


def _state(ctx: Context, post: Post) -> str:
    kind, _, item = post.subject.partition(":")
    if kind == "approval":
        approvals.show.body(ctx, approval=item)
        return items.approval_state(ctx, items.approval_of(ctx, item))
    return ""


_DECISIONS: Mapping[str, Any] = {
    "approve": approvals.approve,
    "reject": approvals.reject,
    "revise": approvals.request_revision,
}
#: The acts of buttons, by the name that a reference stores.
ACTS: dict[str, Callable[[Context, Post, Binding, Mapping[str, Any]], Tapped]] = {
    "approve": _decide,
    "reject": _decide,
    "revise": _decide,
    "answer": _answer,
}
