"""What a page of somebody else's, or the text of an agent, could do to a person's browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from remit.entrypoints.http.wire.caller import COOKIE
from tests.attack_stage import Estate, Stage, ended_run, estate, staged
from tests.http_client import Answer
from tests.web_attacks import FORM, Pages, address, web_routes

#: Nobody answers there; whatever a page loads from there was put into it.
ELSEWHERE = "http://198.51.100.7"
#: Each would do something if it were taken for more than text.
HOSTILE = (
    "<script>window.hacked=1</script><img src=x onerror=window.hacked=2>"
    f"<svg onload=window.hacked=3><iframe src={ELSEWHERE}/f></iframe>"
    f"![i]({ELSEWHERE}/i.png) [l](javascript:window.hacked=4) [d](data:text/html,<script>1)"
    f"<https:javascript:window.hacked=5> <link rel=stylesheet href={ELSEWHERE}/s.css>"
    "\"' autofocus onfocus=window.hacked=6 x='</textarea></title></option></code></pre>"
    "<style>body{display:none}</style><base href=//evil.example/><meta http-equiv=refresh "
    f"content=0;url={ELSEWHERE}/m> {{{{7919*104729}}}} ${{7919*104729}} "
    "<a href=//evil.example>x</a>"
)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("home")) as found:
        yield found


@pytest.fixture(scope="module")
def pages(stage: Stage) -> Pages:
    return Pages.of(stage.ours.board)


@pytest.fixture(scope="module")
def spare(stage: Stage) -> Estate:
    """A company that forms may change."""
    return estate(stage.site, stage.operator, "Spare", "spare")


# ── cross-site requests ─────────────────────────────────────────────────────────────────────────

#: How another site's page could make a browser send a form, and what the browser says about it.
FOREIGN: dict[str, dict[str, str]] = {
    "nothing said": {},
    "another origin": {"Origin": "https://evil.example"},
    "no origin": {"Origin": "null"},
    "another port": {"Origin": "http://127.0.0.1:1"},
    "ours as a beginning": {"Origin": "{origin}.evil.example"},
    "ours as a name": {"Origin": "https://evil.example/{origin}"},
    "ours as a user": {"Origin": "http://{host}@evil.example"},
    "a neighbour": {"Origin": "{origin}", "Sec-Fetch-Site": "same-site"},
    "cross-site": {"Origin": "{origin}", "Sec-Fetch-Site": "cross-site"},
    "typed in": {"Origin": "{origin}", "Sec-Fetch-Site": "none"},
    "only a referrer": {"Referer": "{origin}/"},
}


def rows(stage: Stage) -> list[tuple[Any, ...]]:
    counted = ("events", "agents", "messages", "outcomes", "grants", "files", "tokens", "users")
    return [stage.site.sql(f"SELECT count(*) FROM {name}")[0] for name in counted]  # noqa: S608


def test_no_form_is_taken_from_another_site(stage: Stage, pages: Pages) -> None:
    posted = [path for method, path in web_routes(stage.site.app) if method == "POST"]
    assert len(posted) >= 40
    origin = stage.site.url
    before = rows(stage)
    for path in posted:
        for name, given in FOREIGN.items():
            headers = {
                key: value.format(origin=origin, host=origin.partition("//")[2])
                for key, value in given.items()
            }
            answer = pages.post(address(path, stage.ours), {"body": "x"}, headers)
            assert (answer.status, answer.code) == (403, "csrf"), (path, name, answer.body)
            assert "Set-Cookie" not in answer.headers
    assert rows(stage) == before


def test_forms_of_our_own_are_taken(stage: Stage, spare: Estate) -> None:
    """The control: from a page of ours the same forms get further, to be refused or not."""
    pages = Pages.of(spare.board)
    posted = [path for method, path in web_routes(stage.site.app) if method == "POST"]
    for path in set(posted) - {"/logout", "/account/end-others"}:
        answer = pages.send(address(path, spare), {"nothing": "x"})
        assert b'"csrf"' not in answer.body
        assert answer.status < 500, (path, answer.body)


def test_a_form_for_a_company_of_others_is_answered_with_its_error_alone(
    stage: Stage, pages: Pages
) -> None:
    """Neither their company nor the visitor's own is on that page."""
    posted = [path for method, path in web_routes(stage.site.app) if method == "POST"]
    before = rows(stage)
    for path in (path for path in posted if "{company_id}" in path):
        company = stage.theirs.company
        answer = pages.send(address(path, stage.ours, company_id=company), {"body": "x"})
        assert answer.status == 404, (path, answer.body)
        assert b"There is no such company." in answer.body, path
        assert b"<h1>Not found</h1>" in answer.body, path
    assert rows(stage)[1:] == before[1:]


def test_looking_changes_nothing(stage: Stage, pages: Pages) -> None:
    """No form works as an address, which another page could make a picture of."""
    posted = [path for method, path in web_routes(stage.site.app) if method == "POST"]
    before = rows(stage)
    for path in posted:
        asked = urlencode({"body": "x", "title": "x", "decision": "approve", "verb": "terminate"})
        answer = pages.get(f"{address(path, stage.ours)}?{asked}")
        assert answer.status in (200, 303, 401, 404, 405, 409, 422), (path, answer.status)
    after = rows(stage)
    assert after[1:] == before[1:]
    for path in stage.operator.must("GET", "/openapi.json")["paths"]:
        answer = pages.client(
            "POST",
            re.sub(r"\{\w+\}", stage.ours.company, path),
            body=b"{}",
            headers={"Cookie": f"{COOKIE}={pages.cookie}", "Content-Type": "text/plain"},
        )
        assert answer.status in (403, 404, 405), (path, answer.status, answer.body)


# ── headers, cookies, redirects ─────────────────────────────────────────────────────────────────


def policy(answer: Answer) -> dict[str, str]:
    parts = (part.strip().partition(" ") for part in answer.headers[CSP].split(";"))
    return {name: value for name, _, value in parts}


CSP = "Content-Security-Policy"


def test_every_page_is_framed_by_nobody_and_runs_only_our_scripts(
    stage: Stage, pages: Pages
) -> None:
    seen = 0
    for method, path in web_routes(stage.site.app):
        if method != "GET" or path == "/live":
            continue
        for answer in (
            pages.get(address(path, stage.ours)),
            pages.client("GET", address(path, stage.ours)),
            pages.get(address(path, stage.theirs)),
        ):
            found = policy(answer)
            assert found["default-src"] == "'none'", path
            assert found["frame-ancestors"] == "'none'", path
            assert found["base-uri"] == "'none'", path
            assert found["form-action"] == "'self'", path
            assert found.get("script-src", "'none'") in ("'self'", "'none'"), path
            assert "unsafe" not in answer.headers[CSP]
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
            assert "Access-Control-Allow-Origin" not in answer.headers
            seen += 1
    assert seen >= 75


#: What is recorded before it is shown: a letter or a file that is read, or tried out and undone.
RECORDED = {
    *("/agents/{agent}/update", "/agents/{agent}/terminate", "/inbox/{message}"),
    *("/files/{file}", "/files/{file}/edit", "/inbox/{message}/take-back"),
}
#: What is fetched from a repository between: who looks, what to fetch, and the page around it.
FETCHED = "/changes/{change}"


def test_a_page_is_one_snapshot(
    stage: Stage, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that a page shows is true at the same moment, and who looks is found out once."""
    database, reads = stage.site.app.gate.database, [0]
    submit_read = database.submit_read

    def counted(work: Any) -> Any:
        reads[0] += 1
        return submit_read(work)

    monkeypatch.setattr(database, "submit_read", counted)
    tabs = [f"/agents/{{agent}}?tab={tab}" for tab in TABS]
    routes = [path for method, path in web_routes(stage.site.app) if method == "GET"]
    elsewhere = ("/live", "/login", "/static/{name}", "/runs/{run}/log", "/{path:path}")
    seen = 0
    for path in [*routes, *tabs, "/outcomes?view=graph"]:
        if path.startswith(elsewhere):
            continue
        reads[0] = 0
        answer = pages.get(address(path, stage.ours))
        most = 2 if path in RECORDED or answer.status >= 400 else 1
        most = 3 if path == FETCHED else most
        assert 1 <= reads[0] <= most, f"{path}: {reads[0]} read transactions, not {most}"
        seen += 1
    assert seen >= 40


def test_no_answer_may_be_read_or_framed_by_another_site(stage: Stage) -> None:
    document = stage.operator.must("GET", "/openapi.json")
    for path, methods in document["paths"].items():
        if "get" not in methods:
            continue
        filled = re.sub(r"\{\w+\}", stage.ours.company, path)
        for answer in (
            stage.ours.board("GET", filled, headers={"Origin": "https://evil.example"}),
            stage.ours.board(
                "OPTIONS",
                filled,
                headers={
                    "Origin": "https://evil.example",
                    "Access-Control-Request-Method": "GET",
                },
            ),
        ):
            assert "frame-ancestors 'none'" in answer.headers[CSP]
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert not [
                name for name in answer.headers if name.lower().startswith("access-control")
            ]


def test_the_session_cookie_is_for_us_alone_and_always_a_new_one(stage: Stage) -> None:
    """A cookie that somebody planted beforehand is not the one that is signed in."""
    planted = "rmt_session_" + "A" * 43
    person, origin = stage.ours.board, stage.site.url
    link = person.must("POST", "/api/login-links")["url"].partition("token=")[2]
    sent = {"Origin": origin, "Cookie": f"{COOKIE}={planted}", **FORM}
    answer = person.as_(None)("POST", "/login", body=urlencode({"token": link}), headers=sent)
    cookie = answer.headers["Set-Cookie"]
    assert answer.headers["Location"] == "/"
    assert planted not in cookie
    flags = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/"} <= flags
    assert not any(flag.startswith("domain") for flag in flags)
    for again in (planted, link):
        got = person.as_(None)("GET", "/account", headers={"Cookie": f"{COOKIE}={again}"})
        assert got.status == 401
    replayed = person.as_(None)("POST", "/login", body=urlencode({"token": link}), headers=sent)
    assert replayed.status == 401
    assert "Set-Cookie" not in replayed.headers


def test_no_address_leads_away(stage: Stage) -> None:
    """Whatever a page is told about where to go next, it goes nowhere else."""
    ours = estate(stage.site, stage.operator, "Away", "away")
    pages = Pages.of(ours.board)
    away = ("https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)")
    names = ("next", "return", "redirect", "url", "to", "back", "continue", "r", "company", "tab")
    routes = web_routes(stage.site.app)
    tried = 0
    for method, path in routes:
        if path in ("/live", "/logout") or "tokens" in path or path.startswith("/static"):
            continue
        for one in away:
            given = dict.fromkeys(names, one)
            here = f"{address(path, ours)}?{urlencode(given)}"
            answer = pages.get(here) if method == "GET" else pages.send(here, given)
            where = answer.headers.get("Location", "/")
            assert re.match(r"/(?![/\\])", where), (path, where)
            assert b'href="javascript:' not in answer.body
            assert b'href="//evil' not in answer.body
            tried += 1
    assert tried > 250


@pytest.mark.parametrize(
    "content", ["<!doctype html><script>1</script>", "<svg onload='1'/>", "%PDF"]
)
def test_downloads_are_never_pages(stage: Stage, pages: Pages, content: str) -> None:
    here = f"/api/companies/{stage.ours.company}/files"
    for declared in ("text/html", "image/svg+xml", "application/pdf", "text/javascript"):
        made = stage.ours.boss(
            "POST", f"{here}?description=x.html", body=content, headers={"Content-Type": declared}
        ).json
        answer = pages.get(f"/api/files/{made['id']}/content")
        assert answer.status == 200
        kind = answer.headers["Content-Type"]
        assert kind in ("text/plain; charset=utf-8", "application/octet-stream")
        assert answer.headers["Content-Disposition"] == "attachment"
        assert answer.headers[CSP].startswith("sandbox;")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


# ── text that wants to be more ──────────────────────────────────────────────────────────────────


def plant(stage: Stage) -> Estate:
    """Hostile text in every field that takes text, by everybody who may write it."""
    ours, board, boss = stage.ours, stage.ours.board, stage.ours.boss
    ids, here = ours.ids, f"/api/companies/{ours.company}"
    line = HOSTILE[:180]
    settled = [
        ("PATCH", here, {"name": f"Ours {HOSTILE[:60]}"}),
        ("PATCH", f"/api/agents/{ids['report']}", {"title": line[:90], "capabilities": HOSTILE}),
        ("PATCH", f"/api/agents/{ids['report']}", {"prompt": HOSTILE}),
        ("PATCH", f"/api/agents/{ids['report']}", {"metadata": {HOSTILE[:50]: HOSTILE}}),
        ("PATCH", f"/api/files/{ids['file']}", {"description": line}),
        ("POST", f"/api/agents/{ids['report']}/keys", {"label": HOSTILE[:90]}),
        ("POST", f"{here}/users/our-board/tokens", {"label": HOSTILE[:90]}),
        ("POST", f"{here}/files", {"description": line, "content": HOSTILE}),
        ("POST", f"/api/approvals/{ids['approval']}/comments", {"body": HOSTILE}),
        ("POST", f"{here}/messages", {"to": ids["report"], "body": HOSTILE, "subject": line}),
    ]
    said = [
        (
            "POST",
            f"{here}/outcomes",
            {"parentId": ids["own"], "title": line, "description": HOSTILE},
        ),
        ("POST", f"{here}/messages", {"to": "board", "body": HOSTILE, "subject": line}),
        ("POST", f"{here}/questions", {"question": HOSTILE, "options": [line[:90], "no"]}),
        ("POST", f"{here}/schedules", {"body": HOSTILE, "subject": line, "cron": "0 9 * * 1"}),
        ("POST", f"{here}/messages", {"to": "agent:background", "body": HOSTILE}),
        (
            "POST",
            f"{here}/approvals",
            {"type": "request_board_approval", "payload": {"title": line, HOSTILE[:40]: HOSTILE}},
        ),
        (
            "POST",
            f"/api/agents/{ids['report']}/config-proposals",
            {"title": f"x {line[:80]}", "reason": HOSTILE},
        ),
    ]
    for client, work in ((board, settled), (boss, said)):
        for method, path, body in work:
            answer = client(method, path, body)
            assert answer.status < 300, (path, answer.status, answer.body)
    version = board.must("GET", f"/api/outcomes/{ids['own']}")["version"]
    changed = {"version": version, "title": line, "description": HOSTILE}
    board.must("PATCH", f"/api/outcomes/{ids['own']}", changed)
    content = (
        f"# {HOSTILE}\n\n> {HOSTILE}\n\n```js\n{HOSTILE}\n```\n\n| a | b |\n|---|---|\n| {line} |\n"
    )
    read = board("GET", f"/api/files/{ids['file']}/content")
    written = board(
        "PUT",
        f"/api/files/{ids['file']}/content",
        body=content.encode(),
        headers={"If-Match": read.headers["ETag"]},
    )
    assert written.status == 200, written.body
    run = ended_run(stage.site, ids["report"], HOSTILE)
    return replace(ours, ids={**ids, "run": run})


class Watched:
    """A browser that tells whatever happens on a page besides showing it."""

    def __init__(self, browser: Browser, url: str, cookie: str) -> None:
        self.heard: list[str] = []
        self.context: BrowserContext = browser.new_context(base_url=url)
        self.context.add_cookies([{"name": COOKIE, "value": cookie, "url": url}])
        self.page: Page = self.context.new_page()
        self.page.on("dialog", self._dialog)
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.heard.append(f"error: {error}"))
        self.page.on("request", lambda request: self._asked(request.url, url))

    def _dialog(self, dialog: Any) -> None:
        self.heard.append("dialog")
        dialog.dismiss()

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning") and "status of 4" not in message.text:
            self.heard.append(message.text)

    def _asked(self, wanted: str, url: str) -> None:
        if not wanted.startswith((url, "data:image")):
            self.heard.append(f"asked for {wanted}")

    def visit(self, path: str) -> list[str]:
        """What happened while a page was shown, and what stands in it that should not."""
        self.heard.clear()
        self.page.goto(path, wait_until="domcontentloaded")
        found: list[str] = self.page.evaluate(
            """() => {
              const told = [];
              if (window.hacked) told.push("ran " + window.hacked);
              for (const one of document.querySelectorAll("*")) {
                for (const a of one.attributes)
                  if (/^on/i.test(a.name) || /^\\s*(javascript|data):/i.test(a.value) &&
                      ["href", "src", "action", "formaction"].includes(a.name))
                    told.push(one.outerHTML.slice(0, 120));
                if (one.matches("iframe, object, embed, base, meta[http-equiv]"))
                  told.push(one.outerHTML.slice(0, 120));
                const own = String(one.src || "").startsWith(location.origin + "/static/");
                if (one.matches("script") && !own)
                  told.push(one.outerHTML.slice(0, 120));
                if (one instanceof HTMLAnchorElement && one.href &&
                    one.origin !== location.origin && !/noopener|noreferrer|nofollow/.test(one.rel))
                  told.push(one.outerHTML.slice(0, 120));
                if (one.matches("style")) told.push("style");
              }
              return told;
            }"""
        )
        return [*self.heard, *found]


def test_no_text_runs_on_any_page(stage: Stage, pages: Pages, chromium: Browser) -> None:
    ours = plant(stage)
    ids = ours.ids
    board = stage.ours.board
    watched = Watched(chromium, stage.site.url, pages.cookie)
    told: dict[str, list[str]] = {}
    shown = 0
    here = [path for method, path in web_routes(stage.site.app) if method == "GET"]
    visited = [address(path, ours) for path in here if not path.startswith(("/live", "/static"))]
    visited += [f"/approvals/{one['id']}" for one in board.must("GET", listing(stage, "approvals"))]
    visited += [f"/inbox/{one['id']}" for one in board.must("GET", listing(stage, "messages"))]
    visited += [f"/agents/{ids['report']}?tab={tab}" for tab in TABS]
    visited += [f"/files/{ids['file']}?view=source", f"/files/{ids['file']}?version=2&against=1"]
    visited += [
        f"/events?q={urlencode({'': HOSTILE})[1:]}",
        f"/files?q={urlencode({'': 'script'})[1:]}",
    ]
    visited += ["/login?token=" + urlencode({"": HOSTILE})[1:]]
    for path in dict.fromkeys(visited):
        if path.endswith("log.txt"):
            continue
        if found := watched.visit(path):
            told[path] = found
        content = watched.page.content()
        shown += "window.hacked" in content
        assert str(7919 * 104729) not in content
    assert told == {}
    assert shown >= 12, shown  # it was there to be seen, and was shown as what it is
    watched.context.close()


TABS = ("overview", "work", "rights", "configuration", "runs", "mail", "history")


def listing(stage: Stage, what: str) -> str:
    return f"/api/companies/{stage.ours.company}/{what}?limit=30"


def test_a_page_that_is_hurt_is_noticed(stage: Stage, pages: Pages, chromium: Browser) -> None:
    """The control: the same text, put into a page as it is."""
    watched = Watched(chromium, stage.site.url, pages.cookie)
    for policy in ("", "default-src 'none'"):
        headers = {CSP: policy} if policy else {}
        watched.context.route(
            "**/hurt",
            lambda route, _, given=headers: route.fulfill(
                body=f"<!doctype html><title>x</title><p>{HOSTILE.partition('<meta')[0]}</p>",
                content_type="text/html",
                headers=given,
            ),
        )
        assert watched.visit("/hurt")
        watched.context.unroute("**/hurt")
    watched.context.close()
