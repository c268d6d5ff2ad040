"""The contract of a channel: sending, receiving, and the calls of its server.

A plugin names its class under the entry point group `remit.channels`. The class has a `type`, a
pydantic model `Config` whose fields document it, `check()` and `async def deliver()`. It may derive
from `Channel`, which supplies the rest; otherwise `adopt` adds `Channel` as a base.

    deliver    send one message; returns its id in the chat system
    receive    yield incoming messages; each is stored before the generator is resumed
    accept     read a post of the chat system to Remit, after `prove` has verified it
    fetch      download a file that came with a message
    edit, withdraw    change or delete a delivered message
    show_state   show a conversation that an agent works on its message
    probe      check the credentials with the server

A channel is stateless: each call brings everything it needs.
`remit.testing.channels` has the conformance tests for built-in channels and plugins.
"""

from __future__ import annotations

import hmac
import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from remit.adapters.contract import Check, Environment
from remit.adapters.plugin_shape import Described, Unfit, fitting
from remit.clock import Micros
from remit.ids import token_digest

_TYPE = re.compile(r"[a-z][a-z0-9-]{0,31}")


class Undelivered(Exception):
    """A message could not be delivered; the sentence is shown to people.

    The delivery is retried unless the failure is `for_good`. With `retry_after` the server asked to
    wait: the retry follows after so many seconds, and the attempt does not count. `unsure` means
    that the message may have arrived. The sentence must not contain a secret.
    """

    def __init__(
        self,
        sentence: str,
        *,
        for_good: bool = False,
        retry_after: float | None = None,
        unsure: bool = False,
    ) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.for_good = for_good
        self.retry_after = retry_after
        self.unsure = unsure


class Unreachable(Exception):
    """Nothing can be received now; the sentence is shown to people, and receiving is retried."""

    def __init__(self, sentence: str, *, retry_after: float | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.retry_after = retry_after


class Unproven(Exception):
    """A post without proof that it comes from the binding's server."""


@dataclass(frozen=True)
class Attachment:
    """A file of an outgoing message."""

    name: str
    media_type: str
    content: bytes


@dataclass(frozen=True)
class Button:
    """A button. Its reference identifies one act, is used once, and grants no rights by itself."""

    label: str
    reference: str


@dataclass(frozen=True, kw_only=True)
class Connection:
    """The settings and credentials of a binding, for its channel."""

    #: The id of the binding.
    binding: str
    #: The settings of the binding, read by the channel's own model.
    config: Any
    #: The secret that the settings name; without one, the digest of the binding's token.
    key: bytes
    #: Whether the operator allows channels to call addresses in private networks.
    private: bool = False
    #: The server that the operator configured for this kind, in place of the public one.
    server: str | None = None
    #: Commands to Remit itself, each with a description.
    commands: Sequence[tuple[str, str]] = ()
    #: For `receive`: a random secret that the chat system is told to show with each of its posts.
    #: It is made anew for each listener, and nobody else has it.
    proof: str = ""
    #: For `prove`: its digest, which is all that is stored.
    proof_digest: str = ""

    def proves(self, shown: str) -> bool:
        """Return whether a post shows the secret of this instance; takes constant time."""
        return hmac.compare_digest(token_digest(shown), self.proof_digest)


@dataclass(frozen=True, kw_only=True)
class Parcel(Connection):
    """An outgoing message with its connection.

    It may be delivered again with the same `id`: after a failure, or when a process was killed
    during the delivery. Then `again` is true.
    """

    id: str
    #: The author, such as `agent:support`; `remit` for Remit itself.
    sender: str
    #: The whole address, such as `channel:webhook:room-7`, and its last part.
    address: str
    conversation: str
    subject: str
    #: Its first line names the author, unless the channel `names_authors`.
    body: str
    thread: str
    #: The message that this one answers, by Remit's id and by the chat system's.
    reply_to: str | None
    reply_to_outside: str | None
    created_at: Micros
    now: Micros
    attempt: int
    #: Subject line, for a channel that shows one: that of the thread that it goes on with.
    title: str = ""
    #: Earlier messages of its thread in this conversation, by the chat system's ids, oldest first.
    earlier: Sequence[str] = ()
    #: Whether an earlier attempt may have arrived.
    again: bool = False
    files: Sequence[Attachment] = ()
    #: Buttons, in rows.
    buttons: Sequence[Sequence[Button]] = ()


@dataclass(frozen=True)
class Sender:
    """The sender of a message, by their account of the chat system."""

    #: Stable when the person changes their name; unique in the channel's `realm`.
    id: str
    #: The name for people, such as `Alice (@alice)`.
    name: str
    #: Whether the chat system has verified the sender.
    sure: bool = True


@dataclass(frozen=True)
class IncomingFile:
    """A file of an incoming message; `fetch` downloads it by the reference."""

    reference: str
    name: str
    media_type: str
    size: int


@dataclass(frozen=True)
class Incoming:
    """An incoming message, or a tapped button."""

    #: The chat system's id, the same for duplicates.
    id: str
    #: The place for an answer: a room, a person, a thread in a room.
    conversation: str
    sender: Sender
    text: str = ""
    subject: str = ""
    #: The message that it answers, by the id that `deliver` returned.
    reply_to: str | None = None
    files: Sequence[IncomingFile] = ()
    #: The reference of the button that was tapped.
    tapped: str | None = None
    #: Whether the sender is the conversation's only reader.
    direct: bool = False
    #: Whether it is meant for the agent: in a room, whether it mentions or answers the agent.
    addressed: bool = True
    #: Whether it is accepted from a sender whose account is not linked.
    heard: bool = True


@dataclass(frozen=True)
class Posted:
    """The messages in a post of the chat system, and the answer after they are stored."""

    said: Sequence[Incoming]
    answer: Mapping[str, Any] = field(default_factory=dict)


class Channel(Described, ABC):
    """One kind of chat system. It is stateless: each call brings everything it needs."""

    #: Whether it has `receive`, so that one process listens for each binding.
    receives: ClassVar[bool] = False
    #: Whether the chat system authenticates senders, so that people can link their accounts.
    vouches: ClassVar[bool] = False
    #: Whether who has a binding's credentials could speak as any of its senders, as who may write
    #: to a mailbox can. Then accounts are linked within the binding's company alone, and decisions
    #: are confirmed elsewhere unless the company's setting `mailDecisions` says otherwise.
    forgeable: ClassVar[bool] = False
    #: Whether it shows buttons; otherwise people get commands to write.
    taps: ClassVar[bool] = False
    #: Whether the other side shows `sender` where no text can imitate it; otherwise the first line
    #: of each body says who wrote it.
    names_authors: ClassVar[bool] = False
    #: Longest message that is shown whole, by `size`; longer posts of Remit are sent in parts.
    longest_shown: ClassVar[int] = 3500
    #: Most files of a message, and most bytes of them together.
    most_files: ClassVar[int] = 0
    largest_files: ClassVar[int] = 10 * 1024 * 1024

    @abstractmethod
    def check(self, config: Any = None, environment: Environment | None = None) -> Check:
        """Check whether it can work with this `Config`; may take seconds."""

    @abstractmethod
    async def deliver(self, parcel: Parcel) -> str | None:
        """Send one message; returns its id in the chat system once the server has accepted it.
        Raises `Undelivered`."""

    def receive(self, connection: Connection) -> AsyncGenerator[Sequence[Incoming], None]:
        """Yield incoming messages in small batches, for as long as the caller iterates.

        A batch is stored when the generator is resumed; only then may it be acknowledged to the
        server. An empty list is a sign of life. Raises `Unreachable`.
        """
        del connection
        raise Unreachable("the channel only delivers")

    def prove(self, connection: Connection, headers: Mapping[str, str]) -> None:
        """Verify by its headers that a post comes from the chat system, before its body is read.
        Raises `Unproven`; compares in constant time.

        A bot's token and the like are no proof, because others may know them. A channel registers
        `connection.proof` with the chat system and asks `connection.proves`, or verifies a
        signature with a key that only the chat system and this instance have.
        """
        del connection, headers
        raise Unproven

    async def accept(self, connection: Connection, body: bytes) -> Posted:
        """Read a post of the chat system. Raises `Undelivered` when it cannot be read now."""
        del connection, body
        raise Undelivered("the channel takes no posts", for_good=True)

    async def fetch(self, connection: Connection, reference: str, most: int) -> bytes:
        """Download an incoming file of at most `most` bytes. Raises `Undelivered`."""
        del connection, reference, most
        raise Undelivered("the channel has no files", for_good=True)

    async def edit(self, parcel: Parcel, outside: str) -> None:
        """Replace the delivered message with the id `outside`. Raises `Undelivered`."""
        del parcel, outside
        raise Undelivered("the channel cannot change what it delivered", for_good=True)

    async def withdraw(self, connection: Connection, conversation: str, outside: str) -> None:
        """Delete a delivered message; succeeds if it is gone already. Raises `Undelivered`."""
        del connection, conversation, outside
        raise Undelivered("the channel cannot take back what it delivered", for_good=True)

    async def show_state(self, connection: Connection, conversation: str) -> None:
        """Show a conversation that an agent is working on its message; nothing depends on it."""

    async def probe(self, connection: Connection) -> Check:
        """Check the credentials with the server, without changing anything."""
        return self.check(connection.config)

    def sends(self, config: Any) -> bool:
        """Return whether anything can be sent through a binding like this."""
        del config
        return True

    def size(self, text: str) -> int:
        """Return the length of a text as the chat system counts it."""
        return len(text)

    def place(self, config: Any) -> str | None:
        """Return a name of the account that only one binding of a company may listen to, such as a
        bot: of two listeners, each would get only a part of the messages."""
        return getattr(config, "secret_ref", None) if self.receives else None

    def realm(self, config: Any) -> str:
        """Return the authority that authenticates senders; links of accounts are valid within one
        realm. It must name every part of the settings whose choice could forge senders, such as a
        server."""
        del config
        return ""

    @classmethod
    def configuration_doc(cls) -> str:
        """Return the documentation for a person who binds an agent to it."""
        return cls.documented({"agent": "ada"})


def adopt(candidate: object) -> Channel:
    """Return a channel of a class that has the shape of one; raises Unfit otherwise."""
    channel = fitting(candidate, Channel, _TYPE, ("check", "deliver"))  # type: ignore[type-abstract]
    if not inspect.iscoroutinefunction(channel.deliver):
        raise Unfit("has a `deliver()` that is not asynchronous")
    if channel.receives and not inspect.isasyncgenfunction(channel.receive):
        raise Unfit("has a `receive()` that is not an asynchronous generator")
    return channel()
