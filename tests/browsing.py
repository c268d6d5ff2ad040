"""A person at a real browser, looking at a real instance."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    expect,
    sync_playwright,
)

from remit.entrypoints.http.wire.caller import COOKIE
from remit.runtime.runs.lifecycle import LiveRun, begin, finish
from remit.services.execution import run_queue
from remit.services.identity import as_system
from tests import pictures
from tests.http_client import Client, Running, serving

T = TypeVar("T")

#: Milliseconds. What comes, comes much sooner; a machine may be busy with something else.
PATIENCE = 30_000
_WIDE = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 800}
#: The shell has no windows, which nobody would see, and takes half the time.
PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser")
_FEATURES = (
    "CDPScreenshotNewSurface",  # asked for by Playwright, whose list this one replaces
    "NetworkServiceInProcess2",  # else all that is fetched goes through another process
    "RenderDocument:level/crashed-frame",  # else each page has a frame and compositor of its own
)
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-software-rasterizer"),
    # Else each tab starts a process.
    *("--renderer-process-limit=1", "--in-process-gpu"),
    "--enable-features=" + ",".join(_FEATURES),
    # Nothing leaves the machine, and nobody waits for an answer from elsewhere.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)
_AXE = Axe()
#: What the browser says about an answer that a test asked for, such as a refused form.
_EXPECTED = ("Failed to load resource: the server responded with a status of 4",)


@dataclass(frozen=True)
class Launched:
    """A browser, and the event loop that it brings."""

    browser: Browser
    loop: asyncio.AbstractEventLoop

    @contextlib.contextmanager
    def in_use(self) -> Iterator[Browser]:
        """Outside of this nobody sees the loop: other tests have loops of their own."""
        asyncio._set_running_loop(self.loop)
        try:
            yield self.browser
        finally:
            asyncio._set_running_loop(None)


@contextlib.contextmanager
def launched() -> Iterator[Launched]:
    """A browser that waits to be used."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.fail("Chromium is missing; run scripts/test-deps", pytrace=False)
    playwright = sync_playwright().start()
    chromium = Launched(
        playwright.chromium.launch(executable_path=program, args=FLAGS), asyncio.get_running_loop()
    )
    asyncio._set_running_loop(None)
    try:
        yield chromium
    finally:
        with chromium.in_use() as browser:
            browser.close()
            playwright.stop()


@dataclass
class Office:
    """An instance with its first company, and those who work there, called over HTTP."""

    running: Running
    company: str
    root: dict[str, Any]
    tokens: dict[str, str] = field(default_factory=dict)

    @property
    def board(self) -> Client:
        """A new connection: an old one may have ended while the browser was busy."""
        return self.running.client(self.running.board.token)

    def session(self, who: Client) -> str:
        """The cookie of somebody who signs in."""
        link = urlsplit(who.must("POST", "/api/login-links")["url"])
        sent = {"Content-Type": "application/x-www-form-urlencoded", "Origin": self.url}
        answer = self.running.client()("POST", "/login", body=link.query, headers=sent)
        assert answer.status == 303, answer.body
        return SimpleCookie(answer.headers["Set-Cookie"])[COOKIE].value

    @property
    def url(self) -> str:
        return self.running.url

    def path(self, rest: str) -> str:
        return f"/api/companies/{self.company}/{rest}"

    def agent(self, name: str, boss: str | None = None, **more: Any) -> dict[str, Any]:
        """Somebody new, at work at once."""
        body = {"name": name, "role": "engineer", "adapterType": "scripted"}
        body |= {"reportsTo": boss or self.root["id"], **more}
        answer: dict[str, Any] = self.board.must("POST", self.path("agents"), body)
        agent: dict[str, Any] = answer.get("agent", answer)
        return agent

    def as_agent(self, agent: dict[str, Any]) -> Client:
        """Calls as an agent would, with a key of its own."""
        if agent["id"] not in self.tokens:
            key = self.board.must("POST", f"/api/agents/{agent['id']}/keys", {"label": "test"})
            self.tokens[agent["id"]] = key["token"]
        return self.running.client(self.tokens[agent["id"]])

    def hire(self, name: str, by: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """Ask the board for somebody; answers the agent and the approval."""
        body = {"name": name, "role": "engineer", "adapterType": "scripted", **more}
        answer: dict[str, Any] = self.as_agent(by or self.root).must(
            "POST", self.path("agent-hires"), body
        )
        return answer

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """What a worker does, done by hand; in a thread, as the browser has a loop of its own."""
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, work).result()

    def begin(self, agent: dict[str, Any]) -> LiveRun:
        app = self.running.app
        return self.do(begin(app.gate, app.ids, app.settings.workspaces, agent["id"]))

    def end(self, run: LiveRun, status: str = "completed") -> None:
        self.do(finish(self.running.app.gate, run, status))

    def print(self, run: LiveRun, first: int, *texts: str, stream: str = "stdout") -> None:
        """What a run prints, piece by piece."""
        pieces = [
            {"number": first + index, "at": 1, "stream": stream, "text": text}
            for index, text in enumerate(texts)
        ]
        gate = self.running.app.gate
        self.do(gate(as_system(), run_queue.append_log, run=run.id, pieces=pieces))

    def user(self, name: str, role: str = "board", scope: str | None = None) -> Client:
        """Another person, who calls with a token."""
        body: dict[str, Any] = {"name": name, "role": role}
        if scope is not None:
            body["scope"] = scope
        user = self.board.must("POST", self.path("users"), body)
        key = self.board.must("POST", self.path(f"users/{user['id']}/tokens"))
        return self.running.client(key["token"])


@contextlib.contextmanager
def opened(home: Path) -> Iterator[Office]:
    with serving(home) as running:
        company = running.board.must("GET", "/api/companies")[0]["id"]
        agents = running.board.must("GET", f"/api/companies/{company}/agents")
        yield Office(running, company, agents[0])


class Visitor:
    """One person's browser: a context of its own, signed in, with everything that went wrong."""

    def __init__(
        self,
        browser: Browser,
        office: Office,
        who: Client | None = None,
        **options: Any,
    ) -> None:
        self.office = office
        self.problems: list[str] = []
        self.context: BrowserContext = browser.new_context(
            base_url=office.url, viewport=options.pop("viewport", _WIDE), **options
        )
        self.context.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        self.page = self.tab()
        self._sign_in(who or office.board)

    def _sign_in(self, who: Client) -> None:
        """What the browser asks for when somebody signs in, without its drawing the pages."""
        session = self.office.session(who)
        self.context.add_cookies([{"name": COOKIE, "value": session, "url": self.office.url}])

    def is_signed_in(self) -> bool:
        cookies = {entry["name"]: entry["value"] for entry in self.context.cookies()}
        cookie = {"Cookie": f"{COOKIE}={cookies.get(COOKIE, '')}"}
        return self.office.running.client()("GET", "/api/me", headers=cookie).status == 200

    def start_afresh(self) -> None:
        """One tab, with nothing that an earlier test left in the browser."""
        old = self.context.pages
        self.page = self.tab()
        for page in old:
            page.close()
        if old:
            protocol = self.context.new_cdp_session(self.page)
            kept = {"origin": self.office.url, "storageTypes": "local_storage"}
            protocol.send("Storage.clearDataForOrigin", kept)
            protocol.detach()
        self.problems.clear()
        if not self.is_signed_in():
            self._sign_in(self.office.board)

    def tab(self) -> Page:
        page = self.context.new_page()
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        return page

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(_EXPECTED):
            self.problems.append(message.text)

    def goto(self, address: str) -> Page:
        self.page.goto(address)
        return self.page

    def live(self, page: Page | None = None) -> Page:
        """Wait until the page hears of changes."""
        shown = page or self.page
        shown.locator("[data-live-state][data-on]").wait_for()
        return shown

    def close(self) -> None:
        self.context.close()


#: What a person comes for, and how many clicks it may take from the first page on.
TASKS = {
    "give a wish": 1,
    "see what goes on, why not, and what it costs": 0,
    "follow a live log": 2,
    "approve a hire": 1,
    "reject a hire": 2,
    "return a hire": 2,
    "answer a question": 1,
    "see who may read a file, and revoke": 4,
    "move an agent": 3,
    "see what happened yesterday": 2,
    "raise a budget that is used up": 2,
    "set a budget": 4,
    "stop everything": 1,
    "create a second company": 3,
    "add a person": 3,
    "connect a channel": 4,
    "keep a secret": 4,
    "connect an MCP server": 4,
    "add a repository": 4,
    "see what claude lacks": 3,
    "hire an agent with claude": 4,
}
_COUNT_CLICKS = """window.counted ??= addEventListener("click", (event) => {
  if (event.isTrusted) sessionStorage.clicks = Number(sessionStorage.clicks ?? 0) + 1;
}, true) ?? true"""


@contextlib.contextmanager
def doing(page: Page, task: str) -> Iterator[Page]:
    """One of `TASKS`, from the page that is open; what is typed or chosen from a list is no click.
    Links and forms that load another page are counted like all others."""
    page.add_init_script(_COUNT_CLICKS)
    page.evaluate("sessionStorage.clicks = 0")
    page.evaluate(_COUNT_CLICKS)
    yield page
    taken = int(page.evaluate("Number(sessionStorage.clicks ?? 0)"))
    assert taken <= TASKS[task], f"{taken} clicks to {task}"


#: Of a page's looks with other contents than there.
LOOKED_AT_ELSEWHERE = pytest.mark.campaign(
    "tests/test_web_every_page.py looks at these pages each time, with other contents"
)


def check_accessible(page: Page, *rules: str, within: str = "") -> None:
    """No violation that axe can find, of all its rules or of some, on the page or in a part."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_AXE.axe_script)
    options: dict[str, Any] = {
        "resultTypes": ["violations"],  # all that is in order would be ten times as much
        "selectors": False,  # a violation is reported by the HTML of its elements
        "preload": False,  # only rules about sound, films and the screen's orientation need that
    }
    if rules:
        options["runOnly"] = list(rules)
    violations = page.evaluate(
        "([where, how]) => axe.run(where || document, how).then((all) => all.violations)",
        [within, options],
    )
    told = [
        f"{violation['id']}: {violation['help']}: "
        f"{[node['html'][:200] for node in violation['nodes'][:5]]}"
        for violation in violations
    ]
    assert not told, "\n".join(told)


def check_what_opens(page: Page, tried: set[str]) -> None:
    """Dialogs, drawers, menus and folded parts of a page, but for those like one that was tried."""
    unfold = """() => {
      for (const one of document.querySelectorAll("details:not([open])")) {
        one.open = true;
        one.dataset.folded = "";
      }
      return [...document.querySelectorAll("main details")].map((one) => one.id);
    }"""
    shapes = {_without_ids(id_) for id_ in page.evaluate(unfold)}
    if shapes - tried:
        check_accessible(page)
    tried |= shapes
    page.evaluate(
        """for (const one of document.querySelectorAll("[data-folded]")) {
          one.open = false;
          delete one.dataset.folded;
        }"""
    )
    for dialog in page.evaluate("[...document.querySelectorAll('dialog')].map((one) => one.id)"):
        if _without_ids(dialog) in tried:
            continue
        tried.add(_without_ids(dialog))
        page.evaluate("(id) => document.getElementById(id).showModal()", dialog)
        check_accessible(page, within="dialog[open]")  # nothing else can be reached
        check_fits(page)
        page.evaluate("(id) => document.getElementById(id).close()", dialog)


def _without_ids(name: str) -> str:
    return re.sub(r"[0-9a-f-]{8,}|\d+", "*", name)


def check_fits(page: Page) -> None:
    """Nothing makes the page wider than the window."""
    too_wide = page.evaluate(
        """() => document.documentElement.scrollWidth <= innerWidth ? null :
        [...document.querySelectorAll('body *')]
        .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
        .slice(0, 5).map((one) => one.outerHTML.slice(0, 160))"""
    )
    assert too_wide is None, (page.url, too_wide)


def check_drawn(page: Page) -> None:
    """No word is broken, nothing is cut off in silence, and no two things to press overlap."""
    problems = pictures.within(page, "drawn")
    assert not problems, "\n".join(problems)
