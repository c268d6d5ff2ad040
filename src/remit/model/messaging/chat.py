"""People in chats: linked accounts, what came in, what Remit shows there, and buttons."""

from __future__ import annotations

from dataclasses import dataclass

from remit.clock import DAY, MINUTE, Micros
from remit.ids import BindingId, CompanyId, TokenId, UserId
from remit.model.leased import Polled, Queued

#: A code is for somebody who sits in front of both; then a new one is had.
CODE_LASTS: Micros = 15 * MINUTE
#: Longer than anything waits that is worth a button.
BUTTON_LASTS: Micros = 30 * DAY
#: As the outside calls people; it is shown to agents.
LONGEST_LABEL = 100
#: The longest text of Remit itself in a chat; some take no more.
LONGEST_POST = 3500


@dataclass(frozen=True, slots=True)
class LinkedAccount:
    """A chat account that is known to be a user."""

    id: str
    user_id: UserId
    #: The kind of channel, and who vouches there for who speaks.
    kind: str
    realm: str
    #: The account, as the channel knows it for good.
    account: str
    #: As people read it.
    label: str
    #: Where only that person reads, and the binding through which it is reached.
    conversation: str
    binding_id: BindingId | None
    #: The company in whose record it stands.
    company_id: CompanyId
    created_at: Micros
    used_at: Micros
    revoked_at: Micros | None = None
    #: The token that its user was signed in with when it was linked.
    made_with: TokenId | None = None

    @property
    def called(self) -> str:
        """As events name it."""
        return f"{self.kind}:{self.account}"


@dataclass(frozen=True, slots=True)
class LinkCode:
    """One-time code: whoever sends it from a chat account is its user."""

    digest: str
    user_id: UserId
    kind: str
    created_at: Micros
    expires_at: Micros
    used_at: Micros | None = None
    made_with: TokenId | None = None


@dataclass(frozen=True, slots=True)
class Receiver(Polled):
    """Listens for one binding; who holds its lease does."""

    binding_id: BindingId
    #: When the outside last answered.
    heard_at: Micros | None = None


@dataclass(frozen=True, slots=True)
class Intake(Queued):
    """Something that came from outside, until it is dealt with."""

    binding_id: BindingId
    outside_id: str
    #: Speaker and place: a lane is dealt with in order, and holds up no other.
    lane: str
    #: JSON: what came; empty when it is dealt with.
    document: str


@dataclass(frozen=True, slots=True)
class Post(Queued):
    """A post of Remit itself in a conversation: delivered once, then edited in place."""

    binding_id: BindingId
    conversation: str
    #: The subject, such as `approval:<id>`; empty for an answer.
    subject: str
    #: JSON: `text`, `buttons` in rows of label and reference, `reply_to` of the outside.
    document: str
    #: Goes up when something else is to be shown.
    version: int
    #: The id in the chat system, once it has the post.
    outside_id: str | None = None
    withdrawn: bool = False


@dataclass(frozen=True, slots=True)
class ButtonReference:
    """The act that a button stands for: one, for whoever taps it and may do it."""

    digest: str
    company_id: CompanyId
    post_id: str
    #: JSON: `act` and what it needs.
    act: str
    expires_at: Micros
    used_at: Micros | None = None
    used_by: str | None = None
