"""Starting the instance as a background process."""

import os
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

from remit.entrypoints.cli import process
from remit.entrypoints.cli.client import Client
from remit.errors import Conflict, RemitError, Unavailable
from remit.settings import Settings, prepare_home

START_SECONDS = 60.0
_STEP_SECONDS = 0.05
_CONFLICT = 4
_LAST_LINES = 5


def start(settings: Settings) -> tuple[int, str]:
    """Start the instance in a session of its own; once it answers, return its process and address,
    and raise if it fails."""
    prepare_home(settings)
    # Output of an instance that cannot even begin; afterwards it logs to remit.log.
    log = settings.log_folder / "start.log"
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        child = subprocess.Popen(
            # -P: no file of the current folder is imported as a module.
            [
                *(sys.executable, "-P", "-m", "remit.entrypoints.cli.main"),
                *("up", "--quiet", "--host", settings.host, "--port", str(settings.port)),
                *("--slots", str(settings.slots)),
                *(["--plain-http"] if settings.plain_http else []),
            ],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if child.poll() is not None:
            raise _failed(child.returncode, log)
        holder = process.holder(settings)
        if holder.pid == child.pid and holder.url and _answers(holder.url):
            child.returncode = 0  # it outlives this process, of which Popen would warn
            return child.pid, holder.url
        time.sleep(_STEP_SECONDS)
    child.terminate()
    raise Unavailable(
        f"The instance did not answer within {START_SECONDS:.0f} seconds.",
        f"See {settings.log_folder}.",
    )


def _answers(url: str) -> bool:
    try:
        with closing(Client(url, None)) as client:
            client.get("/health")
    except RemitError:
        return False
    return True


def _failed(code: int, file: Path) -> RemitError:
    """Make an error of the last output of an instance that ended."""
    lines = file.read_text(errors="replace").splitlines()
    messages = [line.removeprefix("error: ").strip() for line in lines if line.strip()]
    step = f"See {file.parent}."
    if messages and messages[-1].startswith("next: "):
        step = messages.pop().removeprefix("next: ")
    sentence = " ".join(messages[-_LAST_LINES:]) or f"It ended with status {code}."
    return (Conflict if code == _CONFLICT else Unavailable)(sentence, step)
