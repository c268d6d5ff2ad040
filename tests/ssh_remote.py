"""A real sshd on loopback, which lets one key in."""

from __future__ import annotations

import getpass
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

PROGRAM = Path("/usr/sbin/sshd")
#: Where its helper without rights lives when it runs as root.
_EMPTY = Path("/run/sshd")


@dataclass
class SshSite:
    #: Whatever is behind it is a path of this machine.
    url: str
    key: str
    known_hosts: str


@contextmanager
def ssh(folder: Path) -> Iterator[SshSite]:
    """One process for each connection, on a socket of ours: so the port is a free one."""
    if not PROGRAM.exists():
        pytest.skip("GIT OVER SSH IS NOT TESTED: scripts/test-deps installs sshd")
    if os.geteuid() == 0:
        _EMPTY.mkdir(mode=0o755, exist_ok=True)
    for name in ("host", "user"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(command, check=True)
    settings = {
        "HostKey": folder / "host",
        "AuthorizedKeysFile": folder / "user.pub",
        "StrictModes": "no",
        "UsePAM": "no",
        "PasswordAuthentication": "no",
        "PermitRootLogin": "prohibit-password",
        "PidFile": "none",
    }
    written = "".join(f"{name} {value}\n" for name, value in settings.items())
    (folder / "sshd_config").write_text(written)
    with socket.create_server(("127.0.0.1", 0)) as door, (folder / "sshd.log").open("wb") as log:
        running: list[subprocess.Popen[bytes]] = []

        def serve() -> None:
            with suppress(OSError):  # the door is closed
                while True:
                    wire, _ = door.accept()
                    command = [str(PROGRAM), "-i", "-e", "-f", str(folder / "sshd_config")]
                    with wire:
                        end = wire.fileno()
                        running.append(subprocess.Popen(command, stdin=end, stdout=end, stderr=log))

        thread = threading.Thread(target=serve)
        thread.start()
        port = door.getsockname()[1]
        host = (folder / "host.pub").read_text().rsplit(" ", 1)[0]
        try:
            yield SshSite(
                f"ssh://{getpass.getuser()}@127.0.0.1:{port}",
                (folder / "user").read_text(),
                f"[127.0.0.1]:{port} {host}\n",
            )
        finally:
            door.shutdown(socket.SHUT_RDWR)
            thread.join()
            for process in running:
                process.kill()
                process.wait()
