"""Decisions that come through a channel: understood, and carried out.

An act is what a button does, what a command does, or what somebody writes in words where no buttons
are shown: `approve 3f2a91c0 r2`. It names the request as it was shown in that very conversation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from remit.errors import BadInput, Conflict, NotFound
from remit.ids import short
from remit.model.messaging.channel import Binding
from remit.model.messaging.chat import Post
from remit.model.organisation.approval import LONGEST_NOTE, ApprovalStatus
from remit.services import lookup
from remit.services.chat import accounts, commands, items, posts
from remit.services.command import Context
from remit.services.governance import approval_engine, approvals
from remit.services.redaction import text_without_secrets
from remit.store.messaging import channels as channel_statements
from remit.store.messaging import chat as statements

Act = Mapping[str, Any]

_WORDS = re.compile(
    r"(?P<slash>/?)(?P<verb>approve|reject|return)\s+(?P<id>[0-9a-f][0-9a-f-]{5,35})"
    r"(?:\s+r(?P<revision>\d{1,9}))?(?:[\s:,.;-]+(?P<note>.*))?",
    re.IGNORECASE | re.DOTALL,
)
_ACT: Final = {"approve": "approve", "reject": "reject", "return": "revise"}
_TITLE: Final = {"approve": "Approve", "reject": "Reject", "revise": "Send back"}
#: The answer to a person whose account was linked.
LINKED: Final = "This account is linked to {name} now. /help says what you can do here."
_SEE = "Send /needs to see what is asked now."


def in_words(ctx: Context, binding: Binding, conversation: str, text: str) -> Act | None:
    """Return the act that a text asks for in words; None if it is no decision.

    A request can be approved only where it was shown whole, in the revision that is named.
    """
    words = _WORDS.fullmatch(text.strip())
    if words is None:
        return None
    buttons = _shown_here(ctx, binding, conversation, words["id"].lower().replace("-", ""))
    acts = [act for act, _ in buttons]
    requests = {act["approval"] for act in acts}
    if not requests:
        if not (words["slash"] or words["revision"]):
            return None  # such as "return 123456 bottles"
        raise NotFound(f"No undecided request {words['id']} was shown here.", _SEE)
    if len(requests) > 1:
        raise BadInput(f"Several requests begin with {words['id']}.", "Give more digits.")
    verb = _ACT[words["verb"].lower()]
    newest = max(act["revision"] for act in acts)
    if words["revision"] is None and verb == "approve":
        named = f"approve {words['id']} r{newest}"
        raise BadInput("It does not say which revision is approved.", f"Write `{named}`.")
    revision = newest if words["revision"] is None else int(words["revision"])
    there = {act["act"] for act in acts if act["revision"] == revision}
    if not there:
        raise Conflict(f"Revision {revision} is not what was shown here last.", _SEE)
    if verb not in there:
        step = "Approve it on its page, or with `remit approval approve`."
        raise Conflict("It was not shown whole here, so it cannot be approved from here.", step)
    approval = items.approval_of(ctx, requests.pop())
    if verb == "approve" and approval.revision == revision:
        posts_of_it = (post for act, post in buttons if act["revision"] == revision)
        if not any(items.shows_statement(ctx, post, approval) for post in posts_of_it):
            raise Conflict("The request is not what was shown here any more.", _SEE)
    note = (words["note"] or "").strip()[:LONGEST_NOTE]
    return {
        **bound(ctx, {"act": verb, "approval": approval.id, "revision": revision}),
        "note": note,
    }


def _shown_here(
    ctx: Context, binding: Binding, conversation: str, digits: str
) -> list[tuple[Act, Post]]:
    """Return the acts about the requests whose id begins so, with the posts of a conversation that
    offer them."""
    here = {"binding": binding.id, "conversation": conversation}
    acts = [
        (json.loads(button.act), ctx.tx.existing(statements.POSTS.row, post=button.post_id))
        for button in ctx.tx.all(statements.BUTTONS_HERE, **here)
    ]
    return [
        (act, post)
        for act, post in acts
        if "approval" in act
        and any(
            form.startswith(digits)
            for form in (short(act["approval"]), act["approval"].replace("-", ""))
        )
    ]


def bound(ctx: Context, act: Act) -> Act:
    """Bind an act about an approval to exactly what was asked in the revision that it names."""
    approvals.show.body(ctx, approval=act["approval"])
    approval = items.approval_of(ctx, act["approval"])
    if approval.status is not ApprovalStatus.PENDING:
        raise Conflict("Nothing was done.", items.approval_state(ctx, approval))
    if approval.revision != act["revision"]:
        raise Conflict("It was revised meanwhile.", _SEE)
    return {**act, "digest": approval.digest}


def subject(act: Act) -> str:
    """Return the thing that an act is about."""
    if "approval" in act:
        return f"approval:{act['approval']}"
    return f"agent:{act['agent']}" if "agent" in act else "linked_account"


def title(ctx: Context, act: Act) -> str:
    """Return an act in words, without secrets: it is recorded, and read by others."""
    return text_without_secrets(_title(ctx, act))[0]


def _title(ctx: Context, act: Act) -> str:
    if "approval" in act:
        approval = items.approval_of(ctx, act["approval"])
        summary = approval_engine.summary(approval).rstrip(".")
        note = f" ({act['note']})" if act.get("note") else ""
        return f"{_TITLE[act['act']]}: {summary}, revision {act['revision']}{note}"
    if act["act"] == "command":
        command = f"/{act['name']} {act['words']}".strip()
        return f"{command} ({lookup.name_of(ctx, act['agent'])})"
    return f"Link {act['sender']['name']} to your account"


def require(ctx: Context, act: Act) -> None:
    """Refuse an act that its person may not do."""
    if "approval" in act:
        approvals.require_deciding(ctx, act["approval"])
    if act["act"] == "command":
        command, request = _command(ctx, act)
        if command.require is not None:
            command.require(ctx, request)


def _command(ctx: Context, act: Act) -> tuple[commands.Command, commands.Asked]:
    binding = ctx.tx.existing(channel_statements.BINDING_EVER, binding=act["binding"])
    agent = lookup.known_agent(ctx, act["agent"])
    request = commands.Asked(binding, agent, act["conversation"], act["words"])
    return commands.COMMANDS[act["name"]], request


def carry_out(ctx: Context, act: Act) -> str:
    """Do what an act says, as the acting person; returns a sentence for them."""
    if "approval" in act:
        approval = items.approval_of(ctx, act["approval"])
        is_open = approval.status is ApprovalStatus.PENDING
        if is_open and not approval_engine.still_asks(approval, act["revision"], act["digest"]):
            raise Conflict("It was revised meanwhile, so nothing was decided.", _SEE)
        about = {"approval": approval.id, "expected_revision": act["revision"]}
        commands.ACTS[act["act"]].body(ctx, **about, note=act.get("note") or None)
        items.refresh(ctx, f"approval:{approval.id}", ctx.actor.id)
        return items.approval_state(ctx, items.approval_of(ctx, approval.id))
    if act["act"] == "command":
        command, request = _command(ctx, act)
        return command.run(ctx, request)
    binding = ctx.tx.existing(channel_statements.BINDING_EVER, binding=act["binding"])
    if binding.removed_at is not None:
        raise Conflict("The agent is not bound to that channel any more.", "Get a new code.")
    accounts.link(ctx, binding, act["sender"], act["conversation"], act["made_with"])
    posts.put(ctx, binding, act["conversation"], LINKED.format(name=ctx.actor.name))
    return f"{act['sender']['name']} is linked to you."
