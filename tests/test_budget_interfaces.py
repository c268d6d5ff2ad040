"""Budgets over HTTP, MCP and the command line; who is started first, and why somebody is not."""

from typing import Any

import pytest

from remit.clock import SystemClock
from remit.services.execution import runs
from remit.services.governance import approvals
from remit.services.hiring import configuration
from remit.services.identity import as_system
from remit.services.organisation import idleness
from remit.testing import ToolRefused
from tests.budgeting import set_budget
from tests.company import Company, Member
from tests.mailing import send
from tests.organisation import work
from tests.test_cli import Home, only, remit
from tests.test_http_governance import World, running, world
from tests.test_mcp_governance import Firm, firm, site
from tests.working import at_work, claim, end, let_sleep, over, program, ready, why_idle

__all__ = ["firm", "only", "remit", "running", "site", "world"]  # fixtures


# ── over HTTP ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("BX-09")
def test_a_budget_is_set_handed_over_and_seen_over_http(world: World) -> None:
    board, ceo = world.board, world.ceo_id
    board.must("PATCH", f"/agents/{ceo}", {"budgetMonthlyCents": 500, "budgetMonthlyTokens": 900})
    board.must("PATCH", f"/agents/{world.manager_id}", {"budgetMonthlyTokens": 400})
    seen = board.must("GET", f"/agents/{ceo}/budget")
    assert set(seen) == {
        *("agentId", "name", "month", "until", "money", "tokens", "cost", "stoppedAt", "limits"),
        "warning",
    }
    assert seen["tokens"] == {
        "limit": 900,
        "reserved": 400,
        "setAside": 0,
        "spent": 0,
        "spentByItself": 0,
        "left": 500,
        "leftShown": "500 tokens",
        "paidBy": {"agentId": ceo, "name": "chief"},
        "reservations": [],
    }
    assert seen["money"]["left"] == 5_000_000
    refused = board("PATCH", f"/agents/{world.manager_id}", {"budgetMonthlyTokens": 901})
    assert (refused.status, refused.code) == (409, "budget_exceeded")
    assert refused.json["nextStep"] == "Ask for less, or have the budget of chief raised first."
    for wrong in (-1, "5", True, 1.5, 10**13):
        answer = board("PATCH", f"/agents/{ceo}", {"budgetMonthlyTokens": wrong})
        assert answer.status == 422, wrong
    part = world.ceo.must(
        "POST", f"/companies/{world.company}/outcomes", {"parentId": ceo, "title": "A part"}
    )
    give = {"to": world.manager_id, "budget": {"tokens": 501}}
    assert world.ceo("POST", f"/outcomes/{part['id']}/delegate", give).code == "budget_exceeded"
    assert (
        world.ceo("POST", f"/outcomes/{part['id']}/delegate", {**give, "budget": 5}).status == 422
    )
    give["budget"] = {"tokens": 100, "moneyCents": 50}
    world.ceo.must("POST", f"/outcomes/{part['id']}/delegate", give)
    (one,) = world.manager.must("GET", f"/agents/{world.manager_id}/budget")["tokens"][
        "reservations"
    ]
    assert (one["outcomeId"], one["amount"], one["left"]) == (part["id"], 100, 100)
    rows = board.must("GET", f"/companies/{world.company}/budgets")
    assert [row["name"] for row in rows] == ["chief", "manager"]
    assert rows[0]["tokens"]["setAside"] == 100
    first = board("GET", f"/companies/{world.company}/budgets?limit=1")
    assert len(first.json) == 1
    assert 'rel="next"' in first.headers["Link"]
    assert world.worker("GET", f"/agents/{ceo}/budget").status in (403, 404)
    assert board("GET", "/agents/01890000-0000-7000-8000-000000000000/budget").status == 404


def test_more_is_asked_for_and_approved_over_http(world: World) -> None:
    board = world.board
    board.must("PATCH", f"/agents/{world.ceo_id}", {"budgetMonthlyTokens": 100})
    path = f"/companies/{world.company}/approvals"
    asked = world.worker.must(
        "POST", path, {"type": "budget", "payload": {"budgetMonthlyTokens": 101}}
    )
    answer = board.decide(asked["id"], "approve")
    assert (answer.status, answer.code) == (409, "budget_exceeded")
    assert board.must("GET", f"/approvals/{asked['id']}")["status"] == "pending"
    board.must("PATCH", f"/agents/{world.ceo_id}", {"budgetMonthlyTokens": 200})
    assert board.decide(asked["id"], "approve").status == 200
    assert board.agent(world.worker_id)["budgetMonthlyTokens"] == 101
    assert board("POST", path, {"type": "budget", "payload": {}}).status == 422


# ── over MCP ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("BX-09")
def test_an_agent_sees_what_it_has_left_and_asks_for_more(firm: Firm) -> None:
    assert "budget" not in firm.tools(firm.worker)
    limits = {"budgetMonthlyTokens": 1_000}
    firm.site.call(firm.board, configuration.change, agent=firm.ceo.id, changes=limits)
    assert "budget" in firm.tools(firm.worker)
    seen = firm.call(firm.worker, "budget")
    assert (seen["tokens"]["left"], seen["tokens"]["paid_by"]["name"]) == (1_000, "chief")
    assert seen["money"]["left_shown"] == "no limit"
    part = firm.call(firm.ceo, "outcome_create", parent_id=firm.ceo.id, title="A part")["id"]
    firm.call(firm.ceo, "delegate", outcome_id=part, to="manager", budget={"tokens": 300})
    assert firm.call(firm.ceo, "budget", agent="manager")["tokens"]["left"] == 300
    # Who works below lives on what was set aside for that.
    assert firm.call(firm.worker, "budget")["tokens"]["left"] == 300
    asked = firm.call(firm.worker, "budget", monthly_tokens=200, why="There is much to read")
    assert (asked["type"], asked["status"]) == ("budget", "pending")
    assert asked["payload"]["why"] == "There is much to read"
    firm.decide(approvals.approve, asked["id"])
    assert firm.call(firm.worker, "budget")["tokens"]["limit"] == 200
    other = firm.call(firm.ceo, "outcome_create", parent_id=firm.ceo.id, title="More")["id"]
    with pytest.raises(ToolRefused, match="budget_exceeded"):
        firm.call(firm.ceo, "delegate", outcome_id=other, to="manager", budget={"tokens": 600})
    with pytest.raises(ToolRefused):
        firm.call(firm.worker, "budget", agent="manager")


# ── on the command line ─────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("BX-09")
def test_budgets_are_set_and_seen_on_the_command_line(only: Home) -> None:
    only.json("agent", "create", "chief", "--budget", "5000", "--tokens", "1000")
    only.json("agent", "create", "helper", "--boss", "chief", "--budget", "1500")
    said = only("agent", "budget", "chief").out.splitlines()
    assert said[0].startswith("chief, from 20")
    assert said[1:] == [
        "  money: $35.00 left of $50.00 a month",
        "    $15.00 reserved for those below",
        "  tokens: 1,000 left of 1,000 a month",
        "  limits: 60 runs an hour, 20,000,000 tokens a day (0 today)",
        "    the company has spent $0.00 of $50.00 today",
    ]
    lived = only("agent", "budget", "helper").out
    assert "tokens: lives on chief's budget, 1,000 left" in lived
    table = only("agent", "budget").out.splitlines()
    assert table[0].split()[:3] == ["NAME", "$", "LIMIT"]
    assert table[1].split() == [
        "chief",
        "50.00",
        "15.00",
        "0.00",
        "35.00",
        "1,000",
        "0",
        "0",
        "1,000",
    ]
    shown = only("agent", "show", "chief").out
    assert "$50.00 and 1,000 tokens a month; left: $35.00 of $50.00, 1,000 of 1,000 tokens" in shown
    assert "Left this month: chief $35.00 of $50.00" in only("top", "--once").out
    refused = only("agent", "set", "helper", "budgetMonthlyTokens=1001")
    assert (refused.code, "of which 1,000 tokens is left" in refused.err) == (4, True)
    only("agent", "set", "helper", "budgetMonthlyTokens=200")
    part = only.json(
        "outcome", "create", "A part", "--parent", only.json("agent", "show", "chief")["id"]
    )
    only("outcome", "delegate", part["id"], "--to", "helper", "--budget", "100", "--tokens", "50")
    assert "$1.00 of $1.00 left for outcome" in only("agent", "budget", "helper").out


# ── who is started first, and why not ───────────────────────────────────────────────────────────


@pytest.fixture
def clock() -> SystemClock:
    return SystemClock()


def at(company: Company, name: str, due: int, *flags: str) -> Member:
    """Somebody who waits since then, with work that is so pressing."""
    made = company.agent(name, adapter_type="scripted", perpetual=True)
    given: dict[str, Any] = dict.fromkeys(flags, True)
    work(company, made.caller, made.id, **given)
    company.sql("UPDATE agent_leases SET due_at = ? WHERE agent_id = ?", due, made.id)
    return made


def test_the_most_pressing_is_started_first_then_who_waits_longest(company: Company) -> None:
    let_sleep(company, company.ceo)
    rest = at(company, "rest", 1)
    important = at(company, "important", 2, "important")
    urgent = at(company, "urgent", 3, "urgent")
    late = at(company, "late", 5, "urgent", "important")
    both = at(company, "both", 4, "urgent", "important")
    expected = [both.id, late.id, urgent.id, important.id, rest.id]
    assert ready(company) == expected
    assert ready(company, limit=2) == expected[:2]
    # What is put off or waits for something does not press.
    waits = at(company, "waits", 0, "important")
    (pressing,) = company.sql(
        "SELECT id FROM outcomes WHERE owner_id = ? AND kind = 'work' AND NOT perpetual", waits.id
    )
    company.sql(
        "UPDATE outcomes SET urgent = true, deferred_until = ? WHERE id = ?", 1 << 60, *pressing
    )
    send(company, company.board, "agent:waits", "Mail is important.")
    company.sql("UPDATE agent_leases SET due_at = 0 WHERE agent_id = ?", waits.id)
    assert ready(company) == [*expected[:3], waits.id, *expected[3:]]
    # Companies take turns, whatever presses in one of them.
    neighbour = company.second_company()
    company.sql("UPDATE agents SET adapter_type = 'scripted' WHERE id = ?", neighbour.agent.id)
    company.wait(
        company.app.library.send(neighbour.board, to=f"agent:{neighbour.agent.id}", body="x")
    )
    assert ready(company)[:2] == [both.id, neighbour.agent.id]


def test_why_somebody_is_idle_says_that_its_adapter_cannot_be_used(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    dev = company.agent("dev", adapter_type="claude", perpetual=True)
    send(company, company.board, "agent:dev", "Please do it.")
    at_work(company, over(company, dev))
    # Its set-up is closed for everybody who needs it, and it says what is missing.
    assert why_idle(company, dev) == "held"
    told = company.call(company.board, idleness.why_idle, agent="dev")["sentence"]
    assert "setup" in told, told
    assert "`remit adapter test --agent dev` says what is missing" in told, told
    # Another adapter is another story, and so is a run that ended otherwise.
    company.call(
        company.board,
        configuration.change,
        agent="dev",
        changes={"adapterType": "scripted", "adapterConfig": {}},
    )
    assert why_idle(company, dev) == "no_slot"
    run = claim(company, dev)
    end(company, run, "failed", exit_reason="crashed", error="it crashed")
    assert why_idle(company, dev) == "backoff"
    company.sql("UPDATE agents SET adapter_type = 'gone' WHERE id = ?", dev.id)
    assert why_idle(company, dev) == "no_adapter"


def test_an_agent_elsewhere_is_charged_for_what_it_reports(company: Company) -> None:
    dev = program(company, "dev", "true")
    set_budget(company, dev, tokens=100)
    run = company.run(dev)
    company.call(run.caller, runs.report, run=run.id, tokens_in=30, tokens_out=5)
    said = company.call(as_system(), runs.read_report, run=run.id)
    assert said is not None
    report = {"tokens_in": said["tokens_in"], "tokens_out": said["tokens_out"]}
    company.call(as_system(), runs.end, run=run.id, report=report)
    (spent,) = company.sql("SELECT tokens FROM spending WHERE agent_id = ?", dev.id)
    assert spent == (35,)
