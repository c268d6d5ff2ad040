"""Runs over HTTP: listed, shown, read while they print, cancelled; and agents under control."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from remit.clock import SystemClock
from remit.ids import Ids
from remit.runtime.runs.lifecycle import LiveRun, begin, finish
from remit.services.execution import run_queue
from remit.services.identity import as_system
from tests.http_client import Client, Running, server_sent, serving

T = TypeVar("T")
STREAM = Path(__file__).parent / "agents" / "streams" / "claude.jsonl"
ABSENT = "01890000-0000-7000-8000-000000000000"
RUN_FIELDS = {
    *("id", "companyId", "agentId", "status", "why", "startedAt", "completedAt", "envelopeIds"),
    *("finalResponse", "contextLength", "error", "exitReason", "accountableUserId", "worker"),
    *("adapterType", "sessionId", "tokensIn", "tokensOut", "tokensCached", "costUsd", "logBytes"),
    "denied",
}


@pytest.fixture(scope="module")
def running(
    served_database: str | None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("home"), served_database) as found:
        yield found


@dataclass
class World:
    running: Running
    board: Client
    company: str
    boss: Client
    boss_id: str
    worker: Client
    worker_id: str
    #: Beside the worker, with the same boss.
    sibling: Client

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """What a worker does, done by hand."""
        return asyncio.run(work)

    def begin(self, agent: str | None = None) -> LiveRun:
        app = self.running.app
        made = begin(app.gate, app.ids, app.settings.workspaces, agent or self.worker_id)
        return self.do(made)

    def end(self, run: LiveRun, status: str = "completed") -> None:
        self.do(finish(self.running.app.gate, run, status))

    def print(self, run: LiveRun, *numbers: int) -> None:
        pieces = [
            {"number": number, "at": 1, "stream": "stdout", "text": f"line {number}\n"}
            for number in numbers
        ]
        gate = self.running.app.gate
        self.do(gate(as_system(), run_queue.append_log, run=run.id, pieces=pieces))

    def tell(self, run: LiveRun, *texts: str, first: int = 1) -> None:
        pieces = [
            {"number": number, "at": 1, "stream": "stdout", "text": text}
            for number, text in enumerate(texts, first)
        ]
        gate = self.running.app.gate
        self.do(gate(as_system(), run_queue.append_log, run=run.id, pieces=pieces))

    def follow(self, path: str) -> Iterator[Any]:
        reader = self.running.client(self.board.token)
        for one in server_sent(reader.open("GET", path)):
            yield json.loads(one["data"])

    def status(self, agent: str) -> Any:
        return self.board.must("GET", f"/api/agents/{agent}")["status"]

    def post(self, path: str) -> Any:
        return self.board.must("POST", f"/api{path}")


@pytest.fixture
def world(running: Running) -> World:
    name = f"Firm {Ids(SystemClock()).new()[-12:]}"
    company = running.board.must("POST", "/api/companies", {"name": name})["id"]

    def agent(name: str, **described: Any) -> tuple[Client, str]:
        body = {"name": name, "adapterType": "scripted", **described}
        made = running.board.must("POST", f"/api/companies/{company}/agents", body)
        key = running.board.must("POST", f"/api/agents/{made['id']}/keys")
        return running.client(key["token"]), made["id"]

    boss, boss_id = agent("boss")
    worker, worker_id = agent("worker", reportsTo=boss_id)
    sibling, _ = agent("sibling", reportsTo=boss_id)
    return World(running, running.board, company, boss, boss_id, worker, worker_id, sibling)


@pytest.mark.requirement("HB-57", "HB-58", "HB-62")
def test_runs_are_listed_newest_first_and_shown_with_every_field(world: World) -> None:
    listed = f"/api/companies/{world.company}/runs"
    assert world.board.must("GET", listed) == []
    first = world.begin()
    world.end(first)
    second = world.begin()
    other = world.begin(world.boss_id)
    found = world.board.must("GET", listed)
    assert [one["id"] for one in found] == [other.id, second.id, first.id]
    assert set(found[0]) >= RUN_FIELDS
    assert [one["status"] for one in found] == ["running", "running", "completed"]
    assert found[2]["completedAt"] is not None
    assert [one["id"] for one in world.board.must("GET", f"{listed}?live=1")] == [
        other.id,
        second.id,
    ]
    of_worker = world.board.must("GET", f"{listed}?agent=worker")
    assert [one["id"] for one in of_worker] == [second.id, first.id]
    assert world.board.must("GET", f"{listed}?agent=worker&live=true&limit=1") == of_worker[:1]
    assert world.board.must("GET", f"/api/runs/{first.id}") == {**found[2], "kept": None}
    assert world.board("GET", f"{listed}?agent=nobody").status == 404
    assert world.board("GET", f"{listed}?live=perhaps").status == 422
    world.end(second, "failed")
    assert world.board.must("GET", f"/api/runs/{second.id}")["status"] == "failed"
    world.end(other)


@pytest.mark.requirement("HH-15")
def test_a_log_is_for_the_agent_itself_and_for_those_above(world: World) -> None:
    run = world.begin()
    world.print(run, 1, 2)
    path = f"/api/runs/{run.id}/log"
    for client in (world.board, world.boss, world.worker):
        assert [one["text"] for one in client.must("GET", path)] == ["line 1\n", "line 2\n"]
    for hidden in (path, f"/api/runs/{run.id}", f"{path}?follow=1"):
        assert world.sibling("GET", hidden).status in (403, 404)
    assert world.sibling("POST", f"/api/runs/{run.id}/cancel").status in (403, 404)
    assert world.worker("POST", f"/api/runs/{run.id}/cancel").status in (403, 404)
    assert world.board.must("GET", f"/api/runs/{run.id}")["status"] == "running"
    absent = world.board("GET", f"/api/runs/{ABSENT}/log?follow=1")
    assert (absent.status, absent.code) == (404, "not_found")
    world.end(run)


@pytest.mark.requirement("FX-20")
def test_a_log_is_read_as_what_the_run_did(world: World) -> None:
    body = {"name": "coder", "adapterType": "claude", "reportsTo": world.boss_id}
    agent = world.board.must("POST", f"/api/companies/{world.company}/agents", body)
    run = world.begin(agent["id"])
    lines = STREAM.read_text().splitlines(keepends=True)
    world.tell(run, *lines[:5])
    path = f"/api/runs/{run.id}/log?as=transcript"
    for client in (world.board, world.boss):
        kinds = [one["kind"] for one in client.must("GET", path)]
        assert kinds == ["said", "call", "result", "call"]
    assert world.sibling("GET", path).status in (403, 404)
    assert world.board("GET", f"/api/runs/{run.id}/log?as=poem").status == 422
    events = world.follow(f"{path}&follow=1")
    heard = [next(events) for _ in kinds]
    world.tell(run, *lines[5:], first=6)
    world.end(run)
    heard += events
    entries = world.board.must("GET", path)
    assert heard == [*entries, {"status": "completed"}]
    assert [one["number"] for one in entries] == list(range(1, len(entries) + 1))
    last = entries[-1]
    assert (last["kind"], last["status"], last["shown"][:13]) == (
        "end",
        "completed",
        "== completed:",
    )
    (long,) = [one for one in entries if one["cut"]]
    assert (long["kind"], long["tool"], long["failed"]) == ("result", "kb_read", False)
    assert long["size"] > len(long["text"])
    (whole,) = world.board.must("GET", f"{path}&whole=1&after={long['number'] - 1}&limit=1")
    assert (len(whole["text"]), whole["cut"]) == (long["size"], False)
    page = world.board("GET", f"{path}&limit=3")
    following = page.headers["Link"].partition("<")[2].partition(">")[0]
    assert [*page.json, *world.board.must("GET", following)] == entries[:6]
    assert list(world.follow(f"{path}&follow=1&after=5"))[:-1] == entries[5:]


def test_a_log_comes_in_pages(world: World) -> None:
    run = world.begin()
    world.print(run, *range(1, 6))
    path = f"/api/runs/{run.id}/log"
    first = world.board("GET", f"{path}?limit=2")
    assert [one["number"] for one in first.json] == [1, 2]
    following = first.headers["Link"].partition("<")[2].partition(">")[0]
    assert [one["number"] for one in world.board.must("GET", following)] == [3, 4]
    assert [one["number"] for one in world.board.must("GET", f"{path}?after=3")] == [4, 5]
    assert world.board("GET", f"{path}?after=-1").status == 422
    world.end(run)


def test_a_log_is_followed_while_it_grows_until_the_run_ends(world: World) -> None:
    run = world.begin()
    world.print(run, 1)
    path = f"/api/runs/{run.id}/log?follow=1"
    reader = world.running.client(world.board.token)
    response = reader.open("GET", path)
    assert response.headers["Content-Type"].startswith("text/event-stream")
    events = server_sent(response)
    first = next(events)
    assert (first["id"], json.loads(first["data"])["text"]) == ("1", "line 1\n")
    world.print(run, 2)
    assert next(events)["id"] == "2"
    threading.Timer(0.2, lambda: world.end(run)).start()
    ended = next(events)
    assert (ended["event"], json.loads(ended["data"])) == ("end", {"status": "completed"})
    assert list(events) == []  # the answer is over, too

    again = world.running.client(world.board.token)
    resumed = server_sent(again.open("GET", path, headers={"Last-Event-ID": "1"}))
    assert [one.get("id") for one in resumed] == ["2", None]
    for wrong in ("x", "-1", "9" * 30):
        answer = world.board("GET", path, headers={"Last-Event-ID": wrong})
        assert answer.status in (400, 422)


def test_a_stream_ends_when_the_reader_may_not_look_any_more(world: World) -> None:
    run = world.begin()
    made = world.board.must("POST", f"/api/agents/{world.boss_id}/keys")
    reader = world.running.client(made["token"])
    events = server_sent(reader.open("GET", f"/api/runs/{run.id}/log?follow=1"))
    world.print(run, 1)
    assert next(events)["id"] == "1"
    world.board.must("DELETE", f"/api/agents/{world.boss_id}/keys/{made['id']}")
    ended = next(events)
    assert (ended["event"], json.loads(ended["data"])["code"]) == ("end", "unauthenticated")
    world.end(run)


@pytest.mark.requirement("HB-59", "HB-60", "HB-61")
def test_a_cancelled_run_is_over_for_good_and_says_why(world: World) -> None:
    run = world.begin()
    in_run = world.running.client(run.token)
    assert in_run("GET", "/api/agents/me").status == 200
    key = {"Idempotency-Key": f"cancel-{run.id}"}
    path = f"/api/runs/{run.id}/cancel"
    for _ in range(2):
        done = world.boss.must("POST", path, {"reason": "wrong way"}, headers=key)
        assert (done["status"], done["error"]) == ("cancelled", "wrong way")
    assert in_run("GET", "/api/agents/me").status == 401
    assert world.status(world.worker_id) == "idle"
    assert world.board("POST", path).code == "conflict"
    with pytest.raises(Exception, match="ended already"):
        world.end(run)
    assert world.board.must("GET", f"/api/runs/{run.id}")["status"] == "cancelled"
    bad = world.board("POST", path, {"reason": 5})
    assert bad.status == 422


@pytest.mark.requirement("HH-12")
def test_an_ancestor_stops_starts_restarts_and_aborts_and_nobody_else(world: World) -> None:
    agent = f"/api/agents/{world.worker_id}"
    run = world.begin()
    for client in (world.worker, world.sibling):
        for verb in ("stop", "start", "restart", "abort"):
            assert client("POST", f"{agent}/{verb}").status in (403, 404)
    assert world.status(world.worker_id) == "running"
    assert world.boss.must("POST", f"{agent}/abort")["status"] == "idle"
    assert world.board.must("GET", f"/api/runs/{run.id}")["status"] == "cancelled"
    assert world.boss("POST", f"{agent}/abort").code == "conflict"

    run = world.begin()
    assert world.boss.must("POST", f"{agent}/stop")["status"] == "paused"
    assert world.running.client(run.token)("GET", "/api/agents/me").status == 401
    assert world.boss.must("POST", f"{agent}/start")["status"] == "idle"
    assert world.boss("POST", f"{agent}/start").code == "conflict"
    run = world.begin()
    assert world.board.must("POST", f"{agent}/restart")["status"] == "idle"
    assert world.board.must("GET", f"/api/runs/{run.id}")["status"] != "running"


@pytest.mark.requirement("BX-17")
def test_why_an_agent_is_idle_can_be_asked(world: World) -> None:
    agent = f"/api/agents/{world.worker_id}/why-idle"
    asked = world.board.must("GET", agent)
    assert (asked["agentId"], asked["name"]) == (world.worker_id, "worker")
    assert asked["sentence"].endswith(".")
    run = world.begin()
    assert world.boss.must("GET", agent)["reason"] == "running"
    world.end(run)
    world.post(f"/agents/{world.worker_id}/pause")
    assert world.worker.must("GET", agent)["reason"] == "paused"
    assert world.sibling("GET", agent).status in (403, 404)
    hired = world.board.must(
        "POST", f"/api/companies/{world.company}/agent-hires", {"name": "hopeful"}
    )["agent"]["id"]
    assert world.board.must("GET", f"/api/agents/{hired}/why-idle")["reason"] == "approval"
