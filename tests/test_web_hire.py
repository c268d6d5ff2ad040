"""Hiring in the browser: describe an agent, see what it would be, and take it on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browsing import PHONE, Office, Visitor, check_accessible, check_fits


def describe(page: Page, name: str, boss: str, **more: str) -> None:
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Reports to").fill(boss)
    for label, text in more.items():
        page.get_by_label(label.replace("_", " ")).fill(text)


def called(office: Office, name: str) -> list[dict[str, Any]]:
    found = office.board.must("GET", office.path("agents?limit=200"))
    return [one for one in found if one["name"] == name]


@pytest.mark.requirement("PC-66", "PC-67", "PC-69", "PC-79")
def test_the_board_hires_at_once_what_it_saw_in_the_preview(
    office: Office, visitor: Visitor
) -> None:
    page = visitor.goto("/hire?adapter=scripted")
    describe(
        page,
        "Turing",
        office.root["name"],
        Title="Mathematician",
        Mandate="Every question is decided",
        Instructions="Decide **carefully**.",
        Capabilities="Proofs of all kinds",
    )
    page.get_by_label("Role").select_option("researcher")
    page.get_by_label("Can create new agents").check()
    page.get_by_label("New permission on").fill("full_access")
    page.get_by_label("Level").select_option("use")
    page.get_by_label("Mode", exact=True).select_option("ask")
    page.get_by_role("button", name="Add permission", exact=True).click()
    expect(page.get_by_label("Extra permissions")).to_have_value("full_access use ask\n")
    page.get_by_role("button", name="Preview", exact=True).last.click()
    preview = page.get_by_role("region", name="Preview")
    expect(preview).to_contain_text("You are Turing, Mathematician (researcher)")
    expect(preview).to_contain_text("Decide **carefully**.")
    expect(preview).to_contain_text("What you are good at: Proofs of all kinds")
    expect(preview).to_contain_text(f"Your boss is agent:{office.root['name']}")
    expect(preview).to_contain_text("hire_agent for a lasting post")
    rights = page.get_by_role("region", name="Permissions by resource")
    expect(rights).to_contain_text("full_access")
    expect(rights).to_contain_text("its memory")
    # Looking leaves nothing behind.
    assert called(office, "Turing") == []
    page.get_by_role("button", name="Hire now").click()
    expect(page.get_by_text("Turing is ready to work.")).to_be_visible()
    page.get_by_role("link", name="Go to Turing").click()
    page.wait_for_url("**/agents/*")
    (made,) = called(office, "Turing")
    assert (made["role"], made["title"], made["status"]) == ("researcher", "Mathematician", "idle")
    assert made["reportsTo"] == office.root["id"]
    assert made["permissions"] == {"canCreateAgents": True}
    assert made["prompt"] == "Decide **carefully**."
    held = office.board.must("GET", office.path(f"grants?agent={made['id']}"))
    assert [(one["resource"], one["mode"]) for one in held] == [("full_access", "ask")]
    (approved,) = [
        one
        for one in office.board.must("GET", office.path("approvals?limit=200"))
        if one["agentId"] == made["id"]
    ]
    assert (approved["status"], approved["decisionNote"]) == ("approved", "Created by the board")


@pytest.mark.requirement("PC-69", "PC-79")
def test_a_hire_that_somebody_shall_approve_is_pending_and_then_ready(
    office: Office, visitor: Visitor
) -> None:
    page = visitor.goto("/hire?adapter=scripted")
    describe(page, "Church", office.root["name"])
    page.get_by_role("button", name="Preview", exact=True).last.click()
    page.locator("#f-reason").fill("Somebody has to count.")
    page.get_by_role("button", name="Ask for approval").click()
    expect(page.get_by_text("Pending board approval.")).to_be_visible()
    visitor.live()
    page.evaluate("window.unbroken = true")
    address = page.get_by_role("link", name="Open approval").get_attribute("href")
    assert address is not None
    asked = office.board.must("GET", f"/api{address}")
    assert asked["payload"]["reason"] == "Somebody has to count."
    office.board.must("POST", f"/api{address}/approve")
    expect(page.get_by_text("Church is ready to work.")).to_be_visible()
    assert page.evaluate("window.unbroken")


def test_where_nobody_is_asked_there_is_one_way_to_hire(office: Office, visitor: Visitor) -> None:
    switch = "requireBoardApprovalForNewAgents"
    office.board.must("PATCH", f"/api/companies/{office.company}", {switch: False})
    try:
        page = visitor.goto("/hire?adapter=scripted")
        describe(page, "Kleene", office.root["name"])
        page.get_by_label("Existing outcome").fill("nonsense")
        page.get_by_role("button", name="Preview", exact=True).last.click()
        expect(page.get_by_role("alert")).to_be_visible()
        outcome = office.board.must(
            "POST", office.path("outcomes"), {"title": "Stars", "parentId": office.root["id"]}
        )
        page.get_by_label("Existing outcome").fill(outcome["id"])
        page.get_by_role("button", name="Preview", exact=True).last.click()
        expect(page.get_by_role("button", name="Ask for approval")).to_have_count(0)
        page.get_by_role("button", name="Hire now").click()
        expect(page.get_by_text("Kleene is ready to work.")).to_be_visible()
        assert called(office, "Kleene")[0]["id"] == outcome["id"]
    finally:
        office.board.must("PATCH", f"/api/companies/{office.company}", {switch: True})


@pytest.mark.requirement("PC-68")
def test_the_adapters_text_and_similar_configurations_are_beside_the_form(
    office: Office, visitor: Visitor
) -> None:
    secret = "sk-live-aaaabbbbccccdddd2222"
    office.agent(
        "Model",
        adapterType="process",
        prompt="As a model does.",
        adapterConfig={
            "command": "python3",
            "args": ["-m", "worker"],
            "env": {"LANG": "C", "API_TOKEN": secret},
            "timeoutSeconds": 60,
        },
    )
    page = visitor.goto("/hire?adapter=process&role=engineer")
    about = page.get_by_role("region", name="About process")
    said = office.board.must("GET", office.path("adapters/process"))["text"]
    expect(about).to_contain_text(said.splitlines()[2])
    expect(about).to_contain_text("Required keys")
    alike = page.get_by_role("region", name="Similar agents")
    alike.get_by_text("Its configuration").click()
    expect(alike).to_contain_text("Timeout seconds60")
    page.get_by_label("Name", exact=True).fill("Copy")
    page.get_by_role("button", name="Use as template: Model").click()
    expect(page.get_by_label("Name", exact=True)).to_have_value("Copy")
    expect(page.get_by_label("Instructions")).to_have_value("As a model does.")
    expect(page.get_by_label("Command")).to_have_value("python3")
    expect(page.get_by_label("Args")).to_have_value("-m\nworker")
    expect(page.get_by_label("Environment variables")).to_have_value("LANG=C")
    assert secret not in page.content()
    assert "REDACTED" not in page.get_by_label("Environment variables").input_value()
    page.get_by_role("button", name="Preview", exact=True).last.click()
    page.get_by_role("button", name="Hire now").click()
    expect(page.get_by_text("Copy is ready to work.")).to_be_visible()
    assert called(office, "Copy")[0]["adapterConfig"]["args"] == ["-m", "worker"]


def test_choosing_another_adapter_keeps_what_was_typed(office: Office, visitor: Visitor) -> None:
    page = visitor.goto("/hire?adapter=process")
    describe(page, "Switcher", "", Instructions="Keep this.")
    page.get_by_label("Adapter", exact=True).select_option("claude")
    expect(page.get_by_role("region", name="About claude")).to_be_visible()
    expect(page.get_by_label("Instructions")).to_have_value("Keep this.")
    expect(page.get_by_label("Name", exact=True)).to_have_value("Switcher")


def test_what_the_adapter_does_not_take_is_said_at_the_field(
    office: Office, visitor: Visitor
) -> None:
    page = visitor.goto("/hire?adapter=claude")
    describe(page, "Hopper", office.root["name"])
    page.get_by_text("More settings").click()
    page.get_by_label("Max turns").fill("0")
    page.get_by_label("Environment variables").fill("NO EQUALS")
    page.get_by_role("button", name="Preview", exact=True).last.click()
    expect(page.locator("#e-c-env")).to_have_text("Has a line without =; write NAME=VALUE.")
    page.get_by_label("Environment variables").fill("REMIT_X=1")
    page.get_by_text("More settings").click()
    page.get_by_label("Session policy: max age").fill("soon")
    page.get_by_role("button", name="Preview", exact=True).last.click()
    expect(page.locator("#e-c-maxTurns")).to_contain_text("greater than or equal to 1")
    expect(page.locator('[id="e-c-sessionPolicy.maxAge"]')).to_be_visible()
    expect(page.get_by_label("Max turns")).to_have_value("0")
    expect(page.get_by_label("Max turns")).to_have_attribute("aria-invalid", "true")
    page.get_by_label("Max turns").fill("many")
    page.get_by_role("button", name="Preview", exact=True).last.click()
    expect(page.locator("#e-c-maxTurns")).to_have_text("Must be a number.")
    page.get_by_label("Name", exact=True).fill("not a name")
    page.get_by_label("Max turns").fill("3")
    page.get_by_label("Environment variables").fill("LANG=C")
    page.get_by_label("Session policy: max age").fill("2h")
    page.get_by_role("button", name="Preview", exact=True).last.click()
    expect(page.locator("#e-name")).to_contain_text("name must be letters and digits")
    page.get_by_label("Name", exact=True).fill("Hopper")
    page.get_by_label("Reports to").fill("Nobody-Here")
    page.get_by_role("button", name="Preview", exact=True).last.click()
    expect(page.locator("#e-reportsTo")).to_contain_text("There is no agent named")
    page.get_by_label("Reports to").fill(office.root["name"])
    page.get_by_label("Extra permissions").fill("nonsense")
    page.get_by_role("button", name="Preview", exact=True).last.click()
    expect(page.locator("#e-grants")).to_contain_text("line 1 is not a right")
    page.get_by_label("Extra permissions").fill("")
    page.get_by_role("button", name="Edit as JSON").click()
    written = page.get_by_label("Settings")
    expect(written).to_contain_text('"maxTurns": 3')
    expect(written).to_contain_text('"maxAge": "2h"')
    written.fill('{"maxTurns": 4, "tools": []}')
    page.get_by_role("button", name="Edit in fields").click()
    expect(page.get_by_role("alert")).to_contain_text("the fields cannot show")
    expect(written).to_have_value('{"maxTurns": 4, "tools": []}')
    page.get_by_role("button", name="Preview", exact=True).last.click()
    expect(page.get_by_role("region", name="Preview")).to_be_visible()


def test_nothing_is_hired_that_was_not_looked_at(office: Office, visitor: Visitor) -> None:
    page = visitor.goto("/hire?adapter=scripted")
    describe(page, "Seen", office.root["name"])
    page.get_by_role("button", name="Preview", exact=True).last.click()
    page.get_by_label("Can create new agents").check()
    page.get_by_role("button", name="Hire now").click()
    expect(page.get_by_text("Something changed since the preview.")).to_be_visible()
    assert called(office, "Seen") == []
    page.get_by_role("button", name="Hire now").click()
    expect(page.get_by_text("Seen is ready to work.")).to_be_visible()
    page.goto("/hire?adapter=scripted")
    describe(page, "seen", office.root["name"])
    page.get_by_role("button", name="Preview", exact=True).last.click()
    expect(page.locator("#e-name")).to_contain_text("already")


def test_hostile_text_in_a_hire_is_text(office: Office, visitor: Visitor) -> None:
    hostile = '</textarea><script>window.hacked = 1</script>"><img src=x onerror=alert(1)>'
    page = visitor.goto(
        f"/hire?adapter=scripted&title=%3Cscript%3E&role=%22%3E&outcome={'x' * 3000}"
    )
    describe(page, "Mallory", office.root["name"], Instructions=hostile, Capabilities=hostile)
    page.get_by_label("Existing outcome").fill("")
    page.get_by_label("Title").fill(hostile[:100])
    page.get_by_role("button", name="Preview", exact=True).last.click()
    expect(page.get_by_role("region", name="Preview")).to_be_visible()
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, main script").count() == 0
    expect(page.get_by_label("Instructions")).to_have_value(hostile)


def test_hiring_works_without_scripts(office: Office, visit: Callable[..., Visitor]) -> None:
    page = visit(java_script_enabled=False).goto("/hire")
    page.get_by_label("Name", exact=True).fill("Quiet")
    page.get_by_label("Adapter", exact=True).select_option("scripted")
    page.get_by_role("button", name="Use this adapter").click()
    expect(page.get_by_label("Name", exact=True)).to_have_value("Quiet")
    page.get_by_role("button", name="Preview", exact=True).last.click()
    page.get_by_role("button", name="Hire now").click()
    expect(page.get_by_text("Quiet is ready to work.")).to_be_visible()


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"viewport": PHONE, "color_scheme": "dark"}, id="phone by night"),
        pytest.param(
            {"color_scheme": "light"},
            id="desk by day",
            marks=pytest.mark.campaign("the form is looked at so by test_web_every_page.py"),
        ),
    ],
)
def test_hiring_is_accessible(
    office: Office, visit: Callable[..., Visitor], options: dict[str, Any]
) -> None:
    page = visit(**options).goto("/hire?adapter=claude")
    check_accessible(page)
    check_fits(page)
    describe(page, "Loud", office.root["name"])
    page.get_by_text("More settings").click()
    page.get_by_label("Command").fill("/nowhere/claude")
    page.get_by_role("button", name="Preview", exact=True).last.click()
    missing = "It cannot work here yet: The program /nowhere/claude is not installed"
    expect(page.get_by_role("region", name="Preview")).to_contain_text(missing)
    page.get_by_text("More settings").click()
    page.get_by_label("Max turns").fill("0")
    page.get_by_role("button", name="Preview again").click()
    expect(page.locator("#e-c-maxTurns")).to_be_visible()
    check_accessible(page)
    page.get_by_label("Max turns").fill("1")
    page.get_by_role("button", name="Preview", exact=True).last.click()
    expect(page.get_by_role("region", name="Preview")).to_be_visible()
    check_accessible(page)
    check_fits(page)


def test_observers_are_told_that_the_board_hires(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    page = visit(office.user("Onlooker", "observer")).goto("/hire")
    expect(page.get_by_text("Only the board can hire.")).to_be_visible()
    expect(page.locator("main form")).to_have_count(0)
