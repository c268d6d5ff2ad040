"""Mail in the browser: what is for a person, threads with replies, new letters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from remit.runtime.runs.lifecycle import LiveRun
from remit.services.execution import runs
from remit.services.identity import Caller, as_system
from remit.services.messaging import inbox
from tests.browsing import LOOKED_AT_ELSEWHERE, PHONE, Office, Visitor, check_accessible, check_fits

HOSTILE = (
    "<script>document.title = 'stolen'</script> <img src=x onerror=\"document.title='stolen'\">\n\n"
    "[press](javascript:document.title='stolen') ![pic](http://elsewhere.example/x.png)\n\n"
    "<b>bold</b>"
)


def test_a_person_reads_answers_and_the_agent_gets_it(office: Office, visitor: Visitor) -> None:
    ceo = office.as_agent(office.root)
    sent = ceo.must(
        "POST", office.path("messages"), {"to": "board", "subject": "Plan", "body": "**Shall** I?"}
    )
    page = visitor.goto("/inbox")
    page.get_by_role("link", name="Plan").click()
    expect(page.get_by_role("heading", name="Plan", exact=True)).to_be_visible()
    expect(page.locator(".prose strong", has_text="Shall")).to_be_visible()
    expect(page.get_by_role("button", name="Mark read")).to_be_visible()
    page.get_by_label("Your reply").fill("Yes, do.")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("article", name="Message from board")).to_contain_text("Yes, do.")
    expect(page.get_by_label("Your reply")).to_have_value("")
    # Who answered has read it.
    expect(page.get_by_role("button", name="Mark read")).to_have_count(0)
    received = ceo.must("GET", "/api/inbox")
    assert [(one["body"], one["replyTo"]) for one in received] == [("Yes, do.", sent["id"])]


@pytest.mark.requirement("AG-94")
def test_the_board_writes_to_any_agent_and_is_told_when_it_cannot(
    office: Office, visitor: Visitor
) -> None:
    worker = office.agent("Ritchie")
    page = visitor.goto("/inbox")
    page.get_by_role("button", name="New message").click()
    page.get_by_label("To", exact=True).fill("agent:nobody-here")
    page.get_by_label("Subject").fill("Hello")
    page.get_by_label("Message", exact=True).fill("Are you there?")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("alert")).to_contain_text("There is no agent named")
    page.get_by_role("button", name="New message").click()
    expect(page.get_by_label("Message", exact=True)).to_have_value("Are you there?")
    page.get_by_label("To", exact=True).fill("agent:Ritchie")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("article", name="Message from board")).to_contain_text("Are you there?")
    assert [one["subject"] for one in office.as_agent(worker).must("GET", "/api/inbox")] == [
        "Hello"
    ]


def test_a_letter_arrives_in_an_open_list_while_another_is_written(
    office: Office, visitor: Visitor
) -> None:
    page = visitor.live(visitor.goto("/inbox"))
    page.get_by_role("button", name="New message").click()
    page.get_by_label("Message", exact=True).fill("half a sentence")
    office.as_agent(office.root).must(
        "POST", office.path("messages"), {"to": "board", "subject": "Fresh", "body": "x"}
    )
    expect(page.get_by_role("link", name="Fresh")).to_be_visible()
    expect(page.get_by_label("Message", exact=True)).to_have_value("half a sentence")


@pytest.mark.requirement("FX-50")
def test_all_unread_mail_is_marked_read_at_once_but_not_questions(
    office: Office, visitor: Visitor
) -> None:
    ceo = office.as_agent(office.root)
    for subject in ("Heap 1", "Heap 2"):
        ceo.must("POST", office.path("messages"), {"to": "board", "subject": subject, "body": "x"})
    ceo.must("POST", office.path("questions"), {"question": "Stays?"})
    page = visitor.goto("/inbox")
    listed = page.get_by_role("region", name="Messages")
    expect(listed.get_by_role("link", name="Heap")).to_have_count(2)
    page.get_by_role("button", name="Mark all read").click()
    expect(listed.get_by_role("link", name="Heap")).to_have_count(0)
    expect(listed.get_by_role("link", name="Question: Stays?")).to_be_visible()
    expect(page.get_by_role("heading", name="Mail")).to_be_visible()


def test_a_dead_letter_is_tried_again_from_its_page(office: Office, visitor: Visitor) -> None:
    worker = office.agent("Torvalds")
    sent = office.board.must(
        "POST", office.path("messages"), {"to": "agent:Torvalds", "subject": "Hard", "body": "x"}
    )
    for _ in range(3):
        run = office.begin(worker)
        office.do(_take_mail(office, run))
        office.do(_cannot_read(office, run))
    page = visitor.goto("/")
    page.get_by_role("region", name="Inbox").get_by_role("link", name="Hard").first.click()
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("status").filter(has_text="Requeued")).to_be_visible()
    seen = office.board.must("GET", f"/api/messages/{sent['id']}")
    assert [one["status"] for one in seen["deliveries"]] == ["queued"]


async def _cannot_read(office: Office, run: LiveRun) -> None:
    """A run that says that the letter is at fault."""
    report = {"fault": "message", "error": "It cannot be read."}
    ended: Any = {"run": run.id, "status": "failed", "report": report}
    await office.running.app.gate(as_system(), runs.end, **ended)


async def _take_mail(office: Office, run: LiveRun) -> None:
    await office.running.app.gate(Caller(run.token), inbox.turn)


def test_hostile_letters_are_text_and_nothing_else(office: Office, visitor: Visitor) -> None:
    elsewhere: list[str] = []
    visitor.page.on(
        "request",
        lambda asked: elsewhere.append(asked.url) if not asked.url.startswith(office.url) else None,
    )
    sent = office.as_agent(office.root).must(
        "POST",
        office.path("messages"),
        {"to": "board", "subject": HOSTILE.splitlines()[0][:200], "body": HOSTILE},
    )
    for address in ("/", "/inbox", f"/inbox/{sent['id']}"):
        page = visitor.goto(address)
        expect(page.locator("main")).to_contain_text("<script>document.title")
        assert "stolen" not in page.title() or "<script>" in page.title()
        assert page.locator("main script, main img, main b").count() == 0
        assert page.locator("main a[href^='javascript']").count() == 0
    assert elsewhere == []


@LOOKED_AT_ELSEWHERE
def test_mail_pages_are_accessible_and_fit_a_phone(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    sent = office.as_agent(office.root).must(
        "POST", office.path("messages"), {"to": "board", "subject": "w" * 150, "body": "word " * 50}
    )
    mine = office.board.must(
        "POST", office.path("messages"), {"to": "agent:ceo", "subject": "w" * 150, "body": "x"}
    )
    for options in ({"color_scheme": "dark"}, {"viewport": PHONE}):
        visitor = visit(**options)
        for address in (
            "/inbox",
            "/inbox?show=company",
            "/inbox?show=sent",
            f"/inbox/{sent['id']}",
            f"/inbox/{mine['id']}",
        ):
            page = visitor.goto(address)
            check_accessible(page)
            check_fits(page)


def test_an_unknown_message_is_a_page_that_says_so(visitor: Visitor) -> None:
    page = visitor.goto("/inbox/01890000-0000-7000-8000-000000000000")
    expect(page.get_by_role("heading", name="Not found")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("There is no such message")


def test_an_observer_reads_and_has_nothing_to_press(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    office.as_agent(office.root).must(
        "POST", office.path("messages"), {"to": "board", "subject": "For all", "body": "x"}
    )
    page = visit(office.user("Olga", "observer")).goto("/inbox?show=company")
    expect(page.get_by_role("link", name="For all")).to_be_visible()
    expect(page.get_by_role("button", name="Send")).to_have_count(0)


@pytest.mark.requirement("FX-19", "FX-51")
def test_a_letter_says_what_became_of_it_and_is_taken_back_after_a_preview(
    office: Office, visitor: Visitor
) -> None:
    worker = office.agent("Hamilton")
    office.board.must(
        "POST", office.path("messages"), {"to": "agent:Hamilton", "subject": "Moon", "body": "Land"}
    )
    run = office.begin(worker)
    office.do(_take_mail(office, run))
    made = office.running.client(run.token).must(
        "POST", office.path("outcomes"), {"parentId": worker["id"], "title": "Guidance"}
    )
    office.end(run, "completed")
    page = visitor.goto("/inbox?show=sent")
    page.get_by_role("link", name="Moon").click()
    became = page.get_by_role("region", name="Result")
    expect(became).to_contain_text("in work")
    expect(became.get_by_role("link", name="Guidance")).to_be_visible()
    became.get_by_role("link", name="Withdraw").click()
    expect(page.get_by_role("region", name="Also ends")).to_contain_text("Guidance")
    assert office.board.must("GET", f"/api/outcomes/{made['id']}")["status"] == "open"
    page.get_by_role("button", name="Withdraw").click()
    expect(page.get_by_role("region", name="Result")).to_contain_text("taken back")
    assert office.board.must("GET", f"/api/outcomes/{made['id']}")["status"] == "closed"
    expect(page.get_by_role("link", name="Withdraw")).to_have_count(0)
    page.goto(f"{office.url}/outcomes/{made['id']}")
    expect(page.get_by_role("link", name="Moon")).to_be_visible()


@pytest.mark.requirement("FX-05")
def test_who_writes_to_somebody_that_does_not_start_is_told_so(
    office: Office, visitor: Visitor
) -> None:
    worker = office.agent("Asleep")
    office.board.must("POST", f"/api/agents/{worker['id']}/pause")
    page = visitor.goto("/inbox")
    page.get_by_role("button", name="New message").click()
    page.get_by_label("To", exact=True).fill("agent:Asleep")
    page.get_by_label("Message", exact=True).fill("Are you there?")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("status").filter(has_text="does not start for it")).to_be_visible()


@pytest.mark.requirement("FX-52")
def test_a_hidden_page_tells_through_the_browser_once(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    visitor = visit()
    visitor.page.add_init_script(_NOTIFICATIONS)
    page = visitor.live(visitor.goto("/"))
    button = page.get_by_role("button", name="Turn on notifications")
    button.click()
    expect(button).to_be_hidden()
    page.evaluate("window.hide()")
    ceo = office.as_agent(office.root)
    ceo.must(
        "POST", office.path("messages"), {"to": "board", "subject": "Heard of this", "body": "x"}
    )
    told = page.locator("html")
    expect(told).to_have_attribute("data-told", "Heard of this;")
    ceo.must("POST", office.path("messages"), {"to": "board", "subject": "And this", "body": "x"})
    expect(told).to_have_attribute("data-told", "Heard of this;And this;")


#: A browser without anybody before it shows no notifications, so the test looks at what was asked.
_NOTIFICATIONS = """
let hidden = false;
window.Notification = class {
  static permission = "default";
  static async requestPermission() { Notification.permission = "granted"; return "granted"; }
  constructor(title, { body }) {
    const on = document.documentElement.dataset;
    on.told = `${on.told ?? ""}${body};`;
  }
  close() {}
};
Object.defineProperty(document, "hidden", { get: () => hidden });
window.hide = () => { hidden = true; };
"""
