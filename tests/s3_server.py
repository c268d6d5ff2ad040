"""A server that speaks S3, as a child process on a loopback port of its own."""

import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread
from typing import IO

_RUNNING = re.compile(r"Running on http://127\.0\.0\.1:(\d+)")


@dataclass(frozen=True)
class S3Server:
    endpoint: str

    @property
    def environment(self) -> dict[str, str]:
        """What a client needs to reach it and nothing else."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "test-key",
            "AWS_SECRET_ACCESS_KEY": "test-secret",
            "AWS_REGION": "us-east-1",
            "NO_PROXY": "127.0.0.1",
        }

    def create_bucket(self, name: str) -> None:
        request = urllib.request.Request(f"{self.endpoint}/{name}", method="PUT")  # noqa: S310
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(request, timeout=10) as answer:
            assert answer.status == 200


@contextmanager
def s3_server() -> Iterator[S3Server]:
    # Port 0 lets the system choose; the server says which it got once it listens.
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    environment = {"PATH": os.environ["PATH"], "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment,
        text=True,
    ) as process:
        assert process.stderr is not None
        drain = Thread(target=_drain, args=[process.stderr], daemon=True)
        try:
            port = _port(process.stderr)
            # Its log of requests would fill the pipe.
            drain.start()
            yield S3Server(f"http://127.0.0.1:{port}")
        finally:
            process.terminate()
            process.wait(timeout=10)
            if drain.ident:
                drain.join(timeout=10)


def _port(log: IO[str]) -> str:
    lines = []
    for line in log:
        lines.append(line)
        if match := _RUNNING.search(line):
            return match[1]
    raise AssertionError("the S3 server did not start:\n" + "".join(lines))


def _drain(log: IO[str]) -> None:
    for _ in log:
        pass
