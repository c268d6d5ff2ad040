"""Exports and imports with their bytes; the decisions are in the verbs."""

import asyncio
import hashlib
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO

from remit.errors import BadInput, RemitError, TooLarge
from remit.ids import FileId, UserId
from remit.model.work.file import Version
from remit.services.archive import checking, exporting, importing, outside
from remit.services.archive.exporting import Outline
from remit.services.archive.importing import Known
from remit.services.archive.plan import Plan
from remit.services.archive.reading import read
from remit.services.archive.tar import Folder, Piece
from remit.services.command import Answer
from remit.services.identity import Caller
from remit.services.knowledge.file_contents import PIECE, Library
from remit.store.blob_store.blobs import EMPTY, storage_error

LARGEST_MEBIBYTES = 2048
#: How many contents are written to the disk at once.
_AT_ONCE = 64


class Archive:
    """Exports and imports companies; `folder` holds temporary archives and needs room for one of
    each."""

    def __init__(self, library: Library, folder: Path, largest_mebibytes: int | None) -> None:
        self.largest = (largest_mebibytes or LARGEST_MEBIBYTES) * 1024**2
        self._library = library
        self._gate = library.gate
        self._folder = folder

    async def export(self, caller: Caller, company: str) -> Outline:
        """Return the outline of a company's archive. Give it to `stream`, which closes it."""
        begun = await self._gate(caller, exporting.begin, company=company)
        outline = Outline(self._folder)
        try:
            await self._gate(
                caller, exporting.write_outline, company=begun["id"], new_outline=outline
            )
        except BaseException:
            outline.close()
            raise
        return outline

    async def stream(self, outline: Outline) -> AsyncIterator[bytes]:
        pieces = outline.pieces(self._library.blobs)
        try:
            while piece := await self._library.run(next, pieces, b""):
                yield piece
        finally:
            outline.close()

    async def import_(
        self, caller: Caller, source: AsyncIterator[bytes], *, name: object = None
    ) -> Answer:
        """Create a company from an archive while that arrives."""
        importer = UserId(await self._gate(caller, importing.may_import))
        with tempfile.TemporaryFile(dir=self._folder) as file:
            sha256 = await self._receive(source, file)
            plan = await self._library.run(self._read, file, importer)
            contents: dict[tuple[FileId, str], Known] = {}
            if await self._is_wanted(caller, plan, name):
                contents = await self._store(plan, file)
            return await self._gate(
                caller,
                importing.create,
                sha256=sha256,
                name=name,
                new_plan=plan,
                new_contents=contents,
            )

    async def _receive(self, source: AsyncIterator[bytes], file: IO[bytes]) -> str:
        digest, size = hashlib.sha256(), 0

        def keep(chunk: bytes) -> None:
            digest.update(chunk)
            try:
                file.write(chunk)
            except OSError as error:
                raise storage_error(error) from error

        async for chunk in source:
            size += len(chunk)
            if size > self.largest:
                raise TooLarge(
                    f"The archive is larger than {self.largest // 1024**2} MiB.",
                    "Raise REMIT_LARGEST_IMPORT (in MiB) where the instance runs.",
                )
            await self._library.run(keep, chunk)
        return digest.hexdigest()

    def _read(self, file: IO[bytes], importer: UserId) -> Plan:
        try:
            file.flush()
        except OSError as error:
            raise storage_error(error) from error
        file.seek(0)
        plan = read(Folder(file), importer)
        checking.check(plan, self._gate.clock.now())
        outside.leave_out(plan)
        return plan

    async def _is_wanted(self, caller: Caller, plan: Plan, name: object) -> bool:
        try:
            await self._gate(caller, importing.check_free, new_plan=plan, name=name)
        except RemitError:
            # It may exist because this same request succeeded before.
            if await self._gate.first_answer(caller) is None:
                raise
            return False
        return True

    async def _store(self, plan: Plan, file: IO[bytes]) -> dict[tuple[FileId, str], Known]:
        """Make all contents durable, before any row references them."""
        work = [
            (version, piece, version.number == stored.file.version)
            for stored in plan.files.values()
            for version, piece in zip(stored.versions, stored.pieces, strict=True)
        ]
        # Latest last: of equal contents, the one whose links count.
        work.sort(key=lambda job: job[2])
        contents: dict[tuple[FileId, str], Known] = {}
        for start in range(0, len(work), _AT_ONCE):
            batch = work[start : start + _AT_ONCE]
            known = await asyncio.gather(
                *(self._library.run(self._put, file, *job) for job in batch)
            )
            for (version, _, _), properties in zip(batch, known, strict=True):
                contents[(version.file_id, version.sha256)] = properties
        return contents

    def _put(self, file: IO[bytes], version: Version, piece: Piece, with_links: bool) -> Known:
        largest = self._library.largest
        if piece.size > largest:
            raise TooLarge(f"{piece.path}: is larger than {largest // 1024**2} MiB.")
        with self._library.blobs.receive(largest) as spool:
            for offset in range(0, piece.size, PIECE):
                size = min(PIECE, piece.size - offset)
                spool.write(os.pread(file.fileno(), size, piece.offset + offset))
            content = spool.finish()
            if content.sha256 != version.sha256:
                raise BadInput(
                    f"{piece.path}: was changed; its hash is not the one that was exported.",
                    "Export the company again.",
                )
            if content.sha256 != EMPTY:
                self._library.blobs.put(version.file_id, spool)
        return Known(content.is_text, content.links if with_links else ())
