"""The record in a browser: what happened, by whose authority, and whether it is whole."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

import remit
from remit.authority import Action
from remit.entrypoints.web.text import event_text
from tests.browsing import LOOKED_AT_ELSEWHERE, PHONE, Office, Visitor, check_accessible, check_fits
from tests.company import run_sql
from tests.page_stage import Proposals

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def plan(office: Office, description: str = "Plan") -> dict[str, Any]:
    made: dict[str, Any] = office.as_agent(office.root).must(
        "POST", office.path("files"), {"description": description, "content": "x"}
    )
    return made


def recorded(office: Office, **wanted: str) -> list[dict[str, Any]]:
    query = "&".join(f"{name}={value}" for name, value in wanted.items())
    found: list[dict[str, Any]] = office.board.must("GET", office.path(f"events?{query}"))
    return found


@pytest.mark.requirement("AG-93", "AG-94")
def test_the_record_is_told_in_words_and_filtered(office: Office, visitor: Visitor) -> None:
    made = plan(office, "Plan of the record")
    reader = office.agent("Curious")
    refused = office.as_agent(reader)("GET", f"/api/files/{made['id']}/content")
    assert refused.status == 403
    page = visitor.goto("/events")
    told = page.locator(".record > li")
    expect(
        told.filter(has_text=f"{office.root['name']} created the file Plan of the record")
    ).to_be_visible()
    denied = told.filter(has_text="Curious was not allowed to read Plan of the record")
    expect(denied.get_by_text("refused", exact=True)).to_be_visible()
    denied.locator("summary").click()
    expect(denied).to_contain_text("no_capability".replace("_", " "))
    page.get_by_label("Refused only").check()
    page.get_by_role("button", name="Search").click()
    expect(told).to_have_count(1)
    page.get_by_role("link", name="Clear").click()
    page.get_by_label("About").select_option("file")
    page.get_by_label("By").fill("Curious")
    page.get_by_role("button", name="Search").click()
    expect(told).to_have_count(1)
    page.get_by_label("By").fill("nobody at all")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_text("There is nobody named 'nobody at all' here.")).to_be_visible()


@pytest.mark.requirement("BX-03")
def test_a_page_leads_from_an_effect_back_to_the_person_who_authorised_it(
    office: Office, visitor: Visitor
) -> None:
    made = plan(office, "Delegated plan")
    writer = office.agent("Scribbler")
    office.as_agent(office.root).must(
        "POST",
        office.path("grants"),
        {"to": writer["id"], "resource": f"kb_file:{made['id']}", "level": "write"},
    )
    office.as_agent(writer).must(
        "PUT",
        f"/api/files/{made['id']}/content",
        body=b"new",
        headers={"If-Match": f'"{made["version"]}:{made["hash"]}"'},
    )
    page = visitor.goto("/events?action=file.write")
    effect = page.locator("[data-seq]").filter(
        has_text="Scribbler wrote version 2 of Delegated plan"
    )
    effect.locator("summary").click()
    effect.get_by_role("link", name="By whose authority?").click()
    steps = page.get_by_role("region", name="Chain of authority").locator(".record")
    expect(steps.first).to_contain_text("Scribbler wrote version 2 of Delegated plan")
    expect(steps.nth(1)).to_contain_text("granted write on Delegated plan to Scribbler")
    expect(steps.last).to_contain_text("board created")
    expect(page.get_by_text("Authorised by board, a person.")).to_be_visible()


def test_new_events_come_on_top_and_the_place_is_kept(office: Office, visitor: Visitor) -> None:
    for number in range(12):
        plan(office, f"Background {number}")
    page = visitor.live(visitor.goto("/events"))
    opened = page.locator("[data-seq]").nth(9)
    opened.locator("summary").click()
    mark = opened.get_attribute("id") or ""
    page.evaluate("(id) => document.getElementById(id).scrollIntoView()", mark)
    place = page.evaluate("(id) => document.getElementById(id).getBoundingClientRect().top", mark)
    plan(office, "Just now")
    fresh = page.get_by_role("link", name="1 new")
    expect(fresh).to_be_visible()
    expect(page.locator(f"#{mark} details")).to_have_attribute("open", "")
    now = page.evaluate("(id) => document.getElementById(id).getBoundingClientRect().top", mark)
    assert abs(now - place) < 3, "what one reads stays where it is"
    fresh.click()
    expect(page.locator("[data-seq]").first).to_contain_text("created the file Just now")
    # Each is there once.
    numbers = page.locator("[data-seq]").evaluate_all("all => all.map(one => one.dataset.seq)")
    assert numbers == sorted(set(numbers), key=int, reverse=True)


def test_a_long_record_goes_on_on_the_next_page(office: Office, visitor: Visitor) -> None:
    for number in range(60):
        plan(office, f"Filling {number}")
    page = visitor.goto("/events")
    expect(page.locator("[data-seq]")).to_have_count(50)
    last = int(page.locator("[data-seq]").last.get_attribute("data-seq") or 0)
    page.get_by_role("link", name="More").click()
    page.wait_for_url("**before=**")
    assert int(page.locator("[data-seq]").first.get_attribute("data-seq") or 0) == last - 1
    page.goto("/events?before=nonsense&action=%00")
    expect(page.get_by_role("heading", level=1)).to_be_visible()


def test_hostile_words_in_the_record_are_text(office: Office, visitor: Visitor) -> None:
    made = plan(office, "<script>alert(1)</script><img src=x onerror=alert(2)>")
    office.as_agent(office.root).must(
        "POST",
        office.path("outcomes"),
        {"parentId": office.root["id"], "title": "<b>" + "t" * 190},
    )
    page = visitor.goto("/events")
    expect(page.get_by_text("<script>alert(1)</script>").first).to_be_visible()
    assert page.locator("main script, main img, main b").count() == 0
    check_fits(page)
    assert made["version"] == 1


def test_observers_look_and_somebody_with_a_part_is_told_why_not(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    lead = office.agent("Recordlead")
    page = visit(office.user("Onlooker", "observer")).goto("/events")
    expect(page.locator("[data-seq]").first).to_be_visible()
    page = visit(office.user("Partner", scope=lead["id"])).goto("/events")
    expect(page.get_by_text("you have a part of it")).to_be_visible()
    page.goto(f"/events/{recorded(office, limit='1')[0]['id']}")
    expect(page.get_by_text("you have a part of it")).to_be_visible()
    assert not [one for one in recorded(office, refused="true") if one["actor"][:5] == "user:"]


@LOOKED_AT_ELSEWHERE
def test_the_record_is_accessible_and_fits_a_phone_by_day_and_by_night(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    plan(office)
    event = recorded(office, limit="1")[0]["id"]
    for viewport, scheme in ((None, "light"), (PHONE, "dark")):
        more = {"viewport": viewport} if viewport else {}
        visitor = visit(color_scheme=scheme, **more)
        for address in ("/events", f"/events/{event}"):
            page = visitor.goto(address)
            page.locator("summary").last.click()
            check_accessible(page)
            check_fits(page)


@pytest.mark.requirement("AG-95")
def test_what_a_page_does_and_shows_other_clients_do_and_see_too(
    office: Office, visitor: Visitor
) -> None:
    """One protocol: a page, a program over HTTP and the record agree on who did what."""
    page = visitor.goto("/files")
    page.get_by_role("button", name="New file").click()
    new = page.get_by_role("dialog", name="New file")
    new.get_by_label("Title").fill("Made on a page")
    new.get_by_role("button", name="Create file").click()
    expect(page.get_by_role("heading", level=1, name="Made on a page")).to_be_visible()
    by_page = recorded(office, action="file.create", limit="1")[0]
    over_http = office.board.must(
        "POST", office.path("files"), {"description": "Made over HTTP", "content": ""}
    )
    by_program = recorded(office, action="file.create", limit="1")[0]
    same = ("actor", "action", "allowed", "reason", "basis")
    assert {key: by_page[key] for key in same} == {key: by_program[key] for key in same}
    page.goto("/files")
    expect(page.get_by_role("link", name="Made over HTTP")).to_be_visible()
    listed = office.board.must("GET", office.path("files"))
    assert {one["description"] for one in listed} >= {"Made on a page", "Made over HTTP"}
    assert over_http["version"] == 1


def test_whether_the_record_is_whole_is_checked_on_request(
    office: Office, visitor: Visitor
) -> None:
    page = visitor.goto("/events")

    def verify(known: str = "") -> None:
        page.get_by_role("button", name="Verify…").click()
        page.get_by_label("Known hash").fill(known)
        page.get_by_role("button", name="Verify", exact=True).click()

    verify()
    said = page.get_by_role("status").filter(has_text="The audit log is intact")
    expect(said).to_be_visible()
    kept = (said.text_content() or "").strip().rpartition(" ")[2]
    verify(kept)
    expect(page.get_by_role("dialog")).to_have_count(0)  # it was sent, and the answer is there
    expect(said).to_be_visible()
    verify("nonsense")
    expect(page.get_by_role("alert")).to_contain_text("64 hex digits")
    database = office.running.app.settings.database_url
    run_sql(database, "DROP TRIGGER events_no_update")
    run_sql(
        database,
        "UPDATE events SET reason = 'forged' WHERE company_id = ? AND seq = 2",
        office.company,
    )
    verify()
    expect(page.get_by_role("alert")).to_contain_text("Event 2 was changed.")


def test_every_action_of_the_record_has_words() -> None:
    source = "\n".join(path.read_text() for path in Path(remit.__path__[0]).rglob("*.py"))
    recorded = set(re.findall(r'record\(\s*"(\w+\.\w+)"', source))
    recorded |= set(re.findall(r'(?:delivered|failed)="(\w+\.\w+)"', source))
    assert len(recorded) > 100
    asked = {one.value for one in Action if "." in one.value}
    assert {one for one in recorded | asked if event_text.past(one).startswith("did ")} == set()


def test_what_happens_to_a_change_is_told_by_its_title(
    office: Office, visitor: Visitor, tmp_path: Path
) -> None:
    change = Proposals(office, tmp_path).propose({"app.py": "def add(a, b):\n    return a + b\n"})
    office.board.must("POST", f"/api/changes/{change}/comments", {"body": "Why?"})
    page = visitor.goto("/events")
    told = page.locator(".record > li").filter(has_text="commented on Add, do not subtract")
    expect(told.get_by_role("link", name="Add, do not subtract")).to_be_visible()
    assert change not in page.locator(".record").inner_text()


def test_what_is_set_up_is_told_by_its_name_and_whose_it_is(
    office: Office, visitor: Visitor, tmp_path: Path
) -> None:
    board, path = office.board, office.path
    agent = office.agent("Reporter")
    board.must("POST", path("bindings"), {"agent": agent["id"], "adapterType": "webhook"})
    tools = tmp_path / "tools"
    tools.mkdir()
    board.must("POST", path("mounts"), {"path": str(tools)})
    daily = {"agent": agent["id"], "body": "Report.", "cron": "0 9 * * 1-5"}
    board.must("POST", path("schedules"), {**daily, "timezone": "Europe/Berlin"})
    for cents in (2500, 4000, None):
        board.must("PATCH", f"/api/agents/{agent['id']}", {"budgetMonthlyCents": cents})
    record = visitor.goto("/events?every=1").locator(".record")
    for sentence in (
        "board connected the webhook channel of Reporter",
        f"board connected the folder {tools}",
        "board created a schedule of Reporter: weekdays at 09:00 (Europe/Berlin)",
        "board reserved a budget for Reporter $25.00",
        "board raised the budget of Reporter from $25.00 to $40.00",
        "board took back unspent budget from Reporter from $40.00 to no limit",
    ):
        expect(record.get_by_role("listitem").filter(has_text=sentence)).to_be_visible()
    assert not UUID.search(record.inner_text())
