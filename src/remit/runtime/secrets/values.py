"""The vault: values of secrets, read once from their sources and cached in memory only.

A process that needs them reads all of them when it starts. A secret that is registered or changed
later is read at its first use; a value that changes at its source is read again after the next
start, or when the secret is set again.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from remit.clock import DAY, Micros
from remit.errors import BadInput, NotFound, RemitError
from remit.ids import random_name
from remit.model.connections.secret import FILE, LONGEST_VALUE, SHORTEST_VALUE, Secret
from remit.runtime.secrets.secret_sources import Source, cannot, sources
from remit.services.command import Answer, Gate
from remit.services.connections import secrets
from remit.services.identity import Caller, as_system

log = logging.getLogger(__name__)

#: Looks up the value of a company's secret by its name.
SecretOf = Callable[[str, str], Awaitable[str]]
#: How long a stored value may exist without a row. Registering takes seconds, so a day is generous.
ORPHAN_AGE: Micros = DAY
#: Most values that are read at the same time.
PARALLEL = 8


class Vault:
    """Cache of secret values in this process, by company and name of the secret."""

    def __init__(self, gate: Gate, folder: Path) -> None:
        self._gate = gate
        self._folder = folder
        self._sources: dict[str, Source] | None = None
        #: By company and name: the secret's id and version, and the task that reads its value.
        self._known: dict[tuple[str, str], tuple[str, int, asyncio.Task[str]]] = {}
        self._turn = asyncio.Semaphore(PARALLEL)

    async def open(self) -> None:
        """Read all registered secrets; a failure is logged now, and raised again at a use."""
        rows = await self._gate(as_system(), secrets.registered)
        for secret, problem in zip(rows, await self.problems(rows), strict=True):
            if problem is not None:
                log.warning("the secret %s is not to be had: %s", secret.name, problem)

    async def value(self, company: str, name: str) -> str:
        """The value of a secret as it is registered now."""
        secret = await self._gate(as_system(), secrets.find, company=company, name=name)
        if secret is None:
            self._known.pop((company, name), None)
            raise NotFound(
                f"There is no secret {name!r} in this company.",
                f"Let an operator register it with `remit secret set {name}`.",
                code="secret",
            )
        return await self._looked_up(secret)

    async def values(self, company: str, names: Iterable[str]) -> dict[str, str]:
        return {name: await self.value(company, name) for name in names}

    async def problems(self, rows: Iterable[Secret]) -> list[str | None]:
        """Return for each secret why its value cannot be read here, or None."""

        async def look(secret: Secret) -> str | None:
            try:
                await self._looked_up(secret)
            except RemitError as error:
                return error.sentence
            return None

        return list(await asyncio.gather(*map(look, rows)))

    @property
    def source_names(self) -> list[str]:
        """The names of the available sources."""
        return sorted(self._all_sources())

    async def try_place(self, source: str, place: str) -> str | None:
        """Try a place before its secret is registered; return the problem, or None."""
        try:
            async with self._turn:
                _check(await self._all_sources()[source].read(place))
        except RemitError as error:
            return error.sentence
        return None

    def check_source(self, source: str) -> None:
        known = self._all_sources()
        if source not in known:
            raise BadInput(
                f"There is no source {source[:40]!r} of secrets here.",
                f"Use one of {', '.join(sorted(known))}.",
            )

    # ── values that Remit stores itself ─────────────────────────────────────────────────────

    async def put(
        self, caller: Caller, *, company: str | None, name: object, value: object
    ) -> Answer:
        """Register or change a secret whose value Remit stores."""
        allowed = await self._gate(caller, secrets.may_change, company=company, name=name)
        company = allowed["company_id"]

        def register(kept: str) -> Awaitable[Answer]:
            return self._gate(
                caller, secrets.put, company=company, name=name, source=FILE, new_place=kept
            )

        return await self.kept_for(company, value, register)

    async def kept_for(
        self, company: str, value: object, register: Callable[[str], Awaitable[Answer]]
    ) -> Answer:
        """Store a value and `register` its place; deletes the file again if that fails."""
        kept = await self.keep(company, value)
        try:
            answer = await register(kept)
        except BaseException:
            await self.discard(kept)
            raise
        if answer["place"] != kept:  # the same request was answered before
            await self.discard(kept)
        return await self.settled(answer)

    async def remove(self, caller: Caller, *, company: str | None, name: object) -> Answer:
        return await self.settled(
            await self._gate(caller, secrets.remove, company=company, name=name)
        )

    async def settled(self, answer: Answer) -> Answer:
        """Delete the replaced value of a secret, if Remit stored it; returns the answer."""
        replaced = answer.pop("replaced", None)
        if replaced != answer.get("place"):
            await self.discard(replaced)
        return answer

    async def keep(self, company: str, value: object) -> str:
        """Store a value in a new file that only this user can read; returns its place, which is
        relative to the home, so that a home can be moved."""
        if not isinstance(value, str):
            raise BadInput("value must be text.", "Send it as a string.")
        text = value.removesuffix("\n").removesuffix("\r")
        try:
            _check(text)
            raw = text.encode()
        except (RemitError, UnicodeEncodeError):
            raise BadInput(
                f"A secret must be text of {SHORTEST_VALUE} to {LONGEST_VALUE} characters.",
                "A shorter one could not be kept out of logs.",
            ) from None
        return await asyncio.to_thread(self._write, company, raw)

    def _write(self, company: str, raw: bytes) -> str:
        folder = self._folder / company
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        path = folder / random_name()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        return str(path.relative_to(self._folder.parent))

    async def tidy(self) -> None:
        """Delete orphaned values that no secret names, such as those of a killed process.

        Values of companies that are not in this database may belong to another one, and stay.
        """
        before = self._gate.clock.now() - ORPHAN_AGE
        old = await asyncio.to_thread(_older, self._folder, before)
        if not old:
            return
        # Read after the files were listed, so that no file is deleted whose row is newer.
        named = await self._gate(as_system(), secrets.places, companies=sorted(old))
        for company, places in named.items():
            if len(places) < secrets.MOST:
                for kept in old[company]:
                    if not any(kept in self._path(place) for place in places):
                        await self.discard(kept)

    def keeps(self, place: str) -> bool:
        """Return whether a place is a file that Remit stores."""
        return self._folder in Path(self._path(place)).parents

    async def discard(self, place: str | None) -> None:
        """Delete the file of a value that Remit stored; other files stay."""
        if place is None or not self.keeps(place):
            return
        with contextlib.suppress(OSError):
            await asyncio.to_thread(os.unlink, self._path(place))

    def _path(self, place: str) -> str:
        """Return the path of a file at a place; other places stay as they are.

        Before version 0.2 the path of a stored value was kept whole; after a move of the
        home it leads elsewhere.
        """
        *_, folder, company, name = ("", "", "", *Path(place).parts)
        here = self._folder / company / name
        ours = folder == self._folder.name and ".." not in (company, name) and here.is_file()
        return str(here) if ours else place

    # ── reading ─────────────────────────────────────────────────────────────────────────────

    async def _looked_up(self, secret: Secret) -> str:
        key = (secret.company_id, secret.name)
        known = self._known.get(key)
        if known is None or known[:2] != (secret.id, secret.version):
            task = asyncio.create_task(self._read(secret))
            # A cancelled caller does not cancel the reading for others.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            known = self._known[key] = (secret.id, secret.version, task)
        try:
            return await asyncio.shield(known[2])
        except RemitError:
            if self._known.get(key) is known:
                del self._known[key]  # the next use tries again
            raise

    async def _read(self, secret: Secret) -> str:
        source = self._all_sources().get(secret.source)
        if source is None:
            raise cannot(
                f"There is no source {secret.source!r} of secrets here.", "Install its plugin."
            )
        async with self._turn:
            value = await source.read(
                self._path(secret.place) if secret.source == FILE else secret.place
            )
        _check(value)
        return value

    def _all_sources(self) -> dict[str, Source]:
        if self._sources is None:
            self._sources = sources(os.environ)
        return self._sources


def _older(folder: Path, before: Micros) -> dict[str, list[str]]:
    """Return the values that were stored before a time, by company."""
    paths: dict[str, list[str]] = {}
    for path in folder.glob("*/*"):
        with contextlib.suppress(FileNotFoundError):
            if path.lstat().st_mtime_ns <= before * 1000:
                paths.setdefault(path.parent.name, []).append(str(path))
    return paths


def _check(value: str) -> None:
    """Refuse a value that cannot be used or is too short to be redacted."""
    if len(value.strip()) < SHORTEST_VALUE or len(value) > LONGEST_VALUE or "\0" in value:
        raise cannot(
            f"The value found is not text of {SHORTEST_VALUE} to {LONGEST_VALUE} characters."
        )
