"""The knowledge base with its bytes: decisions and rows are in `files.py`, bytes in the blob store.

The bytes of a version are durable before its row is committed, so no row references missing bytes.
Bytes without a row are orphans, which `sweep` removes.
"""

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO, TypeVar

from remit.clock import DAY, Micros
from remit.errors import BadInput, RemitError, Stopped, Unauthenticated, Unavailable
from remit.ids import Ids, is_id
from remit.model.work.file import File
from remit.services.command import Answer, Gate, Verb
from remit.services.identity import Caller
from remit.services.knowledge import documents, files
from remit.services.messaging import mail
from remit.services.verbs import Arguments, R
from remit.services.work import outcomes
from remit.store.blob_store.blobs import (
    MISSING,
    SMALL,
    BlobStore,
    Content,
    LocalBlobs,
    Spool,
    SweepReport,
)
from remit.store.engine.database import Transaction
from remit.store.organisation.governance import HOLDS_BLOB
from remit.store.work.files import NEWEST_STORED, REFERENCED

T = TypeVar("T")
#: Source of bytes: all at once, an open file, or an asynchronous stream.
Source = bytes | BinaryIO | AsyncIterator[bytes]

LARGEST_FILE = 32 * 1024 * 1024
PIECE = 256 * 1024
#: How long bytes may wait for their row. A command takes seconds, so a day is generous.
ORPHAN_AGE: Micros = DAY
#: Threads wait for the disk and do not compute, so there are more than cores.
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
        about: Arguments = {"description": description, "unlisted": unlisted}
        commit = partial(
            self._commit, caller, files.create, company=company, new_id=new_id, **about
        )
        return await self._store(new_id, source, commit)

    async def write(
        self, caller: Caller, source: Source, *, file: str, version: object, sha256: object
    ) -> Answer:
        if not (is_id(file) and _is_small(source)):
            file = await self._writable(caller, file, version, sha256)
        arguments: Arguments = {"file": file, "seen_version": version, "seen_hash": sha256}
        commit = partial(self._commit, caller, files.write, **arguments)
        return await self._store(file, source, commit, new=False)

    async def _commit(
        self, caller: Caller, verb: Verb[..., Answer], content: Content, **arguments: Any
    ) -> Answer:
        return await self.gate(caller, verb, **arguments, **documents.stored_as(content))

    async def create_outcome(self, caller: Caller, **arguments: Any) -> Answer:
        return await self.call(caller, outcomes.create, **arguments)

    async def call(self, caller: Caller, verb: Verb[..., R], **arguments: Any) -> R:
        """Call any declared verb. A text that it stores as a file is made durable before the
        call."""
        if verb.stored is None or arguments.get(verb.stored.name) is None:
            return await self.gate(caller, verb, **arguments)
        name = verb.stored.name
        text = verb.stored.clean(arguments.pop(name), name)
        return await self._with_text(caller, verb, name, text, arguments)

    async def send(self, caller: Caller, *, body: Source | str | None, **arguments: Any) -> Answer:
        """Send a message; its body is made durable first."""
        if body is None or isinstance(body, str):
            return await self.call(caller, mail.send, body=body, **arguments)
        new_id = self._ids.new()

        async def commit(content: Content) -> Answer:
            return await self.gate(
                caller,
                mail.send,
                body="",
                body_hash=content.sha256,
                new_id=new_id,
                new_stored=documents.stored_as(content),
                **arguments,
            )

        return await self._store(new_id, body, commit)

    async def _with_text(
        self, caller: Caller, verb: Verb[..., R], name: str, text: str, arguments: Arguments
    ) -> R:
        """Call a verb that creates a file of a text, with the text stored beforehand."""
        if not text:
            return await self.gate(caller, verb, **{name: text}, **arguments)
        new_id = self._ids.new()

        async def commit(content: Content) -> R:
            return await self.gate(
                caller,
                verb,
                **{name: text},
                new_id=new_id,
                new_stored=documents.stored_as(content),
                **arguments,
            )

        try:
            encoded = text.encode()
        except UnicodeEncodeError:
            raise BadInput(f"{name} has a character that is not text.", "Send UTF-8.") from None
        return await self._store(new_id, encoded, commit)

    async def open(
        self, caller: Caller, *, file: str, version: object = None, access: str = "read"
    ) -> tuple[Answer, BinaryIO]:
        """Return a version and a stream of its bytes; the read is recorded in the access log."""
        return await self._open(
            await self.gate(caller, files.read, file=file, version=version, access=access)
        )

    async def _open(self, view: Answer) -> tuple[Answer, BinaryIO]:
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
    ) -> tuple[Answer, bytes]:
        """Return a version with all of its bytes."""
        return await self.contents(await self.gate(caller, files.read, file=file, version=version))

    async def contents(self, leave: Answer) -> tuple[Answer, bytes]:
        """Return all bytes of a version that `files.read` authorised."""
        view, stream = await self._open(leave)
        with stream:
            return view, await self.read_all(view, stream)

    async def read_all(self, view: Answer, stream: BinaryIO) -> bytes:
        if self._local and view["size"] <= SMALL:
            return stream.read()
        return await self.run(stream.read)

    async def keep(self, file_id: str, content: bytes) -> documents.Stored:
        """Make bytes of Remit itself durable; the row that references them is committed next."""
        return documents.stored_as(await self.run(self._put, file_id, content))

    async def content(self, file_id: str, sha256: str) -> bytes:
        """Return bytes of Remit itself, without authorisation."""

        def read() -> bytes:
            with self.blobs.open(file_id, sha256) as stream:
                return stream.read()

        return await self.run(read)

    async def sweep(self) -> SweepReport:
        """Remove orphans: bytes that no version references."""
        now = self.gate.clock.now()
        return await self.run(self.blobs.sweep, self._referenced, now, ORPHAN_AGE)

    async def check_place(self) -> None:
        """Refuse a blob store without any of the newest contents: other processes use another."""
        newest, missing = await self.newest()
        if newest and missing == newest:
            raise BadInput(
                "The blob store has none of the newest contents that the database names.",
                "Give this process the REMIT_BLOB_URL of the other ones, or restore the blobs.",
            )

    async def newest(self) -> tuple[int, int]:
        """Look for the newest contents; return how many the database names, and how many of them
        the blob store does not have."""
        newest = await self.gate.database.read(lambda tx: tx.all(NEWEST_STORED))
        return len(newest), await self.run(self._missing, newest)

    def _missing(self, some: Sequence[File]) -> int:
        missing = 0
        for file in some:
            try:
                self.blobs.open(file.id, file.sha256).close()
            except Unavailable as error:
                missing += error.reason == MISSING
        return missing

    async def run(self, work: Callable[..., T], *args: Any) -> T:
        """Run blocking storage work in a thread of the pool."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *args)

    def close(self) -> None:
        self._threads.shutdown(wait=True)

    async def _writable(self, caller: Caller, file: str, version: object, sha256: object) -> str:
        """Return the id of the file, unless the write would certainly be refused."""
        try:
            return await self.gate(
                caller, files.may_write, file=file, version=version, sha256=sha256
            )
        except RemitError:
            # It may be refused because this same request succeeded before.
            first = await self.gate.first_answer(caller)
            if first is None or not is_id(str(first.get("id"))):
                raise
            return str(first["id"])

    async def _store(
        self,
        file_id: str,
        source: Source,
        commit: Callable[[Content], Awaitable[R]],
        *,
        new: bool = True,
    ) -> R:
        """Make the bytes durable, then commit the row that references them."""
        if not isinstance(source, AsyncIterator):
            content = await self.run(self._put, file_id, source)
        else:
            with self.blobs.receive(self.largest) as spool:
                await self._fill(spool, source)
                content = await self.run(self.blobs.put, file_id, spool)
        try:
            return await commit(content)
        except (Unauthenticated, Stopped):
            with suppress(RemitError, OSError):  # a sweep finds it; the refusal is what is said
                await self.run(self._take_back, file_id, content.sha256, new)
            raise

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

    def _take_back(self, file_id: str, sha256: str, new: bool) -> None:
        """Remove the bytes of a caller that is not authenticated any more. Another caller may be
        storing the same bytes in an existing file, so there they are only moved to where a sweep
        checks them."""
        if new:
            self.blobs.discard(file_id, sha256)
        elif not self._referenced([(file_id, sha256)]):
            self.blobs.move((file_id, sha256), to_trash=True)

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
    """Return whether content is stored before its write is decided; large content is checked first.

    Refused bytes are orphans and are swept, so for small content the check costs more than it
    saves.
    """
    return isinstance(source, bytes) and len(source) <= SMALL
