"""Backups on this machine: made, listed, downloaded and deleted by operators.

They lie in one folder of the home, under generated names. A requested name is looked up among the
listed files, so no name leads to another path.
"""

import asyncio
import contextlib
import os
import stat
from dataclasses import asdict
from pathlib import Path
from typing import Final

from remit import threads
from remit.clock import Clock, to_iso
from remit.errors import Conflict, NotFound, RemitError
from remit.services.command import Answer, Gate
from remit.services.identity import Caller
from remit.services.people import instance
from remit.settings import Settings
from remit.store.blob_store.blobs import BlobStore

#: Most backups in the folder; the operator moves others elsewhere, where they are safer anyway.
MOST: Final = 20
_PREFIX: Final = "remit-"
_SUFFIX: Final = ".backup"
#: How long a caller waits for a backup before the answer says that it is still being written.
PATIENCE_SECONDS: Final = 20.0


class Backups:
    """The backups of this machine; one is written at a time."""

    def __init__(self, gate: Gate, clock: Clock, settings: Settings, blobs: BlobStore) -> None:
        self._gate = gate
        self._clock = clock
        self._settings = settings
        self._blobs = blobs
        self.folder = settings.home / "backups"
        self._writing: tuple[str, asyncio.Task[Answer]] | None = None
        #: The failure of the last backup, for callers that stopped waiting.
        self.problem: str | None = None

    async def make(self, caller: Caller) -> Answer:
        """Write a backup; returns its facts, or after a while that it is still being written."""
        name = f"{_PREFIX}{to_iso(self._clock.now())[:19].replace(':', '')}Z{_SUFFIX}"
        await self._gate(caller, instance.may_operate, what="backups")
        if self._writing is not None and not self._writing[1].done():
            raise Conflict("A backup is being written already.", "Wait until it is there.")
        if len(await self._found()) >= MOST:
            raise Conflict(
                f"{MOST} backups are here already.", "Move or delete older ones, then try again."
            )
        begun = await self._gate(caller, instance.begin_backup, new_name=name)
        if begun["name"] != name:  # the same request was answered before
            return {"name": begun["name"], "writing": False}
        task = asyncio.create_task(self._write(name))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._writing = (name, task)
        done, _ = await asyncio.wait({task}, timeout=PATIENCE_SECONDS)
        return await task if done else {"name": name, "writing": True}

    async def _write(self, name: str) -> Answer:
        from remit.store.backups import backup

        self.problem = None
        self.folder.mkdir(mode=0o700, exist_ok=True)
        url, target = self._settings.database_url, self.folder / name
        try:
            contents = await threads.alone(backup.create, url, lambda: self._blobs, target)
        except RemitError as error:
            self.problem = f"{error.sentence} {error.step}"
            raise
        await threads.alone(target.chmod, 0o600)
        return {"name": name, "writing": False, **asdict(contents)}

    async def listing(self, caller: Caller) -> list[Answer]:
        """List the backups for an operator, newest first, with one that is being written."""
        await self._gate(caller, instance.may_operate, what="backups")
        return await self.shown()

    async def shown(self) -> list[Answer]:
        """List the backups for a caller who was authorised before."""
        backups = await self._found()
        if self._writing is not None and not self._writing[1].done():
            backups.insert(0, {"name": self._writing[0], "bytes": None, "created_at": None})
        return backups

    async def count(self) -> int:
        """Count the backups, for a page that shows the number to operators only."""
        return len(await self._found())

    async def _found(self) -> list[Answer]:
        return await threads.alone(_listed, self.folder)

    async def take(self, caller: Caller, name: str) -> Path:
        """Return the path of a backup for an operator, and record the download."""
        path = await self._named(caller, name)
        await self._gate(caller, instance.take_backup, name=path.name)
        return path

    async def remove(self, caller: Caller, name: str) -> Answer:
        path = await self._named(caller, name)
        answer = await self._gate(caller, instance.remove_backup, name=path.name)
        with contextlib.suppress(FileNotFoundError):
            await threads.alone(os.unlink, path)
        return answer

    async def _named(self, caller: Caller, name: str) -> Path:
        await self._gate(caller, instance.may_operate, what="backups")
        for backup in await self._found():
            if backup["name"] == name:
                return self.folder / str(backup["name"])
        raise NotFound("There is no such backup here.", "See the list of backups.")


def _listed(folder: Path) -> list[Answer]:
    backups: list[Answer] = []
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if not (entry.name.startswith(_PREFIX) and entry.name.endswith(_SUFFIX)):
                continue
            with contextlib.suppress(FileNotFoundError):
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode):
                    created_at = to_iso(status.st_mtime_ns // 1000)
                    backups.append(
                        {"name": entry.name, "bytes": status.st_size, "created_at": created_at}
                    )
    return sorted(backups, key=lambda backup: str(backup["name"]), reverse=True)
