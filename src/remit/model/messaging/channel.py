"""Channels: outside chat systems, their bindings to agents, and outbound messages."""

import re
from dataclasses import dataclass

from remit.clock import Micros
from remit.errors import BadInput
from remit.ids import AgentId, BindingId, CompanyId, MessageId
from remit.model.leased import Tried
from remit.model.messaging.mail import DeliveryStatus
from remit.model.text import matching

#: Largest message in either direction; an agent is shown all of it.
LARGEST_TEXT = 64 * 1024
LONGEST_CONVERSATION = 128
LONGEST_OUTSIDE_ID = 200

_KIND = re.compile(r"[a-z][a-z0-9-]{0,31}")


@dataclass(frozen=True, slots=True)
class Binding:
    """The link of a channel to one agent. At most one of each kind for an agent."""

    id: BindingId
    company_id: CompanyId
    agent_id: AgentId
    #: The kind of channel, such as `webhook`.
    adapter_type: str
    #: Digest of the token; only the outside knows the token itself.
    adapter_token: str
    #: JSON: settings for the channel's own model.
    adapter_config: str
    created_at: Micros
    removed_at: Micros | None
    #: Imported without its secret: it neither receives nor sends until the board binds the agent
    #: again.
    held: bool = False


@dataclass(frozen=True, slots=True)
class ChannelDelivery(Tried):
    """Outbound channel message, until the chat system has it."""

    message_id: MessageId
    company_id: CompanyId
    #: The sender.
    agent_id: AgentId
    adapter_type: str
    address: str
    status: DeliveryStatus
    deliver_at: Micros
    #: Not tried before this time.
    next_at: Micros
    #: The id in the chat system, once it has the message.
    outside_id: str | None = None
    #: JSON: the files that go with it, as they were when it was sent.
    files: str | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """Deduplicates inbound channel messages."""

    binding_id: BindingId
    #: The chat system's id of the message.
    outside_id: str
    company_id: CompanyId
    message_id: MessageId
    #: Digest of its content, to detect another message under the same id.
    digest: str


def channel_kind(text: object) -> str:
    rule = "A kind of channel is small letters, digits and '-', at most 32."
    return matching(text, _KIND, rule, "See `remit bind channels`.")


def channel_address(kind: str, conversation: object) -> str:
    """Return the address of a conversation: a room, a person, a ticket."""
    if not is_conversation(conversation):
        raise BadInput(
            "conversation must be 1 to 128 printable characters without blanks.",
            "Name the room or person that an answer should go to.",
        )
    return f"channel:{kind}:{conversation}"


def is_conversation(text: object) -> bool:
    return (
        isinstance(text, str)
        and 0 < len(text) <= LONGEST_CONVERSATION
        and text.isprintable()
        and not any(char.isspace() for char in text)
    )


def outside_id(text: object) -> str:
    """Validate the id that the chat system gave its message."""
    if not isinstance(text, str) or not 0 < len(text) <= LONGEST_OUTSIDE_ID:
        raise BadInput(
            f"id must be 1 to {LONGEST_OUTSIDE_ID} characters.",
            "Give each message an id of its own, and repeat it when you send it again.",
        )
    if not text.isprintable():
        raise BadInput("id has a character that cannot stand in an id.", "Use letters and digits.")
    return text
