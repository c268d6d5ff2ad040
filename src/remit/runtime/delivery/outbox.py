"""Loops that send agents' messages and Remit's posts through channels, a few at once."""

from __future__ import annotations

import asyncio
import logging
import re
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypedDict, TypeVar

from remit.channels.contract import Attachment, Button, Channel, Parcel, Undelivered
from remit.errors import RemitError
from remit.runtime.claims import Deliveries
from remit.runtime.delivery.connecting import Connector
from remit.services.chat import posts
from remit.services.chat.shapes import ClaimedPostShape
from remit.services.command import Gate
from remit.services.connections import outbox
from remit.services.connections.shapes import CarriedFileShape, ClaimedMessageShape
from remit.store.blob_store.blobs import BlobStore

log = logging.getLogger(__name__)

Claimed = TypeVar("Claimed", ClaimedMessageShape, ClaimedPostShape)

#: Time limit of an attempt; longer than any built-in channel takes, and enforced on plugins.
ATTEMPT_SECONDS = 45.0
_UNFIT = re.compile(r"[^\w .()+-]+")
_LONGEST_NAME = 80


class Contents(TypedDict, total=False):
    """The contents of a parcel besides its text."""

    files: Sequence[Attachment]
    buttons: Sequence[Sequence[Button]]


class ToChannels(Deliveries, Generic[Claimed]):
    """Deliveries through channels: the part that messages and posts share."""

    shortest = 0.05
    at_once = 8
    at_once_each = 2

    def __init__(self, gate: Gate, connector: Connector, **more: Any) -> None:
        super().__init__(gate, **more)
        self._connector = connector

    @abstractmethod
    async def _hand_over(
        self, channel: Channel, parcel: Parcel, claimed: Claimed
    ) -> dict[str, Any]:
        """Send a parcel through the channel; returns arguments for the verb that records it."""

    @abstractmethod
    async def _more(self, claimed: Claimed) -> Contents:
        """Load the contents of the parcel besides its text."""

    async def _attempt(self, claimed: Claimed) -> dict[str, Any]:
        try:
            channel = self._connector.channel(claimed)
            parcel = Parcel(
                **claimed["parcel"],
                **vars(await self._connector.connection(claimed)),
                **await self._more(claimed),
                now=self._gate.clock.now(),
            )
            async with asyncio.timeout(ATTEMPT_SECONDS):
                return await self._hand_over(channel, parcel, claimed)
        except (Undelivered, RemitError):
            raise
        except TimeoutError:
            raise Undelivered("it took too long", unsure=True) from None
        except Exception as error:
            # An exception of a plugin; its text may contain secrets, so only the type is shown.
            kind = claimed["adapter_type"]
            log.warning("the channel %s failed (%s)", kind, type(error).__name__)
            raise Undelivered(
                f"the channel failed ({type(error).__name__})", unsure=True
            ) from error


class Outbox(ToChannels[ClaimedMessageShape]):
    """Deliveries of messages by agents."""

    verbs, noun = outbox, "message"
    put_back = outbox.put_back

    async def _more(self, claimed: ClaimedMessageShape) -> Contents:
        return {"files": await asyncio.to_thread(_read, self._gate.blobs, claimed["files"])}

    async def _hand_over(
        self, channel: Channel, parcel: Parcel, claimed: ClaimedMessageShape
    ) -> dict[str, Any]:
        del claimed
        return {"outside": await channel.deliver(parcel)}


class Posts(ToChannels[ClaimedPostShape]):
    """Deliveries of Remit's posts: sent, edited in place, or withdrawn."""

    verbs, noun = posts, "post"
    put_back = posts.put_back

    async def _more(self, claimed: ClaimedPostShape) -> Contents:
        rows = [[Button(label, ref) for label, ref in row] for row in claimed["buttons"]]
        return {"buttons": rows}

    async def _hand_over(
        self, channel: Channel, parcel: Parcel, claimed: ClaimedPostShape
    ) -> dict[str, Any]:
        kept: dict[str, Any] = {"version": claimed["version"]}
        outside = claimed["outside"]
        if claimed["gone"]:
            raise Undelivered(posts.GONE, for_good=True)
        if claimed["withdrawn"]:
            if outside is not None:
                await channel.withdraw(parcel, parcel.conversation, outside)
        elif outside is not None:
            await channel.edit(parcel, outside)
        else:
            kept["outside"] = await channel.deliver(parcel)
        return kept


def _read(blobs: BlobStore, files: Sequence[CarriedFileShape]) -> list[Attachment]:
    """Return the files of a message, in the versions that were sent."""
    attachments = []
    for file in files:
        with blobs.open(file["id"], file["sha256"]) as stream:
            content = stream.read(file["size"])
        attachments.append(Attachment(*_named(file["description"], file["is_text"]), content))
    return attachments


def _named(description: str, is_text: bool) -> tuple[str, str]:
    """Return a file name, derived from the description, and a media type."""
    first = next(iter(description.strip().splitlines()), "") or "file"
    name = _UNFIT.sub("-", first)[:_LONGEST_NAME].strip(" .-") or "file"
    if "." not in name:
        name += ".md" if is_text else ".bin"
    return name, "text/plain" if is_text else "application/octet-stream"
