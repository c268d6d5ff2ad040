"""Approvals in the browser: found, understood, talked about, decided, and by one person only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from remit.errors import AwaitsApproval
from remit.services.hiring import helper_creation
from remit.services.identity import Caller
from tests.browsing import LOOKED_AT_ELSEWHERE, PHONE, Office, Visitor, check_accessible, check_fits
from tests.web_stage import HOSTILE, refusals


def ask(office: Office, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    """The root agent puts something before the board."""
    made: dict[str, Any] = office.as_agent(office.root).must(
        "POST", office.path("approvals"), {"type": kind, "payload": payload}
    )
    return made


def asked_to_create(office: Office, name: str, role: str) -> str:
    """The root agent uses create_agent, and is told to wait."""
    token = office.as_agent(office.root).token
    assert token is not None

    async def call() -> str:
        try:
            await office.running.app.gate(
                Caller(token), helper_creation.create_agent, name=name, role=role
            )
        except AwaitsApproval as waits:
            return str(waits.details["approval_id"])
        raise AssertionError("it was created without being approved")

    return office.do(call())


def called(office: Office, name: str) -> list[dict[str, Any]]:
    found = office.board.must("GET", office.path("agents?limit=200&terminated=true"))
    return [one for one in found if one["name"] == name]


def reject(page: Page) -> None:
    page.get_by_role("button", name="Reject…").click()
    page.get_by_role("dialog").get_by_role("button", name="Reject").click()


def open_approval(visitor: Visitor, approval: str) -> Page:
    return visitor.live(visitor.goto(f"/approvals/{approval}"))


@pytest.mark.requirement("PC-70")
def test_an_approval_is_found_from_the_front_page_and_from_the_list(
    office: Office, visitor: Visitor
) -> None:
    made = office.hire("Found", title="Finder")["approval"]
    page = visitor.goto("/")
    page.get_by_role("region", name="Inbox").get_by_role(
        "link", name="Hire Found as engineer (Finder)", exact=True
    ).click()
    page.wait_for_url(f"**/approvals/{made['id']}")
    expect(page.get_by_role("heading", level=1)).to_contain_text("asks to hire Found as engineer")
    # Before what is decided, however new that is.
    office.agent("Newer")
    page.goto("/approvals")
    rows = page.locator("tbody tr")
    expect(rows.first).to_contain_text("Hire Found as engineer")
    expect(rows.nth(1)).to_contain_text("Hire Newer")
    expect(rows.filter(has_text="Hire Found")).to_have_count(1)
    page.goto("/approvals?status=pending")
    page.get_by_role("link", name="Hire Found as engineer (Finder)").click()
    page.wait_for_url(f"**/approvals/{made['id']}")
    office.board.must("POST", f"/api/approvals/{made['id']}/reject")
    page.goto("/approvals?status=pending")
    expect(page.get_by_role("link", name="Hire Found")).to_have_count(0)
    page.get_by_role("link", name="Rejected").click()
    expect(page.get_by_role("link", name="Hire Found")).to_be_visible()


@pytest.mark.requirement("PC-71", "PC-72", "PC-79")
def test_a_hire_is_talked_about_sent_back_revised_and_approved(
    office: Office, visitor: Visitor
) -> None:
    made = office.hire("Talked", prompt="Draw.\nOften.")["approval"]
    ceo = office.as_agent(office.root)
    page = open_approval(visitor, made["id"])
    page.get_by_label("Comment", exact=True).fill("Draw **what**?")
    page.get_by_role("button", name="Add comment").click()
    comments = page.locator("[data-part=comments]")
    expect(comments.locator("strong").filter(has_text="what")).to_be_visible()
    (first,) = office.board.must("GET", f"/api/approvals/{made['id']}/comments")
    ceo.must(
        "POST", f"/api/approvals/{made['id']}/comments", {"body": "Maps.", "replyTo": first["id"]}
    )
    expect(comments.locator(".comment .comment")).to_contain_text("Maps.")
    page.get_by_label("Note").fill("Say so.")
    page.get_by_role("button", name="Request revision").click()
    expect(page.locator("[data-part=head] .badge")).to_have_text("sent back")
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    expect(page.get_by_role("button", name="Reject")).to_be_visible()
    ceo.must(
        "POST",
        f"/api/approvals/{made['id']}/resubmit",
        {"payload": {"prompt": "Draw maps.\nOften."}},
    )
    expect(page.locator("[data-part=head]")).to_contain_text("revision 2")
    expect(page.get_by_text("Changed since revision 1, which you saw")).to_be_visible()
    changed = page.get_by_role("region", name="Request")
    expect(changed.locator(".removed")).to_contain_text("Draw.")
    expect(changed.locator(".added")).to_contain_text("Draw maps.")
    page.get_by_role("button", name="I have reviewed it").click()
    page.get_by_label("Note").fill("Welcome.")
    page.get_by_role("button", name="Approve").click()
    expect(page.locator("[data-part=head] .badge")).to_have_text("approved")
    expect(page.get_by_label("Note")).to_be_hidden()  # nothing is left to be decided
    steps = page.get_by_role("region", name="Activity").get_by_role("listitem")
    expect(steps).to_have_count(4)
    for number, words in enumerate(
        ("requested it", "sent it back", "submitted revision 2", "approved it")
    ):
        expect(steps.nth(number)).to_contain_text(words)
    expect(steps.nth(1)).to_contain_text("Say so.")
    expect(steps.nth(3)).to_contain_text("Welcome.")
    assert called(office, "Talked")[0]["status"] == "idle"


@pytest.mark.requirement("PC-73", "PC-74")
def test_a_disapproved_agent_is_deleted_after_confirming_and_the_approval_stays(
    office: Office, visitor: Visitor
) -> None:
    made = office.hire("Gone")["approval"]
    page = open_approval(visitor, made["id"])
    expect(page.get_by_role("button", name="Delete disapproved agent")).to_have_count(0)
    page.get_by_label("Note").fill("Not now.")
    reject(page)
    delete = page.get_by_role("button", name="Delete disapproved agent")
    delete.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Delete Gone? This cannot be undone.")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    assert called(office, "Gone")
    delete.click()
    dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("status").filter(has_text="The agent was deleted")).to_be_visible()
    expect(delete).to_have_count(0)
    expect(page.locator("[data-part=comments]")).to_contain_text("Not now.")
    expect(page.locator("[data-part=head] .badge")).to_have_text("rejected")
    assert called(office, "Gone") == []


def test_of_two_who_decide_at_once_the_second_is_told_and_loses_nothing(
    office: Office, visitor: Visitor, visit: Callable[..., Visitor]
) -> None:
    made = office.hire("Contested")["approval"]
    other = visit(office.user("Second"))
    mine, theirs = (open_approval(one, made["id"]) for one in (visitor, other))
    # The second one's page has not heard of it yet when the button is pressed.
    theirs.route(
        "**/approvals/*",
        lambda route: route.abort() if route.request.method == "GET" else route.continue_(),
    )
    theirs.get_by_label("Note").fill("I think not, because of this and that.")
    mine.get_by_role("button", name="Approve").click()
    expect(mine.locator("[data-part=head] .badge")).to_have_text("approved")
    reject(theirs)
    expect(theirs.get_by_role("alert").first).to_contain_text(
        "It was approved, so it cannot be rejected."
    )
    expect(theirs.get_by_label("Note")).to_have_value("I think not, because of this and that.")
    expect(theirs.locator("[data-part=head] .badge")).to_have_text("approved")
    expect(theirs.get_by_role("button", name="Reject")).to_have_count(0)
    theirs.unroute_all()
    assert called(office, "Contested")[0]["status"] == "idle"
    other.problems.clear()  # the refresh that was held back


def test_what_is_revised_while_somebody_looks_is_shown_and_not_decided_unseen(
    office: Office, visitor: Visitor, visit: Callable[..., Visitor]
) -> None:
    made = office.hire("Shifting", prompt="Harmless.")["approval"]
    plain = visit(java_script_enabled=False).goto(f"/approvals/{made['id']}")
    page = open_approval(visitor, made["id"])
    page.get_by_label("Note").fill("Half a no")
    office.board.must("POST", f"/api/approvals/{made['id']}/request-revision")
    office.as_agent(office.root).must(
        "POST", f"/api/approvals/{made['id']}/resubmit", {"payload": {"prompt": "Harmful."}}
    )
    note = page.get_by_role("alert").filter(has_text="It was revised while you looked.")
    expect(note).to_contain_text("This is revision 2.")
    expect(page.get_by_role("button", name="Approve")).to_be_disabled()
    expect(page.locator("[data-part=asked]")).to_contain_text("Harmful.")
    expect(page.get_by_label("Note")).to_have_value("Half a no")
    # Without scripts, the instance itself holds to what was seen.
    plain.get_by_label("Note").fill("Fine.")
    plain.get_by_role("button", name="Approve").click()
    expect(plain.get_by_role("alert").first).to_contain_text("you saw revision 1, it is at 2")
    expect(plain.get_by_label("Note")).to_have_value("Fine.")
    assert called(office, "Shifting")[0]["status"] == "pending_approval"
    note.get_by_role("button", name="I have reviewed it").click()
    reject(page)
    expect(page.locator("[data-part=head] .badge")).to_have_text("rejected")


def test_a_comment_appears_while_another_is_half_typed(office: Office, visitor: Visitor) -> None:
    made = office.hire("Chatty")["approval"]
    page = open_approval(visitor, made["id"])
    box = page.get_by_label("Comment", exact=True)
    box.press_sequentially("I was about to")
    page.evaluate("window.unbroken = true")
    office.as_agent(office.root).must(
        "POST", f"/api/approvals/{made['id']}/comments", {"body": "Meanwhile."}
    )
    expect(page.get_by_text("Meanwhile.", exact=True)).to_be_visible()
    expect(box).to_have_value("I was about to")
    expect(box).to_be_focused()
    page.get_by_label("Reply to").select_option(index=1)
    page.get_by_role("button", name="Add comment").click()
    expect(page.locator(".comment .comment")).to_contain_text("I was about to")
    expect(box).to_have_value("")
    assert page.evaluate("window.unbroken")


def _nested(depth: int) -> Any:
    found: Any = "end"
    for _ in range(depth):
        found = [found]
    return found


def test_answers_to_answers_to_answers_do_not_break_the_page(
    office: Office, visitor: Visitor
) -> None:
    made = office.hire("Endless")["approval"]
    ceo, last = office.as_agent(office.root), None
    for number in range(60):
        said = {"body": f"Answer {number}"} | ({"replyTo": last} if last else {})
        last = ceo.must("POST", f"/api/approvals/{made['id']}/comments", said)["id"]
    page = visitor.goto(f"/approvals/{made['id']}")
    expect(page.locator(".comment")).to_have_count(60)
    expect(page.get_by_text("Answer 59", exact=True)).to_be_visible()
    check_fits(page)


@pytest.mark.requirement("AW-15", "AW-29")
def test_create_agent_is_decided_on_the_same_page_and_makes_one_agent_or_none(
    office: Office, visitor: Visitor
) -> None:
    denied = asked_to_create(office, "spy", "a spy")
    page = open_approval(visitor, denied)
    expect(page.get_by_role("heading", level=1)).to_contain_text("asks to create the agent spy")
    reject(page)
    expect(page.locator("[data-part=head] .badge")).to_have_text("rejected")
    assert called(office, "spy") == []
    approved = asked_to_create(office, "scout", "a scout")
    page = open_approval(visitor, approved)
    page.get_by_role("button", name="Approve").click()
    expect(page.locator("[data-part=head] .badge")).to_have_text("approved")
    (made,) = called(office, "scout")
    assert made["prompt"] == (
        "You are agent scout. Your role is a scout.\n\n"
        "Always respond in exactly this structure:\n@human\n{Your response}"
    )
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    again = office.board("POST", f"/api/approvals/{approved}/approve")
    assert (again.status, len(called(office, "scout"))) == (409, 1)


def test_each_kind_of_approval_is_said_in_words(office: Office, visitor: Visitor) -> None:
    ceo = office.as_agent(office.root)
    peer = office.agent("Peer")
    budget = ask(
        office, "budget", {"agentId": peer["id"], "budgetMonthlyCents": 2500, "why": "Ink"}
    )
    page = open_approval(visitor, budget["id"])
    expect(page.get_by_role("heading", level=1)).to_contain_text("have a budget of $25.00 a month")
    asked = page.get_by_role("region", name="Request")
    expect(asked).to_contain_text("It may spend $25.00 a month; now it has no budget.")
    expect(asked.get_by_role("definition").filter(has_text="2500")).to_be_visible()
    expect(page.get_by_role("link", name="Peer")).to_be_visible()
    office.board.must(
        "POST",
        office.path("grants"),
        {
            "to": office.root["id"],
            "resource": f"message:{peer['id']}",
            "level": "use",
            "mode": "ask",
        },
    )
    refused = ceo(
        "POST", office.path("messages"), {"to": "agent:Peer", "subject": "S", "body": "B"}
    )
    page.goto(f"/approvals/{refused.json['approvalId']}")
    expect(page.get_by_role("heading", level=1)).to_contain_text("asks to write to Peer")
    expect(page.locator("[data-part=asked]")).to_contain_text("needs a person's approval")
    for address in ("/", "/approvals"):
        page.goto(address)
        expect(page.get_by_role("link", name="Write to Peer", exact=True)).to_be_visible()
    proposed = ceo.must(
        "POST",
        f"/api/agents/{peer['id']}/config-proposals",
        {"prompt": "New.", "reason": "Because."},
    )
    page.goto(f"/approvals/{proposed['approval']['id']}")
    expect(page.locator("[data-part=asked] .added")).to_contain_text("New.")
    expect(page.locator("[data-part=asked]")).to_contain_text("Because.")
    strategy = ask(office, "approve_ceo_strategy", {"title": "Grow", "plan": "1. Sow\n2. Reap"})
    page.goto(f"/approvals/{strategy['id']}")
    # As it was written, so that no markup can hide a part of it.
    expect(page.locator("[data-part=asked] .quoted").filter(has_text="2. Reap")).to_be_visible()
    assert page.locator("[data-part=asked] :is(ol, ul, a, em, table)").count() == 0


def test_hostile_requests_and_comments_are_text(office: Office, visitor: Visitor) -> None:
    payloads: list[dict[str, Any]] = [
        {"title": HOSTILE * 50, "body": HOSTILE, HOSTILE: [HOSTILE, {"<b>": None}]},
        {"title": {"a": 1}, "name": ["x"], "prompt": 5, "capabilities": {}, "reportsTo": {"a": 1}},
        {
            "requestedConfigurationSnapshot": ["x"],
            "grants": "no list",
            "difference": 7,
            "agentId": [1],
            "outcomeId": {},
        },
        {"title": "", "x" * 5000: "y" * 20_000},
        {"title": "Deep", "nested": _nested(50)},
    ]
    for payload in payloads:
        made = ask(office, "request_board_approval", payload)
        office.as_agent(office.root).must(
            "POST", f"/api/approvals/{made['id']}/comments", {"body": HOSTILE}
        )
        page = visitor.goto(f"/approvals/{made['id']}")
        expect(page.get_by_role("heading", level=1)).to_contain_text("asks to")
        assert page.evaluate("window.hacked") is None
        assert page.locator("main img, main script, main a[href^=javascript]").count() == 0
        check_fits(page)
    hired = office.hire("Nasty", title="<i>x</i>", prompt=HOSTILE, capabilities=HOSTILE)
    page = visitor.goto(f"/approvals/{hired['approval']['id']}")
    assert page.locator("main img, main script").count() == 0
    page = visitor.goto("/approvals")
    expect(page.get_by_role("heading", level=1)).to_have_text("Approvals")
    assert page.locator("main img, main script").count() == 0
    check_fits(page)


def test_what_a_person_asked_for_is_submitted_again_or_withdrawn_by_a_person(
    office: Office, visitor: Visitor
) -> None:
    asked = {"name": "Wanted", "role": "engineer", "adapterType": "scripted"}
    made = office.board.must("POST", office.path("agent-hires"), asked)
    page = open_approval(visitor, made["approval"]["id"])
    page.get_by_role("button", name="Request revision").click()
    again = page.get_by_role("region", name="Resubmit")
    again.get_by_label("Name").fill("Not a name")
    again.get_by_label("Title").fill("Better")
    again.get_by_role("button", name="Resubmit").click()
    expect(page.get_by_role("alert").first).to_contain_text("name must be letters")
    expect(again.get_by_label("Title")).to_have_value("Better")
    again.get_by_label("Name").fill("Found")
    again.get_by_label("Instructions").fill("Look.\nTwice.")
    again.get_by_label("Can create new agents").check()
    again.get_by_label("Extra permissions").fill("full_access use ask")
    again.get_by_role("button", name="Resubmit").click()
    asked_now = page.locator("[data-part=asked]")
    expect(asked_now).to_contain_text("Better")
    expect(asked_now).to_contain_text("full_access")
    payload = office.board.must("GET", f"/api/approvals/{made['approval']['id']}")["payload"]
    assert (payload["name"], payload["permissions"]) == ("Found", {"canCreateAgents": True})
    assert payload["requestedConfigurationSnapshot"]["prompt"] == "Look.\nTwice."
    expect(page.locator("[data-part=head] .badge")).to_have_text("pending")
    page.get_by_role("button", name="Withdraw").click()
    page.get_by_role("dialog").get_by_role("button", name="Withdraw").click()
    expect(page.locator("[data-part=head] .badge")).to_have_text("cancelled")
    expect(page.get_by_role("region", name="Activity")).to_contain_text("withdrew it")


def test_a_budget_a_proposal_and_what_nobody_declared_are_submitted_again_in_their_fields(
    office: Office, visitor: Visitor
) -> None:
    amount = {"agentId": office.root["id"], "budgetMonthlyCents": 12_345}
    kinds = {"budget": amount, "request_board_approval": {"title": "A press"}}
    made = {
        kind: office.board.must(
            "POST", office.path("approvals"), {"type": kind, "payload": payload}
        )["id"]
        for kind, payload in kinds.items()
    }
    for one in made.values():
        office.board.must("POST", f"/api/approvals/{one}/request-revision", {"decisionNote": "x"})

    def again(kind: str) -> Any:
        page = visitor.goto(f"/approvals/{made[kind]}")
        return page.get_by_role("region", name="Resubmit")

    def submitted(kind: str) -> dict[str, Any]:
        visitor.page.get_by_role("button", name="Resubmit").click()
        expect(visitor.page.locator("[data-part=head] .badge")).to_have_text("pending")
        found: dict[str, Any] = office.board.must("GET", f"/api/approvals/{made[kind]}")["payload"]
        return found

    budget = again("budget")
    expect(budget.get_by_label("Monthly budget (USD)")).to_have_value("123.45")
    budget.get_by_label("Monthly budget (USD)").fill("99.5")
    assert submitted("budget") == {**amount, "budgetMonthlyCents": 9_950}
    written = again("request_board_approval").get_by_role("textbox", name="Request")
    written.fill("[]")
    visitor.page.get_by_role("button", name="Resubmit").click()
    expect(visitor.page.get_by_role("alert").first).to_contain_text("payload: must be an object.")
    expect(written).to_have_value("[]")
    written.fill('{"title": "A printing press"}')
    assert submitted("request_board_approval")["title"] == "A printing press"


def test_observers_see_an_approval_and_decide_nothing(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    made = office.hire("Watched")["approval"]
    before = refusals(office)
    page = visit(office.user("Witness", "observer")).goto(f"/approvals/{made['id']}")
    expect(page.get_by_role("heading", level=1)).to_contain_text("hire Watched")
    expect(page.locator("main form[method=post]")).to_have_count(0)
    assert refusals(office) == before


@LOOKED_AT_ELSEWHERE
def test_approvals_are_accessible_and_fit_a_phone_by_day_and_by_night(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    made = office.hire("Neat", prompt="# One\n\n#### Four\n\n`code`", capabilities="All")[
        "approval"
    ]
    office.board.must("POST", f"/api/approvals/{made['id']}/comments", {"body": "> so\n\n- it is"})
    office.board.must(
        "POST", f"/api/approvals/{made['id']}/request-revision", {"decisionNote": "x"}
    )
    office.as_agent(office.root).must(
        "POST", f"/api/approvals/{made['id']}/resubmit", {"payload": {"title": "Tidy"}}
    )
    for viewport, scheme in ((None, "light"), (PHONE, "dark")):
        more = {"viewport": viewport} if viewport else {}
        visitor = visit(color_scheme=scheme, **more)
        for address in ("/approvals", f"/approvals/{made['id']}"):
            page = visitor.goto(address)
            check_accessible(page)
            check_fits(page)
