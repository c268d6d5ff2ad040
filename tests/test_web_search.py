"""Search and keys: every thing and every action from everywhere, and nothing that is not yours."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from remit.ids import short
from tests.browsing import Office, Visitor, check_accessible


def searched(office: Office, name: str) -> dict[str, str]:
    """An agent with an outcome, a file and a letter of one name."""
    agent = office.agent(f"{name}-agent", title=f"Looks after {name}")
    mine = office.as_agent(agent)
    asked = {"parentId": agent["id"], "title": f"{name} <b>stands</b>"}
    outcome = mine.must("POST", office.path("outcomes"), asked)
    file = mine.must(
        "POST", office.path("files"), {"description": f"{name} plan", "content": "# Plan"}
    )
    mine.must(
        "POST", office.path("messages"), {"to": "board", "subject": f"{name} news", "body": "x"}
    )
    return {"agent": agent["id"], "outcome": outcome["id"], "file": file["id"]}


@pytest.mark.requirement("FX-50")
def test_search_finds_things_and_actions_without_scripts(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    made = searched(office, "Lighthouse")
    page = visit(java_script_enabled=False).goto("/search?q=lighthouse")
    found = page.get_by_role("region", name="Found").get_by_role("link")
    for kind, name in (
        ("agents", "Lighthouse-agent"),
        ("outcomes", "Lighthouse <b>stands</b>"),
        ("files", "Lighthouse plan"),
        ("inbox", "Lighthouse news"),
    ):
        link = found.filter(has_text=name).first
        expect(link).to_have_attribute("href", re.compile(f"^/{kind}/"))
    write = found.filter(has_text="Write to Lighthouse-agent")
    expect(write).to_have_attribute("href", f"/agents/{made['agent']}?tab=mail")
    expect(found.filter(has_text="Lighthouse-agent sent Lighthouse news")).to_be_visible()
    page.get_by_label("Agents, people").fill("hire")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("link", name="Hire agent")).to_have_attribute("href", "/hire")
    page.goto(f"/search?q={short(made['outcome'])}")
    expect(found.filter(has_text="Lighthouse <b>stands</b>")).to_be_visible()
    page.goto("/search?q=%3Cscript%3Enobody")
    expect(page.get_by_text("No matches for “<script>nobody”.")).to_be_visible()


@pytest.mark.requirement("FX-50")
def test_search_finds_runs_people_and_contents(office: Office, visitor: Visitor) -> None:
    agent = office.agent("Searcher")
    run = office.begin(agent)
    office.end(run, "failed")
    office.user("searcher-friend")
    mine = office.as_agent(agent)
    text = {"description": "Tide table", "content": "High water at <b>noon</b>."}
    file = mine.must("POST", office.path("files"), text)
    letter = {"to": "board", "subject": "Boats", "body": "They need high water."}
    sent = mine.must("POST", office.path("messages"), letter)
    page = visitor.goto("/search?q=searcher")
    found = page.get_by_role("region", name="Found").get_by_role("listitem")
    for words, place in (("Person", "people/"), ("Run, failed", f"runs/{run.id}")):
        link = found.filter(has_text=words).get_by_role("link")
        expect(link).to_have_attribute("href", re.compile(place))
    page.goto(f"/search?q={short(run.id)}")
    expect(found.filter(has_text="Run, failed")).to_be_visible()
    mended = office.begin(agent)
    office.end(mended)
    page.goto(f"/search?q={short(mended.id)}")
    expect(found.filter(has_text="Run, completed")).to_contain_text("Searcher: Started by hand")
    office.hire("Sought")
    page.goto("/search?q=sought")
    expect(found.filter(has_text="engineer, awaits approval")).to_be_visible()
    page.goto("/search?q=high+water")
    expect(page.get_by_text("No matches for “high water”.")).to_be_visible()
    page.get_by_role("link", name="Search contents of files and mail").click()
    for words, address in (("Tide table", f"/files/{file['id']}"), ("Boats", sent["id"])):
        link = found.filter(has_text=words).get_by_role("link").first
        expect(link).to_have_attribute("href", re.compile(address))
    expect(found.filter(has_text="<b>noon</b>")).to_be_visible()
    check_accessible(page)
    read = office.board.must("GET", f"/api/files/{file['id']}/log")
    assert read[0]["userId"], "what is shown of a text was read"


@pytest.mark.requirement("FX-50")
def test_search_finds_only_what_the_searcher_may_see(office: Office) -> None:
    mine, theirs = searched(office, "Harbour-mine"), searched(office, "Harbour-theirs")
    part = office.user("harbourer", scope=mine["agent"])
    found = part.must("GET", office.path("search?words=harbour"))
    names = {one["name"] for one in found}
    assert {"Harbour-mine-agent", "Harbour-mine <b>stands</b>"} <= names
    assert not [name for name in names if "theirs" in name and "plan" not in name]
    assert theirs["outcome"] not in {one["id"] for one in found}
    everything = {one["name"] for one in office.board.must("GET", office.path("search?words=harb"))}
    assert {"Harbour-theirs-agent", "Harbour-theirs plan"} <= everything
    assert office.board.must("GET", office.path("search")) == []
    stranger = office.board.must("POST", "/api/companies", {"name": "Elsewhere"})
    assert part("GET", f"/api/companies/{stranger['id']}/search?words=x").status == 404


@pytest.mark.requirement("FX-50")
def test_keys_lead_everywhere(office: Office, visitor: Visitor) -> None:
    made = searched(office, "Keeper")
    page = visitor.live(visitor.goto("/"))
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Search or act")
    expect(field).to_be_focused()
    field.fill("keeper-agent")
    chosen = page.get_by_role("option", selected=True)
    expect(chosen).to_contain_text("Keeper-agent")
    check_accessible(page)
    page.keyboard.press("ArrowDown")
    expect(chosen).to_contain_text("Write to Keeper-agent")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/agents/{made['agent']}")
    visitor.live()
    page.keyboard.press("g")
    page.keyboard.press("r")
    page.wait_for_url("**/runs*")
    visitor.live()
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    expect(field).to_be_hidden()


@pytest.mark.requirement("FX-50")
def test_every_noun_of_the_set_up_and_the_brake_are_found(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    """Without scripts, for speed: what Ctrl-K shows is taken from this page."""
    page = visit(java_script_enabled=False).page
    for words, place in (
        ("budget", "/setup/budgets"),
        ("add secret", "/setup/secrets/new"),
        ("channels", "/setup/channels"),
        ("new company", "/companies/new"),
        ("back up", "/instance#backups"),
        ("timeline", "/runs?view=timeline"),
        ("levels", f"/companies/{office.company}/levels"),
    ):
        page.goto(f"/search?q={words.replace(' ', '+')}")
        found = page.locator("[data-found] a").evaluate_all(
            "all => all.map((one) => one.getAttribute('href'))"
        )
        assert place in [re.sub(r"[?&]company=[\w-]+", "", one) for one in found], words
        expect(page.get_by_text("No matches")).to_have_count(0)
    watcher = visit(office.user("search-watcher", "observer"), java_script_enabled=False).page
    watcher.goto("/search?q=stop")
    expect(watcher.get_by_role("button", name="Stop the company")).to_have_count(0)


@pytest.mark.requirement("FX-50")
def test_the_palette_acts(office: Office, visitor: Visitor) -> None:
    """A verb and a name do it, and what was done can be taken back beside it."""
    agent = office.agent("Lamplighter")
    page = visitor.live(visitor.goto("/runs"))
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Search or act").fill("pause lampl")
    expect(page.get_by_role("option", selected=True)).to_contain_text("Pause Lamplighter")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").filter(has_text="Lamplighter is paused.")).to_be_visible()
    assert office.board.must("GET", f"/api/agents/{agent['id']}")["status"] == "paused"
    visitor.live()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status").filter(has_text="Lamplighter is resumed.")).to_be_visible()
    assert office.board.must("GET", f"/api/agents/{agent['id']}")["status"] == "idle"
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Search or act").fill("stop the")
    expect(page.get_by_role("option", selected=True)).to_contain_text("Stop the company")
    page.keyboard.press("Enter")
    expect(page.get_by_text("The company is stopped").first).to_be_visible()
    page.get_by_role("button", name="Resume the company").click()
    expect(page.get_by_text("The company is resumed.")).to_be_visible()


def test_an_address_that_does_not_exist_is_a_page_for_people_and_json_for_programs(
    office: Office, visitor: Visitor
) -> None:
    answer = visitor.page.goto("/no/such/page")
    assert answer is not None
    assert answer.status == 404
    expect(visitor.page.get_by_role("heading", level=1)).to_have_text("Not found")
    expect(visitor.page.get_by_role("navigation", name="Pages")).to_be_visible()
    assert office.board("GET", "/no/such/page").code == "not_found"
    assert office.board("GET", "/api/no/such").code == "not_found"
