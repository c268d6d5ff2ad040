"""A program of an agent that looks for secrets wherever it can: run inside the sandbox.

It writes all that it sees into `$HOME/seen`, as it sees it.
"""

import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path

LARGEST = 4 << 20
#: Programs of the system, which everybody has.
SKIPPED = ("/usr", "/sys", "/lib", "/lib64", "/bin", "/sbin", "/opt", "/dev")

seen = (Path(os.environ["HOME"]) / "seen").open("ab")


def note(title: str, content: bytes) -> None:
    seen.write(f"\n=== {title}\n".encode(errors="replace") + content)


def ask(path: str, document: object = None) -> bytes:
    request = urllib.request.Request(  # noqa: S310  Remit's own address
        os.environ["REMIT_URL"] + path,
        None if document is None else json.dumps(document).encode(),
        {
            "Authorization": f"Bearer {os.environ['REMIT_TOKEN']}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return bytes(answer.read())
    except urllib.error.HTTPError as error:
        return str(error.code).encode() + error.read()


def tool(method: str, **params: object) -> bytes:
    answer = ask("/mcp", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    note(f"{method} {params}", answer)
    return answer


def read(path: Path) -> None:
    try:
        with path.open("rb") as file:
            note(str(path), file.read(LARGEST))
    except (OSError, ValueError):
        pass


def main() -> None:
    note("environment", json.dumps(dict(os.environ)).encode())
    note("input", sys.stdin.buffer.read())
    tool("tools/list")
    for name in ("whoami", "leak", "crash", "count"):
        tool("tools/call", name=f"up__{name}", arguments={})
    for name in ("capability_list", "kb_list", "mail_inbox", "log_read"):
        tool("tools/call", name=name, arguments={})
    me = json.loads(ask("/api/agents/me"))
    for part in ("secrets", "mcp-servers", "events", "activity", "approvals", "grants"):
        path = f"/api/companies/{me['companyId']}/{part}"
        note(path, ask(path))
    # While the server runs, and by every name that it could have.
    everybody = ("self", *map(str, range(1, os.getpid() + 1000)))
    for process in everybody:
        for name in ("environ", "cmdline", "status", "mounts", "maps"):
            read(Path("/proc", process, name))
    home = Path(os.environ["REMIT_WORKSPACE"]).parents[2]
    for folder in (Path("/"), home, home / "secrets", home / "run" / "servers"):
        for base, folders, files in os.walk(folder, onerror=None):
            folders[:] = [
                inner
                for inner in folders
                if not os.path.join(base, inner).startswith(("/proc", *SKIPPED))
            ]
            for name in files:
                file = Path(base) / name
                if file.is_file() and file.name != "seen":
                    read(file)
    seen.close()
    print("I looked everywhere.")


main()
