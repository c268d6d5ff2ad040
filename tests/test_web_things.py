"""What a person looks for on the pages of things, in how many clicks from the front page."""

from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from remit.clock import DAY
from remit.model.execution.transcript import Entry, EntryKind, line_of
from tests.browsing import PHONE, Office, Visitor, check_accessible, check_fits, doing
from tests.company import run_sql


def side(page: Page, name: str) -> Locator:
    return page.get_by_role("navigation", name="Pages").get_by_role("link", name=name)


def written(office: Office, title: str, text: str = "x") -> dict[str, Any]:
    made: dict[str, Any] = office.as_agent(office.root).must(
        "POST", office.path("files"), {"description": title, "content": text}
    )
    return made


def put_back(office: Office, action: str, by: int) -> None:
    """What was done becomes older; its hash then shows that, which no test here looks at."""
    url = office.running.app.settings.database_url
    run_sql(url, "DROP TRIGGER IF EXISTS events_no_update")
    run_sql(url, "UPDATE events SET at = at - ? WHERE action <> ?", by, action)


@pytest.mark.requirement("FX-50")
def test_yesterday_is_two_clicks_away_and_a_run_is_one_line(
    office: Office, visitor: Visitor
) -> None:
    worker = office.agent("Yesterdays")
    run = office.begin(worker)
    office.end(run)
    put_back(office, "file.create", DAY)
    written(office, "Made today")
    page = visitor.page
    page.goto("/")
    with doing(page, "see what happened yesterday"):
        side(page, "Record").first.click()
        page.get_by_role("link", name="Yesterday", exact=True).click()
        expect(page.get_by_role("heading", name="Yesterday,")).to_be_visible()
    line = page.locator(".of-run").filter(has_text="Yesterdays")
    expect(line).to_have_count(1)
    expect(line).to_contain_text("no effect")
    expect(page.get_by_text("Made today")).to_have_count(0)
    page.goto("/events?q=made+TODAY")
    expect(page.locator(".record > li")).to_have_count(1)


@pytest.mark.requirement("FX-50")
def test_a_run_is_a_tree_and_runs_have_a_timeline_in_the_address(
    office: Office, visitor: Visitor, visit: Any
) -> None:
    worker = office.agent("Treemaker")
    run = office.begin(worker)
    for number, entry in enumerate(
        (
            Entry(EntryKind.CALL, "path=plan.md", tool="kb_read", call="1"),
            Entry(EntryKind.RESULT, "# Plan", tool="kb_read", call="1"),
            Entry(EntryKind.TURN, turn=1, tokens_in=1000, tokens_out=50, cost_micros=20_000),
            Entry(EntryKind.CALL, "x", tool="Bash", call="2"),
            Entry(EntryKind.DENIED, "not allowed", tool="Bash", call="2"),
            Entry(EntryKind.TURN, turn=2, tokens_in=1500, tokens_out=80, cost_micros=50_000),
        ),
        1,
    ):
        office.print(run, number, line_of(entry) + "\n", stream="remit")
    page = visitor.page
    page.goto("/")
    with doing(page, "follow a live log"):
        side(page, "Runs").click()
        page.get_by_role("link", name="of Treemaker").click()
        expect(page.get_by_role("log")).to_contain_text("kb_read")
    office.end(run)
    page.reload()
    turns = page.locator("[data-part=steps] > li")
    expect(turns).to_have_count(2)
    expect(turns.nth(0)).to_contain_text("1,000 in, 50 out")
    expect(turns.nth(0)).to_contain_text("$0.02")
    expect(turns.nth(1)).to_contain_text("500 in, 30 out")
    expect(turns.nth(1)).to_contain_text("$0.03")
    expect(turns.nth(1).get_by_text("denied")).to_be_visible()
    check_accessible(page)
    page.goto("/runs?agent=Treemaker&status=failed")
    expect(page.get_by_text("No matches.")).to_be_visible()
    page.goto("/runs?agent=Treemaker&status=completed&range=today")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("link", name="Timeline").click()
    bar = page.locator(".lanes svg a").filter(has=page.locator("rect"))
    expect(bar).to_have_count(1)
    expect(bar.locator("title")).to_contain_text("Treemaker")
    bar.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/runs/{run.id}")
    phone = visit(viewport=PHONE, color_scheme="dark")
    shown = phone.goto(f"/runs/{run.id}")
    check_accessible(shown)
    check_fits(shown)
    lanes = phone.goto("/runs?view=timeline").get_by_label("Agents", exact=True)
    name = lanes.get_by_role("link", name="Treemaker").bounding_box()
    assert name is not None
    assert 0 <= name["x"] < PHONE["width"] / 2


def test_files_come_without_mail_and_access_is_granted_and_revoked_on_the_page(
    office: Office, visitor: Visitor
) -> None:
    reader = office.agent("Bookworm")
    for number in range(60):
        office.board.must(
            "POST", office.path("messages"), {"to": f"agent:{reader['id']}", "body": f"n {number}"}
        )
    made = written(office, "The only file", "Somewhere in it: Xylophone.")
    page = visitor.page
    page.goto("/")
    with doing(page, "see who may read a file, and revoke"):
        side(page, "Files").click()
        page.get_by_role("link", name="The only file").click()
        access = page.get_by_role("region", name="Access", exact=True)
        expect(access).to_contain_text("made the file")
        access.get_by_role("button", name="Revoke").click()
        page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        expect(access).not_to_contain_text("made the file")
    page.get_by_role("button", name="Grant…").click()
    grant = page.get_by_role("dialog", name="Grant access")
    grant.get_by_label("To").fill("Bookworm")
    grant.get_by_role("button", name="Grant", exact=True).click()
    expect(access).to_contain_text("Bookworm")
    check_accessible(page)
    page.goto("/files?letters=1")
    expect(page.locator("tbody tr")).to_have_count(50)
    page.goto("/files?query=xylo&inside=1")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody")).to_contain_text("Xylophone")
    log = office.board.must("GET", f"/api/files/{made['id']}/log")
    assert log[0]["access"] == "read"
    page.goto(f"/agents/{reader['id']}?tab=rights")
    expect(page.get_by_role("region", name="Permissions").locator("tbody tr")).to_have_count(1)
    page.get_by_role("link", name="From mail (60)").click()
    expect(page.get_by_role("region", name="Permissions").locator("tbody tr")).to_have_count(50)


@pytest.mark.requirement("FX-48", "HH-11")
def test_a_folded_branch_shows_the_worst_below_it_and_a_move_is_a_drag(
    office: Office, visitor: Visitor
) -> None:
    lead, other = office.agent("Leader"), office.agent("Other")
    broken = office.agent("Broken", lead["id"])
    url = office.running.app.settings.database_url
    run_sql(url, "UPDATE agents SET status = 'error' WHERE id = ?", broken["id"])
    page = visitor.page
    page.goto("/org")
    page.get_by_role("button", name="Reports of Leader").click()
    row = page.locator("li > div").filter(has=page.get_by_role("link", name="Leader")).last
    expect(row).to_contain_text("1 stopped below")
    page.get_by_role("button", name="Reports of Leader").click()
    expect(row.locator(".below")).to_be_hidden()
    page.goto("/")
    with doing(page, "move an agent"):
        side(page, "Organisation").click()
        source = page.locator("li > div").filter(has=page.get_by_role("link", name="Broken")).last
        target = page.locator("li > div").filter(has=page.get_by_role("link", name="Other")).last
        source.drag_to(target)
        expect(page.get_by_role("heading", level=1)).to_have_text("Move Broken below Other?")
        page.get_by_role("button", name="Move Broken").click()
        said = page.get_by_role("status").filter(has_text="Broken now reports to Other.")
        expect(said).to_be_visible()
    found = office.board.must("GET", f"/api/agents/{broken['id']}")
    assert found["reportsTo"] == other["id"]
    page.goto("/org?view=chart")
    expect(page.locator("svg.graph .box.is-bad")).to_have_count(1)
    check_accessible(page)
    check_fits(page)
