"""Intake of messages from chats: fetches their files, then handles each as its sender."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from remit.channels.contract import Undelivered
from remit.errors import Conflict, RemitError, Unavailable
from remit.ids import Ids
from remit.model.work.attachment import LARGEST_INCOMING, MOST_INCOMING, refusal
from remit.runtime.deliveries import Deliveries
from remit.runtime.delivery.connecting import Connector
from remit.services.chat import handling, intake, shapes
from remit.services.command import Gate
from remit.services.identity import as_linked
from remit.services.spending import limits
from remit.store.blob_store.blobs import BlobStore

log = logging.getLogger(__name__)

Taken = shapes.StoredFileShape | shapes.LeftOutFileShape

AT_ONCE = 8
SHORTEST_SLEEP = 0.02
FETCH_SECONDS = 45.0
#: Seconds until a retry, by the reason of the refusal: the agent's inbox is full, or the runs for
#: unknown people are used up in this hour; that limit may be raised meanwhile.
PATIENCE = {"inbox_full": 5.0, limits.REACHED: 60.0}


class IntakeLoop(Deliveries):
    """Handles incoming messages: those of one lane in order, different lanes at the same time."""

    put_back = intake.put_back

    def __init__(self, gate: Gate, ids: Ids, connector: Connector, **more: Any) -> None:
        more = {"backoff": intake.BACKOFF, **more}
        verbs: Any = intake  # `handling` ends the row, in the transaction that handles the message
        super().__init__(gate, verbs, "intake", at_once=AT_ONCE, shortest=SHORTEST_SLEEP, **more)
        self._connector = connector
        self._ids = ids

    async def _attempt(self, claimed: shapes.ClaimedIntakeShape) -> None:
        """Handle a message and end its row, in one transaction."""
        account = claimed["account"]
        about: dict[str, Any] = {"intake_id": claimed["id"], "epoch": claimed["epoch"]}
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
            await self._refuse(about, error)

    async def _refuse(self, about: dict[str, Any], error: RemitError) -> None:
        sentence = f"{error.sentence} {error.next_step}".strip()
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
