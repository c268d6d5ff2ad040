"""What a person comes for, and how many clicks it takes from the first page on."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from remit.services.identity import Caller, as_system
from remit.services.messaging import inbox
from remit.services.spending import budgets
from tests.browsing import TASKS, Office, Visitor, doing


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
    with doing(page, "see what goes on, why not, and what it costs"):
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
    office.end(run)


@pytest.mark.requirement("FX-47")
def test_everything_is_stopped_by_one_click_and_goes_on_by_another(
    office: Office, visitor: Visitor
) -> None:
    run = office.begin(office.agent("Runaway"))
    page = visitor.live(visitor.goto("/"))
    with doing(page, "stop everything"):
        page.get_by_role("button", name="Stop the company", exact=True).click()
        expect(page.get_by_text("The company is stopped, by board")).to_be_visible()
    assert office.board.must("GET", f"/api/runs/{run.id}")["status"] != "running"
    with doing(page, "stop everything"):
        page.get_by_role("button", name="Resume the company").click()
        expect(page.get_by_text("The company is stopped, by board")).to_have_count(0)


@pytest.mark.requirement("FX-47")
def test_a_hire_is_approved_by_one_click_with_what_is_approved_in_view(
    office: Office, visitor: Visitor
) -> None:
    made = office.hire("Elif", prompt="Test each page with a keyboard.", title="Accessibility")
    page = visitor.live(visitor.goto("/"))
    with doing(page, "approve a hire"):
        row = page.get_by_role("listitem").filter(has_text="Hire Elif as engineer")
        expect(row).to_contain_text("Test each page with a keyboard.")
        expect(row).to_contain_text("scripted")
        row.get_by_role("button", name="Approve").click()
        expect(page.get_by_role("status").filter(has_text="Approved: hire Elif")).to_be_visible()
    path = f"/api/approvals/{made['approval']['id']}"
    assert office.board.must("GET", path)["status"] == "approved"


def test_a_change_of_an_agent_is_approved_with_what_it_was_and_will_be_in_view(
    office: Office, visitor: Visitor
) -> None:
    agent = office.agent("Steady", title="Tester")
    limits = {"timeoutSeconds": 30}
    changes = {"title": "Lead tester", "prompt": "Try twice.", "adapterConfig": limits}
    path = f"/api/agents/{agent['id']}/config-proposals"
    office.as_agent(office.root).must("POST", path, changes)
    page = visitor.goto("/")
    row = page.get_by_role("listitem").filter(has_text="of Steady")
    expect(row.locator(".removed").filter(has_text="Tester")).to_be_visible()
    for added in ("Lead tester", "Try twice.", "30"):
        expect(row.locator(".added").filter(has_text=added)).to_be_visible()
    many = {f"part{number}": "on" for number in range(200)}
    office.as_agent(office.root).must(
        "POST", f"/api/agents/{agent['id']}/config-proposals", {"metadata": many}
    )
    # It is too long to be read beside others, so it is approved on its own page.
    row = visitor.goto("/").get_by_role("listitem").filter(has_text="Change metadata")
    expect(row.get_by_role("button", name="Approve")).to_have_count(0)
    row.get_by_role("link", name="Review").click()
    expect(visitor.page.get_by_text("metadata.part199")).to_be_visible()
    expect(visitor.page.get_by_role("button", name="Approve")).to_be_visible()


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
    with doing(page, "reject a hire"):
        row = page.get_by_role("listitem").filter(has_text="Hire Unwanted")
        row.get_by_text("Reject…").click()
        row.get_by_label("Reason").fill("No need.")
        row.get_by_role("button", name="Reject", exact=True).click()
        expect(page.get_by_role("status").filter(has_text="Rejected")).to_be_visible()
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
    with doing(page, "answer a question"):
        page.get_by_role("button", name="6", exact=True).click()
        expect(page.get_by_text("Which price?")).to_have_count(0)
    with doing(page, "give a wish"):
        page.get_by_label("What do you want?").press_sequentially("A page on what we sell")
        page.get_by_role("button", name="Send").click()
        wishes = page.get_by_role("list", name="Your last wishes")
        expect(wishes).to_contain_text("A page on what we sell")


@pytest.mark.requirement("FX-47", "BX-18")
def test_a_budget_that_is_used_up_is_raised_where_it_is_seen(
    office: Office, visitor: Visitor
) -> None:
    spender = office.agent("Spender", budgetMonthlyCents=0)
    office.do(office.running.app.gate(as_system(), budgets.hold, agent=spender["id"]))
    page = visitor.live(visitor.goto("/"))
    row = page.get_by_role("listitem").filter(has_text="The budget of Spender is used up")
    with doing(page, "raise a budget that is used up"):
        row.get_by_text("Raise budget…").click()
        expect(row).to_contain_text("Spent $0.00 of $0.00 this month.")
        row.get_by_label("New budget a month").fill("$12.50")
        row.get_by_role("button", name="Raise budget").click()
        said = page.get_by_role("status").filter(has_text="Spender may spend $12.50 a month.")
        expect(said).to_be_visible()
    expect(row).to_have_count(0)
    found = office.board.must("GET", f"/api/agents/{spender['id']}/budget")
    assert found["money"]["limit"] == 12_500_000


def test_a_hire_is_returned_with_what_is_missing_by_two_clicks(
    office: Office, visitor: Visitor
) -> None:
    made = office.hire("Vague")
    page = visitor.live(visitor.goto("/"))
    with doing(page, "return a hire"):
        row = page.get_by_role("listitem").filter(has_text="Hire Vague as engineer")
        row.get_by_role("link", name="Review").click()
        page.get_by_label("Note").fill("Say what it is for.")
        page.get_by_role("button", name="Request revision").click()
        expect(page.get_by_role("status").filter(has_text="Sent back")).to_be_visible()
    found = office.board.must("GET", f"/api/approvals/{made['approval']['id']}")
    assert found["status"] == "revision_requested"


def menu(page: Page, name: str) -> None:
    page.get_by_role("navigation", name="Pages").get_by_role("link", name=name, exact=True).click()


def link(page: Page, name: str) -> None:
    page.get_by_role("main").get_by_role("link", name=name).first.click()


@pytest.mark.requirement("FX-49")
@pytest.mark.parametrize(
    ("task", "noun", "add", "typed", "save", "shown"),
    [
        (
            *("set a budget", "Budgets", "Set budget"),
            {"Agent": "ceo", "Dollars a month": "20"},
            *("Save budget", "$20.00"),
        ),
        (
            *("keep a secret", "Secrets", "Add secret"),
            {"Name": "forge", "Value": "s3cret-value"},
            *("Save secret", "kept by this instance"),
        ),
        (
            *("connect an MCP server", "MCP servers", "Add MCP server"),
            {"Name": "tickets", "Program and arguments": "true"},
            *("Save MCP server", "tickets"),
        ),
        (
            *("add a repository", "Repositories", "Add repository"),
            {"Name": "site", "Address": "https://forge.example/site.git"},
            *("Save repository", "https://forge.example/site.git"),
        ),
        (
            *("connect a channel", "Channels", "Connect channel"),
            {"Agent": "ceo"},
            *("Save channel", "rmt_channel_"),
        ),
    ],
)
def test_what_the_command_line_sets_up_takes_four_clicks(
    office: Office,
    visitor: Visitor,
    task: str,
    noun: str,
    add: str,
    typed: dict[str, str],
    save: str,
    shown: str,
) -> None:
    page = visitor.goto("/")
    with doing(page, task):
        menu(page, "Set-up")
        link(page, noun)
        link(page, add)
        for label, text in typed.items():
            page.get_by_role("main").get_by_label(re.compile(f"^{label}")).fill(text)
        page.get_by_role("button", name=save).click()
        expect(page.get_by_role("main")).to_contain_text(shown)


@pytest.mark.requirement("FX-49")
def test_a_person_is_invited_and_a_company_created_by_three_clicks(
    office: Office, visitor: Visitor
) -> None:
    page = visitor.goto("/")
    with doing(page, "add a person"):
        menu(page, "Settings")
        page.get_by_text("Add a person").click()
        page.get_by_role("region", name="People").get_by_label("Name", exact=True).fill("ann")
        page.get_by_role("button", name="Add person", exact=True).click()
        expect(page.get_by_role("main")).to_contain_text("rmt_login_")
    page.goto("/")
    with doing(page, "create a second company"):
        page.locator("header summary").first.click()
        page.get_by_role("link", name="New company").click()
        page.get_by_label("Name", exact=True).fill("Second")
        page.get_by_role("button", name="Create company").click()
        expect(page.get_by_role("status").filter(has_text="Second")).to_be_visible()


@pytest.mark.requirement("FX-49")
def test_what_claude_lacks_is_told_before_an_agent_is_hired_with_it(
    office: Office, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    page = visitor.goto("/")
    with doing(page, "see what claude lacks"):
        menu(page, "Set-up")
        link(page, "Programs and models")
        page.get_by_role("button", name="Test claude").click()
        expect(page.get_by_role("status").filter(has_text="claude:")).to_contain_text("not")
    page.goto("/")
    with doing(page, "hire an agent with claude"):
        menu(page, "Organisation")
        link(page, "Hire agent")
        page.get_by_label("Adapter", exact=True).select_option("claude")
        expect(page.get_by_role("heading", name="About claude")).to_be_visible()
        page.get_by_label("Name", exact=True).fill("Clara")
        page.get_by_role("button", name="Preview", exact=True).last.click()
        expect(page.get_by_role("region", name="Preview")).to_contain_text("cannot work here yet")
        page.get_by_role("button", name="Hire now").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Clara")
        expect(page.get_by_role("region", name="Result")).to_contain_text("cannot work here yet")


def test_every_task_is_done_by_a_test() -> None:
    tests = Path(__file__).parent
    done = "".join((tests / f"test_web_{name}.py").read_text() for name in ("tasks", "things"))
    assert {task for task in TASKS if f'"{task}"' not in done} == set()
