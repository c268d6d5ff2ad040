"""Composition root: the only module that wires the parts together."""

import asyncio
import contextlib
import fcntl
import logging
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from remit import version
from remit.clock import DAY, HOUR, SECOND, Clock, SystemClock
from remit.errors import Conflict, RemitError, Unauthenticated
from remit.ids import Ids, TokenKind, new_token
from remit.model.execution import prices
from remit.runtime import jobs
from remit.runtime.backups import Backups
from remit.runtime.deadlines import within
from remit.runtime.delivery.connecting import Connector
from remit.runtime.delivery.notifier import Notifier
from remit.runtime.delivery.notify_commands import NOTIFY_FILE
from remit.runtime.delivery.outbox import Outbox, Posts
from remit.runtime.delivery.receiving import IntakeLoop, Receivers
from remit.runtime.repos.cache import Repos
from remit.runtime.repos.checking import Checker
from remit.runtime.repos.diffs import Reviews
from remit.runtime.repos.errands import Publisher
from remit.runtime.repos.forges import Forges
from remit.runtime.repos.merging import Merger
from remit.runtime.repos.proposals import Proposals
from remit.runtime.repos.signing import SigningKeys
from remit.runtime.repos.watching import ForgeWatcher
from remit.runtime.runs import conditions, lifecycle
from remit.runtime.runs.lifecycle import RetainedWorkspaces
from remit.runtime.runs.liveness import Signs, Streaks
from remit.runtime.sandbox.places import Places
from remit.runtime.secrets.values import Vault
from remit.runtime.timers import Clockwork
from remit.services.archive.archive import Archive
from remit.services.chat import intake
from remit.services.command import Gate
from remit.services.governance.pending_calls import CallsAwaitingApproval
from remit.services.identity import Caller, as_system
from remit.services.knowledge.file_contents import LARGEST_FILE, Library
from remit.services.organisation import roots
from remit.services.people import instance, users
from remit.services.record import events
from remit.services.rights import machine_access
from remit.settings import Settings, prepare_home
from remit.store.blob_store.blobs import BlobStore, open_blobs, storage_error
from remit.store.engine.database import Database, open_database
from remit.store.engine.migrate import migrate

log = logging.getLogger(__name__)

HOUSEKEEPING_EVERY = HOUR
KEEP_ANSWERS = 30 * DAY
#: Time limit of each step of closing.
CLOSE_SECONDS = 5.0
#: Attempts at a lock whose holder is gone.
_PATIENCE = 200


class App:
    """An open instance. Close it, or use it as an async context manager."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock | None = None,
        *,
        largest_file: int = LARGEST_FILE,
        ids: Ids | None = None,
        database: Database | None = None,
        blobs: BlobStore | None = None,
    ) -> None:
        """`database` is an open one with its schema in place, and `blobs` an open store."""
        self.settings = settings
        self.clock = clock or SystemClock()
        self.ids = ids or Ids(self.clock)
        prepare_home(settings)
        set_prices = prices.of_instance(settings.prices)
        if database is None:
            migrate(settings.database_url)
        self.database = database or open_database(settings.database_url)
        try:
            self.blobs = blobs or open_blobs(settings.blob_url, settings.run_folder)
        except RemitError:
            self.database.close()
            raise
        self.gate = Gate(self.database, self.clock, self.ids, self.blobs)
        self.gate.parking = CallsAwaitingApproval()
        self.gate.prices = set_prices
        self.gate.outside_url = settings.url and settings.url.rstrip("/")
        self.library = Library(self.gate, self.blobs, self.ids, largest_file)
        self.clockwork = Clockwork(self.gate)
        self.vault = Vault(self.gate, settings.secrets)
        self.archive = Archive(self.library, settings.run_folder, settings.largest_import)
        self.kept = RetainedWorkspaces(self.gate, self.clock, settings)
        self.streaks = Streaks()
        self.signs = Signs()
        self.places = Places()
        self.connector = Connector(
            self.vault.value, settings.private_channels, settings.channel_servers
        )
        self.outbox = Outbox(self.gate, self.connector)
        self.posts = Posts(self.gate, self.connector)
        self.intake = IntakeLoop(self.gate, self.ids, self.connector)
        self.receivers = Receivers(self.gate, self.connector)
        self.notifier = Notifier(
            self.gate, settings.home / NOTIFY_FILE, private=settings.private_channels
        )
        self.forges = Forges(self.vault.value, private=settings.private_channels)
        self.repos = Repos(
            *(self.gate, self.clock, settings.home, self.vault.value, self.library, self.forges)
        )
        self.signing = SigningKeys(self.gate, self.vault)
        self.proposals = Proposals(self.gate, self.repos, self.ids, settings.home)
        self.publisher = Publisher(self.gate, self.repos)
        self.watcher = ForgeWatcher(self.gate, self.repos, self.forges)
        #: Background loops of the process that serves.
        self.loops: tuple[Any, ...] = (
            *(self.clockwork, self.outbox, self.notifier),
            *(self.posts, self.intake, self.receivers, self.publisher, self.watcher),
        )
        self.reviews = Reviews(self.gate, self.repos)
        self.merger = Merger(self.gate, self.repos)
        self.checker = Checker(self.gate, self.repos, settings.home)
        self.loops = (*self.loops, self.merger, self.checker)
        self.backups = Backups(self.gate, self.clock, settings, self.blobs)
        #: Repairs made at the start, one sentence each.
        self.restored: list[str] = []
        self._housekeeping: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close in a bounded time; tasks that hang are abandoned, and the next start recovers."""
        stopping = [loop.stop() for loop in self.loops]
        await within(
            CLOSE_SECONDS,
            asyncio.gather(*stopping, self._stop_housekeeping(), self.repos.close()),
            "a background loop",
        )
        await within(CLOSE_SECONDS, asyncio.to_thread(self.close), "the database")

    async def _stop_housekeeping(self) -> None:
        if self._housekeeping is not None:
            self._housekeeping.cancel()
            await asyncio.gather(self._housekeeping, return_exceptions=True)

    def close(self) -> None:
        self.library.close()
        self.database.close()

    async def first_start(self, *, alone: bool = True) -> bool:
        """Set up an empty instance, or restore a missing board token and missing roots of companies
        in another; returns whether it was empty.

        `alone` means that no other process uses the database, so that everything that seems to be
        running there is recovered.
        """
        empty = await self.gate(as_system(), instance.is_empty)
        token = _read_token(self.settings.board_token_file)
        if empty:
            # The file comes first: a crash in between leaves a token that the next start uses.
            token = token or _write_token(self.settings.board_token_file)
            empty = await self._set_up(token)
        elif token is None:
            await self._renew_board_token()
        elif not await self._opens(token):
            log.warning(
                "%s does not fit this database; remove it and start again to get a new one",
                self.settings.board_token_file,
            )
        await self._restore_roots()
        await self._end_passed_on_access()
        await lifecycle.recover(self.gate, self.settings.workspaces, self.kept, alone=alone)
        if alone:
            queues = (self.outbox, self.notifier, self.posts, self.intake, self.receivers)
            for queue in (*queues, self.publisher, self.watcher, self.merger, self.checker):
                await queue.recover()
        await jobs.recover(self.gate, self.settings.job_folder, alone=alone)
        await self._record_version(await asyncio.to_thread(version.current))
        return empty

    async def _set_up(self, token: str) -> bool:
        """Set up an empty instance; returns False if another process was quicker."""
        adapter = self.gate.usable_adapter
        told = {"token": token, "machine": _machine()}
        running = await asyncio.to_thread(version.current)
        try:
            await self.gate(
                as_system(), instance.first_start, adapter_type=adapter, version=running, **told
            )
        except Conflict:
            await self.gate(as_system(), instance.renew_board_token, **told)
            return False
        return True

    async def _restore_roots(self) -> None:
        for company in await self.gate(as_system(), roots.missing):
            # Another process that starts at the same time may have been quicker.
            with contextlib.suppress(Conflict):
                restored = await self.gate(as_system(), roots.restore, company=company)
                self.restored.append(restored["sentence"])
                log.warning("%s", restored["sentence"])

    async def _end_passed_on_access(self) -> None:
        for company in await self.gate(as_system(), machine_access.passed_on):
            done = await self.gate(as_system(), machine_access.end, company=company)
            for grant in done["ended"]:
                log.warning("grant %s is ended: only people give full_access", grant)

    async def _record_version(self, running: str) -> None:
        if await self.gate(as_system(), instance.is_new_version, version=running):
            # Another process that starts at the same time may have been quicker.
            with contextlib.suppress(Conflict):
                await self.gate(as_system(), instance.start_version, version=running)

    async def _renew_board_token(self) -> None:
        """Renew the board's token. Its file is renamed into place after the token is valid, so that
        a crash never leaves an invalid one there; a leftover new file is used."""
        place = self.settings.board_token_file
        beside = place.with_name(f"{place.name}.new")
        token = _read_token(beside) or _write_token(beside)
        if not await self._opens(token):
            await self.gate(
                as_system(), instance.renew_board_token, token=token, machine=_machine()
            )
        os.replace(beside, place)

    async def _opens(self, token: str) -> bool:
        try:
            await self.gate(Caller(token), users.me)
        except Unauthenticated:
            return False
        return True

    def start_housekeeping(self) -> None:
        """Start the background loops of the instance and the hourly tidying."""
        self._housekeeping = asyncio.create_task(self._keep_house())
        for loop in self.loops:
            loop.start()

    def start_tidying(self) -> None:
        """Start the hourly tidying of this machine alone, for a process beside others."""
        self._housekeeping = asyncio.create_task(self._keep_house(only_here=True))

    async def tidy(self, *, only_here: bool = False) -> None:
        """Remove expired and orphaned files and rows, such as those that a crash left."""
        await self.kept.tidy()
        await self.repos.tidy()
        await conditions.tidy(self.gate, self.settings.home)
        if not only_here:
            await self.library.sweep()
            await self.vault.tidy()
            before = self.clock.now() - KEEP_ANSWERS
            await self.gate(as_system(), events.forget_answers, before=before)
            await self.gate(as_system(), intake.tidy)

    async def _keep_house(self, *, only_here: bool = False) -> None:
        while True:
            try:
                await self.tidy(only_here=only_here)
            except (RemitError, OSError) as error:
                log.warning("housekeeping will be tried again: %s", error)
            await asyncio.sleep(HOUSEKEEPING_EVERY / SECOND)


class InstanceLock:
    """Lock for one process per home folder, released by the system when the process dies."""

    def __init__(self, settings: Settings) -> None:
        prepare_home(settings)
        self._path = settings.run_folder / "instance.lock"
        self._file: int | None = None

    def __enter__(self) -> Self:
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        for _ in range(_PATIENCE):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                holder = os.pread(file, 1000, 0).decode(errors="replace").partition("\n")[0]
                if not _is_gone(holder):
                    break
                # A killed holder was starting a program, which inherited the lock for a moment.
                threading.Event().wait(0.05)
            else:
                self._file = file
                return self
        os.close(file)
        raise Conflict(
            f"An instance is running in this home already (process {holder or 'unknown'}).",
            "Use it, stop it with `remit down`, or set another REMIT_HOME.",
        )

    def describe(self, urls: Sequence[str], restored: Sequence[str] = ()) -> None:
        """Write the process id, addresses and repairs of the start into the lock file, for `remit
        up`, `remit status` and `remit down`. The first address is the one on this machine."""
        assert self._file is not None
        try:
            os.ftruncate(self._file, 0)
            lines = [str(os.getpid()), " ".join(urls), *restored]
            os.pwrite(self._file, "".join(f"{line}\n" for line in lines).encode(), 0)
        except OSError as error:
            raise storage_error(error) from error

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = None


def _is_gone(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except (ValueError, OverflowError, OSError):
        return False
    return False


def _machine() -> str:
    """Return the short name of this machine, for the label of its board token."""
    name = os.uname().nodename.partition(".")[0]
    return "".join(letter for letter in name if letter.isalnum() or letter in "-_")[:60]


def _read_token(path: Path) -> str | None:
    try:
        return path.read_text().strip() or None
    except FileNotFoundError:
        return None


def _write_token(path: Path) -> str:
    token = new_token(TokenKind.USER)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(token + "\n")
        file.flush()
        os.fsync(file.fileno())
    return token
