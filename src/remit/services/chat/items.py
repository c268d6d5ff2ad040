"""Approvals and questions as a chat shows them: the text, and the acts.

An act is a button, or a line to write where there are no buttons (`offers`); it is an act of the
person who takes it. It names the revision that was shown, so that the decision is about that one. A
request that a chat cannot show whole cannot be approved there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from remit.channels import registry
from remit.ids import short
from remit.model.messaging.channel import Binding
from remit.model.messaging.chat import Post
from remit.model.messaging.question import Question, QuestionStatus, are_numbered
from remit.model.organisation.approval import Approval, ApprovalStatus
from remit.model.organisation.statement import FENCE, as_text
from remit.model.spelling import spelled, spelled_lines
from remit.model.text import digest_of
from remit.services import lookup
from remit.services.chat import letter_posts, offers, outside_threads, posts, submission_posts
from remit.services.chat.offers import Offer
from remit.services.command import Context
from remit.services.governance import approval_engine, statement
from remit.services.messaging import answering, letters
from remit.store.messaging import mail as mail_statements
from remit.store.organisation import governance, people

_STATES = {
    ApprovalStatus.APPROVED: "Approved",
    ApprovalStatus.REJECTED: "Rejected",
    ApprovalStatus.CANCELLED: "Withdrawn",
    ApprovalStatus.REVISION_REQUESTED: "Sent back to be changed",
}
#: Below a post that does not show the present request.
STALE = "This was revised meanwhile; /needs shows the present request."
HOW_TO_ANSWER = "Reply to this message to answer."
HOW_TO_CHOOSE = (
    "Reply to this message with one of them, or its number; to answer in other words, begin with "
    "`other:`."
)
_LONGEST_LABEL = 60
#: Subjects of posts whose items are called otherwise in the list of what awaits a person.
SUBJECTS = {"mail": "message"}


def show_approval(ctx: Context, binding: Binding, conversation: str, approval: Approval) -> Post:
    """Post an approval for somebody who may read it, with buttons for its revision."""
    text, whole = approval_text(ctx, approval)
    digest, place = digest_of(text), offers.place(ctx, "approval", approval.id)
    is_open = approval.status is ApprovalStatus.PENDING
    written = offers.lines(binding, approval_offers(approval, whole=True), place)
    whole = whole and posts.fits(binding, text + written)
    text += offers.lines(binding, approval_offers(approval, whole=whole), place)
    too_long = f"It is too long to be shown here. Read and approve it: {place}"
    return posts.put_item(
        ctx,
        binding,
        conversation,
        posts.parts_of(binding, text, too_long),
        subject=f"approval:{approval.id}",
        buttons=approval_offers(approval, whole=whole),
        mark="" if is_open else approval_state(ctx, approval),
        shows=f"{approval.revision} {digest}",
        title=text.partition("\n")[0],
    )


def approval_text(ctx: Context, approval: Approval) -> tuple[str, bool]:
    """Return the text of an approval for the caller, and whether it states all of the request."""
    stated = statement.of(ctx, approval)
    summary = spelled(approval_engine.summary(approval))
    title = f"Approval {short(approval.id)} r{approval.revision}: {summary}"
    text = as_text(stated, ctx.outside_url or "")
    if not stated["whole"]:
        place = offers.place(ctx, "approval", approval.id)
        text += f"\n\nA part of it cannot be shown here. Look at it: {place}"
    return f"{title}\n\n{text}", stated["whole"]


def approval_state(ctx: Context, approval: Approval) -> str:
    """State of an approval, and its decider."""
    state = _STATES.get(approval.status, "It waits for a decision")
    by = _name(ctx, approval.decided_by_agent_id, approval.decided_by_user_id, "")
    note = f": {approval.decision_note}" if approval.decision_note else "."
    return f"{state}{' by ' + by if by else ''}{note}"


def approval_offers(approval: Approval, *, whole: bool) -> Sequence[Sequence[Offer]]:
    """Acts of an approval; one that is not shown whole cannot be approved here."""
    if approval.status is not ApprovalStatus.PENDING:
        return ()
    about = {"approval": approval.id, "revision": approval.revision}
    named = f"{short(approval.id)} r{approval.revision}"
    row = [Offer({"act": "approve", **about}, f"approve {named}", "Approve")] if whole else []
    row += [
        Offer({"act": "reject", **about}, f"reject {named} and why", "Reject"),
        Offer({"act": "revise", **about}, f"return {named} and what to change", "Send back"),
    ]
    return (row,)


def show_question(ctx: Context, binding: Binding, conversation: str, question: Question) -> Post:
    """Post a question for somebody who may read it; each option is a button."""
    taps = registry.get(binding.adapter_type).taps
    text = question_text(ctx, question, taps=taps)
    letter = answering.letter_of(ctx, question)
    words = " ".join(spelled(question.text.partition("\n")[0]).split())
    asker = _name(ctx, question.agent_id, None)
    return posts.put_item(
        ctx,
        binding,
        conversation,
        posts.parts_of(binding, text, "It is too long to be shown here. Reply to answer."),
        subject=f"question:{question.id}",
        buttons=question_offers(question) if taps and posts.fits(binding, text) else (),
        mark=question_state(question),
        title=f"Question from {asker}: {words}"[: offers.LONGEST_TITLE],
        thread=outside_threads.of(ctx, binding, conversation, letter),
    )


def question_text(ctx: Context, question: Question, *, taps: bool) -> str:
    """Return the text of a question; with its options, where buttons do not show them whole."""
    options: list[str] = json.loads(question.options)
    lines = [f"Question from {_name(ctx, question.agent_id, None)}:"]
    lines += [f"{FENCE}{line}" for line in spelled_lines(question.text)]
    how = HOW_TO_ANSWER
    if options and not (taps and max(map(len, options)) <= _LONGEST_LABEL):
        lines += ["", "Options:", *option_lines(options)]
        how = HOW_TO_CHOOSE
    if not taps:
        how += f" In a new message, begin with `answer {short(question.id)}`."
    return "\n".join([*lines, "", how])


def option_lines(options: Sequence[str]) -> list[str]:
    """Return the lines that list the options of a question, with the numbers that name them."""
    numbered = are_numbered(options)
    return [
        f"{FENCE}{f'{number}. ' if numbered else ''}{spelled(option)}"
        for number, option in enumerate(options, 1)
    ]


def question_state(question: Question) -> str:
    """How a question ended; empty while it is open."""
    if question.status is QuestionStatus.ANSWERED:
        return f"Answered: {question.answer}"
    return "It was withdrawn." if question.status is QuestionStatus.CANCELLED else ""


def question_offers(question: Question) -> Sequence[Sequence[Offer]]:
    if question.status is not QuestionStatus.OPEN:
        return ()
    about = {"act": "answer", "question": question.id}
    return [
        [Offer({**about, "answer": option}, option, option[:_LONGEST_LABEL])]
        for option in json.loads(question.options)
    ]


def show(ctx: Context, binding: Binding, conversation: str, kind: str, item: str) -> Post | None:
    """Post an item that awaits a person, if it is of a kind that is shown with its contents."""
    if kind == "approval":
        return show_approval(ctx, binding, conversation, approval_of(ctx, item))
    if kind == "question" and (question := question_of(ctx, item)) is not None:
        return show_question(ctx, binding, conversation, question)
    if kind == "submission":
        return submission_posts.show(ctx, binding, conversation, item)
    letter = lookup.message_row(ctx, item) if kind == "mail" else None
    if letter is not None and letters.sees(ctx, letter):
        return letter_posts.show(ctx, binding, conversation, letter)
    return None


def approval_of(ctx: Context, subject: str) -> Approval:
    """Return the current row of an approval."""
    return ctx.tx.existing(governance.APPROVAL_ANYWHERE, approval=subject)


def question_of(ctx: Context, subject: str) -> Question | None:
    return ctx.tx.one(mail_statements.QUESTION_ANYWHERE, question=subject)


def refresh(ctx: Context, subject: str, by: str = "") -> int:
    """Mark the posts of an item that was decided elsewhere; returns how many changed."""
    kind, _, item = subject.partition(":")
    marked = 0
    for post in posts.about(ctx, subject):
        if post.withdrawn:
            continue
        result = ""
        if kind == "approval":
            result = _result(ctx, post, approval_of(ctx, item))
        elif kind == "submission":
            result = submission_posts.state(ctx, lookup.known_outcome(ctx, item))
        elif kind == "question" and (question := question_of(ctx, item)) is not None:
            result = question_state(question)
        marked += bool(result) and posts.mark(ctx, post, result, by)
    return marked


def shows_revision(post: Post, approval: Approval) -> bool:
    """Return whether a post shows the present revision."""
    number, _, _ = str(json.loads(post.document).get("shows")).partition(" ")
    return number == str(approval.revision)


def shows_statement(ctx: Context, post: Post, approval: Approval) -> bool:
    """Return whether a post shows the present statement, which may also change with what the
    request is about, such as the file that it replaces."""
    digest = digest_of(approval_text(ctx, approval)[0])
    return bool(json.loads(post.document).get("shows") == f"{approval.revision} {digest}")


def _result(ctx: Context, post: Post, approval: Approval) -> str:
    """Result of an approval that a post shows; empty while it waits. The post is not rendered anew,
    because its reader may see less than the decider."""
    if approval.status is not ApprovalStatus.PENDING:
        return approval_state(ctx, approval)
    return "" if shows_revision(post, approval) else STALE


def _name(ctx: Context, agent: str | None, user: str | None, nobody: str = "remit") -> str:
    if agent is not None:
        return lookup.name_of(ctx, agent)
    person = ctx.tx.one(people.USER, user=user) if user is not None else None
    return person.name if person else nobody
