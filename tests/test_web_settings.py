"""The settings of a company, the people in it, and one's own account."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests import chat_stage
from tests.browsing import LOOKED_AT_ELSEWHERE, PHONE, Office, Visitor, check_accessible, check_fits

HIRES = "Require board approval for new agent hires"
CONFIGURATIONS = "Require approval for configuration changes"


def settings(visitor: Visitor) -> Page:
    page = visitor.goto(f"/companies/{visitor.office.company}/settings")
    page.locator("#advanced > summary").click()
    return page


def now(office: Office) -> dict[str, object]:
    found: dict[str, object] = office.board.must("GET", f"/api/companies/{office.company}")
    return found


@pytest.mark.requirement("PC-64")
def test_the_switch_for_new_hires_is_on_at_first_and_keeps_what_it_is_set_to(
    office: Office, visitor: Visitor
) -> None:
    page = visitor.goto(f"/companies/{office.company}/settings")
    switch = page.get_by_role("switch", name=HIRES)
    expect(switch).to_be_hidden()  # it is in the advanced part
    page.locator("#advanced > summary").click()
    expect(switch).to_be_checked()
    switch.uncheck()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="Saved.")).to_be_visible()
    assert now(office)["requireBoardApprovalForNewAgents"] is False
    expect(settings(visitor).get_by_role("switch", name=HIRES)).not_to_be_checked()
    made = office.hire("Quick")
    assert made["approval"] is None or made["approval"]["status"] == "approved"
    assert made["agent"]["status"] == "idle"
    page.get_by_role("switch", name=HIRES).check()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="Saved.")).to_be_visible()
    assert now(office)["requireBoardApprovalForNewAgents"] is True
    expect(settings(visitor).get_by_role("switch", name=HIRES)).to_be_checked()


@pytest.mark.requirement("FX-29")
def test_who_commits_is_said_and_the_key_to_register_is_shown(
    office: Office, visitor: Visitor
) -> None:
    page = visitor.goto(f"/companies/{office.company}/settings")
    page.get_by_label("Committer").fill("Acme <bot@acme.example>")
    page.get_by_role("button", name="Save committer").click()
    expect(page.get_by_role("status").filter(has_text="Saved.")).to_be_visible()
    assert now(office)["commitCommitter"] == "Acme <bot@acme.example>"
    page.get_by_role("button", name="Sign commits with a new key").click()
    expect(page.get_by_label("Public key")).to_contain_text("ssh-ed25519 ")
    key = office.board.must("GET", f"/api/companies/{office.company}/signing-key")["publicKey"]
    expect(page.get_by_label("Public key")).to_have_text(key)
    check_accessible(page)


@pytest.mark.requirement("PC-03")
def test_the_switch_is_on_no_other_page(office: Office, visitor: Visitor) -> None:
    page = visitor.page
    addresses = ("/", f"/companies/{office.company}", "/org", "/account", "/approvals", "/hire")
    for address in addresses:
        page.goto(address)
        expect(page.get_by_text(HIRES)).to_have_count(0)
        expect(page.locator("[name*=require_board], [name*=requireBoard]")).to_have_count(0)
    asked = {"name": "Eager", "requireBoardApprovalForNewAgents": False}
    made = office.board.must("POST", "/api/companies", asked)
    assert made["requireBoardApprovalForNewAgents"] is True


def test_every_setting_is_kept_and_changes_in_open_pages(
    office: Office, visitor: Visitor, visit: Callable[..., Visitor]
) -> None:
    other = settings(visit(office.user("second")))
    page = settings(visitor)
    visitor.live(other)
    page.get_by_role("switch", name=CONFIGURATIONS).uncheck()
    page.get_by_role("radio", name="Team").check()
    page.get_by_label("Provider of new agents").fill("anthropic")
    page.get_by_label("Model of new agents").fill("claude-<x>")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="Saved.")).to_be_visible()
    expect(other.get_by_role("switch", name=CONFIGURATIONS)).not_to_be_checked()
    expect(other.get_by_role("radio", name="Team")).to_be_checked()
    expect(other.get_by_label("Model of new agents")).to_have_value("claude-<x>")
    found = now(office)
    assert found["chatLLMProvider"] == "anthropic"
    page.get_by_label("Provider of new agents").fill("")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(other.get_by_label("Provider of new agents")).to_have_value("")
    assert now(office)["chatLLMProvider"] is None
    page.get_by_label("Name", exact=True).first.fill("Renamed & co")
    page.get_by_role("button", name="Save name").click()
    expect(other.get_by_label("Name", exact=True).first).to_have_value("Renamed & co")
    assert now(office)["name"] == "Renamed & co"


def test_of_two_who_change_the_same_setting_the_later_is_told(
    office: Office, visitor: Visitor, visit: Callable[..., Visitor]
) -> None:
    page, other = settings(visitor), settings(visit(office.user("third")))
    page.get_by_role("radio", name="Open").check()
    other.get_by_role("radio", name="Subtree").check()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="Saved.")).to_be_visible()
    other.get_by_role("button", name="Save", exact=True).click()
    alert = other.get_by_role("alert")
    expect(alert).to_contain_text("Somebody else changed messaging meanwhile")
    assert now(office)["messaging"] == "open"
    expect(other.get_by_role("radio", name="Open")).to_be_checked()
    other.get_by_role("radio", name="Chain").check()
    other.get_by_role("button", name="Save", exact=True).click()
    expect(other.get_by_role("status").filter(has_text="Saved.")).to_be_visible()
    assert now(office)["messaging"] == "chain"


def test_two_who_change_different_settings_at_once_both_have_their_way(
    office: Office, visitor: Visitor, visit: Callable[..., Visitor]
) -> None:
    page, other = settings(visitor), settings(visit(office.user("fourth")))
    before = now(office)["requireApprovalForConfigChanges"]
    page.get_by_role("switch", name=CONFIGURATIONS).click()
    other.get_by_role("radio", name="Team").check()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="Saved.")).to_be_visible()
    other.get_by_role("button", name="Save", exact=True).click()
    expect(other.get_by_role("status").filter(has_text="Saved.")).to_be_visible()
    found = now(office)
    assert found["requireApprovalForConfigChanges"] is not before
    assert found["messaging"] == "team"


def test_a_name_that_is_taken_is_said_so_and_stays_typed(office: Office, visitor: Visitor) -> None:
    office.board.must("POST", "/api/companies", {"name": "Taken"})
    page = visitor.goto(f"/companies/{office.company}/settings")
    page.get_by_label("Name", exact=True).first.fill("taken")
    page.get_by_role("button", name="Save name").click()
    expect(page.get_by_role("alert")).to_contain_text("There is a company named 'taken' already.")
    expect(page.get_by_label("Name", exact=True).first).to_have_value("taken")


def test_a_person_gets_a_link_and_a_token_that_are_shown_once_and_in_no_cookie(
    office: Office, visitor: Visitor
) -> None:
    page = visitor.goto(f"/companies/{office.company}/settings")
    page.get_by_text("Add a person").click()
    people = page.get_by_role("region", name="People")
    people.get_by_label("Name", exact=True).fill("newcomer")
    people.get_by_label("Role").select_option("observer")
    people.get_by_label("Limited to the branch of").fill("nobody-here")
    people.get_by_role("button", name="Add person", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("There is no agent named 'nobody-here'")
    expect(people.get_by_label("Name", exact=True)).to_have_value("newcomer")
    people.get_by_label("Limited to the branch of").fill("ceo")
    people.get_by_role("button", name="Add person", exact=True).click()
    token = page.locator("code", has_text="rmt_login_").inner_text().partition("token=")[2]
    assert office.running.client(token)("GET", "/api/me").status == 401  # it is no token for calls
    assert token not in str(visitor.context.cookies())
    assert token not in page.evaluate("JSON.stringify({...sessionStorage, ...localStorage})")
    page.reload()  # sends the form again
    expect(page.get_by_text("Already shown")).to_be_visible()
    page.get_by_role("link", name="Done").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("newcomer")
    expect(page.get_by_text("branch of ceo")).to_be_visible()
    page.get_by_role("button", name="Revoke").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("ended", exact=True)).to_be_visible()
    page.get_by_label("Purpose of the new token").fill("laptop")
    page.get_by_role("button", name="Create token").click()
    second = page.locator("code", has_text="rmt_user_").inner_text()
    assert office.running.client(second).must("GET", "/api/me")["name"] == "newcomer"
    page.get_by_role("link", name="Done").click()
    page.get_by_role("button", name="Remove from the company").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Remove from the company").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove", exact=True).click()
    said = page.get_by_role("status").filter(has_text="Removed from the company.")
    expect(said).to_be_visible()
    expect(page.get_by_role("link", name="newcomer")).to_have_count(0)
    assert office.running.client(second)("GET", "/api/me").status == 401


def test_a_removal_says_what_the_person_made_for_others(office: Office, visitor: Visitor) -> None:
    maker = office.user("maker")
    maker.must("POST", office.path("invitations"), {"name": "guest"})
    page = visitor.goto(f"/companies/{office.company}/people/maker")
    part = page.locator("[data-part=part]")
    expect(part.get_by_text("Link for guest")).to_be_visible()
    expect(part.get_by_text("Nobody has signed in with it.")).to_be_visible()
    check_accessible(page)
    page.get_by_role("button", name="Remove from the company").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove", exact=True).click()
    said = page.get_by_role("status").filter(has_text="Ended: link for guest.")
    expect(said).to_be_visible()


def test_the_last_of_the_board_stays(office: Office, visitor: Visitor) -> None:
    others = [
        one for one in office.board.must("GET", office.path("users")) if one["name"] != "board"
    ]
    for one in others:
        office.board.must("DELETE", office.path(f"users/{one['id']}"))
    page = visitor.goto(f"/companies/{office.company}/people/board")
    page.get_by_role("button", name="Remove from the company").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("left without a board")


def test_an_observer_sees_the_settings_and_changes_nothing(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    page = settings(visit(office.user("onlooker", "observer")))
    expect(page.get_by_text(HIRES)).to_be_visible()
    main = page.locator("main")
    assert main.locator("input, button").count() == 0
    page.get_by_role("link", name="board", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("board")
    assert main.locator("input, button").count() == 0


def test_an_ended_session_is_refused_at_once_and_its_pages_say_so(
    office: Office, visitor: Visitor, visit: Callable[..., Visitor]
) -> None:
    other, third = visit(), visit()
    left = other.live(other.goto("/org"))
    third.live(third.goto("/"))
    page = visitor.live(visitor.goto("/account"))
    expect(page.get_by_text("This browser")).to_have_count(1)
    ends = page.get_by_role("button", name="End session of")
    before = ends.count()
    assert before >= 2
    ends.nth(1).click()  # newest first, so the one before the last that signed in
    expect(ends).to_have_count(before - 1)
    expect(left.locator("[data-live-state]")).to_have_text("signed out")
    assert left.goto("/org").status == 401  # type: ignore[union-attr]
    expect(left.get_by_text("You are not signed in.")).to_be_visible()
    page.get_by_role("button", name="End other sessions").click()
    page.get_by_role("dialog").get_by_role("button", name="End sessions").click()
    expect(page.get_by_role("status").filter(has_text="ended.")).to_be_visible()
    expect(third.page.locator("[data-live-state]")).to_have_text("signed out")
    expect(ends).to_have_count(0)
    expect(page.get_by_text("This browser")).to_have_count(1)


@pytest.mark.requirement("FX-52")
def test_a_webhook_is_named_tried_and_given_up_on_the_page(
    office: Office, visitor: Visitor
) -> None:
    page = visitor.goto("/account")
    address = page.get_by_label("Webhook address")
    save = page.get_by_role("button", name="Save webhook")
    for bad in (
        "http://169.254.169.254/latest",
        "https://a.example/<script>alert(1)</script>\u202e",
    ):
        address.fill(bad)
        save.click()
        expect(page.get_by_role("alert")).to_be_visible()
        assert address.input_value() == bad, "what was typed is kept"
    address.fill("https://chat.example.org/me?<b>")
    save.click()
    expect(page.get_by_label("Key", exact=True)).to_contain_text("rmt_channel_")
    page.get_by_role("button", name="Send test notice").click()
    expect(page.get_by_role("status").filter(has_text="goes out by webhook")).to_be_visible()
    expect(page.get_by_label("Recent notices")).to_contain_text("test by webhook")
    page.get_by_role("button", name="Send test notice").click()
    expect(page.get_by_role("alert")).to_contain_text("tried just now")
    address.fill("")
    save.click()
    expect(page.get_by_role("status").filter(has_text="Webhook removed.")).to_be_visible()
    expect(page.get_by_role("button", name="Send test notice")).to_have_count(0)


@LOOKED_AT_ELSEWHERE
def test_settings_and_account_are_accessible_and_fit_by_day_and_by_night(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    for viewport, scheme in ((None, "light"), (PHONE, "dark")):
        more = {"viewport": viewport} if viewport else {}
        visitor = visit(color_scheme=scheme, **more)
        page = settings(visitor)
        page.get_by_text("Add a person").click()
        for address in ("", "/account", f"/companies/{office.company}/people/board"):
            if address:
                page.goto(address)
            check_accessible(page)
            check_fits(page)


@pytest.mark.requirement("HB-08")
def test_the_permission_levels_are_looked_at_and_changed(office: Office, visitor: Visitor) -> None:
    page = visitor.goto(f"/companies/{office.company}/settings")
    page.get_by_role("link", name="Edit levels").click()
    expect(page.get_by_role("heading", name="Permission levels")).to_be_visible()
    page.get_by_label("Boss: controls").select_option("company")
    page.get_by_label("Boss: Configure Remit").select_option("")
    page.get_by_role("button", name="Save level boss").click()
    expect(page.get_by_role("status").filter(has_text="The level boss is changed.")).to_be_visible()
    policy = office.board.must("GET", office.path("permission-policy"))
    boss = policy["levels"]["boss"]
    assert (boss["governs"], boss["allow"], boss["shipped"]) == (
        "company",
        ["approval.decide"],
        False,
    )
    page.get_by_role("button", name="Restore boss as shipped").click()
    expect(page.get_by_role("button", name="Restore boss as shipped")).to_have_count(0)
    policy = office.board.must("GET", office.path("permission-policy"))
    assert policy["levels"]["boss"]["governs"] == "below"


@pytest.mark.requirement("FX-25", "AG-95")
def test_an_account_of_a_chat_is_linked_with_a_code_and_unlinked_on_the_page(
    office: Office, visitor: Visitor
) -> None:
    me = office.board.must("GET", "/api/me")["id"]
    page = visitor.goto("/account")
    expect(page.get_by_text("No linked chat accounts.")).to_be_visible()
    page.get_by_role("button", name="Get a code for Telegram").click()
    expect(page.get_by_label("Code", exact=True)).to_have_text(re.compile(r"\S{6,}"))
    page.get_by_role("link", name="Done").click()
    asked = {"agent": office.root["id"], "adapterType": "webhook"}
    bound = office.board.must("POST", office.path("bindings"), asked)
    chat_stage.linked(office.running.app, office.company, me, bound["id"])
    visitor.live(visitor.goto("/account"))
    row = page.get_by_role("region", name="Linked accounts").get_by_role("listitem")
    expect(row).to_contain_text("Ann telegram")
    row.get_by_role("button", name="Revoke Ann").click()
    said = page.get_by_role("status").filter(has_text="Ann unlinked.")
    expect(said).to_be_visible()
    expect(row).to_have_count(0)
    assert office.board.must("GET", "/api/linked-accounts") == []


@pytest.mark.requirement("FX-27", "FX-52")
def test_rules_of_notices_are_chosen_in_a_table_and_kept(office: Office, visitor: Visitor) -> None:
    office.user("deputy")
    page = visitor.live(visitor.goto("/account"))
    page.get_by_text("Notice rules", exact=True).click()
    rules = page.locator("[data-part=notify-rules]")
    rules.get_by_label("Approval", exact=True).select_option("browser")
    rules.get_by_label("Mail", exact=True).select_option("none")
    rules.get_by_label("Approval: ignores quiet hours").check()
    rules.get_by_label("Failed run: daily digest").check()
    rules.get_by_label("Quiet hours", exact=False).last.fill("25:00-07:00")
    rules.get_by_label("Time zone").fill("Europe/Berlin")
    rules.get_by_label("Escalate after").fill("30")
    rules.get_by_label("Escalate to").select_option("deputy")
    check_accessible(page)
    page.set_viewport_size({"width": 390, "height": 800})
    check_fits(page)
    rules.get_by_role("button", name="Save notice rules").click()
    expect(page.get_by_role("alert")).to_be_visible()
    expect(rules.get_by_label("Approval", exact=True)).to_have_value("browser")
    rules.get_by_label("Quiet hours", exact=False).last.fill("22:00-07:00")
    rules.get_by_role("button", name="Save notice rules").click()
    expect(page.get_by_role("status").filter(has_text="Notice rules saved.")).to_be_visible()
    kept = office.board.must("GET", office.path("notify"))["rules"]
    assert kept["routes"] == {"approval": ["browser"], "mail": []}
    assert (kept["quiet"], kept["urgent"]) == ("22:00-07:00", ["approval"])
    assert (kept["digest"], kept["timeZone"]) == (["failed_run"], "Europe/Berlin")
    assert (kept["escalateMinutes"], kept["escalateTo"]) == (30, "deputy")
