"""Decisions that come through a channel: understood, and carried out.

An act is what a button does, what a command does, or what somebody writes in words where no buttons
are shown: `approve 3f2a91c0 r2`. It names the request or the submission as it was shown in that
very conversation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from remit.authority import Action
from remit.errors import BadInput, Conflict, NotFound
from remit.ids import short
from remit.model.messaging.channel import Binding
from remit.model.messaging.chat import Post
from remit.model.organisation.approval import LONGEST_NOTE, ApprovalStatus
from remit.services import lookup
from remit.services.chat import accounts, commands, items, posts
from remit.services.chat.commands import SEE
from remit.services.command import Context
from remit.services.governance import approval_engine, approvals
from remit.services.redaction import text_without_secrets
from remit.services.subjects import OUTCOME, require_outcome
from remit.store.messaging import channels as channel_statements
from remit.store.messaging import chat as statements

Act = Mapping[str, Any]

_WORDS = re.compile(
    r"(?P<slash>/?)(?P<verb>approve|accept|reject|return)\s+(?P<id>[0-9a-f][0-9a-f-]{5,35})"
    r"(?:\s+r(?P<revision>\d{1,9}))?(?:[\s:,.;-]+(?P<note>.*))?",
    re.IGNORECASE | re.DOTALL,
)
#: Acts about approvals and about submissions, by the verbs that people write.
_ACT: Final = {"approve": "approve", "accept": "approve", "reject": "reject", "return": "revise"}
_VERDICT: Final = {"approve": "accept", "accept": "accept", "return": "return"}
_TITLE: Final = {
    "approve": "Approve",
    "reject": "Reject",
    "revise": "Send back",
    "accept": "Accept",
    "return": "Send back",
}
#: The answer to a person whose account was linked.
LINKED: Final = "This account is linked to {name} now. /help says what you can do here."


def in_words(ctx: Context, binding: Binding, conversation: str, text: str) -> Act | None:
    """Return the act that a text asks for in words; None if it is no decision.

    A request can be approved only where it was shown whole, in the revision that is named.
    """
    words = _WORDS.fullmatch(text.strip())
    if words is None:
        return None
    buttons = _shown_here(ctx, binding, conversation, words["id"].lower().replace("-", ""))
    subjects = {subject(act) for act, _ in buttons}
    if not subjects:
        if not (words["slash"] or words["revision"]):
            return None  # such as "return 123456 bottles"
        raise NotFound(f"No undecided request {words['id']} was shown here.", SEE)
    if len(subjects) > 1:
        raise BadInput(f"Several requests begin with {words['id']}.", "Give more digits.")
    if subjects.pop().startswith("outcome:"):
        return _verdict(ctx, words, [act for act, _ in buttons])
    return _decision(ctx, words, buttons)


def _note(words: re.Match[str]) -> str:
    return (words["note"] or "").strip()


def _verdict(ctx: Context, words: re.Match[str], acts: Sequence[Act]) -> Act:
    """Return the verdict on a submission, of those shown the newest."""
    verb = _VERDICT.get(words["verb"].lower())
    named = f"return {words['id']} and what is missing"
    if verb is None:
        raise BadInput("A submission is accepted or sent back.", f"Write `{named}`.")
    if verb == "return" and not _note(words):
        raise BadInput("It does not say what is missing.", f"Write `{named}`.")
    newest = max(acts, key=lambda act: str(act["submission"]))
    about = {"outcome": newest["outcome"], "submission": newest["submission"]}
    return bound(ctx, {"act": verb, **about, "note": _note(words)[:LONGEST_NOTE]})


def _decision(ctx: Context, words: re.Match[str], buttons: Sequence[tuple[Act, Post]]) -> Act:
    """Return the decision on an approval, in the revision that is named."""
    acts = [act for act, _ in buttons]
    verb = _ACT[words["verb"].lower()]
    newest_act = max(acts, key=lambda act: int(act["revision"]))
    newest = newest_act["revision"]
    if words["revision"] is None and verb == "approve":
        named = f"approve {words['id']} r{newest}"
        raise BadInput("It does not say which revision is approved.", f"Write `{named}`.")
    revision = newest if words["revision"] is None else int(words["revision"])
    there = {act["act"] for act in acts if act["revision"] == revision}
    if not there:
        raise Conflict(f"Revision {revision} is not what was shown here last.", SEE)
    if verb not in there:
        step = "Approve it on its page, or with `remit approval approve`."
        raise Conflict("It was not shown whole here, so it cannot be approved from here.", step)
    approval = items.approval_of(ctx, newest_act["approval"])
    if verb == "approve" and approval.revision == revision:
        posts_of_it = (post for act, post in buttons if act["revision"] == revision)
        if not any(items.shows_statement(ctx, post, approval) for post in posts_of_it):
            raise Conflict("The request is not what was shown here any more.", SEE)
    return {
        **bound(ctx, {"act": verb, "approval": approval.id, "revision": revision}),
        "note": _note(words)[:LONGEST_NOTE],
    }


def _shown_here(
    ctx: Context, binding: Binding, conversation: str, digits: str
) -> list[tuple[Act, Post]]:
    """Return the acts about the requests and outcomes whose id begins so, with the posts of a
    conversation that offer them."""
    here = {"binding": binding.id, "conversation": conversation}
    acts = [
        (json.loads(button.act), ctx.tx.existing(statements.POSTS.row, post=button.post_id))
        for button in ctx.tx.all(statements.BUTTONS_HERE, **here)
    ]
    return [
        (act, post)
        for act, post in acts
        if (id_ := act.get("approval") or act.get("outcome")) is not None
        and any(form.startswith(digits) for form in (short(id_), id_.replace("-", "")))
    ]


def bound(ctx: Context, act: Act) -> Act:
    """Bind an act to exactly what was shown: of an approval, the request in the revision that it
    names; of an outcome, what was handed in."""
    if "outcome" in act:
        commands.require_handed_in(ctx, act)
        return act
    approvals.show.body(ctx, approval=act["approval"])
    approval = items.approval_of(ctx, act["approval"])
    if approval.status is not ApprovalStatus.PENDING:
        raise Conflict("Nothing was done.", items.approval_state(ctx, approval))
    if approval.revision != act["revision"]:
        raise Conflict("It was revised meanwhile.", SEE)
    return {**act, "digest": approval.digest}


def subject(act: Act) -> str:
    """Return the thing that an act is about."""
    if "approval" in act:
        return f"approval:{act['approval']}"
    if "outcome" in act:
        return f"outcome:{act['outcome']}"
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
    if "outcome" in act:
        outcome = lookup.known_outcome(ctx, act["outcome"])
        note = f" ({act['note']})" if act.get("note") else ""
        return f"{_TITLE[act['act']]}: {outcome.title}, handed in{note}"
    if act["act"] == "command":
        command = f"/{act['name']} {act['words']}".strip()
        return f"{command} ({lookup.name_of(ctx, act['agent'])})"
    return f"Link {act['sender']['name']} to your account"


def require(ctx: Context, act: Act) -> None:
    """Refuse an act that its person may not do."""
    if "approval" in act:
        approvals.require_deciding(ctx, act["approval"])
    if "outcome" in act:
        outcome = lookup.find(ctx, OUTCOME, act["outcome"])
        require_outcome(ctx, Action.OUTCOME_FINISH, outcome)
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
            raise Conflict("It was revised meanwhile, so nothing was decided.", SEE)
        about = {"approval": approval.id, "expected_revision": act["revision"]}
        commands.ACTS[act["act"]].body(ctx, **about, note=act.get("note") or None)
        items.refresh(ctx, f"approval:{approval.id}", ctx.actor.id)
        return items.approval_state(ctx, items.approval_of(ctx, approval.id))
    if "outcome" in act:
        return commands.judge(ctx, act)
    if act["act"] == "command":
        command, request = _command(ctx, act)
        return command.run(ctx, request)
    binding = ctx.tx.existing(channel_statements.BINDING_EVER, binding=act["binding"])
    if binding.removed_at is not None:
        raise Conflict("The agent is not bound to that channel any more.", "Get a new code.")
    accounts.link(ctx, binding, act["sender"], act["conversation"], act["made_with"])
    posts.put(ctx, binding, act["conversation"], LINKED.format(name=ctx.actor.name))
    return f"{act['sender']['name']} is linked to you."
