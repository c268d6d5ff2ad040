"""The organisation in the browser: folded, searched, current by itself, and changed with care."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browsing import LOOKED_AT_ELSEWHERE, PHONE, Office, Visitor, check_accessible, check_fits


def item(page: Page, name: str) -> Locator:
    """The entry of an agent, with everybody below it."""
    return page.locator("li").filter(has=page.locator(f":scope > div .who > a:text-is('{name}')"))


def toggle(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=f"Reports of {name}", exact=True)


def boss_of(office: Office, agent: dict[str, str]) -> str | None:
    found: str | None = office.board.must("GET", f"/api/agents/{agent['id']}")["reportsTo"]
    return found


@pytest.mark.requirement("HH-10", "HH-11")
def test_the_tree_shows_who_reports_to_whom_and_stays_current(
    office: Office, visitor: Visitor
) -> None:
    ada, grace = office.agent("Ada", title="<img src=x onerror=alert(1)>"), office.agent("Grace")
    tim = office.agent("Tim", ada["id"])
    page = visitor.live(visitor.goto("/org"))
    page.evaluate("window.unbroken = true")
    expect(item(page, "Ada").get_by_role("link", name="Tim", exact=True)).to_be_visible()
    expect(page.get_by_text("<img src=x onerror=alert(1)>, engineer")).to_be_visible()
    expect(item(page, "ceo").locator("> div")).to_contain_text("3 below")
    move = {"op": "move", "agent": tim["id"], "to": grace["id"]}
    office.board.must("POST", office.path("reorganise"), {"operations": [move]})
    expect(item(page, "Grace").get_by_role("link", name="Tim", exact=True)).to_be_visible()
    expect(item(page, "Ada").get_by_role("link", name="Tim", exact=True)).to_have_count(0)
    page = visitor.live(visitor.goto(f"/org/change?agent={tim['id']}"))
    expect(page.get_by_text("reports to Grace")).to_be_visible()
    office.board.must(
        "POST", office.path("reorganise"), {"operations": [{**move, "to": ada["id"]}]}
    )
    expect(page.get_by_text("reports to Ada")).to_be_visible()


@pytest.mark.requirement("PC-75")
def test_statuses_are_words_and_filters_know_those_who_await_approval(
    office: Office, visitor: Visitor
) -> None:
    office.agent("Lead")
    made = office.hire("Waiting")
    assert made["agent"]["status"] == "pending_approval"
    page = visitor.live(visitor.goto("/org"))
    row = item(page, "Waiting").locator("> div")
    expect(row.locator(".state")).to_have_text("awaits approval")
    expect(row.get_by_role("link", name="Move or change Waiting")).to_have_count(1)
    page.get_by_role("link", name="Awaits approval").click()
    page.wait_for_url("**status=awaits*approval**")
    expect(item(page, "Waiting")).to_be_visible()
    expect(item(page, "Lead")).to_have_count(0)
    expect(item(page, "ceo")).to_be_visible()  # above who fits
    # The numbers are those of the first page, which leads here by the same words.
    office.as_agent(office.root).must("POST", office.path("questions"), {"question": "Why?"})
    page = visitor.goto("/")
    page.get_by_role("link", name="1 waiting").click()
    count = len(office.board.must("GET", office.path("agents")))
    expect(page.get_by_role("list", name="Status")).to_have_text(
        re.compile(rf"All\s*{count}\s*Awaits approval\s*1\s*Waiting\s*1\s*Idle\s*{count - 2}")
    )
    expect(page.get_by_text(f"1 agent of {count}")).to_be_visible()
    page.goto(f"/org/change?agent={made['agent']['id']}")
    expect(page.get_by_text("Its hire awaits approval.")).to_be_visible()
    page.goto("/org?status=pending_approval")
    visitor.live()
    office.board.must("POST", f"/api/approvals/{made['approval']['id']}/approve")
    expect(item(page, "Waiting")).to_have_count(0)
    expect(page.get_by_text("No matches.")).to_be_visible()
    page.goto("/org?status=<script>")
    expect(item(page, "Waiting").locator(".state")).to_have_text("idle")


def test_who_runs_is_shown_with_since_when_and_folding_survives_that(
    office: Office, visitor: Visitor
) -> None:
    boss = office.agent("Boss")
    worker = office.agent("Worker", boss["id"])
    page = visitor.live(visitor.goto("/org"))
    page.evaluate("window.unbroken = true")
    button = toggle(page, "Boss")
    expect(button).to_have_attribute("aria-expanded", "true")
    button.focus()
    page.keyboard.press("ArrowLeft")
    expect(button).to_have_attribute("aria-expanded", "false")
    expect(item(page, "Worker")).to_be_hidden()
    run = office.begin(boss)
    expect(item(page, "Boss").locator("> div .state")).to_have_text("working")
    expect(toggle(page, "Boss")).to_be_focused()
    expect(item(page, "Worker")).to_be_hidden()
    office.agent("Fresh", boss["id"])  # the tree has another shape now
    expect(item(page, "Fresh")).to_have_count(1)
    expect(toggle(page, "Boss")).to_be_focused()
    expect(item(page, "Worker")).to_be_hidden()
    office.end(run)
    expect(item(page, "Boss").locator("> div .state")).to_have_text("idle")
    assert page.evaluate("window.unbroken")
    page.reload()
    expect(item(page, "Worker")).to_be_hidden()
    page.get_by_role("button", name="Unfold all").click()
    expect(item(page, "Worker")).to_be_visible()
    page.get_by_role("button", name="Fold all", exact=True).click()
    expect(item(page, "Boss")).to_be_hidden()
    page.get_by_role("button", name="Unfold all").click()
    assert boss_of(office, worker) == boss["id"]


def test_searching_keeps_the_bosses_of_who_fits_with_and_without_scripts(
    office: Office, visitor: Visitor, visit: Callable[..., Visitor]
) -> None:
    top = office.agent("Top", title="Head of tests")
    office.agent("Deep", top["id"], title="Kernel hacker", role="designer")
    office.agent("Elsewhere")
    page = visitor.goto("/org")
    page.get_by_label("Search by name, title or role").fill("KERNEL design")
    expect(item(page, "Deep")).to_be_visible()
    expect(item(page, "Top")).to_be_visible()
    expect(item(page, "Elsewhere")).to_be_hidden()
    expect(page.get_by_role("status").filter(has_text="1 agent of")).to_be_visible()
    page.get_by_label("Search by name, title or role").fill("")
    expect(item(page, "Elsewhere")).to_be_visible()
    plain = visit(java_script_enabled=False).goto("/org")
    plain.get_by_label("Search by name, title or role").fill("kernel")
    plain.get_by_role("button", name="Search").click()
    expect(item(plain, "Deep")).to_be_visible()
    expect(item(plain, "Top")).to_be_visible()
    expect(item(plain, "Elsewhere")).to_have_count(0)
    plain.get_by_label("Search by name, title or role").fill("<script>nobody")
    plain.get_by_role("button", name="Search").click()
    expect(plain.get_by_text("No matches.")).to_be_visible()


def test_who_is_terminated_is_hidden_until_asked_for(office: Office, visitor: Visitor) -> None:
    gone = office.agent("Gone")
    office.board.must("POST", f"/api/agents/{gone['id']}/terminate")
    page = visitor.goto("/org")
    expect(item(page, "Gone")).to_have_count(0)
    page.get_by_role("link", name="terminated").click()
    expect(item(page, "Gone").locator(".state")).to_have_text("terminated")
    expect(page.get_by_role("link", name="Move or change Gone")).to_have_count(0)
    page.get_by_role("link", name="terminated").click()
    expect(item(page, "Gone")).to_have_count(0)


@pytest.mark.requirement("HH-11", "BX-08")
def test_a_move_shows_whose_authority_changes_before_it_happens_and_can_be_undone(
    office: Office, visitor: Visitor
) -> None:
    here, there = office.agent("Here"), office.agent("There")
    mover = office.agent("Mover", here["id"])
    office.agent("Follower", mover["id"])
    page = visitor.goto("/org")
    row = item(page, "Mover").locator("> div")
    row.hover()
    row.get_by_role("link", name="Move or change Mover").click()
    page.get_by_label("New manager").fill("Nobody")
    page.get_by_role("button", name="Move…").click()
    expect(page.get_by_role("alert")).to_contain_text("There is no agent named 'Nobody' here.")
    expect(page.get_by_label("New manager")).to_have_value("Nobody")
    page.get_by_label("New manager").fill("Thare")
    page.get_by_role("button", name="Move…").click()
    expect(page.get_by_role("alert")).to_contain_text("Did you mean There")
    page.get_by_label("New manager").fill("Follower")
    page.get_by_role("button", name="Move…").click()
    expect(page.get_by_role("alert")).to_contain_text("Follower works below Mover.")
    page.get_by_label("New manager").fill("there")
    page.get_by_role("button", name="Move…").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Move Mover below there?")
    changes = page.get_by_role("region", name="Changes in authority")
    expect(changes).to_contain_text("+ now can see and control Follower, Mover")
    expect(changes).to_contain_text("\N{MINUS SIGN} no longer can see and control Follower, Mover")
    assert boss_of(office, mover) == here["id"]
    page.get_by_role("button", name="Move Mover").click()
    expect(
        page.get_by_role("status").filter(has_text="Mover now reports to there.")
    ).to_be_visible()
    expect(item(page, "There").get_by_role("link", name="Follower", exact=True)).to_be_visible()
    assert boss_of(office, mover) == there["id"]
    page.locator("[data-part=done]").get_by_role("button", name="Undo…").click()
    expect(changes).to_contain_text("+ now can see and control Follower, Mover")
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="Undone.")).to_be_visible()
    expect(item(page, "Here").get_by_role("link", name="Follower", exact=True)).to_be_visible()
    assert boss_of(office, mover) == here["id"]
    lately = page.locator("[data-part=changes]")
    expect(lately.get_by_text("undone", exact=True)).to_be_visible()


@pytest.mark.requirement("BX-08")
def test_a_layer_is_put_in_and_taken_out_and_an_outdated_undo_is_refused(
    office: Office, visitor: Visitor
) -> None:
    chief = office.agent("Chief")
    one, two = office.agent("One", chief["id"]), office.agent("Two", chief["id"])
    page = visitor.goto("/org/change?agent=Chief")
    page.get_by_text("Insert a layer").click()
    page.get_by_label("Name of the new agent").fill("Middle")
    page.get_by_role("button", name="Insert layer…").click()
    expect(page.get_by_role("alert")).to_contain_text("Nobody is chosen.")
    expect(page.get_by_label("Name of the new agent")).to_have_value("Middle")
    page.get_by_role("checkbox", name="One").check()
    page.get_by_role("checkbox", name="Two").check()
    page.get_by_label("Adapter", exact=True).select_option("process")
    # A browser does not send it without; whoever sends it all the same is told.
    page.get_by_label("Command").evaluate("field => field.removeAttribute('required')")
    page.get_by_role("button", name="Insert layer…").click()
    expect(page.get_by_role("alert")).to_contain_text("command")
    expect(page.get_by_label("Name of the new agent")).to_have_value("Middle")
    page.get_by_label("Adapter", exact=True).select_option("scripted")
    page.get_by_label("Command").wait_for(state="detached")
    page.get_by_role("button", name="Insert layer…").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Insert Middle above 2 agents?")
    page.get_by_role("button", name="Apply change").click()
    expect(item(page, "Middle").get_by_role("link", name="Two", exact=True)).to_be_visible()
    expect(item(page, "Chief").get_by_role("link", name="Middle", exact=True)).to_be_visible()
    page.goto("/org/change?agent=middle")
    page.get_by_role("button", name="Remove Middle…").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Remove Middle?")
    page.get_by_role("button", name="Apply change").click()
    expect(item(page, "Chief").get_by_role("link", name="One", exact=True)).to_be_visible()
    expect(item(page, "Middle")).to_have_count(0)
    assert boss_of(office, one) == chief["id"]
    move = {"op": "move", "agent": two["id"], "to": one["id"]}
    office.board.must("POST", office.path("reorganise"), {"operations": [move]})
    lately = page.locator("[data-part=changes]")
    lately.get_by_role("button", name="Undo: removed Middle").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Not possible")
    expect(page.get_by_role("alert")).to_contain_text("was changed since")


def test_an_observer_looks_and_a_board_of_a_part_changes_that_part(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    part = office.agent("Part")
    office.agent("Inner", part["id"])
    office.agent("Outer")
    observer = visit(office.user("looker", "observer")).goto("/org")
    expect(item(observer, "Inner")).to_be_visible()
    assert observer.locator("[data-tree] .change").count() == 0
    observer.goto("/org/change?agent=Inner")
    expect(observer.get_by_text("Only the board can change the organisation.")).to_be_visible()
    asked = {"name": "partial", "role": "board", "scope": part["id"]}
    made = office.board.must("POST", office.path("users"), asked)
    token = office.board.must("POST", office.path(f"users/{made['id']}/tokens"))["token"]
    page = visit(office.running.client(token)).goto("/org")
    expect(page.get_by_role("link", name="Move or change Inner")).to_have_count(1)
    expect(page.get_by_role("link", name="Move or change Outer")).to_have_count(0)
    page.goto("/org/change?agent=Outer")
    page.get_by_label("New manager").fill("Inner")
    page.get_by_role("button", name="Move…").click()
    expect(page.get_by_role("alert")).to_contain_text("outside your part of the company")


@LOOKED_AT_ELSEWHERE
def test_the_organisation_is_accessible_and_fits_by_day_and_by_night(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    boss = office.root["id"]
    for depth in range(6):
        boss = office.agent(f"Level{depth}-{'x' * 50}", boss, title="W" * 80)["id"]
    for viewport, scheme in ((None, "light"), (PHONE, "dark")):
        more = {"viewport": viewport} if viewport else {}
        page = visit(color_scheme=scheme, **more).goto("/org")
        check_accessible(page)
        check_fits(page)
        page.goto(f"/org/change?agent={office.root['id']}")
        page.get_by_text("Insert a layer").click()
        check_accessible(page)
        check_fits(page)


@pytest.mark.requirement("HH-11")
def test_a_box_of_the_chart_is_dragged_onto_its_new_manager(
    office: Office, visitor: Visitor
) -> None:
    ada, tim = office.agent("Drawn-Ada"), office.agent("Drawn-Tim")
    page = visitor.live(visitor.goto("/org?view=chart"))
    boxes = [page.locator(f"[data-agent='{one['id']}'] .name") for one in (tim, ada)]
    boxes[0].scroll_into_view_if_needed()
    boxes[0].drag_to(boxes[0], target_position={"x": 12, "y": 4})
    assert page.url.endswith("/org?view=chart"), "nothing follows from a drag onto itself"
    boxes[0].drag_to(boxes[1])
    expect(page.get_by_role("button", name="Move Drawn-Tim")).to_be_visible()
    page.get_by_role("button", name="Move Drawn-Tim").click()
    expect(page.get_by_text("Moved.")).to_be_visible()
    assert boss_of(office, tim) == ada["id"]
