"""Letters as a chat shows them to their receiver, who answers one by replying to it."""

from __future__ import annotations

import json

from remit.channels import parts, registry
from remit.ids import short
from remit.model.messaging.channel import Binding
from remit.model.messaging.chat import Post
from remit.model.messaging.mail import Message
from remit.model.organisation.statement import FENCE
from remit.model.spelling import spelled, spelled_lines
from remit.services.chat import offers, outside_threads, posts
from remit.services.command import Context
from remit.services.messaging import letters
from remit.services.redaction import text_without_secrets
from remit.store.work import files as file_statements

#: Longest text of a letter that is shown; the rest is read elsewhere.
LONGEST = 10_000


def show(ctx: Context, binding: Binding, conversation: str, letter: Message) -> Post:
    """Post a letter for somebody who may read it."""
    author = "Remit" if _is_by_remit(letter) else spelled(letters.sender_name(ctx, letter))
    title = " ".join(spelled(letters.title(ctx, letter)).split())
    return posts.put_item(
        ctx,
        binding,
        conversation,
        posts.parts_of(binding, _text(ctx, binding, letter, author)),
        subject=f"message:{letter.id}",
        title=f"Letter from {author}: {title}"[: offers.LONGEST_TITLE],
        thread=outside_threads.of(ctx, binding, conversation, letter),
    )


def _text(ctx: Context, binding: Binding, letter: Message, author: str) -> str:
    channel = registry.get(binding.adapter_type)
    subject = " ".join(spelled(letter.subject).split())
    body, is_whole = letters.body_of(ctx, letter)
    fenced = "\n".join(f"{FENCE}{line}" for line in spelled_lines(text_without_secrets(body)[0]))
    shown = parts.cut(fenced, min(LONGEST, channel.longest_shown // 2), channel.size)
    lines = [f"Letter from {author}{f': {subject}' if subject else ''}", shown]
    files = _names_of_files(ctx, letter)
    lines += [f"With it: {', '.join(files)}"] if files else []
    if files or shown != fenced or not is_whole:
        command = f"`remit read {short(letter.id)}`"
        page = f"{ctx.outside_url}/inbox/{letter.id}"
        lines.append(f"The whole letter: {page if ctx.outside_url else command}")
    if not _is_by_remit(letter):
        lines += ["", f"Reply to this message to answer {author}."]
    return "\n".join(lines)


def _names_of_files(ctx: Context, letter: Message) -> list[str]:
    files = [
        ctx.tx.one(file_statements.FILE_ANYWHERE, file=file)
        for file in json.loads(letter.attachments)
    ]
    return [spelled(file.description.partition("\n")[0]) for file in files if file is not None]


def _is_by_remit(letter: Message) -> bool:
    return letter.sender_agent_id is None and letter.sender_user_id is None and not letter.channel
