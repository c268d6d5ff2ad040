"""Notifier: sends notices to people outside, by a command on this machine or a signed webhook.

After a change in a company, the notices for its people are planned anew.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from pathlib import Path
from typing import Any

from remit.channels import webhook
from remit.channels.contract import Undelivered
from remit.clock import Micros
from remit.errors import RemitError, Unavailable
from remit.ids import CompanyId
from remit.model.messaging.notice import Way
from remit.runtime.child_process import end_child, start_child
from remit.runtime.claims import Deliveries, Waiting
from remit.runtime.deadlines import uninterrupted
from remit.runtime.delivery import notify_commands
from remit.services.command import Ask, Gate
from remit.services.connections import notice_planning, notices
from remit.services.connections.shapes import ClaimedNoticeShape, NoticeDocumentShape

log = logging.getLogger(__name__)

#: Time limit of a command, which is then killed.
COMMAND_SECONDS = 30.0
#: How often all companies are planned, for changes without an event, such as mail that waits long.
LONGEST_SLEEP = 30.0
LONGEST_TEXT = 500
_LARGEST_OUTPUT = 16 * 1024
#: Variables that a command gets from the instance's environment; none with secrets of Remit or of
#: models.
_PASSED = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR"),
    *("DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE"),
)


class Notifier(Deliveries):
    verbs, noun = notices, "notice"
    shortest = 0.5
    at_once = 4

    def __init__(self, gate: Gate, commands: Path, *, private: bool = False, **more: Any) -> None:
        """`commands` is the file with the commands of users."""
        super().__init__(gate, **more)
        self._longest = LONGEST_SLEEP
        self._file = commands
        self._private = private
        #: Companies with changes since the last round; None means all companies.
        self._grown: set[CompanyId] | None = None
        self._warned = ""
        self._every(LONGEST_SLEEP, self._look_everywhere)

    def command_of(self, user: str) -> str | None:
        """Return the command that notifies a user; raises `Unavailable` if the file is not
        trustworthy."""
        return notify_commands.read(self._file).get(user)

    async def tick(self) -> int:
        """Plan all companies and send what is due; returns the number of attempts."""
        self._grown = None
        return await super().tick()

    async def _look(self) -> Micros | None:
        while await super().tick():
            pass
        return await self._do(notices.next_due)

    async def _dispatch(self) -> tuple[int, Micros | None]:
        await self._plan()
        return await super()._dispatch()

    async def _look_everywhere(self) -> None:
        self._grown = None
        self._woken.set()

    def _changed(self, company: CompanyId) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._note, company)

    def _note(self, company: CompanyId) -> None:
        if self._grown is not None:
            self._grown.add(company)
        self._woken.set()

    async def _plan(self) -> None:
        """Plan the notices of changed companies, and queue them."""
        commands = [*self._commands()]
        grown, self._grown = self._grown, set()
        for company in await self._do(notice_planning.companies, commands=commands):
            if grown is None or company in grown:
                await self._do(notice_planning.look, company=company, commands=commands)

    def _ready(self, ask: Ask) -> Waiting:
        return [(notice, None) for notice in ask(notices.ready, commands=[*self._commands()])]

    def _commands(self) -> dict[str, str]:
        try:
            return notify_commands.read(self._file)
        except Unavailable as error:
            if self._warned != error.sentence:
                self._warned = error.sentence
                log.warning("%s", error.sentence)
            return {}

    async def _attempt(self, claimed: ClaimedNoticeShape) -> dict[str, Any]:
        if claimed["way"] == Way.WEBHOOK:
            await self._post(claimed)
        else:
            await self._run_command(claimed)
        return {}

    async def _post(self, claimed: ClaimedNoticeShape) -> None:
        document, url, key = claimed["document"], claimed["url"], claimed["key"]
        assert url is not None, "a webhook has an address"
        assert key is not None, "and a key"
        content = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
        await webhook.post(
            url,
            content.encode("utf-8", "replace"),
            id_=document["id"],
            key=key.encode(),
            now=self._gate.clock.now(),
            private=self._private,
        )

    async def _run_command(self, claimed: ClaimedNoticeShape) -> None:
        """Run a user's command without a shell: texts of agents are one argument, or on stdin."""
        command = self._commands().get(claimed["user_id"])
        if command is None:
            raise Undelivered("the command is gone", for_good=True)
        document = claimed["document"]
        try:
            words = notify_commands.words(command)
        except RemitError as error:
            raise Undelivered(error.sentence) from error
        text = text_of(document)
        arguments = [words[0], *(word.replace(notify_commands.TEXT, text) for word in words[1:])]
        environment = {name: os.environ[name] for name in _PASSED if name in os.environ}
        try:
            both = asyncio.subprocess.STDOUT
            payload = json.dumps(document).encode()
            process = await start_child(arguments, environment, stdin=payload, stderr=both)
        except (OSError, ValueError) as error:
            raise Undelivered(f"the command cannot be started ({error})") from error
        try:
            async with asyncio.timeout(COMMAND_SECONDS):
                output, _ = await process.communicate()
        except TimeoutError:
            raise Undelivered(f"the command took longer than {COMMAND_SECONDS:.0f} s") from None
        finally:
            await uninterrupted(end_child(process))
        if process.returncode:
            last = output[-_LARGEST_OUTPUT:].decode(errors="replace").strip().splitlines()
            words_ = f": {last[-1].strip()}" if last else ""
            raise Undelivered(f"the command ended with {process.returncode}{words_}")


def text_of(document: NoticeDocumentShape) -> str:
    """Return a notice as one line; it begins with its kind, so it is never read as an option."""
    who = f" from {document['agent']}" if document["agent"] else ""
    text = f"{document['kind'].replace('_', ' ')}{who}: {document['title']}"
    if document["cause"]:
        text += f" ({document['cause'].rstrip('.')})"
    if document.get("items"):
        text += ": " + "; ".join(item["title"] for item in document["items"])
    if document.get("escalatedFrom"):
        text += f" [not decided by {document['escalatedFrom']}]"
    plain = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(plain.split())[:LONGEST_TEXT]
