"""Stop and go over HTTP, the command line and the web."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browsing import Office, Visitor, check_accessible
from tests.http_client import Client
from tests.test_cli import Home, only, refused, remit

__all__ = ["only", "remit"]
pytestmark = pytest.mark.requirement("FX-13")
SLOTS = 0


class Team:
    """A lead with a report, below the root agent of an office."""

    def __init__(self, office: Office, name: str) -> None:
        self.office = office
        self.lead = office.agent(f"{name}-lead")
        self.dev = office.agent(f"{name}-dev", self.lead["id"])

    def post(self, path: str, body: Any = None, by: Client | None = None) -> Any:
        return (by or self.office.board)("POST", path, body)


@pytest.fixture
def going(office: Office) -> Iterator[Office]:
    """Nothing stays stopped for the next test."""
    yield office
    for halt in office.board.must("GET", office.path("halts")):
        where = f"/api/agents/{halt['agentId']}/go" if halt["agentId"] else office.path("go")
        office.board.must("POST", where, {"subtree": True})


def test_a_company_is_stopped_and_let_go_on_over_http(going: Office) -> None:
    team = Team(going, "http")
    run = going.begin(team.dev)
    halt = going.board.must("POST", going.path("stop"), {"note": "Audit"})
    assert (halt["level"], halt["note"], halt["runsEnded"]) == ("company", "Audit", 1)
    assert going.board.must("GET", f"/api/runs/{run.id}")["exitReason"] == "stopped"
    refusal = going.as_agent(team.dev)("GET", "/api/agents/me")
    assert (refusal.status, refusal.code) == (403, "stopped")
    assert "Audit" in refusal.json["error"]
    (listed,) = going.board.must("GET", going.path("halts"))
    assert (listed["id"], listed["mayLift"]) == (halt["id"], True)
    idle = going.board.must("GET", f"/api/agents/{team.dev['id']}/why-idle")
    assert idle["reason"] == "halted"
    assert going.board.must("POST", going.path("stop"))["already"] is True
    assert going.board.must("POST", going.path("go"))["lifted"] is True
    assert going.board("POST", going.path("go")).code == "not_stopped"
    assert going.as_agent(team.dev)("GET", "/api/agents/me").status == 200


def test_a_subtree_is_stopped_over_http_and_one_agent_as_before(going: Office) -> None:
    team = Team(going, "tree")
    lead, dev = (f"/api/agents/{one['id']}" for one in (team.lead, team.dev))
    assert going.board.must("POST", f"{lead}/stop", {"subtree": True})["level"] == "subtree"
    assert going.as_agent(team.dev)("GET", "/api/agents/me").code == "stopped"
    assert going.board.must("GET", dev)["status"] == "idle"
    assert going.board.must("POST", f"{lead}/go", {"subtree": True})["lifted"] is True
    assert going.board.must("POST", f"{dev}/stop")["status"] == "paused"
    assert going.board.must("POST", f"{dev}/go")["status"] == "idle"
    assert team.post(f"{dev}/stop", {"subtree": "perhaps"}).status == 422


def test_every_page_has_the_button_and_says_who_stopped_what(
    going: Office, visitor: Visitor
) -> None:
    team = Team(going, "web")
    for address in ("/", "/org", f"/agents/{team.dev['id']}", "/runs", "/account"):
        page = visitor.goto(address)
        expect(page.get_by_text("Stop", exact=True).first).to_be_visible()
    page = visitor.goto("/org")
    page.get_by_label("Stop with a reason").click()
    page.get_by_label("Reason for the stop").fill("<b>Audit</b>")
    page.get_by_role("button", name="Stop the company with this reason").click()
    banner = page.get_by_role("status").filter(has_text="The company is stopped, by")
    expect(banner).to_contain_text("<b>Audit</b>")
    assert page.url.endswith("/org")
    expect(page.get_by_text("Stop", exact=True)).to_have_count(0)
    check_accessible(page)
    page = visitor.goto(f"/agents/{team.lead['id']}")
    page.get_by_text("More", exact=True).click()
    page.get_by_role("button", name="Stop with everybody below").click()
    page.get_by_role("button", name="Stop", exact=True).click()
    below = page.get_by_role("status").filter(has_text="web-lead and everybody below it")
    expect(below).to_be_visible()
    page.get_by_role("button", name="Resume the company").click()
    expect(page.get_by_role("status").filter(has_text="The company is resumed.")).to_be_visible()
    expect(page.get_by_text("The company is stopped")).to_have_count(0)
    expect(below).to_be_visible()
    page.get_by_role("button", name="Resume web-lead").click()
    expect(below).to_have_count(0)
    assert going.board.must("GET", going.path("halts")) == []


def test_the_command_line_stops_and_lets_go_on(only: Home) -> None:
    only("agent", "create", "lead")
    only("agent", "create", "dev", "--boss", "lead")
    said = only("stop", "lead", "--note", "Audit").out
    assert said.startswith("lead and everybody below it are stopped; 0 runs ended.")
    assert said.endswith("the instance runs on.\n`remit resume lead` ends the halt.\n")
    second = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
    assert re.search(rf"stopped already, by \w+ at {second}\.\n", only("stop", "lead").out)
    assert only.json("agent", "why-idle", "dev")["reason"] == "halted"
    assert only.json("stop", "--reason", "All of it")["level"] == "company"
    assert re.search(rf"The company is stopped by \w+ since {second} ", only("top", "--once").out)
    assert "(All of it); `remit resume` ends the halt." in only("status").out
    assert [one["level"] for one in only.json("top")["halts"]] == ["company", "subtree"]
    first, other = only("resume").out.splitlines()
    assert re.fullmatch(r"Resumed Company \w+: ended its halt\.", first)
    assert other.startswith("lead and below are stopped by")
    refused(only("go"), 4, "is not stopped")
    assert only("go", "lead").out == "Resumed lead: ended its halt.\n"
    assert only.json("status")["companies"][0]["halts"] == []
    refused(only("stop", "nobody"), 3, "nobody")


def test_resume_ends_the_halt_and_the_pause_of_what_it_names_and_says_which(only: Home) -> None:
    for name in ("lead", "other"):
        only("agent", "create", name)
    only("agent", "pause", "lead")
    assert only("resume", "lead").out == "Resumed lead: ended its pause.\n"
    only("agent", "pause", "lead")
    only("stop", "lead")
    only("stop", "other")
    assert only("resume", "lead").out.startswith("Resumed lead: ended its halt and its pause.")
    assert only.json("agent", "show", "lead")["status"] == "idle"
    refused(only("resume", "lead"), 4, "lead is not stopped.")

    only("stop")
    only("agent", "pause", "lead")
    said = only("resume", "lead").out.splitlines()
    assert said[0] == "Resumed lead: ended its pause."
    assert "`remit resume` ends the halt." in said[1]
    refused(only("resume", "lead"), 4, "lead has no halt of its own.")
    resumed = only.json("resume")
    assert (resumed["ended"], resumed["level"]) == (["halt"], "company")
    assert [halt["agent"] for halt in resumed["left"]] == ["other"]
