"""Pages that stay current: many tabs, a connection that breaks, an instance that dies."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browsing import Office, Visitor
from tests.http_client import Answer, Child, Client

TABS = 9


@pytest.mark.requirement("AG-93")
def test_nine_tabs_share_a_connection_and_catch_up_after_the_instance_was_killed(
    chromium: Browser, tmp_path: Path
) -> None:
    with Child(tmp_path) as first:
        board = first.wait_until_ready()
        company = board.must("GET", "/api/companies")[0]["id"]
        context = chromium.new_context(base_url=board.url)
        context.set_default_timeout(20_000)
        page = context.new_page()
        page.goto(board.must("POST", "/api/login-links")["url"])
        page.get_by_role("button", name="Sign in").click()
        tabs = [_opened(page if n == 0 else context.new_page(), company, n) for n in range(TABS)]
        for tab in tabs:
            expect(tab.locator("[data-live-state]")).to_have_text("live", timeout=20_000)
        assert b"remit_open_streams 1\n" in again_asked(board).body
        first.stop(signal.SIGKILL)
        for tab in tabs:
            expect(tab.locator("[data-live-state]")).to_have_text("reconnecting…", timeout=20_000)
    with Child(tmp_path, port=urlsplit(board.url).port or 0) as second:
        again: Client = second.wait_until_ready()
        again.must("POST", f"/api/companies/{company}/agents", _somebody("Phoenix"))
        tree = tabs[0]
        tree.bring_to_front()
        expect(tree.get_by_role("link", name="Phoenix", exact=True)).to_be_visible(timeout=20_000)
        expect(tree.locator("[data-live-state]")).to_have_text("live")
        again.must("POST", f"/api/companies/{company}/agents", _somebody("Later"))
        expect(tree.get_by_role("link", name="Later", exact=True)).to_be_visible(timeout=20_000)
        assert all(tab.evaluate("window.unbroken") for tab in tabs)
        context.close()


def test_whoever_was_signed_out_while_the_instance_was_down_is_told_so(
    chromium: Browser, tmp_path: Path
) -> None:
    with Child(tmp_path) as first:
        board = first.wait_until_ready()
        context = chromium.new_context(base_url=board.url)
        page = context.new_page()
        page.goto(board.must("POST", "/api/login-links")["url"])
        page.get_by_role("button", name="Sign in").click()
        expect(page.locator("[data-live-state]")).to_have_text("live", timeout=20_000)
        first.stop(signal.SIGKILL)
        expect(page.locator("[data-live-state]")).to_have_text("reconnecting…", timeout=20_000)
    context.clear_cookies()
    with Child(tmp_path, port=urlsplit(board.url).port or 0) as second:
        second.wait_until_ready()
        expect(page.locator("[data-live-state]")).to_have_text("signed out", timeout=30_000)
        context.close()


@pytest.mark.requirement("AG-93")
def test_what_happens_between_the_drawing_of_a_page_and_its_stream_is_seen(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    visitor = visit()

    def change_first(route: Route) -> None:
        """The page is here, and its scripts are not: nobody listens yet."""
        office.agent("Meanwhile")
        route.continue_()

    visitor.page.route("**/page.js*", change_first, times=1)
    page = visitor.goto("/org")
    expect(page.get_by_role("link", name="Meanwhile", exact=True)).to_be_visible()
    # A page that is current is not fetched again when it begins to listen.
    looks: list[str] = []
    other = visitor.tab()
    other.on("request", lambda sent: looks.append(sent.url))
    other.goto("/org")
    visitor.live(other)
    office.agent("Afterwards")
    expect(other.get_by_role("link", name="Afterwards", exact=True)).to_be_visible()
    assert len([url for url in looks if url.endswith("/org")]) == 2


def again_asked(client: Client) -> Answer:
    """On a connection of its own; an older one may have ended meanwhile."""
    return client.as_(client.token)("GET", "/metrics")


def _opened(tab: Page, company: str, number: int) -> Page:
    places = ("/org", "/", f"/companies/{company}", "/account")
    tab.goto(places[number % len(places)])
    tab.evaluate("window.unbroken = true")
    return tab


def _somebody(name: str) -> dict[str, str]:
    return {"name": name, "role": "engineer", "adapterType": "scripted"}
