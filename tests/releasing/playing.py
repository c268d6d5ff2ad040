"""What is played with an installed program, as by its users: through its command and its pages."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit
from urllib.request import HTTPCookieProcessor, OpenerDirector, Request, build_opener

from tests import release
from tests.page_stage import PAGES
from tests.releasing.steps import Failed

#: Long, because installers and tests may run beside it.
_PATIENCE_SECONDS = 120
#: How long Ctrl-C may take to end the demonstration.
_ENDING_SECONDS = 2
_MOST_PAGES = 250


@dataclass(frozen=True)
class Program:
    """An installed `remit`, with a home folder of its own and nothing of this environment."""

    command: Path
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def surroundings(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "REMIT_HOME": str(self.home),
            "LANG": "C.UTF-8",
            **self.environment,
        }

    def __call__(self, *words: str) -> str:
        done = subprocess.run(
            [self.command, *words],
            env=self.surroundings(),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
        if done.returncode:
            told = f"remit {' '.join(words)} ended with {done.returncode}"
            raise Failed(f"{told}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "--json"))

    @contextmanager
    def up(self) -> Iterator[None]:
        """Context manager: its instance in the background."""
        self("up", "--detach", "--port", "0", "--no-try")
        try:
            yield
        finally:
            self("down")


def check_version(program: Program, number: str) -> None:
    said = program("--version").strip()
    if said != f"remit {number}":
        raise Failed(f"The wheel is {number}, and what was installed says {said!r}.")


def check_doctor(program: Program) -> None:
    found = program.json("doctor")
    (package,) = [one for one in found if one["check"] == "package"]
    failed = [one for one in found if one["state"] == "fail"]
    if package["state"] != "ok" or failed:
        raise Failed(f"remit doctor found {failed or package}")


def advice_on(program: Program, check: str) -> str:
    """Return the next step that `remit doctor` names for a check; nothing if all is well."""
    (finding,) = [one for one in program.json("doctor") if one["check"] == check]
    return str(finding["next_step"])


# ── the demonstration, and its pages ────────────────────────────────────────────────────────────


def play_demo(program: Program) -> None:
    told = program("demo", "--speed", "fast").splitlines()
    if told[-1] != "Everything came out as it should.":
        raise Failed(f"remit demo ended with {told[-1]!r}")


def serve_demo(program: Program) -> str:
    """Look at every page of the demonstrated company, and end it as its reader would."""
    with tempfile.TemporaryDirectory(prefix="remit-played-") as temporary:
        playing = subprocess.Popen(
            [program.command, "demo", "--serve", "--speed", "fast"],
            env={**program.surroundings(), "TMPDIR": temporary, "PYTHONUNBUFFERED": "1"},
            cwd=program.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert playing.stdout is not None
            first = playing.stdout.readline()
            lines = iter(playing.stdout.readline, "")
            if not any("Stop it with Ctrl-C" in line for line in lines):
                raise Failed("The demonstration ended by itself.")
            link = re.search(r"http://\S+", first)
            if link is None:
                raise Failed(f"The first line is no link: {first!r}")
            visitor = Visitor(link[0])
            seen = visitor.look_at_everything()
            began = time.monotonic()
            playing.send_signal(signal.SIGINT)
            _, complaints = playing.communicate(timeout=_PATIENCE_SECONDS)
            took = time.monotonic() - began
        finally:
            if playing.poll() is None:
                playing.kill()
                playing.communicate()
        left = [path.name for path in Path(temporary).iterdir()]
    if playing.returncode or left:
        told = f"ended with {playing.returncode} and left {left}"
        raise Failed(f"Ctrl-C: the demonstration {told}:\n{complaints}")
    slow = f" (more than the {_ENDING_SECONDS} s that it should)" if took > _ENDING_SECONDS else ""
    return f"{seen} pages answered; Ctrl-C took {took:.1f} s{slow}"


class _Links(HTMLParser):
    """Addresses that a page leads to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if name in ("href", "src") and value]


class Visitor:
    """Somebody who follows every link of an instance, signed in with a link."""

    def __init__(self, link: str) -> None:
        parts = urlsplit(link)
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._opener: OpenerDirector = build_opener(HTTPCookieProcessor(CookieJar()))
        (token,) = parse_qs(parts.query)["token"]
        body = urlencode({"token": token}).encode()
        signing_in = Request(f"{self._origin}/login", body, {"Origin": self._origin})  # noqa: S310
        with self._opener.open(signing_in, timeout=_PATIENCE_SECONDS) as answer:
            self._expect(200, answer.status, "/login")

    def look_at_everything(self) -> int:
        """Open the pages without a name in their address, and all that these lead to."""
        # The demonstration has no repository.
        waiting = [page for page in PAGES if "{" not in page and "?repo=" not in page]
        seen: set[str] = set()
        shapes: dict[str, int] = {}
        while waiting and len(seen) < _MOST_PAGES:
            address = waiting.pop(0)
            shape = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d+", "*", address)
            # Two of a kind are enough: the record of the demonstration is long.
            if address in seen or shapes.get(shape, 0) >= 2:
                continue
            seen.add(address)
            shapes[shape] = shapes.get(shape, 0) + 1
            waiting += self._links_of(address)
        return len(seen)

    def _links_of(self, address: str) -> list[str]:
        try:
            opening = self._opener.open(self._origin + address, timeout=_PATIENCE_SECONDS)
            with opening as answer:
                status, kind = answer.status, answer.headers.get_content_type()
                text = answer.read().decode(errors="replace") if kind == "text/html" else ""
        except HTTPError as error:
            status, text = error.code, ""
            error.close()
        self._expect(404 if address.startswith("/no/") else 200, status, address)
        parser = _Links()
        parser.feed(text)
        joined = [urljoin(self._origin + address, one) for one in parser.found]
        return [
            one.removeprefix(self._origin).partition("#")[0]
            for one in joined
            if one.startswith(f"{self._origin}/") and "/live" not in one
        ]

    @staticmethod
    def _expect(wanted: int, status: int, address: str) -> None:
        if status != wanted:
            raise Failed(f"{address} answered {status} instead of {wanted}.")


# ── a run of every adapter ──────────────────────────────────────────────────────────────────────


def run_agents(program: Program, adapters: Mapping[str, Mapping[str, Any]]) -> str:
    """Have an agent of each adapter do one run, which begins with mail and ends well."""
    with program.up():
        for adapter, settings in adapters.items():
            config = json.dumps(settings)
            program("agent", "create", f"a-{adapter}", "--adapter", adapter, "--config", config)
            program("send", f"a-{adapter}", "Say hello.")
        for adapter in adapters:
            _await_run(program, adapter)
    return ", ".join(adapters)


def _await_run(program: Program, adapter: str) -> None:
    until = time.monotonic() + _PATIENCE_SECONDS
    runs: list[Any] = []
    while time.monotonic() < until:
        runs = program.json("run", "list", "--agent", f"a-{adapter}")
        ended = [one for one in runs if one["status"] not in ("queued", "running")]
        if ended:
            if ended[-1]["status"] != "completed":
                raise Failed(f"The run of {adapter} ended as {ended[-1]}")
            return
        time.sleep(0.5)
    raise Failed(f"No run of {adapter} has ended: {runs}")


# ── an upgrade ──────────────────────────────────────────────────────────────────────────────────


def upgrade(program: Program, first: str, number: str) -> str:
    """Start a filled instance of an earlier version with this one; its record stays whole."""
    known = release.unpack(first, program.folder)
    with program.up():
        companies = program.json("company", "list")
        for company in companies:
            whole = program.json("--company", company["id"], "event", "verify")
            if not whole["ok"]:
                raise Failed(f"The record of {company['name']} is not whole: {whole}")
        started = [
            event
            for company in companies
            for event in program.json("--company", company["id"], "event", "list")
            if event["action"] == "version.start"
        ]
        if [event["details"]["now"] for event in started] != [number]:
            raise Failed(f"The record does not say that {number} was started: {started}")
    return f"from {first} (schema {known.schema}), {len(companies)} companies"
