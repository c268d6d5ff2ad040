"""The front page: what awaits a person, dealt with on the spot, and current by itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browsing import LOOKED_AT_ELSEWHERE, PHONE, Office, Visitor, check_accessible, check_fits


@pytest.mark.requirement("BX-18", "AG-93")
def test_what_awaits_a_person_is_on_the_front_page_and_goes_away_when_dealt_with(
    office: Office, visitor: Visitor
) -> None:
    ceo = office.as_agent(office.root)
    office.hire("Hopper")
    ceo.must(
        "POST", office.path("questions"), {"question": "Which colour?", "options": ["blue", "red"]}
    )
    ceo.must("POST", office.path("messages"), {"to": "board", "subject": "Report", "body": "Fine."})
    page = visitor.goto("/")
    name = office.root["name"]
    request = page.get_by_text(f"{name} asks to hire Hopper as engineer, reporting to {name},")
    expect(request).to_be_visible()
    approve = page.get_by_role("button", name="Approve: hire Hopper")
    stated = page.get_by_role("listitem").filter(has=approve).locator(".statement").bounding_box()
    act = approve.bounding_box()
    assert stated is not None
    assert act is not None
    assert stated["y"] + stated["height"] <= act["y"], "an act stands below what it applies to"
    approve.click()
    expect(page.get_by_role("status").filter(has_text="Approved: hire Hopper")).to_be_visible()
    expect(approve).to_have_count(0)
    page.get_by_role("button", name="blue").click()
    expect(page.get_by_text("Which colour?")).to_have_count(0)
    page.get_by_role("button", name="Mark read: Report").click()
    expect(page.get_by_text("All caught up.")).to_be_visible()
    hired = [
        one for one in office.board.must("GET", office.path("agents")) if one["name"] == "Hopper"
    ]
    assert hired[0]["status"] == "idle"


def test_a_question_leads_to_its_letter_and_is_answered_in_other_words_than_its_options(
    office: Office, visitor: Visitor
) -> None:
    question = {"question": "Which colour?", "options": ["blue", "red"]}
    raised = office.as_agent(office.root).must("POST", office.path("questions"), question)
    page = visitor.goto("/")
    page.get_by_role("link", name="Which colour?").click()
    expect(page.get_by_text("Choose one of:")).to_be_visible()
    page = visitor.goto("/")
    page.get_by_label("Other answer: Which colour?").click()
    page.get_by_label("Your answer").fill("Neither: green")
    page.get_by_role("button", name="Answer", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="Answer sent.")).to_be_visible()
    expect(page.get_by_text("Which colour?")).to_have_count(0)
    ended = office.board.must("GET", f"{office.path('questions')}?all=1")
    answers = {question["id"]: question["answer"] for question in ended}
    assert answers[raised["id"]] == "Neither: green"


def test_another_answer_is_written_within_the_page_on_a_phone(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    ceo = office.as_agent(office.root)
    for text, option in (("Short?", "4"), ("Long?", "as many words as a line of a phone takes")):
        ceo.must("POST", office.path("questions"), {"question": text, "options": [option]})
    page = visit(viewport=PHONE).goto("/")
    for text in ("Short?", "Long?"):
        other = page.get_by_label(f"Other answer: {text}")
        other.click()
        row = page.get_by_role("listitem").filter(has_text=text)
        place = row.get_by_label("Your answer").bounding_box()
        assert place is not None
        assert place["x"] >= 0
        assert place["x"] + place["width"] <= PHONE["width"]
        other.click()
    check_fits(page)


def test_the_set_up_is_offered_until_somebody_has_worked(office: Office, visitor: Visitor) -> None:
    new = office.board.must("POST", "/api/companies", {"name": "Brand new"})["id"]
    offered = "New here?"
    expect(visitor.goto(f"/?company={new}").get_by_text(offered)).to_be_visible()
    office.end(office.begin(office.agent("Worked")))
    expect(visitor.goto(f"/?company={office.company}").get_by_text(offered)).to_have_count(0)


def test_an_agent_without_a_model_says_so_before_a_wish_is_sent(
    office: Office, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = office.root["name"]
    page = visitor.goto("/")
    note = page.get_by_text(f"{name} has no model: it acknowledges mail and does nothing else.")
    monkeypatch.setattr(office.running.app.gate, "usable_adapter", "claude")
    note.locator("..").get_by_role("link", name="Set up a program or model").click()
    expect(page.get_by_role("heading", name="Programs and models")).to_be_visible()
    page.goto(f"{office.running.url}/")
    page.get_by_role("link", name="Choose its adapter").click()
    expect(page.get_by_role("heading", name="Edit")).to_be_visible()
    script = {"adapterConfig": {"script": [{"tool": "mail_inbox"}]}}
    office.board.must("PATCH", f"/api/agents/{office.root['id']}", script)
    page.goto(f"{office.running.url}/")
    expect(page.get_by_label("What do you want?")).to_be_visible()
    expect(note).to_have_count(0)


def test_counts_and_lists_change_without_reloading(office: Office, visitor: Visitor) -> None:
    page = visitor.live(visitor.goto("/"))
    page.evaluate("window.unbroken = true")
    office.as_agent(office.root).must(
        "POST", office.path("questions"), {"question": "Is this live?"}
    )
    expect(page.get_by_text("Is this live?")).to_be_visible()
    count = page.get_by_role("navigation", name="Pages").locator(".count")
    expect(count).not_to_have_text("0")
    assert page.evaluate("window.unbroken")


def test_what_is_half_typed_survives_an_update(office: Office, visitor: Visitor) -> None:
    ceo = office.as_agent(office.root)
    ceo.must("POST", office.path("questions"), {"question": "What is your name?"})
    page = visitor.live(visitor.goto("/"))
    answer = page.get_by_label("Your answer").last
    answer.fill("My name is")
    ceo.must("POST", office.path("messages"), {"to": "board", "subject": "Later", "body": "x"})
    expect(page.get_by_role("link", name="Inbox").locator(".count")).to_be_visible()
    page.wait_for_timeout(800)
    expect(answer).to_have_value("My name is")
    answer.fill("My name is Ada")
    page.get_by_role("button", name="Answer").last.click()
    expect(page.get_by_text("What is your name?")).to_have_count(0)
    expect(page.get_by_text("Later")).to_be_visible()


@LOOKED_AT_ELSEWHERE
def test_the_front_page_is_accessible_and_fits_a_phone_by_day_and_by_night(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    office.hire("Lovelace")
    for viewport, scheme in ((None, "light"), (PHONE, "dark")):
        more = {"viewport": viewport} if viewport else {}
        page = visit(color_scheme=scheme, **more).goto("/")
        check_accessible(page)
        check_fits(page)


def test_the_front_page_reads_and_works_without_scripts(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    made = office.hire("Noether")
    page = visit(java_script_enabled=False).goto("/")
    page.get_by_role("button", name="Approve: hire Noether as engineer").click()
    expect(page.get_by_role("status").filter(has_text="Approved: hire Noether")).to_be_visible()
    assert (
        office.board.must("GET", f"/api/approvals/{made['approval']['id']}")["status"] == "approved"
    )
