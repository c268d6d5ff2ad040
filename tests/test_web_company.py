"""A company at a glance: its numbers, who is at work, and telling it what is wanted."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Route, expect

from remit.services import inbox
from remit.services.identity import Caller
from tests.browsing import PHONE, Office, Visitor, check_accessible, check_fits
from tests.http_client import Client


def with_part(office: Office, name: str, scope: str) -> Client:
    """A board member over one agent's part of the company."""
    asked = {"name": name, "role": "board", "scope": scope}
    made = office.board.must("POST", office.path("users"), asked)
    key = office.board.must("POST", office.path(f"users/{made['id']}/tokens"))
    return office.running.client(key["token"])


def refusals(office: Office) -> list[dict[str, Any]]:
    found = office.board.must("GET", office.path("events?limit=200"))
    return [one for one in found if not one["allowed"]]


def test_a_new_company_says_what_to_do_and_the_first_letter_reaches_the_root_agent(
    office: Office, visitor: Visitor
) -> None:
    page = visitor.goto(f"/companies/{office.company}")
    expect(page.get_by_text("Nothing was done here yet.")).to_be_visible()
    expect(page.get_by_text("Nobody is running.")).to_be_visible()
    text = "Find out what the <b>weather</b> does\n\nand tell me."
    page.get_by_label("What do you want?").fill(text)
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("status").filter(has_text="Sent to ceo.")).to_be_visible()
    expect(page.get_by_label("What do you want?")).to_have_value("")
    thread = page.get_by_role("link", name="Follow the thread")
    arrived = office.board.must("GET", f"/api/agents/{office.root['id']}/inbox")
    assert [one["subject"] for one in arrived] == ["Find out what the <b>weather</b> does"]
    assert arrived[0]["body"].strip() == text
    expect(thread).to_have_attribute("href", f"/inbox/{arrived[0]['threadId']}")


def test_what_a_form_said_is_not_lost_to_a_look_that_began_before(
    office: Office, visitor: Visitor
) -> None:
    page = visitor.live(visitor.goto(f"/companies/{office.company}"))
    held: list[Route] = []
    here = re.compile(rf"/companies/{office.company}$")
    page.route(
        here,
        lambda route: route.continue_() if route.request.method == "POST" else held.append(route),
    )
    with page.expect_request(lambda one: one.method == "GET" and bool(here.search(one.url))):
        office.board.must("POST", office.path("users"), {"name": "passer-by", "role": "observer"})
    page.get_by_label("What do you want?").fill("Look again")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("link", name="Follow the thread")).to_be_visible()
    page.evaluate(
        """() => new MutationObserver(() => {
          window.lost ||= !document.body.innerText.includes("Follow the thread");
        }).observe(document.body, { childList: true, subtree: true })"""
    )
    assert len(held) == 1
    with page.expect_response(
        lambda one: one.url.endswith("sent=" + page.url.partition("sent=")[2])
    ):
        held[0].continue_()  # then it looks at where it is now
    assert page.evaluate("window.lost") is None
    expect(page.get_by_role("link", name="Follow the thread")).to_be_visible()


def test_a_letter_that_is_not_sent_says_why_and_keeps_what_was_typed(
    office: Office, visitor: Visitor
) -> None:
    page = visitor.goto(f"/companies/{office.company}")
    field = page.get_by_label("What do you want?")
    field.evaluate("one => one.removeAttribute('required')")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("alert")).to_contain_text("There is nothing to send yet.")
    field.fill("x" * 1_100_000)
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("alert")).to_contain_text("The form is larger")
    assert len(field.input_value()) == 1_100_000


@pytest.mark.requirement("AG-93")
def test_who_is_at_work_and_with_what_appears_and_goes_by_itself(
    office: Office, visitor: Visitor
) -> None:
    ada = office.agent("Ada", title="<script>alert(1)</script>")
    subject = "Launch <img src=x onerror=alert(1)> \u00e9"
    office.board.must(
        "POST", office.path("messages"), {"to": "agent:Ada", "subject": subject, "body": "Go."}
    )
    page = visitor.live(visitor.goto(f"/companies/{office.company}"))
    page.evaluate("window.unbroken = true")
    at_work = page.get_by_role("region", name="At work now")
    run = office.begin(ada)
    row = at_work.get_by_role("listitem").filter(has_text="Ada")
    expect(row).to_be_visible()
    expect(page.get_by_role("list", name="in numbers").get_by_role("link").first).to_contain_text(
        "1running now"
    )
    office.do(office.running.app.gate(Caller(run.token), inbox.take))
    office.as_agent(office.root).must("POST", office.path("messages"), _to_board("One"))
    expect(row).to_contain_text(subject)
    office.end(run, "failed")
    expect(at_work.get_by_text("Nobody is running.")).to_be_visible()
    failures = page.get_by_role("region", name="Newest failures")
    expect(failures.get_by_role("link", name="Ada")).to_have_attribute("href", f"/runs/{run.id}")
    expect(failures.get_by_text("failed", exact=True)).to_be_visible()
    happened = page.get_by_role("region", name="What happened", exact=True)
    expect(happened.get_by_text("run of Ada").first).to_be_visible()
    assert page.evaluate("window.unbroken")


def _to_board(subject: str) -> dict[str, str]:
    return {"to": "board", "subject": subject, "body": "x"}


def test_a_person_with_a_part_sees_that_part_and_is_refused_nothing_by_looking(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    lead, other = office.agent("Lead"), office.agent("Other")
    office.agent("Below", lead["id"])
    who = with_part(office, "partner", lead["id"])
    runs = [office.begin(lead), office.begin(other)]
    before = len(refusals(office))
    page = visit(who).goto(f"/companies/{office.company}")
    at_work = page.get_by_role("region", name="At work now")
    expect(at_work.get_by_role("link", name="Lead")).to_be_visible()
    expect(at_work.get_by_role("link", name="Other")).to_have_count(0)
    expect(page.get_by_role("region", name="What happened", exact=True)).to_have_count(0)
    page.get_by_label("What do you want?").fill("Please go on")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("status").filter(has_text="Sent to Lead.")).to_be_visible()
    page.goto("/org")
    expect(page.get_by_role("link", name="Below", exact=True)).to_be_visible()
    page.goto(f"/companies/{office.company}/settings")
    expect(page.get_by_role("region", name="People")).to_have_count(0)
    page.goto("/account")
    expect(page.get_by_text("the part of Lead")).to_be_visible()
    assert len(refusals(office)) == before
    for run in runs:
        office.end(run)


def test_an_observer_sees_the_company_and_has_nothing_to_press(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    who = office.user("watcher", "observer")
    page = visit(who).goto(f"/companies/{office.company}")
    expect(page.get_by_text("You look on; the board decides.")).to_be_visible()
    assert page.locator("main").get_by_role("button").count() == 0
    expect(page.get_by_role("region", name="What happened", exact=True)).to_be_visible()


def test_a_company_of_others_is_not_there(office: Office, visit: Callable[..., Visitor]) -> None:
    theirs = office.board.must("POST", "/api/companies", {"name": "Secret"})
    who = office.user("stranger", "observer")
    visitor = visit(who)
    for path in ("", "/settings", "/people/board"):
        answer = visitor.page.goto(f"/companies/{theirs['id']}{path}")
        assert answer is not None
        assert answer.status == 404
        expect(visitor.page.get_by_role("heading", level=1)).to_have_text("There is nothing here")
        expect(visitor.page.get_by_text("Secret")).to_have_count(0)


def test_the_page_of_a_company_is_accessible_and_fits_by_day_and_by_night(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    run = office.begin(office.agent("Noether", title="W" * 90))
    for viewport, scheme in ((None, "light"), (PHONE, "dark")):
        more = {"viewport": viewport} if viewport else {}
        page = visit(color_scheme=scheme, **more).goto(f"/companies/{office.company}")
        check_accessible(page)
        check_fits(page)
    office.end(run)


def test_the_letter_is_sent_without_scripts(office: Office, visit: Callable[..., Visitor]) -> None:
    page = visit(java_script_enabled=False).goto(f"/companies/{office.company}")
    page.get_by_label("What do you want?").fill("No scripts")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("link", name="Follow the thread")).to_be_visible()
