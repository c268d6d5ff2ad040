"""The knowledge base with its bytes: what is decided in `files.py`, what is kept in the blobs.

A version's bytes are durable before its row is committed, so a row never points to nothing. Bytes
whose row never came are orphans, which `sweep` removes.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, TypeVar

from remit.clock import DAY, Micros
from remit.errors import BadInput, RemitError
from remit.ids import Ids, is_id
from remit.model.outcome import LONGEST_DESCRIPTION
from remit.model.text import clean_text
from remit.services import files, mail, outcomes
from remit.services.command import Answer, Gate, Verb
from remit.services.identity import Caller
from remit.store.blobs import SMALL, BlobStore, Content, LocalBlobs, Spool, SweepReport
from remit.store.database import Transaction
from remit.store.files import REFERENCED
from remit.store.governance import HOLDS_BLOB

T = TypeVar("T")
#: Where bytes come from: all at once, an open file, or as they arrive.
Source = bytes | BinaryIO | AsyncIterator[bytes]

LARGEST_FILE = 32 * 1024 * 1024
PIECE = 256 * 1024
#: How long bytes may wait for their row. A command takes seconds, so a day is generous.
ORPHAN_AGE: Micros = DAY
#: Waiting for a disk, not computing, so more threads than cores.
_THREADS = 8


class Library:
    def __init__(self, gate: Gate, blobs: BlobStore, ids: Ids, largest: int = LARGEST_FILE) -> None:
        self.gate = gate
        self.blobs = blobs
        self.largest = largest
        self._ids = ids
        self._local = isinstance(blobs, LocalBlobs)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="blobs")

    async def create(
        self,
        caller: Caller,
        source: Source,
        *,
        company: str | None,
        description: object,
        unlisted: bool = False,
    ) -> Answer:
        if not _is_small(source):
            await self.gate(caller, files.may_create, company=company)
        new_id = self._ids.new()

        async def commit(content: Content) -> Answer:
            return await self.gate(
                caller,
                files.create,
                company=company,
                new_id=new_id,
                description=description,
                sha256=content.sha256,
                size=content.size,
                is_text=content.is_text,
                links=content.links,
                unlisted=unlisted,
            )

        return await self._store(new_id, source, commit)

    async def write(
        self, caller: Caller, source: Source, *, file: str, version: object, sha256: object
    ) -> Answer:
        if not (is_id(file) and _is_small(source)):
            file = await self._writable(caller, file, version, sha256)

        async def commit(content: Content) -> Answer:
            return await self.gate(
                caller,
                files.write,
                file=file,
                seen_version=version,
                seen_hash=sha256,
                sha256=content.sha256,
                size=content.size,
                is_text=content.is_text,
                links=content.links,
            )

        return await self._store(file, source, commit)

    async def create_outcome(self, caller: Caller, *, description: object, **asked: Any) -> Answer:
        """A new outcome; its prose is durable before the row, like any other content."""
        text = clean_text(description, "description", longest=LONGEST_DESCRIPTION, empty_ok=True)
        return await self._with_text(caller, outcomes.create, "description", text, asked)

    async def send(self, caller: Caller, *, body: Source | str | None, **asked: Any) -> Answer:
        """A message; its body is durable before it is sent."""
        if body is None:
            return await self.gate(caller, mail.send, **asked)
        if isinstance(body, str):
            return await self._with_text(caller, mail.send, "body", body, asked)
        new_id = self._ids.new()

        async def commit(content: Content) -> Answer:
            return await self.gate(
                caller,
                mail.send,
                body="",
                body_hash=content.sha256,
                new_id=new_id,
                new_stored=_stored(content),
                **asked,
            )

        return await self._store(new_id, body, commit)

    async def _with_text(
        self, caller: Caller, verb: Verb[..., Answer], name: str, text: str, asked: dict[str, Any]
    ) -> Answer:
        """Run a verb that makes a file of a text, with the text stored beforehand."""
        if not text:
            return await self.gate(caller, verb, **{name: text}, **asked)
        new_id = self._ids.new()

        async def commit(content: Content) -> Answer:
            return await self.gate(
                caller,
                verb,
                **{name: text},
                new_id=new_id,
                new_stored=_stored(content),
                **asked,
            )

        try:
            encoded = text.encode()
        except UnicodeEncodeError:
            raise BadInput(f"{name} has a character that is not text.", "Send UTF-8.") from None
        return await self._store(new_id, encoded, commit)

    async def open(
        self, caller: Caller, *, file: str, version: object = None, access: str = "read"
    ) -> tuple[dict[str, Any], BinaryIO]:
        """A version and a stream of its bytes; the reading is in the access log."""
        view = await self.gate(caller, files.read, file=file, version=version, access=access)
        if self._local:
            stream = self.blobs.open(view["id"], view["hash"])
        else:
            stream = await self.run(self.blobs.open, view["id"], view["hash"])
        heading = view.pop("heading")
        if heading is None:
            return view, stream
        with stream:
            whole = heading.encode() + await self.read_all(view, stream)
        return {**view, "size": len(whole)}, io.BytesIO(whole)

    async def read(
        self, caller: Caller, *, file: str, version: object = None
    ) -> tuple[dict[str, Any], bytes]:
        """A version with all of its bytes."""
        view, stream = await self.open(caller, file=file, version=version)
        with stream:
            return view, await self.read_all(view, stream)

    async def read_all(self, view: dict[str, Any], stream: BinaryIO) -> bytes:
        if self._local and view["size"] <= SMALL:
            return stream.read()
        return await self.run(stream.read)

    async def sweep(self) -> SweepReport:
        """Remove bytes that no version came to own."""
        now = self.gate.clock.now()
        return await self.run(self.blobs.sweep, self._referenced, now, ORPHAN_AGE)

    async def run(self, work: Callable[..., T], *args: Any) -> T:
        """Do something that waits for storage without making everybody wait."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *args)

    def close(self) -> None:
        self._threads.shutdown(wait=True)

    async def _writable(self, caller: Caller, file: str, version: object, sha256: object) -> str:
        """The id of the file, unless it is clear already that the write will be refused."""
        try:
            return await self.gate(
                caller, files.may_write, file=file, version=version, sha256=sha256
            )
        except RemitError:
            # It may be refused because this very request was carried out before.
            first = await self.gate.first_answer(caller)
            if first is None or not is_id(str(first.get("id"))):
                raise
            return str(first["id"])

    async def _store(
        self, file_id: str, source: Source, commit: Callable[[Content], Awaitable[Answer]]
    ) -> Answer:
        """Make the bytes durable, then commit what names them."""
        if not isinstance(source, AsyncIterator):
            return await commit(await self.run(self._put, file_id, source))
        with self.blobs.receive(self.largest) as spool:
            await self._fill(spool, source)
            return await commit(await self.run(self.blobs.put, file_id, spool))

    async def _fill(self, spool: Spool, source: AsyncIterator[bytes]) -> None:
        first = True
        async for chunk in source:
            if first and len(chunk) <= SMALL:
                spool.write(chunk)  # stays in memory
            else:
                await self.run(spool.write, chunk)
            first = False

    def _put(self, file_id: str, source: bytes | BinaryIO) -> Content:
        with self.blobs.receive(self.largest) as spool:
            if isinstance(source, bytes):
                spool.write(source)
            else:
                while piece := source.read(PIECE):
                    spool.write(piece)
            return self.blobs.put(file_id, spool)

    def _referenced(self, pairs: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
        def look(tx: Transaction) -> set[tuple[str, str]]:
            return {
                (file_id, sha256)
                for file_id, sha256 in pairs
                if tx.one(REFERENCED, file=file_id, sha256=sha256) is not None
                or tx.one(HOLDS_BLOB, file=file_id, sha256=sha256) is not None
            }

        return self.gate.database.submit_read(look).result()


def _is_small(source: Source) -> bool:
    """Small content is stored before anything is decided; large content waits for a first look.

    Bytes that were refused are orphans and swept, so a look costs more than it saves.
    """
    return isinstance(source, bytes) and len(source) <= SMALL


def _stored(content: Content) -> dict[str, Any]:
    return {
        "sha256": content.sha256,
        "size": content.size,
        "is_text": content.is_text,
        "links": content.links,
    }
