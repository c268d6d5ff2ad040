"""An in-memory channel, and the conformance suite that every channel passes.

`MemoryChannel` is a channel whose chat system is an object in this process, for tests of the layers
above channels. `checks` are the promises of a channel, one function each; they drive the channel
against a `Stand`, which plays the chat system: for a built-in channel, a server that speaks the
documented protocol; for a plugin, its author's own.

    for check in checks(MyChannel()):
        asyncio.run(check(MyChannel(), my_stand))
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel, Field

from remit.adapters.contract import Check, Environment
from remit.channels.contract import (
    Attachment,
    Button,
    Channel,
    Connection,
    Incoming,
    IncomingFile,
    Parcel,
    Sender,
    Undelivered,
    Unreachable,
)
from remit.model.messaging.authorship import parted

#: How long a message may take to arrive.
PATIENCE_SECONDS = 20.0


@dataclass(frozen=True)
class Shown:
    """A message as a person outside sees it."""

    id: str
    text: str
    buttons: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    reply_to: str | None = None


class Stand(Protocol):
    """The other side of a channel; only features that the channel claims are tested."""

    #: The connection of the channel to this stand.
    connection: Connection
    #: The conversation of one person with the agent, and that of several.
    direct: str
    room: str

    async def say(
        self,
        text: str,
        *,
        room: bool = False,
        reply_to: str | None = None,
        file: tuple[str, str, bytes] | None = None,
    ) -> None:
        """A person writes to the agent; a file is a name, a type and bytes."""

    async def tap(self, message: str, label: str) -> None:
        """The person taps a button of something that was shown."""

    def shown(self) -> list[Shown]:
        """Messages that are seen in the direct conversation, oldest first."""

    def fail(self, how: str) -> None:
        """Have the next request `refused` for good, or `busy` with a time to wait."""


Suite = Callable[[Channel, Stand], Coroutine[Any, Any, None]]


def parcel(stand: Stand, id_: str = "p-1", body: str = "Hello.", **more: Any) -> Parcel:
    """Return a parcel for the direct conversation."""
    fields: dict[str, Any] = {
        **vars(stand.connection),
        "id": id_,
        "sender": "agent:ada",
        "address": f"channel:test:{stand.direct}",
        "conversation": stand.direct,
        "subject": "",
        "body": body,
        "thread": "t-1",
        "reply_to": None,
        "reply_to_outside": None,
        "created_at": 0,
        "now": 0,
        "attempt": 1,
        **more,
    }
    return Parcel(**fields)


async def delivers_text(channel: Channel, stand: Stand) -> None:
    """A message is seen once, as it was written."""
    body = "First line.\n<b>not bold</b> *nor* this_ & that"
    await channel.deliver(parcel(stand, body=body))
    assert [message.text for message in stand.shown()] == [body]


async def delivers_long_text_whole(channel: Channel, stand: Stand) -> None:
    """A text that is too long for a message still arrives in one piece."""
    body = "".join(f"Line {number}.\n" for number in range(5000))
    await channel.deliver(parcel(stand, body=body))
    [message] = stand.shown()
    assert body in (message.text, *message.files)


async def answers_a_message(channel: Channel, stand: Stand) -> None:
    """An answer is shown as a reply to the message with the given id."""
    await stand.say("Are you there?")
    [message] = await received(channel, stand, 1)
    await channel.deliver(parcel(stand, reply_to_outside=message.id))
    assert stand.shown()[-1].reply_to is not None


async def edits_and_withdraws(channel: Channel, stand: Stand) -> None:
    """A message is edited in place, also without a change, and withdrawn; both can be repeated."""
    outside = await channel.deliver(parcel(stand))
    assert outside
    changed = parcel(stand, body="Changed.")
    await channel.edit(changed, outside)
    await channel.edit(changed, outside)
    assert [message.text for message in stand.shown()] == ["Changed."]
    await channel.withdraw(stand.connection, stand.direct, outside)
    await channel.withdraw(stand.connection, stand.direct, outside)
    assert stand.shown() == []


async def says_what_failed(channel: Channel, stand: Stand) -> None:
    """A refusal is for good, and a busy server names the time to wait."""
    stand.fail("refused")
    await _fails(channel.deliver(parcel(stand)), lambda error: error.for_good)
    stand.fail("busy")
    await _fails(
        channel.deliver(parcel(stand)), lambda error: bool(error.retry_after) and not error.for_good
    )
    assert stand.shown() == []


async def receives_each_once(channel: Channel, stand: Stand) -> None:
    """The sender is known by an id and a name; a message that was stored does not come again."""
    await stand.say("One.")
    await stand.say("Two.")
    first = await received(channel, stand, 2)
    assert [message.text for message in first] == ["One.", "Two."]
    assert len({message.id for message in first}) == 2
    assert all(message.conversation == stand.direct and message.direct for message in first)
    assert {message.sender.id for message in first} == {first[0].sender.id}
    assert first[0].sender.name
    await stand.say("Three.")
    assert [message.text for message in await received(channel, stand, 1)] == ["Three."]


async def receives_again_what_was_not_stored(channel: Channel, stand: Stand) -> None:
    """A message comes again, under the same id, if its receiver was killed before it was stored."""
    await stand.say("Once.")
    [first] = await received(channel, stand, 1, store=False)
    [again] = await received(channel, stand, 1)
    assert again == first


async def knows_a_room(channel: Channel, stand: Stand) -> None:
    """A message in a room is not direct, and its conversation is the room."""
    await stand.say("Everybody?", room=True)
    [message] = await received(channel, stand, 1)
    assert (message.conversation, message.direct) == (stand.room, False)


async def carries_files(channel: Channel, stand: Stand) -> None:
    """Files go both ways with their bytes; one that is too large is refused for good."""
    files = [Attachment("a.txt", "text/plain", b"one"), Attachment("b.txt", "text/plain", b"two")]
    await channel.deliver(parcel(stand, files=files))
    assert set(stand.shown()[-1].files) >= {"one", "two"}
    await stand.say("Look.", file=("c.txt", "text/plain", b"three" * 100))
    [message] = await received(channel, stand, 1)
    [file] = message.files
    assert (file.name, file.media_type) == ("c.txt", "text/plain")
    assert await channel.fetch(stand.connection, file.reference, 1000) == b"three" * 100
    await _fails(channel.fetch(stand.connection, file.reference, 10), lambda error: error.for_good)


async def shows_buttons(channel: Channel, stand: Stand) -> None:
    """A tap brings the reference of its button, and an edited message loses its buttons."""
    buttons = [[Button("Yes", "ref-yes"), Button("No", "ref-no")]]
    outside = await channel.deliver(parcel(stand, buttons=buttons))
    assert stand.shown()[-1].buttons == ("Yes", "No")
    await stand.tap(outside or "", "No")
    [message] = await received(channel, stand, 1)
    assert (message.tapped, message.conversation) == ("ref-no", stand.direct)
    await channel.edit(parcel(stand, body="Done."), outside or "")
    assert stand.shown()[-1].buttons == ()


async def tells_that_it_works(channel: Channel, stand: Stand) -> None:
    """The probe succeeds, and showing that an agent is working does not fail."""
    assert (await channel.probe(stand.connection)).usable
    await channel.show_state(stand.connection, stand.direct)


def checks(channel: Channel) -> list[Suite]:
    """Return the checks that a channel has to pass, by the features that it claims."""
    suites: list[Suite] = [delivers_text, delivers_long_text_whole, says_what_failed]
    suites += [tells_that_it_works]
    if type(channel).edit is not Channel.edit:
        suites.append(edits_and_withdraws)
    if channel.receives:
        suites += [receives_each_once, receives_again_what_was_not_stored, knows_a_room]
        suites += [answers_a_message]
        suites += [carries_files] if channel.most_files else []
        suites += [shows_buttons] if channel.taps else []
    return suites


async def received(
    channel: Channel, stand: Stand, number: int, *, store: bool = True
) -> list[Incoming]:
    """Receive the given number of messages. With `store` the generator is resumed afterwards, which
    tells the channel that they are stored."""
    messages: list[Incoming] = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        async with aclosing(channel.receive(stand.connection)) as coming:
            async for batch in coming:
                if messages and store and len(messages) >= number:
                    break
                messages += batch
                if not store and len(messages) >= number:
                    break
    assert len(messages) == number, [message.text for message in messages]
    return messages


async def _fails(attempt: Awaitable[object], right: Callable[[Undelivered], bool]) -> None:
    failure = None
    try:
        await attempt
    except Undelivered as error:
        failure = error
    assert failure is not None, "what was not taken passed for delivered"
    assert right(failure), (failure.sentence, failure.for_good, failure.retry_after)


# ── the in-memory channel ───────────────────────────────────────────────────────────────────────


@dataclass
class Outside:
    """The other side of a `MemoryChannel`: the shown messages, and those that people write."""

    shown: dict[str, Shown] = field(default_factory=dict)
    where: dict[str, str] = field(default_factory=dict)
    buttons: dict[str, dict[str, str]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    coming: list[Incoming] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    states: list[str] = field(default_factory=list)
    #: Called at each step, so that a test can end the process there.
    at: Callable[[str], None] = lambda _: None
    count: int = 0

    def number(self) -> str:
        self.count += 1
        return str(self.count)

    def seen(self, conversation: str) -> list[Shown]:
        return [message for id_, message in self.shown.items() if self.where[id_] == conversation]

    def say(self, text: str, who: str = "ann", where: str = "", **more: Any) -> Incoming:
        """Write a message as a person, in their direct conversation unless `where` is given."""
        fields = {
            "id": f"in-{self.number()}",
            "conversation": where or f"with-{who}",
            "sender": Sender(who, who.title()),
            "text": text,
            "direct": not where,
            **more,
        }
        message = Incoming(**fields)
        self.coming.append(message)
        return message

    def tap(self, message: str, label: str, who: str = "ann", **more: Any) -> Incoming:
        place = self.where[message]
        reference = self.buttons[message][label]
        where = "" if place == f"with-{who}" else place
        return self.say("", who, where, tapped=reference, **more)


class MemoryConfig(BaseModel):
    name: str = Field(default="one", description="Which outside it is.")
    secretRef: str | None = Field(  # noqa: N815  # as it is written in JSON
        default=None, description="A secret."
    )


class MemoryChannel(Channel):
    """A channel whose chat system is an object in this process."""

    type = "memory"
    Config = MemoryConfig
    receives = True
    vouches = True
    taps = True
    most_files = 10
    outsides: ClassVar[dict[str, Outside]] = {}

    def _outside(self, connection: Connection) -> Outside:
        return self.outsides.setdefault(connection.config.name, Outside())

    def check(self, config: Any = None, environment: Environment | None = None) -> Check:
        del config, environment
        return Check(True, "It can be used.")

    async def deliver(self, parcel: Parcel) -> str | None:
        outside = self._fallible(parcel)
        outside.at("deliver")
        id_ = f"out-{outside.number()}"
        outside.where[id_] = parcel.conversation
        self._show(outside, id_, parcel)
        outside.at("delivered")
        return id_

    async def edit(self, parcel: Parcel, outside: str) -> None:
        there = self._fallible(parcel)
        there.at("edit")
        if outside in there.shown:
            self._show(there, outside, parcel)
        there.at("edited")

    async def withdraw(self, connection: Connection, conversation: str, outside: str) -> None:
        del conversation
        self._outside(connection).shown.pop(outside, None)

    async def receive(self, connection: Connection) -> AsyncGenerator[Sequence[Incoming], None]:
        outside = self._outside(connection)
        while True:
            if "unreachable" in outside.failures:
                outside.failures.remove("unreachable")
                raise Unreachable("the outside is not there", retry_after=1.0)
            batch = outside.coming[:50]
            outside.at("received")
            yield batch
            outside.at("stored")
            del outside.coming[: len(batch)]
            if not batch:
                await asyncio.sleep(0.01)

    async def fetch(self, connection: Connection, reference: str, most: int) -> bytes:
        content = self._outside(connection).files[reference]
        if len(content) > most:
            raise Undelivered("it is too large", for_good=True)
        return content

    async def show_state(self, connection: Connection, conversation: str) -> None:
        self._outside(connection).states.append(conversation)

    def _fallible(self, connection: Connection) -> Outside:
        outside = self._outside(connection)
        how = outside.failures.pop(0) if outside.failures else None
        if how == "refused":
            raise Undelivered("it was refused", for_good=True)
        if how == "busy":
            raise Undelivered("it is busy", retry_after=2.0)
        return outside

    def _show(self, outside: Outside, id_: str, parcel: Parcel) -> None:
        flat = [button for row in parcel.buttons for button in row]
        author, words = parted(parcel.body)
        outside.buttons[id_] = {button.label: button.reference for button in flat}
        outside.shown[id_] = Shown(
            id_,
            f"{author}{'(again) ' if parcel.again else ''}{words}",
            tuple(button.label for button in flat),
            tuple(file.content.decode(errors="replace") for file in parcel.files),
            parcel.reply_to_outside,
        )


class MemoryStand:
    """Plays the other side of a `MemoryChannel` for the suite."""

    direct = "with-ann"
    room = "room"

    def __init__(self, name: str = "stand") -> None:
        self.outside = MemoryChannel.outsides[name] = Outside()
        config = MemoryConfig(name=name)
        self.connection = Connection(binding="b", config=config, key=b"k")

    async def say(
        self,
        text: str,
        *,
        room: bool = False,
        reply_to: str | None = None,
        file: tuple[str, str, bytes] | None = None,
    ) -> None:
        message = self.outside.say(text, where=self.room if room else "", reply_to=reply_to)
        if file is not None:
            name, media_type, content = file
            reference = f"file-{self.outside.number()}"
            self.outside.files[reference] = content
            came = IncomingFile(reference, name, media_type, len(content))
            self.outside.coming[-1] = replace(message, files=(came,))

    async def tap(self, message: str, label: str) -> None:
        self.outside.tap(message, label)

    def shown(self) -> list[Shown]:
        return self.outside.seen(self.direct)

    def fail(self, how: str) -> None:
        self.outside.failures.append(how)
