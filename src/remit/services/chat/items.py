"""Approvals and questions as a chat shows them: the text, and a button for each answer.

A tap is an act of the person who taps. A button names the revision that was shown, so that the
decision is about that one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from remit.channels import registry
from remit.ids import short
from remit.model.messaging.channel import Binding
from remit.model.messaging.chat import LONGEST_POST, Post
from remit.model.messaging.question import Question, QuestionStatus
from remit.model.organisation.approval import OPEN, Approval, ApprovalStatus
from remit.services import lookup, views
from remit.services.chat import posts
from remit.services.command import Context
from remit.services.governance import approval_engine
from remit.services.hiring import configuration
from remit.store.messaging import mail as mail_statements
from remit.store.organisation import governance, people

_STATES = {
    ApprovalStatus.APPROVED: "Approved",
    ApprovalStatus.REJECTED: "Rejected",
    ApprovalStatus.CANCELLED: "Withdrawn",
    ApprovalStatus.REVISION_REQUESTED: "Sent back to be changed",
}
#: Leaves room for the result.
_MOST_SHOWN = LONGEST_POST - 400
_LONGEST_LABEL = 60
#: Between an item and its result.
_MARK = "\n\n→ "
#: Fields for programs, or shown elsewhere in the text.
_HIDDEN = frozenset(
    {"agentId", "requestedByAgentId", "requestedConfigurationSnapshot", "configuration", "verb"}
    | {"basis", "prepared", "options", "baseRevision"}
)


def show_approval(ctx: Context, binding: Binding, conversation: str, approval: Approval) -> Post:
    """Post an approval for somebody who may read it, with buttons for its revision."""
    text, whole = approval_text(ctx, approval)
    subject, buttons = f"approval:{approval.id}", approval_buttons(approval, whole=whole)
    if buttons and not registry.get(binding.adapter_type).taps:
        text += f"\n\n{_in_words(ctx, approval, whole=whole)}"
    return posts.put(ctx, binding, conversation, text, subject=subject, buttons=buttons)


def approval_text(ctx: Context, approval: Approval) -> tuple[str, bool]:
    """Return the text of an approval, without secrets, and whether it is complete."""
    seen = configuration.as_seen(ctx, views.approval(approval))
    asked_by = _name(ctx, approval.requested_by_agent_id, approval.requested_by_user_id)
    lines = [
        f"Approval: {approval_engine.summary(approval)}",
        f"Asked by {asked_by}{_revision(approval)}",
        *(
            f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
            for name, value in seen["payload"].items()
            if name not in _HIDDEN
        ),
    ]
    text = "\n".join(lines)
    whole = len(text) <= _MOST_SHOWN
    if not whole:
        text = f"{text[:_MOST_SHOWN]}…\n\nIt is longer than fits here; approve it on its page."
    if approval.status not in OPEN or approval.status is ApprovalStatus.REVISION_REQUESTED:
        text += f"\n\n{approval_state(ctx, approval)}"
    return text, whole


def _in_words(ctx: Context, approval: Approval, *, whole: bool) -> str:
    """How an approval is decided where no buttons are shown; its post has their references."""
    named = f"{short(approval.id)} r{approval.revision}"
    acts = [f"approve {named}"] if whole else []
    acts += [f"reject {named} and why", f"return {named} and what to change"]
    place = f"`remit approval show {short(approval.id)}`"
    if ctx.outside_url is not None:
        place = f"{ctx.outside_url}/approvals/{approval.id}"
    lines = ["To decide, reply with one of these lines:", *acts, f"Or decide it there: {place}"]
    return "\n".join(lines)


def approval_state(ctx: Context, approval: Approval) -> str:
    """State of an approval, and its decider."""
    state = _STATES.get(approval.status, "It waits for a decision")
    by = _name(ctx, approval.decided_by_agent_id, approval.decided_by_user_id, "")
    note = f": {approval.decision_note}" if approval.decision_note else "."
    return f"{state}{' by ' + by if by else ''}{note}"


def approval_buttons(approval: Approval, *, whole: bool) -> Sequence[Sequence[posts.Act]]:
    """Buttons of an approval; one whose text was cut cannot be approved here."""
    if approval.status is not ApprovalStatus.PENDING:
        return ()
    about = {"approval": approval.id, "revision": approval.revision}
    row: list[posts.Act] = [("Approve", {"act": "approve", **about})] if whole else []
    row += [("Reject", {"act": "reject", **about}), ("Send back", {"act": "revise", **about})]
    return (row,)


def show_question(ctx: Context, binding: Binding, conversation: str, question: Question) -> Post:
    """Post a question for somebody who may read it; each option is a button."""
    subject, buttons = f"question:{question.id}", question_buttons(question)
    text = question_text(ctx, question)
    return posts.put(ctx, binding, conversation, text, subject=subject, buttons=buttons)


def question_text(ctx: Context, question: Question) -> str:
    text = f"Question from {_name(ctx, question.agent_id, None)}:\n{question.text}"[:_MOST_SHOWN]
    if question.status is QuestionStatus.ANSWERED:
        return f"{text}\n\nAnswered: {question.answer}"
    if question.status is QuestionStatus.CANCELLED:
        return f"{text}\n\nIt was withdrawn."
    return f"{text}\n\nReply to this message to answer."


def question_buttons(question: Question) -> Sequence[Sequence[posts.Act]]:
    if question.status is not QuestionStatus.OPEN:
        return ()
    return [
        [(option[:_LONGEST_LABEL], {"act": "answer", "question": question.id, "answer": option})]
        for option in json.loads(question.options)
    ]


def approval_of(ctx: Context, subject: str) -> Approval:
    """Return the current row of an approval."""
    return ctx.tx.existing(governance.APPROVAL_ANYWHERE, approval=subject)


def question_of(ctx: Context, subject: str) -> Question | None:
    return ctx.tx.one(mail_statements.QUESTION_ANYWHERE, question=subject)


def refresh(ctx: Context, subject: str, by: str = "") -> int:
    """Update the posts of an item that was decided elsewhere; returns how many changed."""
    kind, _, item = subject.partition(":")
    revised = 0
    for post in posts.about(ctx, subject):
        shown = json.loads(post.document)["text"]
        text = shown
        if post.withdrawn:
            continue
        if kind == "approval":
            text = _marked(ctx, shown, approval_of(ctx, item))
        elif (question := question_of(ctx, item)) is not None:
            text = question_text(ctx, question)
        if text != shown:
            posts.revise(ctx, post, text, by=by)
            revised += 1
    return revised


def _marked(ctx: Context, shown: str, approval: Approval) -> str:
    """Post text with the result of its approval appended. It is not rendered anew, because the
    post's reader may see less than the decider."""
    body = shown.partition(_MARK)[0]
    if approval.status is ApprovalStatus.PENDING:
        if _revision(approval) in body and body == shown:
            return shown
        return f"{body}{_MARK}It was revised meanwhile; /needs shows what is asked now."
    state = approval_state(ctx, approval)
    return shown if shown.endswith(state) else f"{body}{_MARK}{state}"


def _revision(approval: Approval) -> str:
    return f", revision {approval.revision}\n"


def _name(ctx: Context, agent: str | None, user: str | None, nobody: str = "remit") -> str:
    if agent is not None:
        return lookup.name_of(ctx, agent)
    person = ctx.tx.one(people.USER, user=user) if user is not None else None
    return person.name if person else nobody
