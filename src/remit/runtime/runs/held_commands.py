"""Commands of Remit in a sandbox, over a folder with an agent's files, with limits of time, memory
and disk."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from remit import threads
from remit.ids import Ids
from remit.runtime.runs import disk_use
from remit.runtime.runs.processes import ChildProcess, descendants
from remit.runtime.sandbox import cgroups, sandbox_policy
from remit.runtime.sandbox.mounts import View

log = logging.getLogger(__name__)

MOST_OUTPUT = 64 * 1024
#: Between two measurements of a command's disk use.
_LOOK_SECONDS = 0.5


@dataclass
class Heard:
    """The tail of a command's output."""

    most: int = MOST_OUTPUT
    text: str = ""
    cut: bool = False

    def hear(self, text: str, _: str) -> None:
        self.text += text
        if len(self.text) > self.most:
            self.text, self.cut = self.text[-self.most :], True


@dataclass(frozen=True)
class Ended:
    #: The exit code; None for a command that was killed for its time or disk use.
    code: int | None
    heard: Heard = field(default_factory=Heard)
    too_much: bool = False


async def run(
    argv: Sequence[str],
    *,
    folder: Path,
    home: Path,
    env: Mapping[str, str],
    seconds: float,
    view: View,
    hidden: Sequence[Path] = (),
    memory: int | None = None,
    disk: int | None = None,
) -> Ended:
    """Run a command in a writable folder, and end it with all processes that it started."""
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8", **env}
    command = sandbox_policy.wrap(
        argv, env=env, workspace=folder, home=home, cwd=folder, hidden=hidden, view=view
    )
    bounded = memory if cgroups.MEMORY in cgroups.look().bound else None
    group = cgroups.create(Ids().new(), processes=sandbox_policy.MOST_PROCESSES, memory=bounded)
    heard = Heard()
    child = await ChildProcess.begin(
        command if group is None else group.join(command),
        env=sandbox_policy.outer(env),
        cwd=folder,
        stdin=b"",
        log=heard.hear,
        sandboxed=True,
    )
    draining = asyncio.create_task(_drain(child))
    ending = asyncio.create_task(child.wait())
    filling = asyncio.create_task(_filled({folder, home}, child.pid, disk))
    code: int | None = None
    try:
        await asyncio.wait({ending, filling}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if ending.done():
            code = ending.result()
    finally:
        too_much = filling.done() and not ending.done()
        ending.cancel()
        filling.cancel()
        await asyncio.gather(ending, filling, return_exceptions=True)
        await child.end()
        draining.cancel()
        await asyncio.gather(draining, return_exceptions=True)
        if group is not None:
            await threads.ENDINGS.run(group.end)
    return Ended(code, heard, too_much)


async def _filled(folders: Iterable[Path], process: int, most: int | None) -> None:
    """Wait until a program exceeds its disk limit or hides its use; without a limit, for ever."""
    if most is None:
        await asyncio.Event().wait()
        return
    while True:
        begun = time.monotonic()
        try:
            if await threads.FILES.run(_used, folders, process) > most:
                return
        except OSError as error:
            log.warning("a command is ended: its disk cannot be counted (%s)", error.strerror)
            return
        except disk_use.Hidden:
            return
        # A folder that takes long to measure is measured less often.
        await asyncio.sleep(max(_LOOK_SECONDS, 10 * (time.monotonic() - begun)))


def _used(folders: Iterable[Path], process: int) -> int:
    return disk_use.used(folders, descendants(process))


async def _drain(child: ChildProcess) -> None:
    async for _ in child.lines():
        pass
