"""What a person comes for, and how many clicks it takes from the first page on."""

import pytest
from playwright.sync_api import expect

from remit.services.identity import Caller, as_system
from remit.services.messaging import inbox
from remit.services.spending import budgets
from tests.browsing import Clicks, Office, Visitor


@pytest.mark.requirement("FX-47")
def test_what_is_going_on_and_why_not_and_what_it_costs_take_no_click(
    office: Office, visitor: Visitor
) -> None:
    busy, held = office.agent("Busy"), office.agent("Held")
    office.board.must("PATCH", f"/api/agents/{held['id']}", {"budgetMonthlyCents": 1000})
    office.board.must(
        "POST", office.path("messages"), {"to": "agent:Busy", "subject": "Survey", "body": "Go."}
    )
    run = office.begin(busy)
    office.do(office.running.app.gate(Caller(run.token), inbox.take))
    office.board.must("POST", f"/api/agents/{held['id']}/pause")
    page = visitor.goto("/")
    with Clicks(page) as clicks:
        state = page.get_by_role("group", name="State of the company")
        expect(state).to_contain_text("1 working")
        expect(state).to_contain_text("1 paused")
        expect(state).to_contain_text("$0.00 of $50.00 today")
        expect(state).to_contain_text("this month")
        now = page.get_by_role("region", name="Now").get_by_role("listitem")
        expect(now.filter(has_text="Busy")).to_contain_text("Survey")
        expect(now.filter(has_text="Held")).to_contain_text("It is paused")
        expect(page.get_by_role("img", name="spent in 14d")).to_be_visible()
        expect(page.get_by_role("img", name="1 run in 14d, 0 failed")).to_be_visible()
    assert clicks.count == 0
    office.end(run)


@pytest.mark.requirement("FX-47")
def test_everything_is_stopped_by_one_click_and_goes_on_by_another(
    office: Office, visitor: Visitor
) -> None:
    run = office.begin(office.agent("Runaway"))
    page = visitor.live(visitor.goto("/"))
    with Clicks(page) as clicks:
        page.get_by_role("button", name="Stop the company", exact=True).click()
        expect(page.get_by_text("The company is stopped, by board")).to_be_visible()
    assert clicks.count == 1
    assert office.board.must("GET", f"/api/runs/{run.id}")["status"] != "running"
    with Clicks(page) as clicks:
        page.get_by_role("button", name="Let the company go on").click()
        expect(page.get_by_text("The company is stopped, by board")).to_have_count(0)
    assert clicks.count == 1


@pytest.mark.requirement("FX-47")
def test_a_hire_is_approved_by_one_click_with_what_is_approved_in_view(
    office: Office, visitor: Visitor
) -> None:
    made = office.hire("Elif", prompt="Test each page with a keyboard.", title="Accessibility")
    page = visitor.live(visitor.goto("/"))
    with Clicks(page) as clicks:
        row = page.get_by_role("listitem").filter(has_text="Hire Elif as engineer")
        expect(row).to_contain_text("Test each page with a keyboard.")
        expect(row).to_contain_text("scripted")
        row.get_by_role("button", name="Approve").click()
        expect(page.get_by_role("status").filter(has_text="Approved: hire Elif")).to_be_visible()
    assert clicks.count == 1
    path = f"/api/approvals/{made['approval']['id']}"
    assert office.board.must("GET", path)["status"] == "approved"


@pytest.mark.requirement("FX-47")
def test_an_approval_by_the_button_is_of_the_revision_that_was_in_view(
    office: Office, visitor: Visitor
) -> None:
    made = office.hire("Marek", prompt="First.")
    page = visitor.goto("/")
    page.route("**/live", lambda route: route.abort())
    row = page.get_by_role("listitem").filter(has_text="Hire Marek as engineer")
    expect(row).to_contain_text("First.")
    path = f"/api/approvals/{made['approval']['id']}"
    office.board.must("POST", f"{path}/request-revision", {"note": "Say more."})
    payload = office.as_agent(office.root).must("GET", path)["payload"]
    snapshot = {**payload["requestedConfigurationSnapshot"], "prompt": "Second."}
    again = {**payload, "requestedConfigurationSnapshot": snapshot, "prompt": "Second."}
    office.as_agent(office.root)("POST", f"{path}/resubmit", {"payload": again})
    row.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("alert")).to_be_visible()
    assert office.board.must("GET", path)["status"] != "approved"


def test_rejecting_asks_why_and_takes_two_clicks(office: Office, visitor: Visitor) -> None:
    made = office.hire("Unwanted")
    page = visitor.live(visitor.goto("/"))
    with Clicks(page) as clicks:
        row = page.get_by_role("listitem").filter(has_text="Hire Unwanted")
        row.get_by_text("Reject…").click()
        row.get_by_label("Reason").fill("No need.")
        row.get_by_role("button", name="Reject", exact=True).click()
        expect(page.get_by_role("status").filter(has_text="Rejected")).to_be_visible()
    assert clicks.count <= 3  # one is into the field
    found = office.board.must("GET", f"/api/approvals/{made['approval']['id']}")
    assert (found["status"], found["decisionNote"]) == ("rejected", "No need.")


@pytest.mark.requirement("FX-47")
def test_a_wish_is_sent_and_a_question_answered_by_one_click(
    office: Office, visitor: Visitor
) -> None:
    office.as_agent(office.root).must(
        "POST", office.path("questions"), {"question": "Which price?", "options": ["4", "6"]}
    )
    page = visitor.live(visitor.goto("/"))
    with Clicks(page) as clicks:
        page.get_by_role("button", name="6", exact=True).click()
        expect(page.get_by_text("Which price?")).to_have_count(0)
    assert clicks.count == 1
    with Clicks(page) as clicks:
        page.get_by_label("What do you want?").press_sequentially("A page on what we sell")
        page.get_by_role("button", name="Send").click()
        wishes = page.get_by_role("list", name="Your last wishes")
        expect(wishes).to_contain_text("A page on what we sell")
    assert clicks.count == 1


@pytest.mark.requirement("FX-47", "BX-18")
def test_a_budget_that_is_used_up_is_raised_where_it_is_seen(
    office: Office, visitor: Visitor
) -> None:
    spender = office.agent("Spender", budgetMonthlyCents=0)
    office.do(office.running.app.gate(as_system(), budgets.hold, agent=spender["id"]))
    page = visitor.live(visitor.goto("/"))
    row = page.get_by_role("listitem").filter(has_text="The budget of Spender is used up")
    with Clicks(page) as clicks:
        row.get_by_text("Raise budget…").click()
        expect(row).to_contain_text("Spent $0.00 of $0.00 this month.")
        row.get_by_label("New budget a month").fill("$12.50")
        row.get_by_role("button", name="Raise budget").click()
        said = page.get_by_role("status").filter(has_text="Spender may spend $12.50 a month.")
        expect(said).to_be_visible()
    assert clicks.count == 2
    expect(row).to_have_count(0)
    found = office.board.must("GET", f"/api/agents/{spender['id']}/budget")
    assert found["money"]["limit"] == 12_500_000
