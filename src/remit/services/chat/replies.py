"""Replies to posts of Remit: an answer to a question, a comment on an approval, mail to the author
of a letter, or what is missing in what was handed in."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Mapping, Sequence

from remit.authority import Action
from remit.channels import parts, registry
from remit.errors import BadInput, NotAnId
from remit.ids import FileId
from remit.model.messaging.mail import Message, answer_subject
from remit.model.messaging.question import (
    LONGEST_QUESTION,
    Question,
    QuestionStatus,
    chosen,
    in_other_words,
    picked,
)
from remit.model.organisation.approval import ApprovalStatus
from remit.services import lookup
from remit.services.chat import items, posts
from remit.services.chat.said import Said, reply
from remit.services.command import Context
from remit.services.governance import approvals
from remit.services.messaging import answering, letters, mail, questions, visible_pages
from remit.services.subjects import OUTCOME
from remit.store.messaging import chat as statements

_ANSWER = re.compile(
    r"/?answer\s+(?P<id>[0-9a-f][0-9a-f-]{5,35})(?:[\s:,.;-]+(?P<words>\S.*))?",
    re.IGNORECASE | re.DOTALL,
)
_HOW_TO_DECIDE = "the message that you answered says how to decide."


def answer_in_words(ctx: Context, text: str) -> tuple[str, str] | None:
    """Return the question that a text names, and the answer: `answer 3f2a91c0 blue`; None if it
    names none."""
    words = _ANSWER.fullmatch(text.strip())
    if words is None:
        return None
    noun = visible_pages.QUESTION
    sees = noun.sees(ctx)
    with contextlib.suppress(NotAnId):
        rows = [row for row in lookup.matching(ctx, noun, words["id"].lower()) if sees(row)]
        return _answer_to(rows, words)
    return None


def _answer_to(rows: Sequence[Question], words: re.Match[str]) -> tuple[str, str] | None:
    if not rows:
        return None  # such as "answer 123456 letters"
    if len(rows) > 1:
        raise BadInput(f"Several questions begin with {words['id']}.", "Give more digits.")
    if not words["words"]:
        raise BadInput("It does not say what the answer is.", f"Write `answer {words['id']} …`.")
    return rows[0].id, words["words"].strip()


def answered_subject(ctx: Context, incoming: Said) -> str:
    """Return the subject of the post that a message answers, such as `question:<id>`; empty if it
    answers none that has one."""
    outside = incoming.document["reply_to"]
    if outside is None:
        return ""
    post = ctx.tx.one(statements.POST_BY_OUTSIDE, binding=incoming.binding.id, outside=outside)
    is_here = post is not None and post.conversation == incoming.conversation
    return post.subject if post is not None and is_here else ""


def answer(ctx: Context, incoming: Said, question_id: str, text: str) -> str:
    """Answer a question in words; returns what became of it. An answer that is none of the
    question's options is not taken: its author is told the options."""
    question = items.question_of(ctx, question_id)
    options = json.loads(question.options) if question is not None else []
    about = f"question:{question_id}"
    taken = _taken(text, options)
    if taken is None and question is not None and question.status is QuestionStatus.OPEN:
        who = answering.who_answers(ctx, question)
        ctx.require(Action.QUESTION_ANSWER, on=about, **who)
        reply(ctx, incoming, _none_of(options, text), about=about)
        return f"no option of {about}"
    words, is_other = taken or (text, True)  # which is refused: the question has ended
    questions.answer.body(
        ctx, question=question_id, answer=words[:LONGEST_QUESTION], other=is_other
    )
    items.refresh(ctx, about, ctx.actor.id)
    is_marked = posts.can_edit(incoming.binding.adapter_type)
    if options and not is_marked and chosen(text, options) is None:
        reply(ctx, incoming, f"Your answer is: {words}", about=about)
    return f"reply to {about}"


def _taken(text: str, options: Sequence[str]) -> tuple[str, bool] | None:
    """Return the answer that a text gives to a question with these options, and whether it is in
    other words than theirs; None if it names no option."""
    if not options:
        return text, False
    if (option := picked(text, options)) is not None:
        return option, False
    if (words := in_other_words(text)) is not None:
        return words, True
    first, _, rest = text.strip().partition("\n")
    # The rest, such as a condition, goes with it; so a beginning of an option is not enough.
    option = chosen(first, options) or (
        picked(first, options) if first.strip()[:1].isdigit() else None
    )
    return (f"{option}\n\n{rest.strip()}", True) if option is not None and rest.strip() else None


def _none_of(options: Sequence[str], text: str) -> str:
    words = parts.cut(" ".join(text.split()), 60)
    return "\n".join(
        [
            f"“{words}” is none of the options, so it was not taken as the answer:",
            *items.option_lines(options),
            "",
            items.HOW_TO_CHOOSE,
        ]
    )


def comment(ctx: Context, incoming: Said, approval: str, text: str) -> str:
    approvals.comment.body(ctx, approval=approval, body=text)
    request = items.approval_of(ctx, approval)
    told = "Your comment is with the approval."
    taps = registry.get(incoming.binding.adapter_type).taps
    if request.status is ApprovalStatus.PENDING and not taps:
        told += f" It decides nothing; {_HOW_TO_DECIDE}"
    reply(ctx, incoming, told, about=f"approval:{approval}")
    return f"reply to approval:{approval}"


def _about_submission(ctx: Context, incoming: Said, outcome_id: str, text: str) -> str:
    """Pass words about what was handed in on to whoever did; they are no verdict."""
    outcome = lookup.find(ctx, OUTCOME, outcome_id)
    title = answer_subject(outcome.title)
    mail.post(ctx, to=f"agent:{outcome.owner_id}", text=text, subject=title, outcome=outcome.id)
    owner = lookup.name_of(ctx, outcome.owner_id)
    told = f"{owner} gets that as a letter. It is no verdict; {_HOW_TO_DECIDE}"
    reply(ctx, incoming, told, about=f"submission:{outcome.id}")
    return f"reply to submission:{outcome.id}"


#: Replies to items that await a person, by the kind in a post's subject.
TO_ITEMS: Mapping[str, Callable[[Context, Said, str, str], str]] = {
    "question": answer,
    "approval": comment,
    "submission": _about_submission,
}


def has_author(letter: Message) -> bool:
    """Return whether somebody reads answers to a letter; Remit does not."""
    return letter.sender_agent_id is not None or letter.sender_user_id is not None


def to_author(
    ctx: Context, incoming: Said, letter: Message, text: str, attachments: Sequence[FileId]
) -> Message:
    """Answer a letter that was shown; the answer goes to whoever wrote it."""
    letters.require_reading(ctx, letter)
    agent, user = letter.sender_agent_id, letter.sender_user_id
    # Its receiver can answer there if it is bound to it.
    is_bound = agent == incoming.binding.agent_id
    return mail.post(
        ctx,
        to=f"agent:{agent}" if agent is not None else f"user:{user}",
        text=text,
        subject=incoming.document["subject"] or answer_subject(letter.subject),
        attachments=attachments,
        reply_to=letter,
        from_channel=incoming.address if is_bound else None,
        outside_sender=incoming.sender["name"] if is_bound else None,
    )
