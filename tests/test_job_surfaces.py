"""Background jobs over HTTP, on the command line, through MCP, and in an export."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remit.errors import NotFound
from remit.services.execution import jobs
from remit.services.messaging import threads
from remit.services.organisation import agents
from remit.services.people import companies
from remit.testing import ScriptedAgent
from tests.agent_stage import stage
from tests.background import BACKGROUND, answers, ask, carried_out, over
from tests.company import opened
from tests.http_client import Client, Running, serving
from tests.test_archive import export, import_, unpacked
from tests.test_cli import Home, only, refused, remit
from tests.test_cli_runs import until
from tests.test_jobs import forbid

__all__ = ["only", "remit"]  # fixtures

#: Jobs are really done here.
SLOTS = 2
ABSENT = "01890000-0000-7000-8000-000000000000"
FIELDS = {
    *("id", "companyId", "agentId", "messageId", "status", "adapterType", "dueAt", "attempts"),
    *("worker", "createdAt", "startedAt", "completedAt", "waitsFor", "error", "answerId"),
    *("tokensIn", "tokensOut", "tokensCached", "costUsd"),
    *("costEstimated", "tokensUnpriced", "price"),
}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("home")) as found:
        yield found


def agent(running: Running, company: str, name: str, **more: Any) -> tuple[Client, str]:
    body = {"name": name, "adapterType": "scripted", **more}
    made = running.board.must("POST", f"/api/companies/{company}/agents", body)
    key = running.board.must("POST", f"/api/agents/{made['id']}/keys")
    return running.client(key["token"]), made["id"]


def test_jobs_are_listed_shown_and_cancelled_over_http(running: Running) -> None:
    board = running.board
    company = board.must("POST", "/api/companies", {"name": "Firm"})["id"]
    boss, boss_id = agent(running, company, "boss")
    dev, dev_id = agent(running, company, "dev", reportsTo=boss_id)
    peer, _ = agent(running, company, "peer", reportsTo=boss_id)
    here = f"/api/companies/{company}"
    sent = [
        dev.must("POST", f"{here}/messages", {"to": BACKGROUND, "body": f"Do {number}."})
        for number in range(3)
    ]
    found = board.must("GET", f"{here}/jobs")
    assert [one["messageId"] for one in found] == [one["id"] for one in reversed(sent)]
    assert set(found[0]) == FIELDS
    assert "Link" in board("GET", f"{here}/jobs?limit=1").headers
    assert dev.must("GET", f"{here}/jobs") == found
    assert boss.must("GET", f"{here}/jobs") == []
    assert len(boss.must("GET", f"{here}/jobs?agent={dev_id}")) == 3
    job = found[0]["id"]
    for allowed in (board, boss, dev):
        assert allowed.must("GET", f"/api/jobs/{job}")["status"] == "queued"
    for method, path in (("GET", f"/api/jobs/{job}"), ("POST", f"/api/jobs/{job}/cancel")):
        assert peer(method, path).status in (403, 404)
        assert running.client(None)(method, path).status == 401
    cancelled = boss.must("POST", f"/api/jobs/{job}/cancel", {"reason": "Not now"})
    assert (cancelled["status"], cancelled["error"]) == ("cancelled", "Not now")
    assert boss("POST", f"/api/jobs/{job}/cancel").status == 409
    assert len(board.must("GET", f"{here}/jobs?unfinished=true")) == 2
    (letter,) = dev.must("GET", "/api/inbox")
    assert (letter["sender"], letter["body"]) == (BACKGROUND, "Background job failed: Not now")
    ends = dev.must("GET", f"/api/agents/{dev_id}/loose-ends")
    assert [one["kind"] for one in ends] == ["job", "job"]
    assert board("GET", f"/api/jobs/{ABSENT}").status == 404
    assert board("GET", "/api/jobs/nonsense").status in (400, 404, 422)
    refusal = board("POST", f"{here}/messages", {"to": BACKGROUND, "body": "x"})
    assert (refusal.status, refusal.json["code"]) == (403, "agents_only")


def test_jobs_on_the_command_line(only: Home) -> None:
    assert only("job", "list").out == "There are no background jobs.\n"
    made = only.json("agent", "create", "dev", "--adapter", "scripted")
    token = only.json("agent", "token", "dev")["token"]
    dev = Home(only.folder, {"REMIT_TOKEN": token})
    refused(only("send", "background", "Do it."), 1, "Only agents have background jobs.")
    sent = dev.json("send", "background", "Say it back.")

    def done() -> Any:
        return [one for one in only.json("job", "list") if one["status"] == "completed"]

    (job,) = until(done, "the end of the job")
    assert (job["agent_id"], job["message_id"]) == (made["id"], sent["id"])
    assert "completed" in only("job", "list", "--agent", "dev").out
    assert only.json("job", "list", "--unfinished") == []
    shown = only("job", "show", job["id"][:23]).out
    assert job["answer_id"] in shown
    assert only.json("read", job["answer_id"])["body"] == "Say it back."
    refused(only("job", "cancel", job["id"]), 4, "The job is completed.")
    refused(only("job", "show", ABSENT), 3, "There is no such job.")
    later = dev.json("send", "background", "Later.", "--at", "2099-01-01T00:00:00Z")
    (waiting,) = only.json("job", "list", "--unfinished")
    assert waiting["message_id"] == later["id"]
    assert only("job", "cancel", waiting["id"], "--reason", "no").out == "The job is cancelled.\n"


def test_an_agent_asks_and_cancels_with_its_tools(tmp_path: Path) -> None:
    async def story() -> None:
        async with stage(tmp_path, working=False) as at:
            made = await at.hire("dev", "scripted", {})
            key = await at.app.gate(at.board, agents.create_key, agent=made["id"])
            await asyncio.to_thread(_use_tools, at.url, key["token"])
            (job,) = await at.app.gate(at.board, jobs.listing, company=None)
            assert job["status"] == "cancelled"

    asyncio.run(story())


def _use_tools(url: str, token: str) -> None:
    with ScriptedAgent(url, token) as dev:
        sent = dev.call("mail_send", to=BACKGROUND, body="Do it.")
        (end,) = dev.call("loose_ends")["loose_ends"]
        assert (end["kind"], end["message_id"]) == ("job", sent["id"])
        assert dev.call("thread_cancel", id=sent["id"])["jobs"] == [end["id"]]
        assert dev.call("mail_inbox")["messages"] == []


def test_answers_travel_with_a_company_and_jobs_stay_behind(
    database_url: str, tmp_path: Path
) -> None:
    with opened(f"sqlite:///{tmp_path}/from.db", tmp_path / "from") as company:
        ask(company, company.ceo, "Said.")
        carried_out(company, over(company))
        ask(company, company.ceo, "Left behind.")
        forbid(company, company.ceo, "ask")
        archive = export(company)
        wanted = [one["sender"] for one in answers(company, company.ceo)]
    assert wanted == [BACKGROUND]
    assert b'"background": true' in unpacked(archive)["mail.jsonl"]
    with opened(database_url, tmp_path / "to") as other:
        other.call(other.board, companies.change, company=other.id, name="Theirs")
        came = import_(other, archive)
        mail = other.call(other.board, threads.listing, company=came["id"])
        assert {(one["sender"] == BACKGROUND, one["to"] == BACKGROUND) for one in mail} == {
            (True, False),
            (False, True),
        }
        assert other.sql("SELECT count(*) FROM jobs") == [(0,)]
        grants = other.sql("SELECT mode FROM grants WHERE resource_id = 'background'")
        assert grants == [("ask",)]


def test_a_job_of_another_company_does_not_exist(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path}/remit.db", tmp_path / "home") as company:
        ask(company, company.ceo)
        (job,) = company.call(company.board, jobs.listing, company=company.id)
        there = company.second_company()
        for caller in (there.board, there.agent.caller):
            with pytest.raises(NotFound):
                company.call(caller, jobs.show, job=job["id"])
            with pytest.raises(NotFound):
                company.call(caller, jobs.cancel, job=job["id"])
        assert company.call(there.board, jobs.listing, company=there.id) == []
