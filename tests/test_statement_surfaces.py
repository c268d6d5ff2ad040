"""Each surface that can decide shows the whole statement: no act of approval stands without it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import pytest

from remit.entrypoints.cli.drawing import approval_view, cells, output
from remit.entrypoints.http.server.asgi import build_asgi
from remit.entrypoints.http.wire.caller import COOKIE
from remit.errors import Conflict, NotFound
from remit.model.organisation.statement import as_text
from remit.services.governance import approvals
from remit.services.people import sessions, users
from tests import chat_stage
from tests.company import Answer, Company
from tests.governance import approve, reject
from tests.statement_stage import (
    REQUESTS,
    asks_before_everything,
    last_line,
    marked,
    named,
    rewritten,
    under,
)

_VOID = {"area", "br", "hr", "img", "input", "link", "meta", "source", "use", "wbr", "path"}
_NEVER_SHOWN = {"script", "style", "template", "dialog", "title", "svg"}


@dataclass
class Browser:
    """Requests of a person who is signed in, without a network."""

    company: Company
    cookie: str
    instance: Callable[..., Awaitable[None]]

    def get(self, path: str, *, quiet: bool = False) -> str:
        return self.company.wait(self._get(path, b"quiet=1" if quiet else b"")).decode()

    def download(self, path: str) -> bytes:
        return self.company.wait(self._get(path, b""))

    async def _get(self, path: str, query: bytes) -> bytes:
        sent: list[dict[str, Any]] = []

        came = False

        async def receive() -> dict[str, Any]:
            nonlocal came
            if came:  # nothing comes any more, and the connection stays
                await asyncio.Event().wait()
            came = True
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        headers = {"host": "127.0.0.1:80", "cookie": f"{COOKIE}={self.cookie}"}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query,
            "root_path": "",
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
        await self.instance(scope, receive, send)
        body = b"".join(message.get("body", b"") for message in sent[1:])
        assert sent[0]["status"] == 200, body
        return body


@pytest.fixture
def browser(small: Company) -> Browser:
    asks_before_everything(small)
    token = small.call(small.board, sessions.open_)["token"]
    return Browser(small, token, build_asgi(small.app))


@dataclass
class Seen(HTMLParser):
    """Text of a page that is seen without opening anything, in the form of a statement."""

    stack: list[tuple[str, bool]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    #: What the page can do: the decisions of its forms.
    acts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._name = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        kind = (known.get("class") or "").split()
        if tag in ("button", "input") and known.get("name") == "decision":
            self.acts.append(str(known.get("value")))
        if tag in _VOID:
            return
        hidden = tag in _NEVER_SHOWN or "hidden" in known or "unseen" in kind
        closed = tag == "details" and "open" not in known
        self.stack.append((tag, hidden or closed or (bool(self.stack) and self.stack[-1][1])))
        if tag == "dt":
            self._name = ""
        elif tag == "dd":
            self.lines.append(f"{self._name}:" if "quoted" in kind else f"{self._name}: ")
        elif tag == "div" and self._in("dd"):
            self.lines.append("│ ")
        elif tag in ("p", "h3", "h4", "div", "li"):
            self.lines.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            while self.stack and self.stack.pop()[0] != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self.stack and self.stack[-1][1]:
            return
        if self._in("dt"):
            self._name += data
        elif self.lines:
            self.lines[-1] += data

    def _in(self, tag: str) -> bool:
        return any(name == tag for name, _ in self.stack)


def seen_on(page: str) -> tuple[str, list[str]]:
    parser = Seen()
    parser.feed(page)
    return "\n".join(parser.lines), parser.acts


@dataclass
class Terminal:
    """What the drawing of an approval asks of a session."""

    client: Terminal = field(init=False)
    names: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.client = self

    def get(self, _: str) -> Answer:
        raise NotFound("There is nothing here.")

    def known(self, id_: str) -> str:
        return id_


def on_page(browser: Browser, approval: str) -> tuple[str, bool]:
    text, acts = seen_on(browser.get(f"/approvals/{approval}"))
    return text, "approve" in acts


def on_first_page(browser: Browser, _: str) -> tuple[str, bool]:
    text, acts = seen_on(browser.get("/"))
    return text, "approve" in acts


def over_http(browser: Browser, approval: str) -> tuple[str, bool]:
    statement = json.loads(browser.get(f"/api/approvals/{approval}"))["statement"]
    return as_text(statement), statement["whole"]


def in_a_terminal(browser: Browser, approval: str) -> tuple[str, bool]:
    view = json.loads(browser.get(f"/api/approvals/{approval}"))
    lines: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "say", lambda *said: lines.extend(map(str, said)))
        patch.setattr(cells, "fields", lambda *_: None)
        approval_view.draw(Terminal(), view)  # type: ignore[arg-type]
    return "\n".join(lines), any("remit approval approve" in line for line in lines)


def on_confirmation(browser: Browser, approval: str) -> tuple[str, bool]:
    """The page on which a person confirms an approval that came by e-mail."""
    company = browser.company
    company.sql("DELETE FROM confirmations")
    user = company.call(company.board, users.me)["id"]
    about = {"company": company.id, "user": user, "approval": approval}
    waits = chat_stage.approval_to_confirm(company.app, **about)
    page = browser.get(f"/confirmations/{waits}")
    assert f'action="/confirmations/{waits}/dismiss"' in page
    confirming = f'action="/confirmations/{waits}/confirm"'
    on_its_own = browser.get(f"/approvals/{approval}")
    assert (confirming in on_its_own) == (confirming in page)
    return seen_on(page)[0], confirming in page


SURFACES = {
    "page": on_page,
    "confirmation": on_confirmation,
    "first page": on_first_page,
    "http": over_http,
    "terminal": in_a_terminal,
}


@pytest.mark.tampers
@pytest.mark.requirement("FX-61", "PC-70")
@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("kind", REQUESTS)
def test_no_approving_act_stands_without_each_leaf(
    browser: Browser, kind: str, surface: str
) -> None:
    approval = REQUESTS[kind](browser.company)
    decided = 0
    for path, marker in _some(browser.company, approval):
        text, can_approve = SURFACES[surface](browser, approval["id"])
        if can_approve:
            assert last_line(marker) in under(text, named(path)), (path, marker, text)
            decided += 1
    assert decided > 1


def _some(company: Company, approval: Answer) -> Iterator[tuple[Any, Any]]:
    """The first marker of each leaf; the statement itself is tried with all of them."""
    done = set()
    for path, marker in marked(company, approval):
        if path not in done:
            done.add(path)
            yield path, marker


@pytest.mark.tampers
@pytest.mark.requirement("FX-61")
def test_the_first_page_has_no_approve_beside_a_part(browser: Browser) -> None:
    approval = REQUESTS["hire"](browser.company)
    text, can_approve = on_first_page(browser, approval["id"])
    assert can_approve
    assert "│ Well." in text
    stored = browser.company.sql("SELECT payload FROM approvals WHERE id = ?", approval["id"])
    payload = json.loads(stored[0][0])
    payload["requestedConfigurationSnapshot"]["prompt"] = "Line\n" * 200 + "The last line"
    rewritten(browser.company, approval, payload)
    text, can_approve = on_first_page(browser, approval["id"])
    assert not can_approve
    assert "The last line" not in text
    assert "full_access" in text  # the dangers stand there all the same
    text, can_approve = on_page(browser, approval["id"])
    assert can_approve
    assert "│ The last line" in text


@pytest.mark.requirement("FX-61", "BX-10")
def test_a_request_whose_content_is_lost_can_only_be_rejected(browser: Browser) -> None:
    company = browser.company
    approval = REQUESTS["write"](company)
    file_id, sha256 = company.sql(
        "SELECT blob_file_id, blob_sha256 FROM approvals WHERE id = ?", approval["id"]
    )[0]
    content = browser.download(f"/api/approvals/{approval['id']}/content")
    assert content == b"One\nTwo and a half\nThree\n"
    company.app.library.blobs.discard(file_id, sha256)
    for surface in SURFACES.values():
        text, can_approve = surface(browser, approval["id"])
        assert not can_approve, text
    assert "Its content cannot be read here" in on_page(browser, approval["id"])[0]
    with pytest.raises(Conflict) as refused:
        approve(company, approval)
    assert refused.value.reason == "not_whole"
    assert reject(company, approval)["status"] == "rejected"


@pytest.mark.requirement("FX-61")
def test_a_content_is_for_its_requester_and_its_deciders(browser: Browser) -> None:
    company = browser.company
    approval = REQUESTS["write"](company)["id"]
    with pytest.raises(NotFound):
        company.call(company.agent("other").caller, approvals.content, approval=approval)
    observer = company.user("observer", "observer")
    with pytest.raises(NotFound):
        company.call(observer, approvals.content, approval=approval)
    stated = company.call(observer, approvals.show, approval=approval)["statement"]
    assert not stated["may_decide"]


@pytest.mark.requirement("FX-61")
@pytest.mark.parametrize("address", ["/approvals/{}", "/", "/api/approvals/{}"])
def test_a_look_is_remembered_and_a_refresh_is_none(browser: Browser, address: str) -> None:
    company = browser.company
    approval = REQUESTS["request"](company)["id"]
    path = address.format(approval)

    def is_seen() -> bool:
        stated = company.call(company.board, approvals.show, approval=approval)["statement"]
        return bool(stated["seen"])

    if not address.startswith("/api"):
        browser.get(path, quiet=True)
        assert not is_seen()
    browser.get(path)
    assert is_seen()
    other = company.call(company.user("other"), approvals.show, approval=approval)["statement"]
    assert not other["seen"]


def test_text_in_a_closed_part_of_a_page_is_not_seen() -> None:
    page = "<p>a<details><summary>b</summary><p>c</p></details><dl><dt>d</dt><dd>e</dd></dl>"
    text, _ = seen_on(page)
    assert "c" not in text
    assert "d: e" in text
