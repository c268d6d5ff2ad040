"""The contract of a channel: both halves, and the calls that it answers.

A plugin names its class under the entry point group `remit.channels`. The class has a `type`, a
pydantic model `Config` whose fields are its documentation, `check()` and `async def deliver()`; it
may derive from `Channel`, which supplies the rest, or be taken in by `adopt`.

    deliver    hand one message to the outside; answers what the outside calls it
    receive    yield what comes; whatever was yielded is stored when more is asked for
    accept     read what the outside posted to us, if it proves who it is
    fetch      the bytes of a file that came with a message
    edit, withdraw    change or take back what was delivered
    show_state   tell a conversation that somebody works for it
    probe      ask the outside whether it knows us

A channel keeps no state between calls: what it needs comes with each.
`remit.testing.channels` has the suite that ours and those of plugins pass.
"""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from remit.adapters.contract import Check, Environment
from remit.adapters.plugin_shape import Described, Unfit, fitting
from remit.clock import Micros

_TYPE = re.compile(r"[a-z][a-z0-9-]{0,31}")


class Undelivered(Exception):
    """Why a message did not get through, in words that may be shown to people.

    It is tried again unless it is `for_good`. With `retry_after` the outside asked for patience:
    it is tried again after so many seconds, and that attempt does not count. `unsure` says that the
    outside may have it for all that is known. The text must not hold a secret.
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
    """Why nothing can be received now, in words that may be shown to people. It is tried again."""

    def __init__(self, sentence: str, *, retry_after: float | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.retry_after = retry_after


class Unproven(Exception):
    """A post without proof that it comes from the outside of a binding."""


@dataclass(frozen=True)
class Attachment:
    """A file on its way out."""

    name: str
    media_type: str
    content: bytes


@dataclass(frozen=True)
class Button:
    """A button to tap. Its reference stands for one act, once, and is no authority."""

    label: str
    reference: str


@dataclass(frozen=True, kw_only=True)
class Connection:
    """A binding, as its channel needs it."""

    #: Which binding it is.
    binding: str
    #: The settings of the binding, read by the channel's own model.
    config: Any
    #: The secret that the settings name; without one, the digest of the binding's token.
    key: bytes
    #: Whether the operator lets channels call addresses in private networks.
    private: bool = False
    #: The server that the operator named for this kind, in place of the public one.
    server: str | None = None
    #: Commands to Remit itself, each with a word on what it does.
    commands: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, kw_only=True)
class Parcel(Connection):
    """A message on its way out, and what is needed to deliver it.

    It may come more than once, with the same `id`: after a failure, or when a process was killed
    and nobody knows whether it got through. Then `again` is true.
    """

    id: str
    #: The author, such as `agent:support`; `remit` for Remit itself.
    sender: str
    #: The whole address, such as `channel:webhook:room-7`, and its last part.
    address: str
    conversation: str
    subject: str
    body: str
    thread: str
    #: The message that this answers, as Remit and as the outside calls it.
    reply_to: str | None
    reply_to_outside: str | None
    created_at: Micros
    now: Micros
    attempt: int
    #: It may be there already, for all that is known.
    again: bool = False
    files: Sequence[Attachment] = ()
    #: In rows.
    buttons: Sequence[Sequence[Button]] = ()


@dataclass(frozen=True)
class Sender:
    """The speaker, as the outside knows them."""

    #: Stays the same when they change their name; unique in the channel's `realm`.
    id: str
    #: As people read it, such as `Alice (@alice)`.
    name: str
    #: Whether the outside is sure that it was them.
    sure: bool = True


@dataclass(frozen=True)
class IncomingFile:
    """A file that came with a message; `fetch` gets its bytes by the reference."""

    reference: str
    name: str
    media_type: str
    size: int


@dataclass(frozen=True)
class Incoming:
    """Something that was said outside, or a button that was tapped."""

    #: The outside's own, the same whenever this is received again.
    id: str
    #: Where an answer goes: a room, a person, a thread in a room.
    conversation: str
    sender: Sender
    text: str = ""
    subject: str = ""
    #: The message that it answers, as `deliver` called it.
    reply_to: str | None = None
    files: Sequence[IncomingFile] = ()
    #: The reference of the button that was tapped.
    tapped: str | None = None
    #: Whether nobody but the sender reads this conversation.
    direct: bool = False
    #: Whether it is meant for the agent: in a room with others, that it was named or answered.
    addressed: bool = True
    #: Whether somebody may say this whose account is not linked.
    heard: bool = True


@dataclass(frozen=True)
class Posted:
    """A post of the outside to us, and the answer once it is stored."""

    said: Sequence[Incoming]
    answer: Mapping[str, Any] = field(default_factory=dict)


class Channel(Described, ABC):
    """One kind of outside chat system. It keeps no state: what it needs comes with a message."""

    #: Whether `receive` is there: some process listens for each binding.
    receives: ClassVar[bool] = False
    #: Whether the outside proves who spoke, so that people can link their accounts.
    vouches: ClassVar[bool] = False
    #: Whether it shows buttons; otherwise people are told what to write.
    taps: ClassVar[bool] = False
    #: How many files a message may carry, and how large they may be together.
    most_files: ClassVar[int] = 0
    largest_files: ClassVar[int] = 10 * 1024 * 1024

    @abstractmethod
    def check(self, config: Any = None, environment: Environment | None = None) -> Check:
        """Look whether it can work, with this `Config`; may take seconds."""

    @abstractmethod
    async def deliver(self, parcel: Parcel) -> str | None:
        """Hand one message to the outside; returning means that it has it, and answers what the
        outside calls it. Raises `Undelivered`."""

    def receive(self, connection: Connection) -> AsyncGenerator[Sequence[Incoming], None]:
        """Yield what comes, a few at a time, for as long as it is asked.

        Whatever was yielded is stored when the generator is resumed; only then may the outside be
        told that it was taken. An empty list says that all is well. Raises `Unreachable`.
        """
        del connection
        raise Unreachable("the channel only delivers")

    def prove(self, connection: Connection, headers: Mapping[str, str]) -> None:
        """Whether a post comes from the outside, by its headers, before its body is read. Raises
        `Unproven`; compares in constant time."""
        del connection, headers
        raise Unproven

    async def accept(self, connection: Connection, body: bytes) -> Posted:
        """Reads a post of the outside. Raises `Undelivered` when it cannot be read now."""
        del connection, body
        raise Undelivered("the channel takes no posts", for_good=True)

    async def fetch(self, connection: Connection, reference: str, most: int) -> bytes:
        """The bytes of a file that came, at most so many. Raises `Undelivered`."""
        del connection, reference, most
        raise Undelivered("the channel has no files", for_good=True)

    async def edit(self, parcel: Parcel, outside: str) -> None:
        """Put this in place of what was delivered as `outside`. Raises `Undelivered`."""
        del parcel, outside
        raise Undelivered("the channel cannot change what it delivered", for_good=True)

    async def withdraw(self, connection: Connection, conversation: str, outside: str) -> None:
        """Take back what was delivered; also when it is gone already. Raises `Undelivered`."""
        del connection, conversation, outside
        raise Undelivered("the channel cannot take back what it delivered", for_good=True)

    async def show_state(self, connection: Connection, conversation: str) -> None:
        """Tell a conversation that somebody works for it now; nothing depends on it."""

    async def probe(self, connection: Connection) -> Check:
        """Ask the outside whether it knows us, and changes nothing."""
        return self.check(connection.config)

    def sends(self, config: Any) -> bool:
        """Whether anything can be sent through a binding like this."""
        del config
        return True

    def place(self, config: Any) -> str | None:
        """Where one binding of a company listens and no other, such as a bot: of two, each would
        get a part of what comes."""
        return getattr(config, "secret_ref", None) if self.receives else None

    def realm(self, config: Any) -> str:
        """Authority that vouches for senders. A person linked in one realm is nobody in another, so
        it has to name whatever the maker of a binding chooses that could lie about who spoke."""
        del config
        return ""

    @classmethod
    def configuration_doc(cls) -> str:
        """Documentation for a person who binds an agent to it."""
        return cls.documented({"agent": "ada"})


def adopt(candidate: object) -> Channel:
    """A channel of a class that has what a channel needs, or Unfit."""
    found = fitting(candidate, Channel, _TYPE, ("check", "deliver"))  # type: ignore[type-abstract]
    if not inspect.iscoroutinefunction(found.deliver):
        raise Unfit("has a `deliver()` that is not asynchronous")
    if found.receives and not inspect.isasyncgenfunction(found.receive):
        raise Unfit("has a `receive()` that is not an asynchronous generator")
    return found()
