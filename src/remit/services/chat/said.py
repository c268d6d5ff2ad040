"""An inbound message with its binding, and Remit's answer to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from remit.model.messaging.channel import Binding, channel_address
from remit.model.messaging.chat import OutsideThread
from remit.services.chat import posts
from remit.services.command import Context


@dataclass(frozen=True)
class Said:
    """An inbound message, with its binding."""

    id: str
    epoch: int
    binding: Binding
    document: Mapping[str, Any]

    @property
    def conversation(self) -> str:
        return str(self.document["conversation"])

    @property
    def text(self) -> str:
        return str(self.document["text"])

    @property
    def sender(self) -> dict[str, str]:
        return dict(self.document["sender"])

    @property
    def address(self) -> str:
        return channel_address(self.binding.adapter_type, self.conversation)

    @property
    def account(self) -> str:
        """The account of the sender, as events name it."""
        return f"{self.binding.adapter_type}:{self.sender['id']}"

    @property
    def thread(self) -> OutsideThread:
        """The thread of the message as the chat system has it."""
        ids = (self.document["reply_to"], self.document["id"])
        return OutsideThread(str(self.document["subject"]), tuple(id_ for id_ in ids if id_))


def reply(ctx: Context, incoming: Said, text: str, *, about: str = "") -> None:
    """Answer a message where it came from. An answer to this answer is about `about`, such as
    `question:<id>`."""
    posts.put(
        ctx,
        incoming.binding,
        incoming.conversation,
        text,
        subject=about,
        thread=incoming.thread,
        reply_to=incoming.document["id"],
    )
