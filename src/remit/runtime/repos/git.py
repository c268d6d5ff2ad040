"""Git as a child process that trusts nothing but its command line.

It inherits no settings, never prompts, runs no hooks, allows three protocols only, and dies with
this process. A password reaches it through its environment, and is used only for its own site.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Required, TypedDict, Unpack

from remit.errors import RemitError, StorageFull, Unsupported
from remit.runtime.child_process import end_child, kill_session, start_child
from remit.runtime.sandbox.sandbox_policy import tie_to_parent
from remit.services.redaction import Known

#: A pack is one file, so this bounds what a remote can put on the disk at once.
LARGEST_PACK = 8 << 30
#: Most bytes that are kept of git's error output.
_MOST_SAID = 64 * 1024
_MOST_PRINTED = 64 << 20
_PIECE = 256 * 1024

#: Variables of this process's environment that git needs to reach the network.
_LENT = (
    *("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH"),
)
_CONFIG = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.protectHFS": "true",
    "core.protectNTFS": "true",
    # A reflog would reveal the place of the mirror.
    "core.logAllRefUpdates": "false",
    "checkout.workers": "4",
    "credential.helper": "",
    "fetch.recurseSubmodules": "false",
    # Keep packs: loose objects would be copied one by one.
    "fetch.unpackLimit": "1",
    "gc.auto": "0",
    "maintenance.auto": "false",
    # Only the configured address is allowed, not a redirect's target.
    "http.followRedirects": "false",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "30",
    "init.defaultBranch": "main",
    "init.templateDir": "",
    "submodule.recurse": "false",
}
_HELPER = (
    '!f() { test "$1" = get && printf "username=%s\\npassword=%s\\n" '
    '"$REMIT_GIT_USERNAME" "$REMIT_GIT_PASSWORD"; }; f'
)


class GitFailed(RemitError):
    """Git ended with an error; `said` is its message in one line."""

    code = "git"
    status = 502

    def __init__(self, complaint: str) -> None:
        super().__init__(f"git: {complaint}")
        self.said = complaint


@dataclass(frozen=True)
class Credentials:
    """The credentials of one remote; never on a command line, and a password never in a file."""

    #: The site of an https address.
    site: str | None = None
    username: str = ""
    password: str = ""
    #: A file with a private key, for ssh.
    key_file: Path | None = None

    def environment(self, known_hosts: Path) -> tuple[dict[str, str], dict[str, str]]:
        """Return the variables and settings that make git use the credentials."""
        options = [
            *("-F", "/dev/null", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"),
            *("-o", f'UserKnownHostsFile="{known_hosts}" ~/.ssh/known_hosts'),
            *("-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=15"),
        ]
        if self.key_file is not None:
            options += ["-o", "IdentitiesOnly=yes", "-i", str(self.key_file)]
        variables = {"GIT_SSH_COMMAND": shlex.join(["ssh", *options]), "GIT_SSH_VARIANT": "ssh"}
        if self.site is None:
            return variables, {}
        variables |= {"REMIT_GIT_USERNAME": self.username, "REMIT_GIT_PASSWORD": self.password}
        return variables, {f"credential.{self.site}.helper": _HELPER}


NOBODY = Credentials()


def program() -> str:
    path = shutil.which("git")
    if path is None:
        raise Unsupported("git is not installed where agents run.", "Install git there.")
    return path


def environment(known_hosts: Path, credentials: Credentials = NOBODY) -> dict[str, str]:
    more, settings = credentials.environment(known_hosts)
    settings = {**_CONFIG, **settings}
    env = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "/bin/false",
        "SSH_ASKPASS": "/bin/false",
        "GIT_ALLOW_PROTOCOL": "https:ssh:file",
        "GIT_PROTOCOL_FROM_USER": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_CONFIG_COUNT": str(len(settings)),
        **{name: os.environ[name] for name in _LENT if os.environ.get(name)},
        **more,
    }
    if credentials.key_file is None and os.environ.get("SSH_AUTH_SOCK"):
        env["SSH_AUTH_SOCK"] = os.environ["SSH_AUTH_SOCK"]
    for number, (key, value) in enumerate(settings.items()):
        env[f"GIT_CONFIG_KEY_{number}"] = key
        env[f"GIT_CONFIG_VALUE_{number}"] = value
    return env


class How(TypedDict, total=False):
    """The keyword parameters of `run_command`."""

    env: Required[Mapping[str, str]]
    cwd: Required[Path]
    seconds: Required[float]
    held: Sequence[int]
    stdin: bytes
    take: Callable[[bytes], None] | None


async def run(
    arguments: Sequence[str], *, most_memory: int | None = None, **how: Unpack[How]
) -> bytes:
    """Run git and return its output, or pass each piece to `take`, which may raise to end it.

    `held` are descriptors of locks, which git inherits: a lock lasts until git has ended, even if
    this process is killed.
    """
    command = tie_to_parent(_limited([program(), *arguments], most_memory))
    return await run_command(command, **how)


async def run_command(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    seconds: float,
    held: Sequence[int] = (),
    stdin: bytes = b"",
    take: Callable[[bytes], None] | None = None,
) -> bytes:
    """Run a command that wraps git, as `run` does."""
    starting = asyncio.ensure_future(start_child(command, env, cwd, stdin=stdin, held=held))
    try:
        process = await asyncio.shield(starting)
    except asyncio.CancelledError:
        # If it is cancelled during the start, its session has to be killed explicitly.
        kill_session(await starting)
        raise
    assert process.stdout is not None
    assert process.stderr is not None
    complaints = asyncio.create_task(_read_some(process.stderr))
    printed = bytearray()
    try:
        async with asyncio.timeout(seconds):
            while piece := await process.stdout.read(_PIECE):
                if take is not None:
                    take(piece)
                    continue
                printed += piece
                if len(printed) > _MOST_PRINTED:  # a truncated output could be misread
                    raise GitFailed(f"it says more than {_MOST_PRINTED >> 20} MiB")
            code = await process.wait()
            complaint = await complaints
    except TimeoutError:
        raise GitFailed(f"it took longer than {seconds:.0f} seconds") from None
    finally:
        complaints.cancel()
        await asyncio.gather(complaints, return_exceptions=True)
        await end_child(process)
    if code:
        raise _failure(code, complaint, env)
    return bytes(printed)


def _failure(code: int, complaint: bytes, env: Mapping[str, str]) -> RemitError:
    # A remote may echo the credentials, also as encoded in a header.
    known = Known(env.get(name, "") for name in ("REMIT_GIT_PASSWORD", "REMIT_GIT_USERNAME"))
    text = known.out_of(complaint.decode(errors="replace"))
    if "No space left on device" in text:
        return StorageFull("There is no room for the repository.")
    if code == -signal.SIGXFSZ or "File too large" in text:
        return GitFailed(f"the repository is larger than {LARGEST_PACK >> 30} GiB")
    lines = [line.strip() for line in text.replace("\r", "\n").split("\n")]
    kept = [line for line in lines if line and not line.startswith(("hint:", "Cloning into"))]
    fatal = [line for line in kept if line.startswith(("fatal:", "error:"))] or kept[-1:]
    reason = "; ".join(line.removeprefix("fatal: ").removeprefix("error: ") for line in fatal[:2])
    printable = "".join(char if char.isprintable() else " " for char in reason)
    return GitFailed(printable[:300] or f"it ended with {code}")


async def _read_some(reader: asyncio.StreamReader) -> bytes:
    output = b""
    while piece := await reader.read(_PIECE):
        output = (output + piece)[-_MOST_SAID:]
    return output


def _limited(argv: Sequence[str], most_memory: int | None = None) -> list[str]:
    prlimit = shutil.which("prlimit")
    if prlimit is None:
        return list(argv)
    memory = [] if most_memory is None else [f"--as={most_memory}"]
    return [prlimit, f"--fsize={LARGEST_PACK}", "--core=0", *memory, "--", *argv]
