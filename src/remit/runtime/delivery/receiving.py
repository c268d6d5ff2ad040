"""Messages from channels: by a lease, one process listens for each binding and stores messages;
the intake fetches their files, then handles each as its sender."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from typing import Any

from remit.channels import registry
from remit.channels.contract import Connection, Undelivered, Unreachable
from remit.clock import SECOND
from remit.errors import Conflict, RemitError, Unavailable
from remit.ids import Ids
from remit.model.work.attachment import LARGEST_INCOMING, MOST_INCOMING, refusal
from remit.runtime.claims import Deliveries, Polling
from remit.runtime.deadlines import uninterrupted
from remit.runtime.delivery.connecting import Connector
from remit.runtime.tries import Pace, Tries
from remit.services.chat import handling, intake, receivers, shapes
from remit.services.chat.accounts import code_in
from remit.services.chat.shapes import ReceivingShape
from remit.services.command import Gate
from remit.services.connections.shapes import ConnectionShape
from remit.services.identity import as_linked
from remit.services.queues import Held
from remit.services.spending import limits
from remit.store.blob_store.blobs import BlobStore

log = logging.getLogger(__name__)

#: How often a receiver without messages records that it is well, and how often it checks whether
#: its secret has changed.
HEARD_SECONDS = 10.0
#: How often a conversation is shown that an agent works on its message.
STATE_SECONDS = 4.0
_MOST_STATES = 50


class Receivers(Polling):
    """The receivers of this process."""

    verbs, noun, title = receivers, "binding", "receivers"
    lease = receivers.LEASE

    def __init__(self, gate: Gate, connector: Connector, **more: Any) -> None:
        super().__init__(gate, **more)
        self._connector = connector
        #: The binding that listens with each bot account, by kind and digest of the secret.
        self._bots: dict[tuple[str, bytes], str] = {}
        self._every(STATE_SECONDS, self._show_states)

    async def _work(self, held: Held, claimed: ReceivingShape) -> None:
        more: dict[str, Any] = {}
        try:
            while await self._listen(held, claimed):
                kind = claimed["adapter_type"]
                log.info("listening to %s begins anew: its secret changed", kind)
            more["problem"] = "the channel stopped listening"
        except asyncio.CancelledError:
            await uninterrupted(self._ended(held))
            raise
        except Conflict:
            return  # another process listens, or the binding was removed
        except Unreachable as error:
            more["problem"] = error.sentence
            if error.retry_after is not None:
                more["retry_after"] = round(error.retry_after * SECOND)
        except RemitError as error:
            more["problem"] = error.sentence
        except Exception as error:
            # An exception of a plugin; its text may contain secrets, so only the type is shown.
            kind = claimed["adapter_type"]
            log.warning("listening to %s failed (%s)", kind, type(error).__name__)
            more["problem"] = f"the channel failed ({type(error).__name__})"
        await uninterrupted(self._ended(held, **more))

    async def _listen(self, held: Held, claimed: ReceivingShape) -> bool:
        """Listen until the channel stops; True if it stopped because the secret has changed."""
        binding, epoch = held
        channel = self._connector.channel(claimed)
        connection = await self._connector.connection(claimed)
        clock = asyncio.get_running_loop().time
        heard, looked = float("-inf"), clock()
        with self._alone(claimed, connection):
            async with aclosing(channel.receive(connection)) as coming:
                # A message is stored before the channel resumes and acknowledges it to the server.
                async for messages in coming:
                    kept = [
                        message for message in map(intake.kept, messages) if message is not None
                    ]
                    for begin in range(0, len(kept), intake.MOST_STORED):
                        batch = kept[begin : begin + intake.MOST_STORED]
                        await self._do(intake.store, binding=binding, epoch=epoch, said=batch)
                        heard = clock()
                    if clock() - heard >= HEARD_SECONDS:
                        await self._do(receivers.heard, binding=binding, epoch=epoch)
                        heard = clock()
                    if clock() - looked >= HEARD_SECONDS:
                        looked = clock()
                        if (await self._connector.connection(claimed)).key != connection.key:
                            return True
        return False

    @contextmanager
    def _alone(self, claimed: ConnectionShape, connection: Connection) -> Iterator[None]:
        """Context manager: reserve a bot account for one binding of this process. The account is
        compared by its secret's value, across companies: of two listeners each would get only a
        part of the messages."""
        kind, binding = claimed["adapter_type"], connection.binding
        place = self._connector.channel(claimed).place(connection.config)
        if place is None or place != registry.secret_of(claimed["adapter_config"]):
            yield  # such as mailboxes, which several bindings may share
            return
        bot = (kind, hashlib.sha256(connection.key.strip()).digest())
        if self._bots.setdefault(bot, binding) != binding:
            raise Unreachable("another binding of this instance listens with the same secret")
        try:
            yield
        finally:
            self._bots.pop(bot, None)

    async def _show_states(self) -> None:
        """Show "typing" states in conversations; failures are ignored, nothing depends on them."""
        for claimed, conversation in await self._do(receivers.worked_for, limit=_MOST_STATES):
            try:
                async with asyncio.timeout(STATE_SECONDS):
                    connection = await self._connector.connection(claimed)
                    await self._connector.channel(claimed).show_state(connection, conversation)
            except Exception as error:
                log.debug("a state was not shown (%s)", type(error).__name__)


# ── intake ────────────────────────────────────────────────────────────────────────────────────────

Taken = shapes.StoredFileShape | shapes.LeftOutFileShape

FETCH_SECONDS = 45.0
#: Seconds until a retry, by the reason of the refusal: the agent's inbox is full, or the runs for
#: unknown people are used up in this hour; that limit may be raised meanwhile.
PATIENCE = {"inbox_full": 5.0, limits.REACHED: 60.0}


#: The codes that one conversation, and all together, may try; a code is good for fifteen minutes.
CODES_OF_ONE = Pace(free=5, first=1.0, longest=30.0)
CODES_OF_ALL = Pace(free=100, first=0.1, longest=5.0)


class IntakeLoop(Deliveries):
    """Handles incoming messages: those of one lane in order, different lanes at the same time."""

    # `handling` ends the row, in the transaction that handles the message.
    verbs, noun = intake, "intake"
    put_back = intake.put_back
    backoff = intake.BACKOFF
    shortest = 0.02
    at_once = 8

    def __init__(self, gate: Gate, ids: Ids, connector: Connector, **more: Any) -> None:
        super().__init__(gate, **more)
        self._connector = connector
        self._ids = ids
        #: Wrong codes, by conversation and by binding.
        self.codes = Tries(CODES_OF_ONE, CODES_OF_ALL)

    async def _attempt(self, claimed: shapes.ClaimedIntakeShape) -> None:
        """Handle a message and end its row, in one transaction."""
        account = claimed["account"]
        about: dict[str, Any] = {"intake_id": claimed["id"], "epoch": claimed["epoch"]}
        source = self._source_of_code(claimed)
        if source and (wait := self.codes.wait(source, claimed["binding"])):
            # The lane of the conversation waits with it, so codes are tried in their order.
            raise Undelivered("too many wrong codes", retry_after=wait)
        try:
            files = await self._files(claimed)
            if account is None:
                await self._do(handling.handle_outside, **about, files=files)
            else:
                who = as_linked(account.id, claimed["company_id"])
                await self._gate(who, handling.handle, **about, files=files)
        except Unavailable as error:
            patience = PATIENCE.get(error.reason)
            raise Undelivered(error.sentence, retry_after=patience) from error
        except Conflict as error:
            if error.reason == "lost":
                raise
            await self._refuse(about, error)
        except RemitError as error:
            if source:
                self.codes.wrong(source, claimed["binding"])
            await self._refuse(about, error)

    @staticmethod
    def _source_of_code(claimed: shapes.ClaimedIntakeShape) -> str:
        """Return the conversation of a message by a stranger that is a code; else nothing."""
        is_code = claimed["account"] is None and code_in(claimed["document"]["text"]) is not None
        return f"{claimed['binding']} {claimed['document']['conversation']}" if is_code else ""

    async def _refuse(self, about: dict[str, Any], error: RemitError) -> None:
        sentence = f"{error.sentence} {error.step}".strip()
        await self._do(handling.refused, **about, sentence=sentence)

    async def _files(self, claimed: shapes.ClaimedIntakeShape) -> list[Taken]:
        """Store the files of a message; return each one, or the reason why it was left out."""
        files: list[Taken] = []
        for number, file in enumerate(claimed["document"]["files"]):
            why = refusal(file["name"], file["media_type"], file["size"])
            if number >= MOST_INCOMING:
                why = f"a message carries {MOST_INCOMING} files at most"
            files.append(
                {"name": file["name"], "why": why} if why else await self._fetch(claimed, file)
            )
        return files

    async def _fetch(
        self, claimed: shapes.ClaimedIntakeShape, file: shapes.IncomingFileShape
    ) -> Taken:
        connection = await self._connector.connection(claimed)
        channel = self._connector.channel(claimed)
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                content = await channel.fetch(connection, file["reference"], LARGEST_INCOMING)
        except TimeoutError:
            raise Undelivered("a file took too long to come") from None
        except Undelivered as error:
            if not error.for_good:  # nothing went out, so there is no doubt about it either
                raise Undelivered(error.sentence, retry_after=error.retry_after) from error
            return {"name": file["name"], "why": error.sentence}
        why = refusal(file["name"], file["media_type"], len(content), content)
        if why:
            return {"name": file["name"], "why": why}
        new = self._ids.new()
        return await asyncio.to_thread(_store, self._gate.blobs, new, file["name"], content)


def _store(blobs: BlobStore, file: str, name: str, content: bytes) -> Taken:
    with blobs.receive(LARGEST_INCOMING + 1) as spool:
        spool.write(content)
        kept = blobs.put(file, spool)
    return {
        "name": name,
        "id": file,
        "sha256": kept.sha256,
        "size": kept.size,
        "is_text": kept.is_text,
        "links": kept.links,
    }
