"""Commands of Remit in a sandbox, over a folder with an agent's files, with limits of time, memory
and disk."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from remit import threads
from remit.ids import Ids
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
        except Hidden:
            return
        # A folder that takes long to measure is measured less often.
        await asyncio.sleep(max(_LOOK_SECONDS, 10 * (time.monotonic() - begun)))


def _used(folders: Iterable[Path], process: int) -> int:
    return used(folders, descendants(process))


async def _drain(child: ChildProcess) -> None:
    async for _ in child.lines():
        pass


# ── disk use, also where the program tries to hide it ─────────────────────────────────────────────
#
# Folders without permissions for their owner are opened while they are counted. Removed files take
# space as long as a process has them open or mapped; of a mapped file, the kernel tells only root
# the size, and others the length of the mapping.

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: Attempts to open a folder, which the program may close again each time.
_TRIES = 5
_PASSING = (FileNotFoundError, NotADirectoryError, ProcessLookupError)


#: Identity of a file: its device and inode.
_File = tuple[int, int]


class Hidden(Exception):
    """Raised when the disk use cannot be determined."""


def used(folders: Iterable[Path], processes: Iterable[int]) -> int:
    """Return about how many bytes are in some folders, and in removed files on the same disks that
    the processes have open or mapped."""
    places = list(folders)
    disks = {os.stat(place).st_dev for place in places if place.exists()}
    held: dict[_File, int] = {}
    for process in processes:
        for file, blocks in (*_removed(process), *_mapped(process)):
            if file[0] in disks:
                held[file] = max(blocks, held.get(file, 0))
    return 512 * (sum(held.values()) + sum(map(_blocks, places)))


def _blocks(folder: Path) -> int:
    total, pending = 0, [os.fspath(folder)]
    with ExitStack() as closing:
        while pending:
            for entry in _listed(pending.pop(), closing):
                # Entries of a folder that is closed just now are counted in the next measurement.
                with contextlib.suppress(*_PASSING, PermissionError):
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_blocks
    return total


def _listed(path: str, closing: ExitStack) -> list[os.DirEntry[str]]:
    for _ in range(_TRIES):
        try:
            with os.scandir(path) as listing:
                entries = list(listing)
            if entries:  # listing needs no permission to enter
                os.stat(entries[0].path, follow_symlinks=False)
            return entries
        except PermissionError:
            _open(path, closing)
        except _PASSING:
            return []
    raise Hidden


def _open(path: str, closing: ExitStack) -> None:
    """Give the owner access to a folder, until the count is complete."""
    with contextlib.suppress(*_PASSING):
        fd = os.open(path, _FOLDER)
        closing.callback(os.close, fd)
        # By descriptor, because the name may mean something else by now.
        place, mode = f"/proc/self/fd/{fd}", stat.S_IMODE(os.fstat(fd).st_mode)
        os.chmod(place, mode | 0o700)
        closing.callback(os.chmod, place, mode)


def _removed(process: int) -> Iterator[tuple[_File, int]]:
    with contextlib.suppress(*_PASSING, PermissionError):
        for file in os.listdir(f"/proc/{process}/fd"):
            with contextlib.suppress(*_PASSING, PermissionError):
                status = os.stat(f"/proc/{process}/fd/{file}")
                if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                    yield (status.st_dev, status.st_ino), status.st_blocks


def _mapped(process: int) -> Iterator[tuple[_File, int]]:
    with contextlib.suppress(*_PASSING, PermissionError):
        for line in Path(f"/proc/{process}/maps").read_bytes().splitlines():
            if not line.endswith(b" (deleted)"):
                continue
            span, _, _, device, inode, _ = line.split(None, 5)
            begin, end = (int(number, 16) for number in span.split(b"-"))
            major, minor = (int(number, 16) for number in device.split(b":"))
            try:
                blocks = os.stat(f"/proc/{process}/map_files/{begin:x}-{end:x}").st_blocks
            except OSError:
                blocks = (end - begin) // 512
            yield (os.makedev(major, minor), int(inode)), blocks
