"""Files in a browser: what they say, who wrote and read them, and two who write at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browsing import LOOKED_AT_ELSEWHERE, PHONE, Office, Visitor, check_accessible, check_fits


def make(office: Office, description: str, content: str, **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = office.as_agent(office.root).must(
        "POST",
        office.path("files"),
        {"description": description, "content": content, **more},
    )
    return made


def write(office: Office, seen: dict[str, Any], content: bytes) -> dict[str, Any]:
    made: dict[str, Any] = office.as_agent(office.root).must(
        "PUT",
        f"/api/files/{seen['id']}/content",
        body=content,
        headers={"If-Match": f'"{seen["version"]}:{seen["hash"]}"'},
    )
    return made


def reads(office: Office, file: dict[str, Any]) -> int:
    found = office.board.must("GET", f"/api/files/{file['id']}/log")
    return sum(one["access"] == "read" for one in found)


@pytest.mark.requirement("AG-94")
def test_files_are_listed_searched_read_and_compared(office: Office, visitor: Visitor) -> None:
    plan = make(office, "Launch plan", "# Plan\n\n1. Write\n2. Tell\n")
    make(office, "Something else", "x")
    second = write(office, plan, b"# Plan\n\n1. Write *well*\n2. Tell\n")
    page = visitor.goto("/files")
    page.get_by_label("Search files").fill("launch")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("region", name="Files").locator("tbody tr")).to_have_count(1)
    page.get_by_role("link", name="Launch plan").click()
    says = page.get_by_role("region", name="Contents")
    expect(says.get_by_role("heading", name="Plan")).to_be_visible()
    expect(says.locator("em")).to_have_text("well")
    says.get_by_role("link", name="Source").click()
    expect(says).to_contain_text("1. Write *well*")
    page.get_by_role("link", name="what changed in version 2").click()
    expect(says.locator(".added")).to_contain_text("1. Write *well*")
    expect(says.locator(".removed")).to_contain_text("1. Write")
    versions = page.get_by_role("region", name="Versions")
    expect(versions).to_contain_text(office.root["name"])
    versions.get_by_role("link", name="Version 1").click()
    expect(page.get_by_text("This is version 1; the latest is 2.")).to_be_visible()
    rights = page.get_by_role("region", name="Access", exact=True)
    expect(rights).to_contain_text("made the file")
    log = page.get_by_role("region", name="Access log")
    expect(log).to_contain_text("board read version 1")
    assert second["version"] == 2


def test_a_page_that_stays_open_does_not_read_the_file_again_and_again(
    office: Office, visitor: Visitor
) -> None:
    plan = make(office, "Watched", "first words")
    page = visitor.live(visitor.goto(f"/files/{plan['id']}"))
    before = reads(office, plan)
    write(office, plan, b"second words")
    expect(page.get_by_text("There is a newer version now: 2.")).to_be_visible()
    expect(page.get_by_role("region", name="Versions")).to_contain_text("Version 2")
    expect(page.get_by_text("first words")).to_be_visible()
    assert reads(office, plan) == before
    page.get_by_role("link", name="Show the latest").click()
    expect(page.get_by_text("second words")).to_be_visible()
    assert reads(office, plan) == before + 1


def test_two_who_write_at_once_lose_nothing(office: Office, visitor: Visitor) -> None:
    plan = make(office, "Contested", "one\ntwo\nthree\n")
    page = visitor.live(visitor.goto(f"/files/{plan['id']}/edit"))
    expect(page.get_by_label("Text")).to_have_value("one\ntwo\nthree\n")
    page.get_by_label("Text").fill("one\nmine\nthree\n")
    write(office, plan, b"one\ntwo\ntheirs\n")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Somebody else saved version 2 in the meantime.")).to_be_visible()
    expect(page.get_by_label("Your text")).to_have_value("one\nmine\nthree\n")
    expect(page.get_by_role("region", name="Current version")).to_contain_text("theirs")
    check_accessible(page)
    page.get_by_label("Your text").fill("one\nmine\ntheirs\n")
    page.get_by_role("button", name="Save as version 3").click()
    expect(page.get_by_role("status").filter(has_text="Version 3 is written.")).to_be_visible()
    content = office.board("GET", f"/api/files/{plan['id']}/content").body
    assert content == b"one\nmine\ntheirs\n"


def test_a_text_comes_back_from_the_form_as_it_was(office: Office, visitor: Visitor) -> None:
    made = make(office, "With odd ends", "\n  indented\r\nand ended\r\n")
    page = visitor.goto(f"/files/{made['id']}/edit")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").filter(has_text="Version 2")).to_be_visible()
    content = office.board("GET", f"/api/files/{made['id']}/content").body
    # Lines end as most of them did; nothing else is touched.
    assert content == b"\r\n  indented\r\nand ended\r\n"


def test_the_board_makes_a_file_and_renames_it(office: Office, visitor: Visitor) -> None:
    page = visitor.goto("/files")
    page.get_by_role("button", name="New file").click()
    new = page.get_by_role("dialog", name="New file")
    new.get_by_label("Title").fill("Made by hand")
    new.get_by_label("Text").fill("| a | b |\n|---|---|\n| 1 | 2 |\n")
    new.get_by_role("button", name="Create file").click()
    expect(page.get_by_role("heading", level=1, name="Made by hand")).to_be_visible()
    expect(page.locator(".document table td")).to_have_text(["1", "2"])
    page.get_by_role("textbox", name="Title").fill("Renamed by hand")
    page.get_by_label("Unlisted").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1, name="Renamed by hand")).to_be_visible()
    expect(page.get_by_text("unlisted", exact=True)).to_be_visible()


def test_what_is_no_text_is_offered_and_not_shown(office: Office, visitor: Visitor) -> None:
    made = office.board.must(
        "POST",
        office.path("files?description=Picture"),
        body=bytes(range(256)) * 8,
        headers={"Content-Type": "application/octet-stream"},
    )
    page = visitor.goto(f"/files/{made['id']}")
    expect(page.get_by_text("Binary file: 2.0 KiB.")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == f"{made['id']}.bin"
    page.goto(f"/files/{made['id']}/edit")
    expect(page.get_by_role("alert")).to_contain_text("The file is no text.")


def test_very_long_and_hostile_files_are_shown_as_text_and_cut(
    office: Office, visitor: Visitor
) -> None:
    hostile = (
        "<script>document.title='owned'</script> [x](javascript:alert(1)) ![x](http://e.org/a.png)"
        " \u202egnp.exe\n\n" + "w" * 100_000
    )
    made = make(office, "Hostile", hostile)
    page = visitor.goto(f"/files/{made['id']}")
    expect(page.get_by_role("region", name="Contents")).to_contain_text("<script>")
    assert page.locator("main script, main img, main a[href^=javascript]").count() == 0
    check_fits(page)
    long = make(office, "numbers.csv", "1,2,3\n" * 60_000)
    page.goto(f"/files/{long['id']}")
    expect(page.get_by_text("This is the beginning of 351.6 KiB.")).to_be_visible()
    expect(page.locator("pre.source")).to_be_visible()
    page.goto(f"/files/{long['id']}/edit")
    expect(page.get_by_role("alert")).to_contain_text("too large for a form")


def test_the_documents_that_remit_keeps_lead_to_what_they_are_about(
    office: Office, visitor: Visitor
) -> None:
    page = visitor.goto(f"/files/{office.root['id']}")
    expect(page.get_by_role("link", name="Edit")).to_have_count(0)
    page.get_by_role("link", name="Document of an outcome").click()
    page.wait_for_url(f"**/outcomes/{office.root['id']}")
    page.goto(f"/files/{office.root['id']}/edit")
    expect(page.get_by_text("You cannot write this file.")).to_be_visible()


def test_somebody_with_a_part_learns_of_a_file_but_not_what_it_says(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    lead = office.agent("Filelead")
    outside = make(office, "Listed but not yours", "secret words")
    page = visit(office.user("Fileperson", scope=lead["id"])).goto("/files")
    page.get_by_role("link", name="Listed but not yours").click()
    expect(page.get_by_text("You cannot read this file.")).to_be_visible()
    expect(page.get_by_text("secret words")).to_have_count(0)
    page.goto(f"/files/{outside['id']}/edit")
    expect(page.get_by_text("You cannot write this file.")).to_be_visible()
    refused = office.board.must("GET", office.path("events?refused=true"))
    assert not [event for event in refused if event["actor"].startswith("user:")]


def test_observers_read_and_have_no_buttons(office: Office, visit: Callable[..., Visitor]) -> None:
    made = make(office, "For everybody", "plain words")
    page = visit(office.user("Reader", "observer")).goto(f"/files/{made['id']}")
    expect(page.get_by_text("plain words")).to_be_visible()
    expect(page.locator("main form")).to_have_count(0)
    expect(page.get_by_role("link", name="Edit")).to_have_count(0)


def test_a_file_is_written_without_scripts(office: Office, visit: Callable[..., Visitor]) -> None:
    made = make(office, "Quiet", "with scripts")
    page = visit(java_script_enabled=False).goto(f"/files/{made['id']}/edit")
    page.get_by_label("Text").fill("without scripts")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("without scripts")).to_be_visible()


@LOOKED_AT_ELSEWHERE
def test_files_are_accessible_and_fit_a_phone(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    made = make(office, "Looked at", "### Deep first\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    write(office, made, b"# Now\n\nkb://" + office.root["id"].encode() + b"\n")
    for viewport, scheme in ((None, "light"), (PHONE, "dark")):
        more = {"viewport": viewport} if viewport else {}
        visitor = visit(color_scheme=scheme, **more)
        for address in (
            "",
            f"/{made['id']}",
            f"/{made['id']}?version=2&against=1",
            f"/{made['id']}/edit",
        ):
            page = visitor.goto(f"/files{address}")
            check_accessible(page)
            check_fits(page)
