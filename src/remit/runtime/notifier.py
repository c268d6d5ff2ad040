"""Tells people outside what needs them: by a command on this machine, or a signed webhook.

One loop in the process that serves. When something happened in a company, it is looked at whether
somebody there needs to know; each notice is then claimed with a lease that is longer than any
attempt, and tried again when it failed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
from pathlib import Path
from typing import Any

from remit.channels import webhook
from remit.channels.contract import Undelivered
from remit.clock import SECOND, Micros
from remit.errors import Conflict, RemitError, Unavailable
from remit.ids import CompanyId
from remit.model.wish import Way
from remit.runtime import notify_commands
from remit.runtime.execution import uninterrupted
from remit.services import notices
from remit.services.command import Gate
from remit.services.identity import as_system

log = logging.getLogger(__name__)

#: A command that takes longer is ended.
COMMAND_SECONDS = 30.0
AT_ONCE = 4
#: What nobody announces, such as that a letter has waited for long, is found after this.
LONGEST_SLEEP = 30.0
#: Much happens that needs nobody; it is looked at together.
SHORTEST_SLEEP = 0.5
LONGEST_TEXT = 500
_LARGEST_OUTPUT = 16 * 1024
#: What a command has of the instance's own environment: nothing that Remit or a model needs.
_PASSED = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR"),
    *("DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE"),
)


class Notifier:
    """Tells; `tick` does what can be done now, `start` goes on doing so."""

    def __init__(
        self,
        gate: Gate,
        commands: Path,
        *,
        private: bool = False,
        name: str = "local",
        lease: Micros = notices.LEASE_TIME,
        backoff: tuple[Micros, ...] = notices.BACKOFF,
    ) -> None:
        """`commands` is the file that names a command for each user who has one."""
        self._gate = gate
        self._file = commands
        self._private = private
        self._name = name
        self._lease = lease
        self._backoff = backoff
        self._grown: set[CompanyId] | None = None
        self._changed = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._warned = ""

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._gate.listeners.append(self._something_happened)
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """What is under way is ended; its lease ends too, and then it is tried again."""
        if self._something_happened in self._gate.listeners:
            self._gate.listeners.remove(self._something_happened)
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def recover(self) -> None:
        """Whatever seems to be under way is not: there is no other process."""
        await self._take_over(alone=True)

    def command_of(self, user: str) -> str | None:
        """The command by which a user is told; raises `Unavailable` if the file is not to be
        believed."""
        return notify_commands.read(self._file).get(user)

    async def tick(self) -> int:
        """Look everywhere, and tell what is new; answers how many attempts were made."""
        self._grown = None
        return await self._once()

    def _something_happened(self, company: CompanyId) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._note, company)

    def _note(self, company: CompanyId) -> None:
        if self._grown is not None:
            self._grown.add(company)
        self._changed.set()

    async def _run(self) -> None:
        while True:
            pause = LONGEST_SLEEP
            try:
                self._changed.clear()
                while await self._once():
                    pass
                due = await self._gate(as_system(), notices.next_due)
                if due is not None:
                    pause = min(max((due - self._gate.clock.now()) / SECOND, 0), LONGEST_SLEEP)
            except RemitError as error:
                log.warning("people will be told later: %s", error)
            except Exception:
                # Whatever it was: others have to be told, too.
                log.exception("people will be told later")
            await asyncio.sleep(SHORTEST_SLEEP)
            try:
                async with asyncio.timeout(pause):
                    await self._changed.wait()
            except TimeoutError:
                self._grown = None  # look everywhere

    async def _once(self) -> int:
        commands = self._commands()
        grown, self._grown = self._grown, set()
        for company in await self._gate(as_system(), notices.companies, commands=[*commands]):
            if grown is None or company in grown:
                await self._gate(as_system(), notices.look, company=company, commands=[*commands])
        await self._take_over()
        ready = await self._gate(as_system(), notices.ready, commands=[*commands])
        made = await asyncio.gather(*(self._tell(one, commands) for one in ready[:AT_ONCE]))
        return sum(made)

    def _commands(self) -> dict[str, str]:
        try:
            return notify_commands.read(self._file)
        except Unavailable as error:
            if self._warned != error.sentence:
                self._warned = error.sentence
                log.warning("%s", error.sentence)
            return {}

    async def _take_over(self, *, alone: bool = False) -> None:
        for notice, epoch in await self._gate(as_system(), notices.silent, alone=alone):
            why = "whoever set out to deliver it was not heard of any more"
            await self._say(notices.failed, notice=notice, epoch=epoch, why=why, backoff=(0,))

    async def _tell(self, notice: str, commands: dict[str, str]) -> int:
        claimed = await self._gate(
            as_system(), notices.claim, notice=notice, worker=self._name, lease=self._lease
        )
        if claimed is None:
            return 0
        held = {"notice": notice, "epoch": claimed["epoch"]}
        try:
            if claimed["way"] == Way.WEBHOOK:
                await self._post(claimed)
            else:
                await self._run_command(claimed, commands)
        except Undelivered as error:
            more = {"why": error.sentence, "for_good": error.for_good, "backoff": self._backoff}
            await uninterrupted(self._say(notices.failed, **held, **more))
        else:
            await uninterrupted(self._say(notices.delivered, **held))
        return 1

    async def _say(self, verb: Any, **about: Any) -> None:
        with contextlib.suppress(Conflict):  # somebody took over
            await self._gate(as_system(), verb, **about)

    async def _post(self, claimed: dict[str, Any]) -> None:
        document = claimed["document"]
        content = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
        await webhook.post(
            claimed["url"],
            content.encode("utf-8", "replace"),
            id_=document["id"],
            key=claimed["key"].encode(),
            now=self._gate.clock.now(),
            private=self._private,
        )

    async def _run_command(self, claimed: dict[str, Any], commands: dict[str, str]) -> None:
        """Without a shell: what agents wrote is one argument, or on standard input."""
        command = commands.get(claimed["user_id"])
        if command is None:
            raise Undelivered("the command is gone", for_good=True)
        document = claimed["document"]
        try:
            words = notify_commands.words(command)
        except RemitError as error:
            raise Undelivered(error.sentence) from error
        text = text_of(document)
        given = [words[0], *(word.replace(notify_commands.TEXT, text) for word in words[1:])]
        environment = {name: os.environ[name] for name in _PASSED if name in os.environ}
        try:
            process = await asyncio.create_subprocess_exec(
                *given,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise Undelivered(f"the command cannot be started ({error})") from error
        try:
            async with asyncio.timeout(COMMAND_SECONDS):
                said, _ = await process.communicate(json.dumps(document).encode())
        except TimeoutError:
            raise Undelivered(f"the command took longer than {COMMAND_SECONDS:.0f} s") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with whatever it started
            await uninterrupted(process.wait())
        if process.returncode:
            last = said[-_LARGEST_OUTPUT:].decode(errors="replace").strip().splitlines()
            words_ = f": {last[-1].strip()}" if last else ""
            raise Undelivered(f"the command ended with {process.returncode}{words_}")


def text_of(document: dict[str, Any]) -> str:
    """One line; it begins with a word of ours, so that no program takes it for an option."""
    who = f" from {document['agent']}" if document["agent"] else ""
    text = f"{document['kind'].replace('_', ' ')}{who}: {document['title']}"
    if document["cause"]:
        text += f" ({document['cause'].rstrip('.')})"
    plain = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(plain.split())[:LONGEST_TEXT]
