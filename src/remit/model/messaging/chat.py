"""Chats with people: linked accounts, inbound messages, Remit's own posts, and buttons."""

from __future__ import annotations

from dataclasses import dataclass

from remit.clock import DAY, MINUTE, Micros
from remit.ids import BindingId, CompanyId, TokenId, UserId
from remit.model.leased import Polled, Queued

#: Validity of a code: its user has both the code and the chat at hand, or gets a new one.
CODE_LASTS: Micros = 15 * MINUTE
#: Validity of a button, longer than any item with one waits.
BUTTON_LASTS: Micros = 30 * DAY
#: A person's name in the chat system; it is shown to agents.
LONGEST_LABEL = 100
#: Most parts of a post that has buttons; nobody reads more in a chat before they decide.
MAX_PARTS = 5


@dataclass(frozen=True, slots=True)
class LinkedAccount:
    """A chat account that is linked to a user."""

    id: str
    user_id: UserId
    #: Kind of channel, and the authority there that proves who speaks.
    kind: str
    realm: str
    #: The account's permanent id in the channel.
    account: str
    #: Name for people.
    label: str
    #: A direct conversation with the person, and the binding that reaches it.
    conversation: str
    binding_id: BindingId | None
    #: Company whose record has the events about it.
    company_id: CompanyId
    created_at: Micros
    used_at: Micros
    revoked_at: Micros | None = None
    #: Token or session of the user when the account was linked.
    made_with: TokenId | None = None

    @property
    def called(self) -> str:
        """Return its name in events."""
        return f"{self.kind}:{self.account}"


@dataclass(frozen=True, slots=True)
class LinkCode:
    """One-time code that links the chat account which sends it to the user."""

    digest: str
    user_id: UserId
    kind: str
    created_at: Micros
    expires_at: Micros
    used_at: Micros | None = None
    made_with: TokenId | None = None


@dataclass(frozen=True, slots=True)
class Receiver(Polled):
    """Lease of the process that receives for one binding."""

    binding_id: BindingId
    #: Time of the chat system's last response.
    heard_at: Micros | None = None
    #: Digest of the secret that the chat system shows with its posts; it is made by each listener.
    proof_digest: str | None = None


@dataclass(frozen=True, slots=True)
class Intake(Queued):
    """Inbound message or action, queued until it is handled."""

    binding_id: BindingId
    outside_id: str
    #: Speaker and conversation: a lane is handled in order, and delays no other.
    lane: str
    #: JSON: the message; empty once it is handled.
    document: str


@dataclass(frozen=True, slots=True)
class Post(Queued):
    """A post of Remit itself in a conversation: delivered once, then edited in place.

    A long one has several parts, each a row and a message of its own. The last one has the buttons.
    """

    binding_id: BindingId
    conversation: str
    #: The subject, such as `approval:<id>`; empty for an answer.
    subject: str
    #: JSON: `text`; `mark`, the result below it; `buttons` in rows of label and reference;
    #: `reply_to` of the outside; `shows`, the state of the item that it shows; `title`, its subject
    #: line; `earlier`, the messages before it in its thread, by the chat system's ids.
    document: str
    #: Incremented when the post's content changes.
    version: int
    #: The id in the chat system, once it has the post.
    outside_id: str | None = None
    withdrawn: bool = False
    #: The last part, if this is an earlier one.
    last_id: str | None = None
    #: Number of this part, from 1, and of all parts.
    part: int = 1
    parts: int = 1


@dataclass(frozen=True, slots=True)
class OutsideThread:
    """A thread as far as a conversation of a chat system has it."""

    subject: str = ""
    #: Its messages, by the chat system's ids, oldest first.
    ids: tuple[str, ...] = ()


NO_THREAD = OutsideThread()


@dataclass(frozen=True, slots=True)
class ButtonReference:
    """The action of a button, which is done once, by a person with the right to it."""

    digest: str
    company_id: CompanyId
    post_id: str
    #: JSON: `act` and its arguments.
    act: str
    expires_at: Micros
    used_at: Micros | None = None
    used_by: str | None = None
