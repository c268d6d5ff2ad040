"""A company at a glance: its numbers, who is at work, and telling it what is wanted."""

import re
import secrets
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Route, expect

from remit.services.identity import Caller
from remit.services.messaging import inbox
from tests.browsing import LOOKED_AT_ELSEWHERE, PHONE, Office, Visitor, check_accessible, check_fits
from tests.company import run_sql
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
    expect(page.get_by_role("group", name="State of the company")).to_contain_text("1 idle")
    expect(
        page.get_by_text("Nothing to do: no mail, and no outcome that is ready.")
    ).to_be_visible()
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
    page = visitor.live(visitor.goto("/"))
    held: list[Route] = []
    here = re.compile(rf"{re.escape(office.url)}/$")
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
    expect(page.get_by_role("alert")).to_contain_text("The message is empty.")
    field.fill("x" * 1_100_000)
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("alert")).to_contain_text("The form is larger")
    assert len(field.input_value()) == 1_100_000


@pytest.mark.requirement("AG-93", "FX-47")
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
    now = page.get_by_role("region", name="Now")
    run = office.begin(ada)
    row = now.get_by_role("listitem").filter(has_text="Ada")
    state = page.get_by_role("group", name="State of the company")
    expect(state).to_contain_text("1 working")
    expect(row.get_by_role("link", name="started")).to_be_visible()
    office.do(office.running.app.gate(Caller(run.token), inbox.take))
    office.as_agent(office.root).must("POST", office.path("messages"), _to_board("One"))
    expect(row).to_contain_text(subject)
    office.print(run, 1, "compiling\n", "running <b>tests</b>\n")
    office.as_agent(office.root).must("POST", office.path("messages"), _to_board("Two"))
    expect(row).to_contain_text("running <b>tests</b>")
    office.end(run, "failed")
    expect(state).not_to_contain_text("working")
    expect(state).to_contain_text("1 failed")
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
    now = page.get_by_role("region", name="Now")
    expect(now.get_by_role("link", name="Lead", exact=True)).to_be_visible()
    expect(now.get_by_role("link", name="Below", exact=True)).to_be_visible()
    expect(now.get_by_role("link", name="Other")).to_have_count(0)
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
    expect(page.get_by_role("region", name="Now")).to_be_visible()
    assert page.locator("main").get_by_role("button").count() == 0


def test_a_company_of_others_is_not_there(office: Office, visit: Callable[..., Visitor]) -> None:
    theirs = office.board.must("POST", "/api/companies", {"name": "Secret"})
    who = office.user("stranger", "observer")
    visitor = visit(who)
    for path in ("", "/settings", "/people/board"):
        answer = visitor.page.goto(f"/companies/{theirs['id']}{path}")
        assert answer is not None
        assert answer.status == 404
        expect(visitor.page.get_by_role("heading", level=1)).to_have_text("Not found")
        expect(visitor.page.get_by_text("Secret")).to_have_count(0)


@LOOKED_AT_ELSEWHERE
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


@pytest.mark.requirement("FX-48")
def test_what_holds_an_agent_has_a_word_of_its_own(office: Office, visitor: Visitor) -> None:
    url = office.running.app.settings.database_url
    words: dict[str, str] = {}
    for kind, cause, word in (
        ("setup", "The program 'claude' is not there.", "program missing"),
        ("setup", "The program claude is not installed here.", "program missing"),
        ("setup", "There is no sandbox here.", "set-up broken"),
        ("account", "The program said 401.", "account closed"),
    ):
        agent = office.agent(f"held-{len(words)}")
        held, worker = secrets.token_hex(16), "w" if kind == "setup" else None
        words[agent["name"]] = word
        run_sql(
            url,
            "INSERT INTO accounts (id, company_id, kind, name, adapter_type, endpoint, credential,"
            " worker, created_at, state, fault, cause, since, failures, started)"
            " VALUES (?, ?, ?, ?, 'claude', '', '', ?, 1, 'failing', 'setup', ?, 1, 1, 0)",
            *(held, office.company, kind, held, worker, cause),
        )
        run_sql(
            url,
            "INSERT INTO agent_leases (agent_id, company_id, wake_seq, done_seq, epoch, due_at,"
            " why, idle_runs, failures, spared, held_by)"
            " VALUES (?, ?, 1, 1, 0, 1, '', 0, 0, 0, ?)"
            " ON CONFLICT (agent_id) DO UPDATE SET held_by = excluded.held_by",
            *(agent["id"], office.company, held),
        )
    page = visitor.goto("/org")
    for name, word in words.items():
        row = page.locator(".org li > div:not(:has(li))").filter(has_text=name)
        expect(row.locator(".state")).to_have_text(word)
    state = visitor.goto("/").get_by_role("group", name="State of the company")
    for shown in ("2 program missing", "1 set-up broken", "1 account closed"):
        expect(state).to_contain_text(shown)


@pytest.mark.requirement("FX-48")
def test_many_that_stand_still_for_one_cause_are_one_row_and_resumed_by_one_click(
    office: Office, visitor: Visitor
) -> None:
    stopped = [office.agent(f"stuck-{number}") for number in range(5)]
    alone = office.agent("stuck-otherwise")
    url = office.running.app.settings.database_url
    for one in (*stopped, alone):
        cause = "3 runs in a row <b>changed</b> nothing." if one is not alone else "No program."
        run_sql(
            url,
            "INSERT INTO agent_leases (agent_id, company_id, wake_seq, done_seq, epoch, due_at,"
            " why, idle_runs, failures, spared, told) VALUES (?, ?, 1, 1, 0, 1, '', 0, 0, 0, ?)"
            " ON CONFLICT (agent_id) DO UPDATE SET told = excluded.told",
            *(one["id"], office.company, cause),
        )
        run_sql(url, "UPDATE agents SET status = 'error' WHERE id = ?", one["id"])
    page = visitor.goto("/")
    inbox = page.get_by_role("region", name="Inbox")
    expect(inbox.get_by_text("5 agents do not work: 3 runs in a row <b>")).to_be_visible()
    expect(inbox.get_by_text("stuck-otherwise does not work: No program")).to_be_visible()
    expect(page.get_by_role("group", name="State of the company")).to_contain_text("6 stopped")
    inbox.get_by_role("button", name="Resume all 5").click()
    expect(page.get_by_role("status").filter(has_text="5 agents resumed.")).to_be_visible()
    expect(page.get_by_role("group", name="State of the company")).to_contain_text("1 stopped")
    inbox.get_by_role("button", name="Resume stuck-otherwise").click()
    said = page.get_by_role("status").filter(has_text="stuck-otherwise is resumed.")
    expect(said.get_by_role("button", name="Undo")).to_be_visible()
