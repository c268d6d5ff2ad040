"""Accounts, set-ups and dead letters over HTTP, the command line and the web."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from remit.clock import HOUR, SystemClock
from remit.services.execution import run_queue, runs
from remit.services.identity import as_system
from tests.browsing import Office, Visitor, check_accessible
from tests.company import run_sql
from tests.test_cli import Home, only, refused, remit

__all__ = ["only", "remit"]
pytestmark = pytest.mark.requirement("FX-10")
SLOTS = 0


def close(office: Office, secret: str, fault: str = "rate", **report: Any) -> dict[str, Any]:
    """An agent whose run closed the account of a secret."""
    config = {"secretRef": secret}
    agent = office.agent(f"{secret}-dev", adapterType="claude", adapterConfig=config)
    body = {"to": f"agent:{agent['id']}", "body": "Work.", "subject": f"For {secret}"}
    office.board.must("POST", office.path("messages"), body)
    app = office.running.app
    run = app.ids.new()
    claim = {"agent": agent["id"], "run": run, "workspace": "/nowhere", "worker": "w"}
    office.do(app.gate(as_system(), run_queue.claim, **claim))
    told = {"error": "usage limit reached", "fault": fault, **report}
    office.do(app.gate(as_system(), runs.end, run=run, status="failed", report=told))
    return agent


def test_accounts_are_listed_and_tried_over_http(office: Office) -> None:
    until = SystemClock().now() + HOUR
    agent = close(office, "over-http", fault_until=until)
    found = {one["name"]: one for one in office.board.must("GET", office.path("accounts"))}
    account = found["claude:over-http"]
    assert (account["kind"], account["state"], account["fault"]) == ("account", "closed", "rate")
    assert (account["waiting"], account["until"] is not None) == (1, True)
    assert account["sentence"].startswith("The account claude:over-http is closed since")
    idle = office.board.must("GET", f"/api/agents/{agent['id']}/why-idle")
    assert idle["reason"] == "held"
    assert "claude:over-http" in idle["sentence"]
    needs = office.board.must("GET", f"/api/needs-you?company={office.company}")
    (row,) = [one for one in needs if one["id"] == account["id"]]
    assert (row["kind"], row["agentId"]) == ("held", None)
    assert row["title"] == "claude:over-http cannot be used"
    assert "1 agent waits for it." in row["cause"]
    assert row["next"] == "remit account retry claude:over-http"
    path = office.path(f"accounts/{account['id']}/retry")
    assert office.as_agent(agent)("POST", path).status == 403
    assert office.board.must("POST", path)["triedAt"] < account["triedAt"]
    assert office.board("POST", office.path("accounts/nobody/retry")).status == 404
    assert office.as_agent(agent)("GET", office.path("accounts")).status == 403


def test_dead_letters_come_back_over_http(office: Office) -> None:
    assert office.board.must("GET", office.path("dead-letters")) == []
    assert office.board.must("POST", office.path("dead-letters/revive")) == {"revived": []}


def test_the_front_page_and_the_settings_have_what_is_closed(
    office: Office, visitor: Visitor
) -> None:
    close(office, "on-a-page", "auth")
    page = visitor.goto("/")
    card = page.get_by_role("region", name="Inbox")
    row = card.get_by_role("listitem").filter(has_text="claude:on-a-page")
    expect(row).to_contain_text("usage limit reached")
    check_accessible(page)
    row.get_by_role("button", name="Try now").click()
    expect(page.get_by_role("status").filter(has_text="is tried now")).to_be_visible()
    page = visitor.goto(f"/companies/{office.company}/settings")
    card = page.get_by_role("region", name="Accounts and set-ups")
    mine = card.get_by_role("listitem").filter(has_text="claude:on-a-page")
    expect(mine).to_contain_text("failing")
    mine.get_by_role("button", name="Try now").click()
    expect(page.get_by_role("status").filter(has_text="is tried now")).to_be_visible()
    check_accessible(page)


def test_the_command_line_says_what_is_closed_and_brings_letters_back(only: Home) -> None:
    assert "No agent has used an account" in only("account", "list").out
    only("agent", "create", "dev")
    only("send", "dev", "Work.")
    url = f"sqlite:///{only.folder}/remit.db"
    run_sql(
        url,
        "INSERT INTO accounts (id, company_id, kind, name, adapter_type, endpoint, credential,"
        " state, fault, cause, since, until, probe_at, failures, started, created_at)"
        " SELECT lower(hex(randomblob(16))), id, 'account', 'claude:key', 'claude', '',"
        " 'secret:key',"
        " 'closed', 'rate', 'usage limit reached', 1, 2000000000000000, 2000000000000000, 1, 0, 1"
        " FROM companies",
    )
    assert re.search(
        r"^claude:key .* 2033-05-18T03:33:20Z$", only("account", "list").out, re.MULTILINE
    )
    assert "usage limit reached" in only("account", "show", "claude:key").out
    (listed,) = only.json("account", "list")
    assert only.json("account", "show", listed["id"][:8])["state"] == "closed"
    for command in (("top", "--once"), ("needs-you",), ("doctor",)):
        assert "The account claude:key is closed since" in only(*command).out, command
    assert only("account", "retry", "claude:key").out == "claude:key is tried now.\n"
    refused(only("account", "show", "nobody"), 3, "There is no such account.")
    run_sql(
        url,
        "INSERT INTO accounts (id, company_id, kind, name, adapter_type, endpoint, credential,"
        " state, failures, started, created_at)"
        " SELECT lower(hex(randomblob(16))), company_id, kind, name, adapter_type,"
        " 'https://other.example', credential, 'open', 0, 0, 1 FROM accounts",
    )
    for verb in ("show", "retry"):
        two = only("account", verb, "claude:key")
        refused(two, 2, "Several match 'claude:key'")
        assert listed["id"] in two.err, "so that it can be named"
    assert only("account", "retry", listed["id"]).code == 0

    assert only("revive").out == "There are none.\n"
    run_sql(
        url,
        "UPDATE deliveries SET status = 'dead', ended_at = 5, ended_why = 'failed 3 times'"
        " WHERE agent_id IS NOT NULL",
    )
    dead = only("revive").out
    assert "failed 3 times" in dead
    assert "`remit revive --all` queues all of them again." in dead
    assert only("revive", "--all").out == "1 letter queued again.\n"
    assert only("revive").out == "There are none.\n"
