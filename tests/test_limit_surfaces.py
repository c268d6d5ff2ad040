"""Limits over HTTP, the command line, files and the web."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from remit.entrypoints.cli.commands.instance import top
from remit.model.execution.limit import DEFAULTS, Limit
from remit.services.identity import as_system
from remit.services.spending import limits
from tests.browsing import Office, Visitor, check_accessible
from tests.test_cli import Home, only, refused, remit

__all__ = ["only", "remit"]
pytestmark = pytest.mark.requirement("FX-11")
SLOTS = 0
AS_THEY_COME = {limit.spelled: DEFAULTS[limit] for limit in Limit}


@pytest.fixture
def limited(office: Office) -> Iterator[Office]:
    """The limits are as they come for the next test."""
    yield office
    office.board.must("PATCH", f"/api/companies/{office.company}", {"limits": AS_THEY_COME})


def test_limits_are_changed_over_http(limited: Office) -> None:
    here = f"/api/companies/{limited.company}"
    assert limited.board.must("GET", here)["limits"] == AS_THEY_COME
    wanted = {"agentRunsPerHour": 120, "turnsPerRun": None, "identicalCalls": "none"}
    found = limited.board.must("PATCH", here, {"limits": wanted})["limits"]
    assert found == {
        **AS_THEY_COME,
        "agentRunsPerHour": 120,
        "turnsPerRun": None,
        "identicalCalls": None,
    }
    for wrong in ({"runs": 1}, {"agentRunsPerHour": -1}, {"agentRunsPerHour": "x"}):
        refusal = limited.board("PATCH", here, {"limits": wrong})
        assert refusal.status == 422, refusal.json
        assert "limits" in refusal.json["error"]
    assert limited.board("PATCH", here, {"limits": [1]}).status == 422
    dev = limited.agent("limited-http")
    assert limited.as_agent(dev)("PATCH", here, {"limits": wanted}).status == 403
    seen = limited.board.must("GET", f"/api/agents/{dev['id']}/budget")["limits"]
    assert (seen["agentRunsPerHour"], seen["tokensToday"], seen["heldUntil"]) == (120, 0, None)


def test_the_settings_have_the_limits(limited: Office, visitor: Visitor) -> None:
    page = visitor.goto(f"/companies/{limited.company}/settings")
    expect(page.get_by_label("Runs per agent and hour")).to_have_value("60")
    page.get_by_label("Runs per agent and hour").fill("many")
    page.get_by_role("button", name="Save limits").click()
    expect(page.get_by_role("alert")).to_contain_text("agentRunsPerHour")
    expect(page.get_by_label("Runs per agent and hour")).to_have_value("many")
    page.get_by_label("Runs per agent and hour").fill("7")
    dollars = page.get_by_label("Company spending per day ($)")
    expect(dollars).to_have_value("50.00")
    dollars.fill("")
    page.get_by_role("button", name="Save limits").click()
    expect(page.get_by_role("status").filter(has_text="Saved.")).to_be_visible()
    expect(dollars).to_have_value("")
    check_accessible(page)
    now = limited.board.must("GET", f"/api/companies/{limited.company}")["limits"]
    assert (now["agentRunsPerHour"], now["companyCentsPerDay"]) == (7, None)
    dollars.fill("$12.5")
    page.get_by_role("button", name="Save limits").click()
    expect(dollars).to_have_value("12.50")


def test_the_command_line_shows_and_sets_limits(only: Home, tmp_path: Path) -> None:
    shown = only("company", "show").out
    assert "agentRunsPerHour" in shown
    assert "60 (runs of one agent within an hour)" in shown
    assert "$50.00 (cents that the company spends in a day (UTC))" in shown
    changed = only.json(
        "company", "set", "--limit", "agentRunsPerHour=120", "--limit", "identicalCalls=none"
    )
    assert changed["limits"]["agent_runs_per_hour"] == 120
    assert changed["limits"]["identical_calls"] is None
    assert "no limit (identical calls in a row in one run)" in only("company", "show").out
    refused(only("company", "set", "--limit", "runs=3"), 2, "'runs' is not known")
    unclear = only("company", "set", "--limit", "agentRunsPerHour")
    assert (unclear.code, "NAME=NUMBER" in unclear.err) == (2, True)
    said = only("agent", "budget", "ceo").out
    assert "limits: 120 runs an hour, 20,000,000 tokens a day (0 today)" in said
    assert "the company has spent $0.00 of $50.00 today" in said
    assert only.json("top")["limits"] == []
    assert only.json("needs-you") == []
    # A file says the same, and changes nothing the second time.
    file = tmp_path / "company.toml"
    file.write_text("[company]\nlimits = { agentRunsPerHour = 90, turnsPerRun = 0 }\n")
    assert "limits" in only("apply", str(file)).out
    found = only.json("company", "show")["limits"]
    assert (found["agent_runs_per_hour"], found["turns_per_run"]) == (90, None)
    assert only.json("apply", str(file), "--dry-run")["changed"] == 0


def test_a_limit_that_was_reached_is_raised_with_one_button(
    limited: Office, visitor: Visitor
) -> None:
    here = f"/api/companies/{limited.company}"
    limited.board.must("PATCH", here, {"limits": {"agentRunsPerHour": 1}})
    dev = limited.agent("limited-web")
    limited.end(limited.begin(dev))
    limited.do(limited.running.app.gate(as_system(), limits.hold, agent=dev["id"]))
    (item,) = [one for one in limited.board.must("GET", "/api/needs-you") if one["kind"] == "limit"]
    assert item["next"] == (
        "remit run list --agent limited-web, then remit company set --limit agentRunsPerHour=2"
    )
    page = visitor.goto("/")
    inbox = page.get_by_role("region", name="Inbox")
    expect(inbox.get_by_text("Limit reached")).to_be_visible()
    expect(inbox.get_by_text("limited-web has had 1 run within an hour.")).to_be_visible()
    check_accessible(page)
    inbox.get_by_role("button", name="Raise to 2").click()
    said = page.get_by_role("status").filter(has_text="The limit is raised.")
    expect(said).to_be_visible()
    expect(inbox.get_by_text("Limit reached")).to_have_count(0)
    assert limited.board.must("GET", here)["limits"]["agentRunsPerHour"] == 2
    said.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status").filter(has_text="The limit is as it was.")).to_be_visible()
    assert limited.board.must("GET", here)["limits"]["agentRunsPerHour"] == 1


def test_top_says_which_limit_is_reached_and_what_raises_it() -> None:
    reached = {
        "title": "dev has had 60 runs within an hour. It goes on at 12:00.",
        "command": "remit company set --limit agentRunsPerHour=120",
        "agentId": None,
    }
    (line,) = top._notices({"halts": [], "held": [], "limits": [reached]})
    assert line == (
        "LIMIT: dev has had 60 runs within an hour. It goes on at 12:00. "
        "`remit company set --limit agentRunsPerHour=120` raises it."
    )
