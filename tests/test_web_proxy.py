"""A browser in front of an instance with a TLS proxy, and on the machine behind it."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from tests.proxy_stage import PROGRAMS, WAYS, Front, standing


def sign_in(front: Front, browser: Browser, address: str) -> None:
    """Follow a link there, change something by a form, watch the page hear of it, and sign out."""
    query = urlsplit(front.board.must("POST", "/api/login-links")["url"]).query
    context = browser.new_context(base_url=address, ignore_https_errors=True)
    try:
        page = context.new_page()
        page.goto(f"/login?{query}")
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"{address}/")
        (cookie,) = [one for one in context.cookies() if "session" in str(one["name"])]
        assert (cookie["name"], cookie["secure"]) == ("__Host-remit_session", True)
        page.locator("[data-live-state][data-on]").wait_for()
        page.goto("/instance")
        page.get_by_role("button", name="Back up now").click()
        expect(page.get_by_text("is written and verified")).to_be_visible()
        offered = page.get_by_role("link", name="Download")
        if urlsplit(address).scheme == "https":
            with page.expect_download() as download:
                offered.first.click()
            assert Path(download.value.path()).stat().st_size > 10_000
        else:
            expect(page.get_by_text("none can be downloaded here")).to_be_visible()
            assert offered.count() == 0
    finally:
        context.close()


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_browser_works_in_front_of_the_proxy_and_behind_it(
    program: str, tmp_path: Path, chromium: Browser
) -> None:
    with standing(program, WAYS[0], tmp_path) as front:
        sign_in(front, chromium, front.url)
        sign_in(front, chromium, front.behind)
