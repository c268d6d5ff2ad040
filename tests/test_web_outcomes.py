"""Outcomes in a browser: the list, the drawing, one of them, and what can be done with it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from remit.entrypoints.web.pages import outcome as outcome_page
from tests.browsing import LOOKED_AT_ELSEWHERE, PHONE, Office, Visitor, check_accessible, check_fits
from tests.company import run_sql

HOSTILE = "<script>alert(1)</script> <b>bold</b> \"'>&amp;"


def make(office: Office, title: str, parent: str | None = None, **more: Any) -> dict[str, Any]:
    """An outcome of the root agent."""
    asked = {"parentId": parent or office.root["id"], "title": title, **more}
    made: dict[str, Any] = office.as_agent(office.root).must("POST", office.path("outcomes"), asked)
    return made


def file(office: Office, description: str, content: str) -> dict[str, Any]:
    made: dict[str, Any] = office.as_agent(office.root).must(
        "POST", office.path("files"), {"description": description, "content": content}
    )
    return made


@pytest.mark.requirement("AG-93", "FX-06")
def test_outcomes_are_listed_filtered_and_found(office: Office, visitor: Visitor) -> None:
    lead = office.agent("Lister")
    shop = make(office, "The shop is open", urgent=True)
    make(office, "The sign hangs", shop["id"])
    done = make(office, "The lease is signed", shop["id"])
    office.board.must("POST", f"/api/outcomes/{done['id']}/complete", {"note": "seen"})
    page = visitor.goto("/outcomes")
    listed = page.get_by_role("region", name="Outcomes", exact=True)
    expect(listed.get_by_role("link", name="The shop is open")).to_be_visible()
    expect(listed.get_by_text("In parts")).to_be_visible()
    expect(listed.get_by_text("The lease is signed")).to_have_count(0)
    page.get_by_role("link", name="Completed").click()
    expect(listed.get_by_role("link", name="The lease is signed")).to_be_visible()
    page.get_by_role("link", name="All", exact=True).click()
    expect(listed.get_by_role("link", name="The lease is signed")).to_be_visible()
    page.get_by_label("Title contains").fill("SIGN")
    page.get_by_role("button", name="Show").click()
    expect(listed.locator("tbody tr")).to_have_count(2)
    shop_row = listed.locator("tbody tr").filter(has_text="The shop is open")
    page.goto("/outcomes?view=list&query=shop")
    expect(shop_row, "the list says the same as the tree").to_contain_text("In parts")
    page.get_by_label("Owner").fill(lead["name"])
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("No matches.")).to_be_visible()
    page.get_by_label("Owner").fill("nobody at all")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("There is no agent named 'nobody at all' here.")).to_be_visible()
    page.goto("/outcomes?actionable=1&query=sign")
    expect(listed.get_by_role("link", name="The sign hangs")).to_be_visible()
    page.get_by_label("Stale").check()
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("No matches.")).to_be_visible()


def test_a_long_list_goes_on_on_the_next_page(office: Office, visitor: Visitor) -> None:
    parent = make(office, "Many parts")
    for number in range(55):
        make(office, f"Page part {number}", parent["id"])
    page = visitor.goto("/outcomes?query=Page+part")
    listed = page.get_by_role("region", name="Outcomes", exact=True).locator("tbody tr")
    expect(listed).to_have_count(50)
    page.get_by_role("link", name="More").click()
    expect(listed).to_have_count(5)
    expect(page.get_by_role("link", name="Page part 0", exact=True)).to_be_visible()


@pytest.mark.requirement("FX-47")
def test_parts_that_do_not_fit_are_shown_to_fewer_levels(
    office: Office, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcome_page, "MOST_PARTS", 4)
    top = make(office, "A branch")
    for number in range(2):
        part = make(office, f"Limb {number}", top["id"])
        make(office, f"Twig {number}", part["id"])
    page = visitor.goto(f"/outcomes/{top['id']}")
    rows = page.get_by_role("region", name="Parts").locator(".outline li")
    expect(rows).to_have_count(2)
    expect(rows.filter(has_text="more below")).to_have_count(2)
    page.get_by_role("link", name="Whole branch", exact=True).click()
    expect(page.get_by_role("link", name="Twig 1")).to_be_visible()


@pytest.mark.requirement("AG-93")
def test_the_drawing_links_to_each_outcome_and_can_be_moved_and_scaled(
    office: Office, visitor: Visitor
) -> None:
    drawn = make(office, "Something to draw " + HOSTILE)
    page = visitor.live(visitor.goto("/outcomes?view=graph"))
    box = page.locator("svg a").filter(has_text="Something to draw")
    expect(box).to_contain_text(f"ready · {office.root['name']}")
    svg = page.locator("svg.graph")
    before = float(svg.get_attribute("width") or 0)
    page.get_by_role("button", name="Zoom in").click()
    assert float(svg.get_attribute("width") or 0) > before
    page.get_by_role("region", name="Drawing of").focus()
    page.keyboard.press("-")
    page.keyboard.press("-")
    smaller = float(svg.get_attribute("width") or 0)
    assert smaller < before
    # What is drawn anew keeps its size.
    make(office, "Drawn while somebody looks")
    expect(svg.locator("text", has_text="Drawn while somebody")).to_be_visible()
    assert float(svg.get_attribute("width") or 0) < before
    page.keyboard.press("0")
    page.get_by_role("button", name="Fit").click()
    box.click()
    page.wait_for_url(f"**/outcomes/{drawn['id']}")


def test_a_drawing_of_more_than_fits_says_so(
    office: Office, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    from remit.entrypoints.web.pages import outcomes as pages

    monkeypatch.setattr(pages, "MOST_DRAWN", 2)
    for number in range(3):
        make(office, f"More than fits {number}")
    page = visitor.goto("/outcomes?view=graph&status=all")
    expect(page.get_by_text("The upper levels are drawn.")).to_be_visible()
    expect(page.locator("svg.graph a")).to_have_count(2)
    expect(page.locator("svg.graph")).to_contain_text(re.compile(r"\+\d+ below"))


@pytest.mark.requirement("AG-93", "AG-94")
def test_an_outcome_says_why_it_is_there_how_and_what_happened(
    office: Office, visitor: Visitor
) -> None:
    launch = make(office, "The launch is known", description="# So that\n\n- **people** know")
    text = make(office, "The text is written", launch["id"])
    press = make(office, "The press has it", launch["id"], blockedBy=[text["id"]])
    own = make(office, "A part of its own, which blocks nothing", press["id"])
    evidence = file(office, "Announcement", "It is here.")
    page = visitor.live(visitor.goto(f"/outcomes/{press['id']}"))
    why = page.get_by_role("region", name="Purpose", exact=True)
    expect(why.get_by_role("link")).to_have_text(
        ["Help the people of this company accomplish their work", "The launch is known"]
    )
    expect(page.get_by_text("Blocked by 1 outcome")).to_be_visible()
    office.board.must("POST", f"/api/outcomes/{own['id']}/complete", {"note": "seen"})
    office.as_agent(office.root).must(
        "POST",
        f"/api/outcomes/{text['id']}/complete",
        {"evidence": [evidence["id"]], "note": "It is *short*."},
    )
    # What it waited for is done, and the page knows without being loaded again.
    expect(page.locator("[data-part=head] .badge")).to_have_text("Ready")
    page.goto(f"/outcomes/{text['id']}")
    verdict = page.get_by_role("region", name="Verdict")
    expect(verdict).to_contain_text("It is short.")
    expect(verdict).to_contain_text(office.root["name"])
    verdict.get_by_role("link", name="Announcement").click()
    page.wait_for_url(f"**/files/{evidence['id']}?version=1")
    page.goto(f"/outcomes/{launch['id']}")
    how = page.get_by_role("region", name="Parts")
    expect(how.get_by_role("listitem")).to_have_count(3)
    expect(how).to_contain_text("Completed")
    expect(page.locator("main strong", has_text="people")).to_be_visible()
    expect(page.locator("svg .here")).to_have_count(1)
    happened = page.get_by_role("region", name="History")
    expect(happened).to_contain_text(f"{office.root['name']} created it")


def test_the_board_makes_changes_completes_closes_and_reopens(
    office: Office, visitor: Visitor
) -> None:
    page = visitor.goto("/outcomes")
    page.get_by_role("button", name="New outcome").click()
    new = page.get_by_role("dialog", name="New outcome")
    new.get_by_label("What should be true").fill("The board wants this")
    new.get_by_label("Description").fill("Really *now*")
    new.get_by_label("Important").check()
    new.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", level=1, name="The board wants this")).to_be_visible()
    expect(page.get_by_text("important", exact=True)).to_be_visible()
    actions = page.get_by_role("region", name="Actions")
    actions.get_by_text("Add a part").click()
    actions.get_by_label("What should be true").fill("A part of it")
    actions.get_by_role("button", name="Add part").click()
    expect(page.get_by_role("heading", level=1, name="A part of it")).to_be_visible()
    actions.get_by_text("Complete").first.click()
    actions.get_by_label("Evidence").fill("kb://01a1e010-f95a-719e-8b54-f315996e295d")
    actions.get_by_label("Note").fill("As I said.")
    actions.get_by_role("button", name="Complete").click()
    expect(page.get_by_role("alert")).to_contain_text("There is no such file.")
    expect(actions.get_by_label("Note")).to_have_value("As I said.")
    actions.get_by_label("Evidence").fill("")
    actions.get_by_role("button", name="Complete").click()
    expect(page.get_by_role("region", name="Verdict")).to_contain_text("As I said.")
    expect(actions.get_by_text("Reopen").first).to_be_visible()
    actions.get_by_text("Reopen").first.click()
    actions.get_by_role("button", name="Reopen").click()
    expect(actions.get_by_text("Close").first).to_be_visible()
    actions.get_by_text("Close").first.click()
    actions.get_by_label("Reason").fill("Too dear")
    actions.get_by_role("button", name="Close").click()
    expect(page.get_by_role("region", name="Reason for closing")).to_contain_text("Too dear")


def test_a_change_that_somebody_else_made_first_is_not_lost(
    office: Office, visitor: Visitor
) -> None:
    one = make(office, "Contested", description="Theirs")
    page = visitor.live(visitor.goto(f"/outcomes/{one['id']}"))
    actions = page.get_by_role("region", name="Actions")
    actions.get_by_text("Change").first.click()
    page.locator("#f-new_description").fill("Mine")
    office.as_agent(office.root).must(
        "PATCH", f"/api/outcomes/{one['id']}", {"version": 1, "title": "Contested by two"}
    )
    expect(page.get_by_role("heading", level=1, name="Contested by two")).to_be_visible()
    expect(page.locator("#f-new_description")).to_have_value("Mine")
    actions.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("The outcome is at version 2 now.")
    expect(page.locator("#f-new_description")).to_have_value("Mine")
    actions.get_by_label("Title").fill("Contested by two")
    actions.get_by_role("button", name="Save").click()
    page.wait_for_url(f"**/outcomes/{one['id']}")
    expect(page.get_by_role("region", name="Description", exact=True)).to_contain_text("Mine")
    found = office.board.must("GET", f"/api/outcomes/{one['id']}")
    assert (found["title"], found["description"]) == ("Contested by two", "Mine")


def test_work_is_handed_over_and_taken_back_with_a_reason(office: Office, visitor: Visitor) -> None:
    office.agent("Taker")
    one = make(office, "To be handed over")
    page = visitor.goto(f"/outcomes/{one['id']}")
    actions = page.get_by_role("region", name="Actions")
    actions.get_by_text("Delegate").first.click()
    actions.get_by_label("To", exact=True).select_option(label="Taker")
    actions.get_by_role("button", name="Delegate").click()
    facts = page.get_by_role("region", name="Details", exact=True)
    expect(facts).to_contain_text("Taker")
    expect(facts).to_contain_text("Delegated by")
    actions.get_by_text("Take back").first.click()
    page.get_by_role("button", name="Take back…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason").fill("It takes too long")
    dialog.get_by_role("button", name="Take back").click()
    expect(facts).not_to_contain_text("Delegated by")
    expect(page.get_by_role("region", name="History")).to_contain_text("It takes too long")
    found = office.board.must("GET", f"/api/outcomes/{one['id']}")
    assert found["ownerId"] == office.root["id"]


@pytest.mark.requirement("FX-02", "FX-06")
def test_what_was_handed_in_is_sent_back_and_accepted(office: Office, visitor: Visitor) -> None:
    taker = office.agent("Finisher", purpose="The fence stands", perpetual=False)
    path = f"/api/outcomes/{taker['id']}"
    office.as_agent(taker).must("POST", f"{path}/submit", {"note": "It stands. <script>x</script>"})
    page = visitor.goto(f"/outcomes/{taker['id']}")
    handed_in = page.get_by_role("region", name="Submitted")
    expect(handed_in).to_contain_text("It stands. <script>x</script>")
    actions = page.get_by_role("region", name="Actions")
    handed_in.get_by_role("button", name="Not yet…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("What is missing").fill("A gate")
    dialog.get_by_role("button", name="Return to Finisher").click()
    expect(page.get_by_role("region", name="Returned")).to_contain_text("A gate")
    office.as_agent(taker).must("POST", f"{path}/submit", {"note": "With a gate."})
    page.goto(f"/outcomes/{taker['id']}")
    expect(handed_in).to_contain_text("Accepting ends Finisher")
    handed_in.get_by_role("button", name="Accept").click()
    expect(page.get_by_role("status").filter(has_text="reopening brings it back")).to_be_visible()
    actions.get_by_text("Reopen", exact=True).first.click()
    expect(actions).to_contain_text("Requests for approval stay withdrawn.")
    actions.get_by_role("button", name="Reopen").click()
    expect(page.get_by_role("status").filter(has_text="Finisher works again.")).to_be_visible()
    # What does not move is listed.
    slow = make(office, "Does not move at all")
    url = office.running.app.settings.database_url
    run_sql(url, "UPDATE outcomes SET reviews = 4 WHERE id = ?", slow["id"])
    page.goto("/outcomes?view=list")
    page.get_by_label("Stale").check()
    page.get_by_role("button", name="Show").click()
    listed = page.get_by_role("region", name="Outcomes", exact=True).locator("tbody tr")
    expect(listed).to_have_count(1)
    expect(listed).to_contain_text("Does not move at all")


def test_hostile_titles_and_descriptions_are_text(office: Office, visitor: Visitor) -> None:
    long = "x" * 190
    one = make(
        office,
        HOSTILE,
        description="[x](javascript:alert(1)) <img src=x onerror=alert(1)>" + "y" * 60_000,
    )
    make(office, long, one["id"])
    for address in ("/outcomes", f"/outcomes/{one['id']}", "/outcomes?view=graph"):
        page = visitor.goto(address)
        expect(page.get_by_text("<script>alert(1)</script>").first).to_be_attached()
        assert page.locator("main script, main img, main b").count() == 0
        assert page.locator("main a[href^=javascript]").count() == 0
        check_fits(page)


def test_observers_look_and_have_no_buttons(office: Office, visit: Callable[..., Visitor]) -> None:
    one = make(office, "Only to be looked at")
    page = visit(office.user("Watcher", "observer")).goto(f"/outcomes/{one['id']}")
    expect(page.get_by_role("region", name="Purpose", exact=True)).to_be_visible()
    expect(page.get_by_role("region", name="Actions")).to_have_count(0)
    page.goto("/outcomes")
    expect(page.get_by_role("button", name="New outcome")).to_have_count(0)


def test_somebody_with_a_part_sees_that_part_and_is_refused_nothing(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    lead = office.agent("Partlead")
    office.as_agent(lead).must(
        "POST", office.path("outcomes"), {"parentId": lead["id"], "title": "Within the part"}
    )
    make(office, "Outside of the part")
    page = visit(office.user("Partial", scope=lead["id"])).goto("/outcomes")
    expect(page.get_by_role("link", name="Within the part")).to_be_visible()
    expect(page.get_by_text("Outside of the part")).to_have_count(0)
    page.goto("/outcomes?view=graph&status=all")
    expect(page.locator("svg text", has_text="Within the part")).to_be_visible()
    page.locator("svg a", has_text="Within the part").click()
    expect(page.get_by_role("region", name="Actions")).to_be_visible()
    refused = office.board.must("GET", office.path("events?refused=true"))
    assert not [event for event in refused if event["actor"].startswith("user:")]


def test_an_outcome_that_does_not_exist_is_not_found(office: Office, visitor: Visitor) -> None:
    page = visitor.goto("/outcomes/01a1e010-f95a-719e-8b54-f315996e295d")
    expect(page.get_by_role("heading", name="Not found")).to_be_visible()
    page.goto("/outcomes?status=lost")
    expect(page.get_by_role("alert")).to_contain_text("status must be")
    page.goto("/outcomes?before=%00zz&query=%25")
    expect(page.get_by_role("heading", name="Outcomes", exact=True)).to_be_visible()


@LOOKED_AT_ELSEWHERE
def test_outcomes_are_accessible_and_fit_a_phone_by_day_and_by_night(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    top = make(office, "Looked at by everybody", description="## How\n\n1. well")
    make(office, "Part of what is looked at", top["id"])
    for viewport, scheme in ((None, "light"), (PHONE, "dark")):
        more = {"viewport": viewport} if viewport else {}
        visitor = visit(color_scheme=scheme, **more)
        for address in ("/outcomes", "/outcomes?view=graph", f"/outcomes/{top['id']}"):
            page = visitor.goto(address)
            check_accessible(page)
            check_fits(page)


def test_outcomes_read_and_work_without_scripts(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    one = make(office, "Done without scripts")
    page = visit(java_script_enabled=False).goto("/outcomes?view=graph")
    expect(page.locator("svg text", has_text="Done without scripts")).to_be_visible()
    page.goto(f"/outcomes/{one['id']}")
    page.get_by_text("Complete", exact=True).first.click()
    page.get_by_label("Note").fill("by hand")
    page.get_by_role("button", name="Complete").click()
    expect(page.get_by_role("region", name="Verdict")).to_contain_text("by hand")
