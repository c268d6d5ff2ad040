"""Runs the hostile program inside and outside a sandbox, as whoever starts this.

Prints {"inside": {attempt: succeeded}, "outside": …}. A program of its own, so that it can be
started as another user.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from remit.runtime.sandbox import sandbox_policy

ATTEMPTS = Path(__file__).with_name("sandbox_attempts.py")


def main() -> None:
    root = Path(tempfile.mkdtemp(prefix="remit-escape-"))
    stand_in = subprocess.Popen(
        ["/usr/bin/python3", "-c", "import sys; sys.stdin.read()", "host-process"],
        stdin=subprocess.PIPE,
        env={"SECRET": "canary"},
    )
    libc = ctypes.CDLL(None)
    memory = libc.shmget(os.getpid(), 4096, 0o1600)
    datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    letters = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    abstract = socket.socket(socket.AF_UNIX)
    with socket.socket(socket.AF_UNIX) as server, datagrams, letters, abstract:
        # Names without files are those of the machine's network, which a run shares.
        letters.bind(f"\0remit-letters-{os.getpid()}")
        abstract.bind(f"\0remit-abstract-{os.getpid()}")
        abstract.listen()
        try:
            print(json.dumps(_compare(root, stand_in.pid, server, datagrams)))
        finally:
            libc.shmctl(memory, 0, None)
            stand_in.kill()
            stand_in.wait()
            shutil.rmtree(root)


def _compare(
    root: Path, pid: int, server: socket.socket, datagrams: socket.socket
) -> dict[str, dict[str, bool]]:
    home = root / "remit"
    mine, other = home / "run" / "workspaces" / "mine", home / "run" / "workspaces" / "other"
    for folder in (home / "blobs", mine, other, home / "agents" / "me", home / "agents" / "you"):
        folder.mkdir(parents=True)
    host = {
        "home": str(home),
        "database": str(home / "remit.db"),
        "blob": str(home / "blobs" / "b"),
        "token": str(home / "board.token"),
        "other_workspace": str(other / "notes"),
        "other_home": str(home / "agents" / "you" / "memory"),
        "outside": str(root / "outside"),
        "changed": str(home / "changed"),
        "socket": str(root / "socket"),
        "datagrams": str(root / "datagrams"),
        "abstract": f"remit-abstract-{os.getpid()}",
        "letters": f"remit-letters-{os.getpid()}",
        "memory": os.getpid(),
        "pid": pid,
        "worker": os.getpid(),
        "name": os.uname().nodename,
    }
    for kind in ("database", "blob", "token", "other_workspace", "other_home", "changed"):
        Path(str(host[kind])).write_text("canary")
    server.bind(str(host["socket"]))
    server.listen()
    datagrams.bind(str(host["datagrams"]))
    (mine / "host.json").write_text(json.dumps(host))
    shutil.copy(ATTEMPTS, mine / "attempts.py")
    own = home / "agents" / "me"
    argv = ["/usr/bin/python3", "attempts.py", "host.json"]
    clean = {"PATH": "/usr/bin:/bin", "HOME": str(own), "LANG": "C.UTF-8"}
    wrapped = sandbox_policy.wrap(
        argv, env=clean, workspace=mine, home=own, cwd=mine, hidden=[home]
    )
    inside = _run(wrapped, clean, mine)
    # What it wrote into its own view of the machine is nowhere.
    inside["write outside"] = Path(str(host["outside"])).exists()
    assert os.stat(str(host["changed"])).st_mode & 0o777 != 0o604
    # As a program that nothing holds would be started: with all that we have.
    answer = {"inside": inside, "outside": _run(argv, {**os.environ, **clean}, mine)}
    assert (mine / "workspace-is-writable").exists()
    assert (own / "home-is-writable").exists()
    return answer


def _run(argv: list[str], env: dict[str, str], cwd: Path) -> dict[str, bool]:
    with subprocess.Popen(
        argv, env=env, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        output = process.stdout.read()
    assert process.returncode == 0, f"the attempts ended with {process.returncode}"
    outcomes: dict[str, Any] = json.loads(output)
    return outcomes


if __name__ == "__main__":
    main()
