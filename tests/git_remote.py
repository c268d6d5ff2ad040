"""Real repositories to clone from, one of them behind https with a password."""

from __future__ import annotations

import base64
import os
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

ENV = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    **{f"GIT_{who}_{what}": "x@y" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}

PASSWORD = "s3cret-pass"


def git(at: Path, *arguments: str, stdin: str | None = None) -> str:
    done = subprocess.run(
        ["git", "-C", str(at), *arguments],
        env=ENV,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, f"git {' '.join(arguments)}: {done.stderr}"
    return done.stdout.strip()


class Remote:
    """A repository that somebody else works on."""

    def __init__(self, path: Path, branch: str = "main") -> None:
        self.path = path
        path.mkdir(parents=True)
        git(path, "init", "--quiet", f"--initial-branch={branch}", ".")
        self.commit({"README.md": "first\n"})

    @property
    def url(self) -> str:
        return str(self.path)

    def commit(self, files: dict[str, str]) -> str:
        for name, content in files.items():
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            (self.path / name).write_text(content)
        git(self.path, "add", "--all", "--force")
        git(self.path, "commit", "--quiet", "--allow-empty", "--message", "more")
        return self.head()

    def head(self) -> str:
        return git(self.path, "rev-parse", "HEAD")


def counted(folder: Path) -> tuple[str, Path]:
    """A PATH on which git is the real one, and writes down what it was asked to do."""
    log = folder / "git.log"
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout
    folder.mkdir(exist_ok=True)
    script = folder / "git"
    script.write_text(f'#!/bin/sh\necho "$*" >>{log}\nexec {real.strip()} "$@"\n')
    script.chmod(0o755)
    log.touch()
    return f"{folder}:{os.environ['PATH']}", log


def asked(log: Path, verb: str) -> int:
    return sum(line.split()[:1] == [verb] for line in log.read_text().splitlines())


@dataclass
class Site:
    """A server that hands a repository to whoever has the password."""

    url: str
    certificate: Path
    requests: list[str] = field(default_factory=list)
    #: An address to send everybody to instead.
    elsewhere: str | None = None
    #: Answers with what it was told: the header, what is in it, and both as an address has them.
    repeats: bool = False


def trusting(certificate: Path) -> dict[str, str]:
    """Variables with which git trusts a server of a test and nobody else. To read all authorities
    of the machine takes a tenth of a second of processor time, for each program of git."""
    nobody = certificate.parent / "authorities"
    nobody.mkdir(exist_ok=True)
    return {"GIT_SSL_CAINFO": str(certificate), "GIT_SSL_CAPATH": str(nobody)}


def trust(monkeypatch: pytest.MonkeyPatch, certificate: Path) -> None:
    for name, value in trusting(certificate).items():
        monkeypatch.setenv(name, value)


def _lines(text: str) -> bytes:
    """As git's protocol has them."""
    return f"{len(text) + 4:04x}{text}".encode()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever asked may have been killed meanwhile; everything else is said."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


@contextmanager
def https(
    root: Path,
    folder: Path,
    user: str = "bot",
    password: str = PASSWORD,
    api: Any = None,
    watch: Callable[[str, str], None] = lambda *_: None,
) -> Iterator[Site]:
    """Serve the repositories below a folder; `api` answers what is not git's. `watch` is called
    before each request is done, and after it before it is answered."""
    certificate, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"),
            *("-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        capture_output=True,
        check=True,
    )
    expected = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"

        def log_message(self, *_: object) -> None:
            """Quietly."""

        def do_GET(self) -> None:
            self._serve()

        def do_POST(self) -> None:
            self._serve()

        def do_PUT(self) -> None:
            self._serve()

        def do_PATCH(self) -> None:
            self._serve()

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, headers, content = api(self.command, self.path, self.headers, body)
            watch("after", f"{self.command} {self.path}")
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _serve(self) -> None:
            site.requests.append(f"{self.command} {self.path}")
            watch("before", site.requests[-1])
            if api is not None and self.path.startswith(("/api/", "/logs/")):
                self._answer()
                return
            if site.elsewhere is not None:
                self.send_response(302)
                self.send_header("Location", site.elsewhere + self.path)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if self.headers.get("Authorization") != expected:
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="git"')
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if site.repeats:
                told = f"ERR {expected} {user}:{password} {quote(password, safe='')}"
                service = self.path.rpartition("=")[2]
                content = _lines(f"# service={service}\n") + b"0000" + _lines(told)
                self.send_response(200)
                self.send_header("Content-Type", f"application/x-{service}-advertisement")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
                return
            path, _, query = self.path.partition("?")
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            done = subprocess.run(
                ["git", "http-backend"],
                env={
                    **ENV,
                    "GIT_PROJECT_ROOT": str(root),
                    "GIT_HTTP_EXPORT_ALL": "1",
                    "PATH_INFO": path,
                    "QUERY_STRING": query,
                    "REQUEST_METHOD": self.command,
                    "CONTENT_TYPE": self.headers.get("Content-Type") or "",
                    "CONTENT_LENGTH": str(len(body)),
                    "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding") or "",
                    "GIT_PROTOCOL": self.headers.get("Git-Protocol") or "",
                    "REMOTE_USER": user,
                },
                input=body,
                capture_output=True,
                check=False,
            )
            watch("after", f"{self.command} {self.path}")
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line)
            self.send_response(int(headers.pop("Status", "200 OK").split()[0]))
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    server = _Server(("localhost", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    site = Site(f"https://localhost:{server.server_address[1]}", certificate)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
