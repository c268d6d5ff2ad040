"""Places: the processes from which a run's token is accepted.

A program that Remit starts has the token in its environment, and may leak it, through injected
instructions or a log. So a token on a connection is accepted only if the other end is held by a
process of the run, according to the kernel.

Tokens of agents elsewhere (`http`) come from other machines, and those of runs with full access
from programs that have the whole machine anyway; these two kinds are accepted from everywhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import struct
import time
from collections.abc import Iterable, Iterator
from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple

from remit import threads
from remit.errors import Unauthenticated
from remit.ids import token_digest
from remit.runtime.runs.processes import descendants

log = logging.getLogger(__name__)

#: How long the check of a connection is trusted.
BELIEVED_SECONDS: Final = 5.0
#: How long a call is delayed while a program is being started, which may call before its process
#: is registered.
_START_SECONDS: Final = 5.0
#: Time limit of a search through a run's processes; after it, the token is refused.
_LOOK_SECONDS: Final = 30.0
OUTSIDE: Final = "run_token_outside"


class Place:
    """The processes of one run; this process is one of them, for adapters that run in it."""

    def __init__(self, run: str, *, anywhere: bool = False) -> None:
        self.run = run
        #: Whether its token is accepted from everywhere.
        self.anywhere = anywhere
        self._programs: list[int] = []
        self._settled = asyncio.Event()
        self._settled.set()
        self._starting = 0
        #: One search at a time, so that a run with many processes does not delay others.
        self._looking = asyncio.Lock()

    def begin(self) -> None:
        """A program is about to be started."""
        self._starting += 1
        self._settled.clear()

    def begun(self, pid: int | None) -> None:
        """The program was started with this process id, or None if it could not be."""
        if pid is not None:
            self._programs.append(pid)
        self._starting -= 1
        if not self._starting:
            self._settled.set()

    async def holds(self, ends: Ends) -> bool:
        """Return whether a process of the run holds the other end of a connection."""
        async with asyncio.timeout(_LOOK_SECONDS), self._looking:
            async with asyncio.timeout(_START_SECONDS):
                await self._settled.wait()
            return await threads.alone(_is_held, ends, [os.getpid()], list(self._programs))


def _is_held(ends: Ends, selves: Iterable[int], programs: Iterable[int]) -> bool:
    number = socket_of(ends)
    if number is None:
        return False
    return held_by(number, selves) is not None or holder_below(number, programs) is not None


class Peer(tuple[str, int]):
    """The other end of one connection, with the times of its successful checks."""

    believed: dict[str, float]

    def __new__(cls, address: tuple[str, int]) -> Peer:
        peer = super().__new__(cls, address)
        peer.believed = {}
        return peer


class Places:
    """The places of all runs of this process."""

    def __init__(self) -> None:
        self._by_token: dict[str, Place] = {}
        #: Whether tokens of other workers' runs are refused, as in the process that serves.
        self.strict = False
        #: Whether owners of connections can be found here; None if that was not tried yet.
        self._can_tell: bool | None = None

    @property
    def can_tell(self) -> bool:
        if self._can_tell is None:
            self._can_tell = can_tell()
            if not self._can_tell:
                log.warning(
                    "this system does not tell the owner of a connection: run tokens work "
                    "everywhere"
                )
        return self._can_tell

    def open(self, token: str, place: Place) -> None:
        self._by_token[token_digest(token)] = place

    def close(self, token: str) -> None:
        self._by_token.pop(token_digest(token), None)

    def of(self, token: str) -> Place | None:
        return self._by_token.get(token_digest(token))

    async def check(self, place: Place, other: tuple[str, int], own: tuple[str, int]) -> None:
        """Refuse a run's token that comes from outside of the run."""
        if place.anywhere or not self.can_tell:
            return
        now = time.monotonic()
        believed = other.believed if isinstance(other, Peer) else {}
        if now - believed.get(place.run, -BELIEVED_SECONDS) < BELIEVED_SECONDS:
            return
        try:
            inside = await place.holds(Ends((other[0], other[1]), (own[0], own[1])))
        except TimeoutError:
            inside = False
        if not inside:
            raise outside(place.run)
        believed[place.run] = now


def outside(run: str) -> Unauthenticated:
    log.warning("the token of run %s was used from outside of it, and refused", run)
    return Unauthenticated(
        "The token of a run is good inside that run only.",
        "Give your program a token of its own.",
        code=OUTSIDE,
    )


# ── owners of connections ─────────────────────────────────────────────────────────────────────────
#
# The kernel finds the socket by the addresses of the connection (`sock_diag`, or `/proc/net/tcp` as
# a fallback), and `/proc` shows which process holds it. Nothing that the other end sends is used.

#: From <linux/sock_diag.h>, <linux/netlink.h> and <linux/inet_diag.h>.
_SOCK_DIAG: Final = 4
_BY_FAMILY: Final = 20
_REQUEST: Final = 1
_HEADER: Final = struct.Struct("=IHHII")
_ASKED: Final = struct.Struct("=BBBBI")
_ENDS: Final = struct.Struct("!HH16s16s")
_ANY: Final = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
#: Offset of the inode in an answer: after the header, `expires`, two queues and the user.
_INODE_AT: Final = _HEADER.size + 4 + _ENDS.size + len(_ANY) + 16
_SECONDS: Final = 1.0


class Ends(NamedTuple):
    """Both ends of a connection, the other one first."""

    other: tuple[str, int]
    own: tuple[str, int]


def socket_of(ends: Ends) -> int | None:
    """Return the inode of the socket at the other end; None if it is not on this machine."""
    try:
        (other, other_port), (own, own_port) = ends
        away, here = _plain(other), _plain(own)
    except ValueError:
        return None
    inode = _asked(away, other_port, here, own_port) or _listed(away, other_port, here, own_port)
    return inode or None


def held_by(number: int, pids: Iterable[int]) -> int | None:
    """Return the first of these processes that holds a socket."""
    wanted = f"socket:[{number}]"
    for pid in pids:
        with contextlib.suppress(OSError):
            for file in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    if os.readlink(f"/proc/{pid}/fd/{file}") == wanted:
                        return pid
    return None


def tree(pid: int) -> Iterator[int]:
    """Yield a process and its descendants from the kernel's lists of children, fast but perhaps
    incomplete."""
    pending = [pid]
    while pending:
        yield (process := pending.pop())
        with contextlib.suppress(OSError, ValueError):
            for thread in os.listdir(f"/proc/{process}/task"):
                with open(f"/proc/{process}/task/{thread}/children", "rb") as file:
                    pending += [int(child) for child in file.read().split()]


def holder_below(number: int, pids: Iterable[int]) -> int | None:
    """Return the process that holds a socket, among these and their descendants."""
    roots = list(pids)
    for pid in roots:
        if (holder := held_by(number, tree(pid))) is not None:
            return holder
    for pid in roots:  # slower, but complete
        if (holder := held_by(number, descendants(pid))) is not None:
            return holder
    return None


def can_tell() -> bool:
    """Return whether owners can be found here; tried with a connection within this process."""
    try:
        with (
            socket.create_server(("127.0.0.1", 0)) as listening,
            socket.create_connection(listening.getsockname(), timeout=_SECONDS) as near,
        ):
            ends = Ends(near.getsockname(), near.getpeername())
            number = socket_of(ends)
            return number is not None and held_by(number, [os.getpid()]) is not None
    except OSError:
        return False


def _plain(address: str) -> bytes:
    """Return the bytes of an address; an IPv4 address mapped into IPv6 becomes IPv4."""
    ip = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    return ip.packed


def _asked(other: bytes, other_port: int, own: bytes, own_port: int) -> int:
    family = socket.AF_INET if len(other) == 4 else socket.AF_INET6
    ends = _ENDS.pack(other_port, own_port, other.ljust(16, b"\0"), own.ljust(16, b"\0"))
    body = _ASKED.pack(family, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF) + ends + _ANY
    header = _HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, _REQUEST, 1, 0)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG) as asking:
            asking.settimeout(_SECONDS)
            asking.sendto(header + body, (0, 0))
            answer = asking.recv(8192)
    except OSError:
        return 0
    if len(answer) < _INODE_AT + 4 or _HEADER.unpack_from(answer)[1] != _BY_FAMILY:
        return 0
    return int(struct.unpack_from("=I", answer, _INODE_AT)[0])


def _listed(other: bytes, other_port: int, own: bytes, own_port: int) -> int:
    """Find the socket in /proc/net/tcp, which lists addresses in the byte order of the machine."""
    wanted = [_as_listed(other, other_port), _as_listed(own, own_port)]
    try:
        with open("/proc/net/tcp" if len(other) == 4 else "/proc/net/tcp6") as file:
            for line in file:
                words = line.split()
                if words[1:3] == wanted:
                    return int(words[9])
    except (OSError, ValueError, IndexError):
        return 0
    return 0


def _as_listed(address: bytes, port: int) -> str:
    groups = struct.unpack(f"={len(address) // 4}I", address)
    return f"{''.join(f'{group:08X}' for group in groups)}:{port:04X}"
