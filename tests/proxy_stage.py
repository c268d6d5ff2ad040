"""A real nginx or Caddy in front of an instance, with TLS, on loopback.

The servers with TLS and the name kept are the snippets of docs/operating.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from remit.entrypoints.http.server import strangers
from remit.entrypoints.serve import running
from remit.settings import load
from tests.certificate import write_certificate
from tests.http_client import SECONDS, USUAL, Client
from tests.kills import free_port
from tests.templates import lay_tables

OPERATING = Path(__file__).parent.parent / "docs" / "operating.md"
PROGRAMS = {"nginx": "/usr/sbin/nginx", "caddy": "/usr/bin/caddy"}
FORM = "application/x-www-form-urlencoded"
_NGINX = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
{user}
events {{ }}
http {{
access_log off;
client_body_temp_path {folder}/body;
proxy_temp_path {folder}/proxy;
fastcgi_temp_path {folder}/fastcgi;
uwsgi_temp_path {folder}/uwsgi;
scgi_temp_path {folder}/scgi;
{server}
}}
"""
_CADDY = """
{{
    admin off
    auto_https off
}}
{server}
"""
#: Proxies as somebody has them who read no page of ours.
_BARE = {
    "nginx": "server {{ listen 127.0.0.1:{port}{ssl}; {certificate} client_max_body_size 40m; "
    "location / {{ proxy_pass {behind}; }} }}",
    "caddy": "{address} {{\n{certificate}\nreverse_proxy {behind} {{\n"
    "header_up Host {{upstream_hostport}}\n}}\n}}",
}


class Way(NamedTuple):
    """One way to put a proxy in front of an instance, and what the instance is told of it."""

    name: str
    tls: bool
    #: Whether the proxy is the one of the docs, which keeps the name and says how it was called.
    documented: bool
    #: None if nothing is said about proxies.
    proxies: str | None


WAYS = (
    Way("kept", tls=True, documented=True, proxies="127.0.0.1"),
    Way("replaced", tls=True, documented=False, proxies="127.0.0.1"),
    Way("plain", tls=False, documented=True, proxies="127.0.0.1"),
    Way("unbelieved", tls=True, documented=True, proxies=None),
)


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes


@dataclass
class Front:
    """An instance behind a proxy."""

    program: str
    way: Way
    #: Where the proxy is called, and the instance behind it.
    url: str
    behind: str
    home: Path
    certificate: Path
    board: Client

    def connection(self, source: str = "127.0.0.1") -> http.client.HTTPConnection:
        host, _, port = self.url.partition("://")[2].partition(":")
        place: dict[str, Any] = {"timeout": SECONDS, "source_address": (source, 0)}
        if not self.way.tls:
            return http.client.HTTPConnection(host, int(port), **place)
        trust = ssl.create_default_context(cafile=str(self.certificate))
        return http.client.HTTPSConnection(host, int(port), context=trust, **place)

    def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        source: str = "127.0.0.1",
    ) -> Answer:
        """Send a request through the proxy."""
        with contextlib.closing(self.connection(source)) as connection:
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())

    def as_board(self, **headers: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.board.token}", **headers}

    def form(self, **more: str) -> dict[str, str]:
        """Headers of a form on a page of this instance, as a browser sends them."""
        fetched = {"Sec-Fetch-Site": "same-origin"} if self.way.tls else {}
        return {"Content-Type": FORM, "Origin": self.url, **fetched, **more}


@contextlib.contextmanager
def standing(program: str, way: Way, folder: Path) -> Iterator[Front]:
    """An instance with a proxy in front, as `way` says. It holds wrong tokens back."""
    port = free_port()
    url = f"{'https' if way.tls else 'http'}://localhost:{port}"
    proxies = {} if way.proxies is None else {"REMIT_PROXIES": way.proxies}
    home = folder / "home"
    with held_back(), instance(home, {"REMIT_URL": url, **proxies}) as board:
        write_certificate(folder)
        server = (_documented if way.documented else _bare)(program, way, port, board.url, folder)
        with proxy(program, server, port, folder):
            yield Front(program, way, url, board.url, home, folder / "cert.pem", board)


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Servers that are started hold wrong tokens back as they do outside of tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strangers, "SOURCE", USUAL[0])
        patch.setattr(strangers, "TARGET", USUAL[1])
        yield


@contextlib.contextmanager
def instance(home: Path, environment: Mapping[str, str]) -> Iterator[Client]:
    """A real server in a thread, with MCP; yields a client with the board's token."""
    settings = load({"REMIT_HOME": str(home), **environment})
    home.mkdir(parents=True, exist_ok=True)
    lay_tables(settings.database_url)
    ready = threading.Event()
    urls: list[str] = []
    failed: list[BaseException] = []
    ended: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def main() -> None:
        async with running(settings) as here:
            stop = asyncio.Event()
            ended.append((asyncio.get_running_loop(), stop))
            urls.append(here.url)
            ready.set()
            await stop.wait()

    def work() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:
            failed.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=work)
    thread.start()
    assert ready.wait(SECONDS)
    if failed:
        raise failed[0]
    try:
        with contextlib.closing(
            Client(urls[0], settings.board_token_file.read_text().strip())
        ) as board:
            yield board
    finally:
        loop, stop = ended[0]
        loop.call_soon_threadsafe(stop.set)
        thread.join(SECONDS)
    assert not failed, failed


@contextlib.contextmanager
def bare_proxy(program: str, behind: str, folder: Path, *, limit: str = "40m") -> Iterator[str]:
    """A proxy without TLS, as it is by default, in front of an address; yields its own."""
    port = free_port()
    way = Way("bare", tls=False, documented=False, proxies=None)
    server = _bare(program, way, port, behind, folder).replace("40m", limit)
    with proxy(program, server, port, folder):
        yield f"http://localhost:{port}"


@contextlib.contextmanager
def proxy(program: str, server: str, port: int, folder: Path) -> Iterator[None]:
    found = shutil.which(program) or PROGRAMS[program]
    if not Path(found).exists():
        pytest.skip(f"{program} is not installed; `scripts/test-deps` does so")
    file = folder / f"{program}.conf"
    if program == "nginx":
        user = "user root;" if os.geteuid() == 0 else ""
        file.write_text(_NGINX.format(folder=folder, user=user, server=server))
        command = [found, "-e", str(folder / "error.log"), "-p", str(folder), "-c", str(file)]
    else:
        file.write_text(_CADDY.format(server=server))
        command = [found, "run", "--adapter", "caddyfile", "--config", str(file)]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    with (folder / f"{program}.out").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
        try:
            _await_listening(process, port, folder / f"{program}.out")
            yield
        finally:
            process.terminate()
            process.wait(10)


def _await_listening(process: subprocess.Popen[bytes], port: int, output: Path) -> None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        if process.poll() is not None:
            break
        time.sleep(0.02)
    raise RuntimeError(f"the proxy does not listen: {output.read_text()}")


def snippet(program: str) -> str:
    """The configuration that the docs show."""
    block = re.search(rf"```{program}\n(.*?)```", OPERATING.read_text(), re.DOTALL)
    assert block is not None
    return block[1]


def _documented(program: str, way: Way, port: int, behind: str, folder: Path) -> str:
    """The snippet of the docs, with the names and places of this machine."""
    place = behind.partition("://")[2]
    text = snippet(program).replace("127.0.0.1:8420", place)
    if program == "caddy":
        scheme = "https" if way.tls else "http"
        tls = f"{{\n    {_certificate(program, folder)}" if way.tls else "{"
        return text.replace("remit.example.org {", f"{scheme}://localhost:{port} {tls}")
    text = text.replace("remit.example.org;", "localhost;")
    if way.tls:
        text = text.replace("listen 443 ", f"listen 127.0.0.1:{port} ")
        return text.replace("/etc/ssl/remit.example.org.pem", f"{folder}/cert.pem").replace(
            "/etc/ssl/remit.example.org.key", f"{folder}/key.pem"
        )
    text = re.sub(r"listen 443 [^;]*;", f"listen 127.0.0.1:{port};", text)
    return re.sub(r" *ssl_certificate[^;]*;\n", "", text)


def _bare(program: str, way: Way, port: int, behind: str, folder: Path) -> str:
    return _BARE[program].format(
        port=port,
        behind=behind,
        ssl=" ssl" if way.tls else "",
        address=f"{'https' if way.tls else 'http'}://localhost:{port}",
        certificate=_certificate(program, folder) if way.tls else "",
    )


def _certificate(program: str, folder: Path) -> str:
    if program == "caddy":
        return f"tls {folder}/cert.pem {folder}/key.pem"
    return f"ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;"
