"""The HTTP interface, through real sockets, on both databases."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import random
import re
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from fastapi.routing import APIRoute
from starlette.routing import Route

from remit import version
from remit.clock import SystemClock
from remit.entrypoints.http.server import health, stream
from remit.entrypoints.http.server.asgi import build_asgi
from remit.entrypoints.http.server.guard import ALLOWANCE, Hosts
from remit.entrypoints.http.wire.fields import LateRoute
from remit.entrypoints.http.wire.json_document import camel
from remit.errors import StorageFull
from remit.ids import Ids
from remit.runtime.runs.lifecycle import begin, finish
from remit.services.execution import run_queue
from remit.services.identity import as_system
from remit.store.engine.database import Transaction
from remit.testing.clock import VirtualClock
from tests import change_stage, chat_stage, declared
from tests.company import Company
from tests.http_client import Answer, Client, Running, server_sent, serving

LARGEST_FILE = 1024 * 1024
JSON_TYPE = {"Content-Type": "application/json"}
STREAM = {"Accept": "text/event-stream"}


@dataclass
class World:
    """Two companies that must not learn of each other."""

    running: Running
    board: Client
    company: str
    #: A board member of the other company only, and an agent there.
    stranger: Client
    strange_agent: Client
    other: str
    lead: str
    lead_client: Client
    worker: str
    worker_client: Client
    key: str
    file: str
    grant: str
    event: str
    user: str
    token: str
    #: A part of the worker's mandate.
    outcome: str
    #: Of a hire that nobody has decided about.
    approval: str
    #: What the worker wrote to the board, asked its boss, and planned.
    message: str
    question: str
    schedule: str
    #: Of the worker; it has ended.
    run: str
    #: What the worker wants done in the background.
    job: str
    binding: str
    change: str
    #: An account of that user's in a chat.
    linked: str
    #: A decision of that user's that waits for a confirmation.
    confirmation: str
    folder: str

    def path(self, template: str) -> str:
        """A route's path with the ids of the first company."""
        ids = {"companyId": self.company, "user": self.user, "tokenId": self.token}
        ids |= {"keyId": self.key, "id": self.id_for(template)}
        ids |= {"adapterType": "scripted", "revisionId": "1", "name": "site", "check": "test"}
        ids |= {"kind": "webhook", "binding": self.binding, "repo": self.company}
        ids |= {"plugin": "team"}
        return re.sub(r"{(\w+)}", lambda found: ids[found[1]], template)

    def id_for(self, template: str) -> str:
        kinds = {"files": self.file, "grants": self.grant, "events": self.event}
        kinds |= {"agents": self.worker, "outcomes": self.outcome}
        kinds["approvals"] = self.approval
        kinds |= {"agents": self.worker, "outcomes": self.outcome, "messages": self.message}
        kinds |= {"questions": self.question, "schedules": self.schedule, "runs": self.run}
        kinds |= {"jobs": self.job, "bindings": self.binding, "changes": self.change}
        kinds |= {"linked-accounts": self.linked, "folders": self.folder}
        kinds["confirmations"] = self.confirmation
        kinds |= {"secrets": "key", "mcp-servers": "up", "accounts": "claude:key"}
        return next((kinds[part] for part in template.split("/") if part in kinds), "")


@pytest.fixture(scope="module")
def running(
    served_database: str | None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    with serving(
        tmp_path_factory.mktemp("home"), served_database, largest_file=LARGEST_FILE
    ) as found:
        yield found


@pytest.fixture
def world(running: Running) -> World:
    board, unique = running.board, Ids(SystemClock()).new()[-12:]
    company = board.must("POST", "/api/companies", {"name": f"One {unique}"})["id"]
    other = board.must("POST", "/api/companies", {"name": f"Two {unique}"})["id"]
    board.must("POST", f"/api/companies/{other}/users", {"name": f"stranger-{unique}"})
    stranger = board.must("POST", f"/api/companies/{other}/users/stranger-{unique}/tokens")
    strange = board.must("POST", f"/api/companies/{other}/agents", {"name": "spy"})["id"]
    lead = board.must("POST", f"/api/companies/{company}/agents", {"name": "lead"})["id"]
    worker = board.must(
        "POST",
        f"/api/companies/{company}/agents",
        {"name": "worker", "reportsTo": "lead", "purpose": "Work", "perpetual": False},
    )["id"]
    file = board.must(
        "POST",
        f"/api/companies/{company}/files",
        {"description": "the plan", "content": "plan", "unlisted": True},
    )["id"]
    grant = board.must(
        "POST",
        f"/api/companies/{company}/grants",
        {"to": "lead", "resource": f"kb_file:{file}", "level": "write"},
    )["id"]
    user = f"ann-{unique}"
    observer = {"name": user, "role": "observer"}
    ann = board.must("POST", f"/api/companies/{company}/users", observer)
    token = board.must("POST", f"/api/companies/{company}/users/{user}/tokens", {"label": "x"})
    key = board.must("POST", f"/api/agents/{worker}/keys", {"label": "first"})
    outcome = board.must(
        "POST", f"/api/companies/{company}/outcomes", {"parentId": worker, "title": "a part"}
    )
    hire = board.must("POST", f"/api/companies/{company}/agent-hires", {"name": "hopeful"})
    lead_client = running.client(board.must("POST", f"/api/agents/{lead}/keys")["token"])
    worker_client = running.client(key["token"])
    here = f"/api/companies/{company}"
    run = ended_run(running, worker)
    message = worker_client.must("POST", f"{here}/messages", {"to": "board", "body": "I begin"})
    question = worker_client.must("POST", f"{here}/questions", {"question": "With what?"})
    schedule = worker_client.must(
        "POST", f"{here}/schedules", {"body": "look again", "cron": "0 9 * * 1"}
    )
    worker_client.must("POST", f"{here}/messages", {"to": "agent:background", "body": "Count."})
    job = worker_client.must("GET", f"{here}/jobs")[0]
    board.must("POST", f"{here}/repos", {"name": "site", "url": "/srv/site.git"})
    board.must("POST", f"{here}/repos/site/checks", {"check": "test", "command": "true"})
    wish = {"to": worker, "resource": "repo:site", "level": "propose"}
    board.must("POST", f"{here}/grants", wish)
    bound = {"agent": worker, "adapterType": "webhook"}
    binding = board.must("POST", f"{here}/bindings", bound)
    return World(
        running,
        board,
        company,
        running.client(stranger["token"]),
        running.client(board.must("POST", f"/api/agents/{strange}/keys")["token"]),
        other,
        lead,
        lead_client,
        worker,
        worker_client,
        key["id"],
        file,
        grant,
        board.must("GET", f"{here}/events?limit=1")[0]["id"],
        user,
        token["id"],
        outcome["id"],
        hire["approval"]["id"],
        message["id"],
        question["id"],
        schedule["id"],
        run,
        job["id"],
        binding["id"],
        asyncio.run(change_stage.proposed(running.app, worker, "site")),
        chat_stage.linked(running.app, company, ann["id"], binding["id"]),
        chat_stage.to_confirm(running.app, company, ann["id"], binding["id"]),
        board.must("POST", f"{here}/mounts", {"path": f"/srv/{unique}"})["id"],
    )


def ended_run(running: Running, agent: str) -> str:
    """A run that somebody began by hand, that printed four lines and is over."""

    async def work() -> str:
        gate = running.app.gate
        live = await begin(gate, running.app.ids, running.app.settings.workspaces, agent)
        pieces = [
            {"number": number, "at": 1, "stream": "stdout", "text": f"line {number}\n"}
            for number in range(1, 5)
        ]
        await gate(as_system(), run_queue.append_log, run=live.id, pieces=pieces)
        await finish(gate, live)
        return live.id

    return asyncio.run(work())


def operations(running: Running) -> list[tuple[str, str]]:
    """Every method and path of the API."""
    return [
        (method, route.path)
        for route in running.instance.api.routes
        if isinstance(route, Route | APIRoute) and route.path.startswith(("/api/", "/llms/"))
        for method in sorted((route.methods or set()) - {"HEAD"})
    ]


def good_body(method: str, template: str, world: World) -> Any:
    """What a route needs so that nothing but the ids can be wrong."""
    if method not in ("POST", "PATCH"):
        return None
    bodies: dict[str, Any] = {
        "/api/companies/{companyId}": {"name": "Renamed"},
        "/api/companies/{companyId}/permission-policy": {"level": "boss", "governs": "company"},
        "/api/companies/{companyId}/agents": {"name": "newcomer"},
        "/api/companies/{companyId}/files": {"description": "d", "content": "c"},
        "/api/companies/{companyId}/grants": {
            "to": "worker",
            "resource": f"kb_file:{world.file}",
            "level": "read",
        },
        "/api/companies/{companyId}/folders": {"agent": "worker", "path": "/srv/work"},
        "/api/companies/{companyId}/mounts": {"path": "/srv/tools"},
        "/api/companies/{companyId}/messages": {"to": "worker", "body": "hello"},
        "/api/companies/{companyId}/notify": {"webhook": "https://chat.example.org/me"},
        "/api/companies/{companyId}/secrets": {"name": "another", "source": "env", "place": "X"},
        "/api/companies/{companyId}/mcp-servers": {"name": "another", "command": ["true"]},
        "/api/companies/{companyId}/bindings": {"agent": "lead", "adapterType": "webhook"},
        "/api/channels/{kind}": {"id": "1", "conversation": "room", "body": "hello"},
        "/api/companies/{companyId}/schedules": {
            "agent": "worker",
            "body": "look again",
            "cron": "0 9 * * *",
        },
        "/api/companies/{companyId}/apply": {"document": {"company": {"messaging": "team"}}},
        "/api/companies/{companyId}/repos": {"name": "more", "url": "/srv/more.git"},
        "/api/companies/{companyId}/reorganise": {
            "operations": [{"op": "move", "agent": world.worker, "to": "board"}]
        },
        "/api/outcomes/{id}/delegate": {"hire": {"name": "hired"}},
        "/api/companies/{companyId}/agent-hires": {"name": "another"},
        "/api/agents/{id}": {"title": "Renamed"},
        "/api/agents/{id}/config-proposals": {"title": "Renamed"},
        "/api/agents/{id}/permissions": {"canCreateAgents": True},
        "/api/companies/{companyId}/folders/{id}": {"instructions": False},
        "/api/companies/{companyId}/repos/{name}": {"instructions": False},
        "/api/agents/{id}/lent": {
            "name": "team",
            "source": "/srv/site",
            "files": {"skills/a/SKILL.md": "QQ=="},
        },
        "/api/runs/{id}/report": {"ok": True},
    }
    things = {"outcome": world.worker, "agent": "worker", "resource": f"kb_file:{world.file}"}
    things["address"] = "worker"
    return bodies.get(template) or declared.bodies(things).get(f"{method} {template}")


def good_headers(world: World, template: str, method: str) -> dict[str, str]:
    if (method, template) != ("PUT", "/api/files/{id}/content"):
        return {}
    return {"If-Match": f'"1:{"0" * 64}"'}


TABLES = [
    *("companies", "users", "memberships", "tokens", "agents", "outcomes", "runs", "files"),
    *("agent_leases", "run_logs", "file_versions", "file_links", "grants", "answers", "access_log"),
    *("agent_places", "outcome_edges", "outcome_blockers"),
    *("approvals", "approval_revisions", "approval_comments", "config_revisions"),
    *("messages", "deliveries", "questions", "schedules", "jobs", "repos"),
    *("secrets", "mcp_servers", "agent_bindings", "channel_deliveries", "channel_receipts"),
    "lent_plugins",
]


def rows(world: World) -> dict[str, int]:
    """How many rows each table has; of the events, those that are not denials."""

    def count(tx: Transaction) -> dict[str, int]:
        queries = {name: f"SELECT count(*) FROM {name}" for name in TABLES}  # noqa: S608
        queries["events"] = "SELECT count(*) FROM events WHERE allowed"
        return {name: tx.execute(query, {}).fetchone()[0] for name, query in queries.items()}

    return world.running.app.database.submit_read(count).result()


# ── what each route does ────────────────────────────────────────────────────────────────────────


def test_health_needs_no_token_and_tells_the_version(running: Running) -> None:
    told = {"status": "ok", "version": version.current()}
    assert running.client()("GET", "/health").json == told


@pytest.fixture
def looked_at_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "EVERY_SECONDS", 0.0)
    monkeypatch.setattr(health, "ANSWER_SECONDS", 5.0)


@pytest.mark.usefixtures("looked_at_each_time")
def test_health_notices_a_disk_that_fails_and_one_that_works_again(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    anybody = running.client()

    def failing() -> Any:
        answer = anybody("GET", "/health")
        assert answer.status == (503 if answer.json["status"] == "failing" else 200)
        return answer.json.get("failing", {})

    assert failing() == {}

    def broken(*_: object) -> None:
        raise OSError(errno.EIO, "made up")

    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", broken)
        assert failing() == {"blobs": "The storage of this instance failed: Input/output error."}
        answer = anybody("GET", "/health")
        assert answer.code == "storage"
        assert "home" not in answer.body.decode()
    assert failing() == {}
    with monkeypatch.context() as disk:
        full = StorageFull("There is no room left to record this.")

        async def check() -> None:
            raise full

        disk.setattr(running.app.database, "check", check)
        assert failing() == {"database": full.sentence}
    # One that does not answer at all is not waited for.
    with monkeypatch.context() as disk:
        disk.setattr(health, "LONGEST_SECONDS", 0.05)
        stuck = threading.Event()
        disk.setattr(running.app.blobs, "check", stuck.wait)
        assert failing() == {"blobs": "It does not answer."}
        stuck.set()
    assert failing() == {}


def test_a_route_is_worked_out_when_it_is_first_asked_for(small: Company) -> None:
    instance = build_asgi(small.app)
    routes = [route for route in instance.api.routes if isinstance(route, LateRoute)]
    first, *others = routes
    assert not any("app" in vars(route) for route in routes)
    with pytest.raises(AttributeError, match="nothing_of_that_name"):
        first.nothing_of_that_name  # noqa: B018
    assert "app" in vars(first)
    assert not any("app" in vars(route) for route in others)
    assert len(instance.api.openapi()["paths"]) > 100
    assert all("app" in vars(route) for route in routes)


def test_metrics_are_for_who_runs_the_instance(world: World) -> None:
    answer = world.board("GET", "/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert re.search(r'remit_http_responses_total{class="2xx"} [1-9]', answer.body.decode())
    assert world.lead_client("GET", "/metrics").code == "operator_only"
    # It is about all companies, so having a part in one is not enough.
    assert world.stranger("GET", "/metrics").code == "operator_only"
    assert world.running.client()("GET", "/metrics").status == 401


def test_a_company_is_made_shown_listed_and_renamed(world: World) -> None:
    made = world.board("POST", "/api/companies", {"name": f"New {world.user}"})
    assert made.status == 201
    assert {"id", "name", "createdAt", "role", "scopeAgentId"} <= set(made.json)
    assert made.json["requireBoardApprovalForNewAgents"] is True
    company = made.json
    root = company.pop("rootAgentId")
    path = f"/api/companies/{company['id']}"
    assert world.board.must("GET", path) == company
    listed = world.board.must("GET", "/api/companies?limit=1000")
    mine = next(one for one in listed if one["id"] == company["id"])
    assert mine == company
    (agent,) = world.board.must("GET", f"{path}/agents")
    assert (agent["id"], agent["name"], agent["reportsTo"]) == (root, "ceo", None)
    assert (mine["role"], mine["scopeAgentId"]) == ("board", None)
    renamed = world.board.must("PATCH", path, {"name": f"Newer {world.user}"})
    assert renamed["name"] == f"Newer {world.user}"
    again = world.board("POST", "/api/companies", {"name": f"newer {world.user}"})
    assert (again.status, again.code) == (409, "already_exists")
    refused = world.stranger("POST", "/api/companies", {"name": "Mine"})
    assert (refused.status, refused.code) == (403, "not_operator")


@pytest.mark.requirement("FX-14")
def test_a_company_is_made_with_the_root_agent_that_was_asked_for(world: World) -> None:
    asked: dict[str, Any] = {"name": f"Own {world.user}", "rootName": "editor"}
    asked["adapterType"] = "process"
    refused = world.board("POST", "/api/companies", asked)
    assert (refused.status, refused.code) == (422, "invalid")
    asked["adapterConfig"] = {"command": "/bin/cat"}
    made = world.board.must("POST", "/api/companies", asked)
    root = world.board.must("GET", f"/api/agents/{made['rootAgentId']}")
    assert (root["name"], root["role"], root["adapterType"]) == ("editor", "ceo", "process")
    assert root["adapterConfig"] == {"command": "/bin/cat"}
    kept = world.board("POST", f"/api/agents/{root['id']}/terminate")
    assert (kept.status, kept.code) == (409, "root_agent")


@pytest.mark.requirement("FX-22")
def test_an_agent_is_run_like_its_boss_and_its_purpose_is_perpetual(world: World) -> None:
    target = f"/api/companies/{world.company}/agents"
    lead = world.board.must("GET", "/api/agents/" + world.lead)
    asked = {"name": "plain", "reportsTo": lead["id"], "purpose": "Write what is needed"}
    plain = world.board.must("POST", target, asked)
    assert plain["adapterType"] == lead["adapterType"] != "human"
    once = world.board.must("POST", target, {**asked, "name": "once", "perpetual": False})
    seat = world.board.must("POST", target, {**asked, "name": "seat", "adapterType": "human"})
    for agent, perpetual, reason in (
        (plain, True, "no_work"),
        (once, False, "no_slot"),
        (seat, True, "no_person"),
    ):
        mandate = world.board.must("GET", f"/api/outcomes/{agent['id']}")
        assert mandate["perpetual"] is perpetual
        why = world.board.must("GET", f"/api/agents/{agent['id']}/why-idle")
        assert why["reason"] == reason
    wrong = world.board("POST", target, {**asked, "name": "wrong", "perpetual": "no"})
    assert wrong.status == 422


def test_an_agent_is_created_with_its_boss_and_its_grants(world: World) -> None:
    body = {
        "name": "writer",
        "role": "engineer",
        "title": "Writes",
        "reportsTo": world.lead,
        "adapterType": "process",
        "adapterConfig": {"command": "x", "env": {"LANG": "C", "SNAKE_case": "1"}},
        "metadata": {"deep": {"snake_case": 1}},
        "purpose": "Write",
        "grants": [{"resource": f"kb_file:{world.file}", "level": "read"}],
        "unknown": {"ignored": True},
    }
    made = world.board("POST", f"/api/companies/{world.company}/agents", body)
    assert made.status == 201
    agent = made.json
    assert {"id", "companyId", "name", "role", "title", "status"} <= set(agent)
    assert {"reportsTo", "adapterType", "createdAt", "updatedAt"} <= set(agent)
    assert (agent["reportsTo"], agent["status"]) == (world.lead, "idle")
    assert world.board.must("GET", f"/api/agents/{agent['id']}") == agent
    assert agent in world.board.must("GET", f"/api/companies/{world.company}/agents")
    held = world.board.must("GET", f"/api/companies/{world.company}/grants?agent=writer")
    assert [(grant["resource"], grant["level"]) for grant in held] == [
        (f"kb_file:{world.file}", "read")
    ]


def test_an_agent_sees_itself_and_a_person_is_told_that_they_are_none(world: World) -> None:
    assert world.worker_client.must("GET", "/api/agents/me")["id"] == world.worker
    assert world.board("GET", "/api/agents/me").status == 404
    assert world.board.must("GET", "/api/me")["operator"] is True
    assert world.worker_client.must("GET", "/api/me")["companyId"] == world.company


@pytest.mark.parametrize("way", ["DELETE", "POST"])
def test_a_terminated_agent_is_kept_but_not_listed(world: World, way: str) -> None:
    suffix = "/terminate" if way == "POST" else ""
    ended = world.board(way, f"/api/agents/{world.worker}{suffix}")
    assert (ended.status, ended.json["status"]) == (200, "terminated")
    listed = f"/api/companies/{world.company}/agents"
    assert world.worker not in {agent["id"] for agent in world.board.must("GET", listed)}
    all_of_them = world.board.must("GET", listed + "?terminated=1")
    assert world.worker in {agent["id"] for agent in all_of_them}
    assert world.worker_client("GET", "/api/me").status == 401
    assert world.board(way, f"/api/agents/{world.worker}{suffix}").status == 409


def test_a_key_is_shown_once_and_ends_when_revoked(world: World) -> None:
    made = world.board("POST", f"/api/agents/{world.lead}/keys", {"label": "ci"})
    assert made.status == 201
    with_key = world.running.client(made.json["token"])
    assert with_key.must("GET", "/api/agents/me")["id"] == world.lead
    listed = world.board.must("GET", f"/api/agents/{world.lead}/keys")
    assert made.json["id"] in {key["id"] for key in listed}
    assert made.json["token"] not in json.dumps(listed)
    world.board.must("DELETE", f"/api/agents/{world.lead}/keys/{made.json['id']}")
    assert with_key("GET", "/api/agents/me").status == 401
    assert world.board("DELETE", f"/api/agents/{world.worker}/keys/{made.json['id']}").status == 404


def test_a_key_can_have_an_end_but_not_one_in_the_past(world: World) -> None:
    path = f"/api/agents/{world.lead}/keys"
    made = world.board.must("POST", path, {"expiresAt": "2999-01-01T00:00:00Z"})
    assert made["expiresAt"].startswith("2999-01-01T00:00:00")
    for wrong in ("2001-01-01T00:00:00Z", "tomorrow", 17, "0001-01-01T00:00:00+14:00"):
        assert world.board("POST", path, {"expiresAt": wrong}).status == 422


def test_people_are_added_listed_and_removed_with_their_tokens(world: World) -> None:
    users = f"/api/companies/{world.company}/users"
    assert {member["role"] for member in world.board.must("GET", users)} == {"board", "observer"}
    made = world.board.must("POST", f"{users}/{world.user}/tokens", {"label": "laptop"})
    ann = world.running.client(made["token"])
    assert ann.must("GET", f"/api/companies/{world.company}")["id"] == world.company
    assert ann("POST", f"/api/companies/{world.company}/agents", {"name": "x"}).code == "observer"
    labels = {token["label"] for token in world.board.must("GET", f"{users}/{world.user}/tokens")}
    assert labels == {"x", "laptop"}
    # Somebody else's name in the path is not a way to this token.
    assert world.board("DELETE", f"{users}/board/tokens/{made['id']}").status == 404
    world.board.must("DELETE", f"{users}/{world.user}/tokens/{made['id']}")
    assert ann("GET", "/api/me").status == 401
    world.board.must("DELETE", f"{users}/{world.user}")
    assert world.board("DELETE", f"{users}/{world.user}").status == 404
    assert world.board("DELETE", f"{users}/board").status == 409


def test_a_file_of_text_is_made_found_described_and_read(world: World) -> None:
    files = f"/api/companies/{world.company}/files"
    made = world.board("POST", files, {"description": "Zebra crossing", "content": "grüße"})
    assert made.status == 201
    file = made.json
    assert made.headers["ETag"] == f'"1:{file["hash"]}"'
    assert [found["id"] for found in world.board.must("GET", files + "?query=zebra")] == [
        file["id"]
    ]
    path = f"/api/files/{file['id']}"
    changed = world.board.must("PATCH", path, {"description": "Okapi", "unlisted": True})
    assert (changed["description"], changed["unlisted"]) == ("Okapi", True)
    assert world.board.must("GET", path)["description"] == "Okapi"
    assert world.worker_client("GET", path).status == 404  # unlisted
    read = world.board("GET", f"{path}/content")
    assert read.body.decode() == "grüße"
    assert [entry["access"] for entry in world.board.must("GET", f"{path}/log")] == [
        "read",
        "write",
    ]


def test_bytes_are_served_so_that_no_browser_runs_them(world: World) -> None:
    page = b"<script>alert(1)</script>"
    files = f"/api/companies/{world.company}/files?description=page"
    for content, kind in [
        (page, "text/plain; charset=utf-8"),
        (b"\xff\x00", "application/octet-stream"),
    ]:
        made = world.board.must("POST", files, body=content, headers={"Content-Type": "text/html"})
        answer = world.board("GET", f"/api/files/{made['id']}/content")
        assert answer.body == content
        assert answer.headers["Content-Type"] == kind
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Content-Disposition"] == "attachment"
        assert answer.headers["Content-Security-Policy"].startswith("sandbox")


def test_a_write_takes_the_tag_that_was_read(world: World) -> None:
    path = f"/api/files/{world.file}/content"
    tag = world.board("GET", path).headers["ETag"]
    once = {"If-Match": tag, "Idempotency-Key": "written once"}
    written = world.board("PUT", path, body=b"second", headers=once)
    assert (written.status, written.json["version"]) == (200, 2)
    stale = world.board("PUT", path, body=b"third", headers={"If-Match": tag})
    assert (stale.status, stale.code) == (409, "conflict")
    assert (stale.json["version"], stale.json["hash"]) == (2, written.json["hash"])
    assert world.board("GET", path).headers["ETag"] == written.headers["ETag"]
    assert world.board("GET", path + "?version=1").body == b"plan"
    versions = world.board.must("GET", f"/api/files/{world.file}/versions")
    assert [version["number"] for version in versions] == [2, 1]
    for wrong in (None, "*", '"x:y"', '"1"', "W/" + tag, '"1:"', '"99999999999:00"'):
        headers = {} if wrong is None else {"If-Match": wrong}
        # Before anything else: a key that was used for another request says nothing about this one.
        used = {**headers, "Idempotency-Key": "written once"}
        assert world.board("PUT", path, body=b"", headers=used).status == 422
    for wrong in ("0", "x", "-1", "9" * 30, "³"):
        assert world.board("GET", f"{path}?version={quote(wrong)}").status in (404, 422)


def test_large_content_goes_through_whole_in_both_directions(world: World) -> None:
    content = random.Random(1).randbytes(LARGEST_FILE)
    made = world.board.must(
        "POST", f"/api/companies/{world.company}/files?description=large", body=content
    )
    answer = world.board("GET", f"/api/files/{made['id']}/content")
    assert answer.body == content
    pieces = (content[start : start + 100_000] for start in range(0, len(content), 100_000))
    chunked = world.board(
        "PUT",
        f"/api/files/{made['id']}/content",
        body=pieces,
        headers={"If-Match": answer.headers["ETag"]},
    )
    assert (chunked.status, chunked.json["hash"]) == (200, made["hash"])


def test_a_form_is_not_taken_for_content(world: World) -> None:
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = world.board("POST", f"/api/companies/{world.company}/files", body=b"--x", headers=kind)
    assert (answer.status, answer.code) == (422, "invalid")


def test_a_grant_is_given_listed_and_revoked_with_what_rests_on_it(world: World) -> None:
    grants = f"/api/companies/{world.company}/grants"
    wish = {"to": "worker", "resource": f"kb_file:{world.file}", "level": "read"}
    passed_on = world.lead_client("POST", grants, wish)
    assert (passed_on.status, passed_on.json["parentId"]) == (201, world.grant)
    assert world.worker_client("GET", f"/api/files/{world.file}/content").body == b"plan"
    listed = world.board.must("GET", f"{grants}?agent=worker")
    on_file = [grant["id"] for grant in listed if grant["resource"] == f"kb_file:{world.file}"]
    assert on_file == [passed_on.json["id"]]  # the others are its own mail
    assert world.board.must("GET", f"{grants}?agent=worker&unused=1") == []
    # The other company's path does not lead to it, though the caller is on both boards.
    elsewhere = f"/api/companies/{world.other}/grants/{world.grant}"
    assert world.board("DELETE", elsewhere).status == 404
    gone = world.board.must("DELETE", f"{grants}/{world.grant}")
    assert set(gone["revoked"]) == {world.grant, passed_on.json["id"]}
    assert world.worker_client("GET", f"/api/files/{world.file}/content").status == 404
    assert world.board("DELETE", f"/api/grants/{world.grant}").status == 409


def test_a_refusal_says_why_and_what_to_do(world: World) -> None:
    file = world.board.must(
        "POST", f"/api/companies/{world.company}/files", {"description": "d", "content": "c"}
    )["id"]
    answer = world.worker_client("GET", f"/api/files/{file}/content")
    assert (answer.status, answer.code) == (403, "no_capability")
    assert answer.json["decision"]["effect"] == "deny"
    assert f"kb_file:{file}" in answer.json["nextStep"]


def test_an_outcome_is_shown_completed_and_closed(world: World) -> None:
    path = f"/api/outcomes/{world.worker}"
    assert world.board.must("GET", path)["ownerId"] == world.worker
    assert world.board("POST", f"{path}/close", {}).status == 422
    done = world.board.must("POST", f"{path}/complete", {"note": "well done"})
    assert done["status"] == "completed"
    assert world.board("POST", f"{path}/complete").status == 409
    closed = f"/api/outcomes/{world.lead}/close"
    assert world.board.must("POST", closed, {"rationale": "over"})["status"] == "closed"


def test_events_are_listed_verified_and_explained(world: World) -> None:
    path = f"/api/companies/{world.company}/events"
    newest = world.board.must("GET", path)
    assert [event["seq"] for event in newest] == list(range(len(newest), 0, -1))
    assert world.board.must("GET", f"{path}?after=3&limit=2") == newest[-5:-3][::-1]
    assert world.board.must("GET", f"{path}?before=3") == newest[-2:]
    assert world.board("GET", f"{path}?before=3&after=1").status == 422
    assert any("adapter_type" in event["details"] for event in newest)  # data keeps its own keys
    assert world.board.must("GET", f"{path}/verify")["ok"] is True
    bound = next(event for event in newest if event["action"] == "binding.create")
    why = world.board.must("GET", f"/api/events/{bound['id']}/why")
    assert why["authorisedBy"] == "user:board"


def test_our_keys_become_camel_case_and_their_data_does_not_change() -> None:
    view = {"a_b_c": [{"d_e": 1}], "details": {"x_y": {"z_w": 1}}, "payload": [{"p_q": 1}]}
    assert camel(view) == {
        "aBC": [{"dE": 1}],
        "details": {"x_y": {"z_w": 1}},
        "payload": [{"p_q": 1}],
    }


# ── lists in pages ──────────────────────────────────────────────────────────────────────────────


def pages(client: Client, path: str) -> Iterator[list[Any]]:
    following: str | None = path
    while following is not None:
        answer = client("GET", following)
        assert answer.status == 200, answer.body
        yield answer.json
        link = re.fullmatch(r'<([^>]+)>; rel="next"', answer.headers.get("Link", ""))
        following = link[1] if link else None


def test_every_list_can_be_read_in_pages_without_gap_or_repeat(world: World) -> None:
    files = f"/api/companies/{world.company}/files"
    for number in range(4):
        world.board.must("POST", files, {"description": f"file {number}", "content": "c"})
        world.board.must("POST", f"/api/agents/{world.worker}/keys")
        world.board("GET", f"/api/files/{world.file}/content")
        tag = world.board("GET", f"/api/files/{world.file}/content").headers["ETag"]
        world.board(
            "PUT",
            f"/api/files/{world.file}/content",
            body=b"%d" % number,
            headers={"If-Match": tag},
        )
    lists = [path for method, path in operations(world.running) if method == "GET"]
    paged = 0
    for template in lists:
        path = world.path(template)
        whole = world.board("GET", path + "?limit=1000")
        if whole.status != 200 or not whole.body.startswith(b"["):
            continue
        found = list(pages(world.board, path + "?limit=2"))
        assert [row for page in found for row in page] == whole.json
        assert all(len(page) == 2 for page in found[:-1])
        paged += len(found) > 1
    assert paged >= 8


def test_a_limit_or_cursor_that_makes_no_sense_is_refused(world: World) -> None:
    path = f"/api/companies/{world.company}/agents"
    for query in (
        "limit=0",
        "limit=1001",
        "limit=x",
        "limit=" + "9" * 40,
        "cursor=%00",
        "cursor=_",
    ):
        assert world.board("GET", f"{path}?{query}").code == "invalid"
    for cursor in ("", "YWJj", "Zm9v", "////", "a" * 300):
        assert world.board("GET", f"{path}?cursor={cursor}").status == 422
        for numbered in (f"files/{world.file}/log", f"companies/{world.company}/events"):
            assert world.board("GET", f"/api/{numbered}?cursor={cursor}").status == 422


# ── repeats ─────────────────────────────────────────────────────────────────────────────────────


def test_a_repeat_under_the_same_key_gets_the_first_answer(world: World) -> None:
    key = {"Idempotency-Key": f"key-{world.user}"}
    path = f"/api/companies/{world.company}/agents"
    first = world.board("POST", path, {"name": "once"}, headers=key)
    again = world.board("POST", path, {"name": "once"}, headers=key)
    assert (first.status, first.json) == (again.status, again.json)
    reused = world.board("POST", path, {"name": "twice"}, headers=key)
    assert (reused.status, reused.code) == (409, "key_reused")
    assert world.board("GET", path, headers=key).status == 200  # looking needs no key
    assert (
        world.board("POST", path, {"name": "x"}, headers={"Idempotency-Key": "x" * 256}).status
        == 422
    )


def test_a_repeated_write_of_content_makes_one_version(world: World) -> None:
    path = f"/api/files/{world.file}/content"
    for size in (10, 200_000):
        tag = world.board("GET", path).headers["ETag"]
        headers = {"If-Match": tag, "Idempotency-Key": f"w{size}-{world.user}"}
        first = world.board("PUT", path, body=b"x" * size, headers=headers)
        again = world.board("PUT", path, body=b"x" * size, headers=headers)
        assert first.status == again.status == 200
        assert first.json["version"] == again.json["version"]
        assert first.headers["ETag"] == again.headers["ETag"]


def test_a_repeated_creation_and_a_repeated_end_happen_once(world: World) -> None:
    key = {"Idempotency-Key": f"f-{world.user}"}
    files = f"/api/companies/{world.company}/files"
    body = {"description": "d", "content": "c"}
    first = world.board.must("POST", files, body, headers=key)
    assert world.board.must("POST", files, body, headers=key)["id"] == first["id"]
    key = {"Idempotency-Key": f"t-{world.user}"}
    token = world.board.must("POST", f"/api/agents/{world.lead}/keys", headers=key)
    assert token["token"]
    assert world.board.must("POST", f"/api/agents/{world.lead}/keys", headers=key)["token"] is None
    key = {"Idempotency-Key": f"d-{world.user}"}
    for _ in range(2):
        ended = world.board("DELETE", f"/api/agents/{world.worker}", headers=key)
        assert (ended.status, ended.json["status"]) == (200, "terminated")


# ── who may not ─────────────────────────────────────────────────────────────────────────────────


def test_every_route_hides_what_belongs_to_another_company(world: World) -> None:
    before = rows(world)
    tried = 0
    for method, template in operations(world.running):
        if "{id}" not in template and "{companyId}" not in template:
            continue
        for client in (world.stranger, world.strange_agent):
            answer = client(
                method,
                world.path(template),
                good_body(method, template, world),
                headers=good_headers(world, template, method),
            )
            assert answer.status == 404, (method, template, answer.status, answer.body)
            assert answer.code == "not_found"
            tried += 1
    assert tried >= 60
    assert rows(world) == before


def test_ids_that_do_not_exist_look_the_same_as_those_of_others(world: World) -> None:
    for method, template in operations(world.running):
        if "{id}" not in template or method != "GET":
            continue
        foreign = world.stranger(method, world.path(template))
        missing = world.stranger(method, template.replace("{id}", Ids().new()))
        assert (foreign.status, foreign.json) == (missing.status, missing.json)


def test_every_route_wants_a_token_that_counts(world: World) -> None:
    token = world.board.token or ""
    link = world.board.must("POST", "/api/login-links")["url"].partition("token=")[2]
    wrong = [
        None,
        "",
        "x",
        token[:-1],
        token + "x",
        token.upper(),
        "rmt_user_" + "A" * 43,
        link,
        "rmt_user_" + "A" * 5000,
        "ü",
    ]
    before, stored_before = rows(world), stored(world)
    for method, template in operations(world.running):
        body = good_body(method, template, world)
        for presented in wrong:
            headers = good_headers(world, template, method)
            if presented is not None:
                headers["Authorization"] = f"Bearer {presented}"
            answer = world.running.client()(method, world.path(template), body, headers=headers)
            assert answer.status == 401, (method, template, presented)
            assert answer.code == "unauthenticated"
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert rows(world) == before
    assert stored(world) == stored_before


def stored(world: World) -> list[str]:
    """Whatever lies in the blob store: a stranger must not be able to fill the disk."""
    blobs = world.running.app.settings.home / "blobs"
    return sorted(str(path) for path in blobs.rglob("*") if path.is_file())


def test_a_token_that_was_revoked_or_has_expired_opens_nothing(tmp_path: Path) -> None:
    clock = VirtualClock()
    with serving(tmp_path, clock=clock) as running:
        company = running.board.must("GET", "/api/companies")[0]["id"]
        agent = running.board.must("GET", f"/api/companies/{company}/agents")[0]["id"]
        made = running.board.must(
            "POST", f"/api/agents/{agent}/keys", {"expiresAt": "2027-01-16T00:00:00Z"}
        )
        client = running.client(made["token"])
        assert client("GET", "/api/me").status == 200
        clock.advance(40 * 24 * 3600 * 1_000_000)
        assert "expired" in client("GET", "/api/me").json["error"]


@pytest.mark.requirement("BX-14")
def test_a_session_is_for_browsers_and_a_token_for_calls(running: Running) -> None:
    link = running.board.must("POST", "/api/login-links")["url"]
    posted = running.client()(
        "POST",
        "/login",
        body=urlsplit(link).query,
        headers={
            "Content-Type": "application/x-www-form-urlencoded",
            "Sec-Fetch-Site": "same-origin",
        },
    )
    session = posted.headers["Set-Cookie"].partition("=")[2].partition(";")[0]
    assert session.startswith("rmt_session_")

    def status(token: str, *, cookie: bool) -> int:
        given = {"Cookie": f"remit_session={token}"} if cookie else {}
        return running.client(None if cookie else token)("GET", "/api/me", headers=given).status

    assert status(session, cookie=True) == 200
    assert status(session, cookie=False) == 401
    board = str(running.board.token)
    assert status(board, cookie=False) == 200
    assert status(board, cookie=True) == 401


def test_refused_tokens_are_counted_and_said_once_in_a_while(
    running: Running, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "remit")
    refusals = running.instance._guard.refusals
    monkeypatch.setattr(refusals, "_at", -1000.0)
    monkeypatch.setattr(refusals, "_told", refusals.count)
    before = refusals.count

    def said() -> list[str]:
        return [one.message for one in caplog.records if "token was refused" in one.message]

    for number in range(40):
        wrong = running.client(f"rmt_user_{number}")
        assert wrong("GET", f"/api/me?{number}").status == 401
    assert running.client()("GET", "/api/me").status == 401  # brought none
    assert refusals.count - before == 40
    assert said() == ["a token was refused: a request from 127.0.0.1 to /api/me"]
    monkeypatch.setattr(refusals, "_at", -1000.0)
    assert running.client("rmt_user_41")("GET", "/api/me").status == 401
    assert said()[1].endswith(", and 39 times before that since it was last said")
    assert "rmt_user" not in "".join(said())
    text = running.board("GET", "/metrics").body.decode()
    assert f"remit_refused_tokens_total {refusals.count}" in text


def test_the_header_counts_when_a_cookie_comes_along(world: World) -> None:
    cookie = {"Cookie": sign_in(world)[0].headers["Set-Cookie"].partition(";")[0]}
    assert world.running.client()("GET", "/api/me", headers=cookie).json["id"] != world.worker
    assert world.worker_client("GET", "/api/me", headers=cookie).json["id"] == world.worker
    assert world.running.client("wrong")("GET", "/api/me", headers=cookie).status == 401
    for scheme in ("Basic abc", "Bearer", "Bearer  ", "Token x"):
        headers = {**cookie, "Authorization": scheme}
        assert world.running.client()("GET", "/api/me", headers=headers).status == 401


# ── signing in ──────────────────────────────────────────────────────────────────────────────────


def sign_in(world: World, client: Client | None = None) -> tuple[Answer, str]:
    link = (client or world.board).must("POST", "/api/login-links")["url"]
    parts = urlsplit(link)
    visitor = world.running.client()
    seen = visitor("GET", f"{parts.path}?{parts.query}")
    token = re.search(r'name="token" value="([^"]+)"', seen.body.decode())
    assert token is not None
    posted = visitor(
        "POST",
        "/login",
        body=f"token={token[1]}",
        headers={
            "Content-Type": "application/x-www-form-urlencoded",
            "Sec-Fetch-Site": "same-origin",
        },
    )
    return posted, token[1]


def test_a_login_link_opens_one_session_and_only_when_it_is_posted(world: World) -> None:
    posted, token = sign_in(world)
    assert (posted.status, posted.headers["Location"]) == (303, "/")
    cookie = posted.headers["Set-Cookie"]
    assert re.match(r"remit_session=rmt_session_[\w-]{43};", cookie)
    for part in ("HttpOnly", "SameSite=strict", "Path=/", "Max-Age=604800"):
        assert part in cookie
    assert "Secure" not in cookie  # plain HTTP would not send it back
    form = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
    again = world.running.client()("POST", "/login", body=f"token={token}", headers=form)
    assert again.status == 401
    assert b"used already or has expired" in again.body
    assert "Set-Cookie" not in again.headers


def test_a_signed_in_person_sees_their_companies_and_signs_out(world: World) -> None:
    world.board.must(
        "POST",
        f"/api/companies/{world.company}/messages",
        {"to": f"user:{world.user}", "subject": "<img src=x onerror=alert(1)>", "body": "c"},
    )
    ann = world.running.client(
        world.board.must("POST", f"/api/companies/{world.company}/users/{world.user}/tokens")[
            "token"
        ]
    )
    posted, _ = sign_in(world, ann)
    cookie = {"Cookie": posted.headers["Set-Cookie"].partition(";")[0]}
    visitor = world.running.client()
    page = visitor("GET", "/", headers=cookie)
    text = page.body.decode()
    assert page.status == 200
    assert world.user in text
    assert "&lt;img src=x" in text
    assert all(one.startswith('<img src="/static/') for one in re.findall(r"<img[^>]*>", text))
    assert re.findall(r"<script[^>]*>", text) == re.findall(
        r'<script type="module" src="/static/(?:page|notify|palette)\.js\?v=[0-9a-f]+">', text
    )
    assert "script-src 'self'" in page.headers["Content-Security-Policy"]
    same = {**cookie, "Sec-Fetch-Site": "same-origin"}
    out = visitor("POST", "/logout", headers=same)
    assert (out.status, out.headers["Location"]) == (303, "/")
    assert visitor("GET", "/api/me", headers=cookie).status == 401
    assert b"remit open" in visitor("GET", "/", headers=cookie).body


def test_without_a_session_the_page_says_how_to_get_one(running: Running) -> None:
    for path in ("/", "/login", "/login?token=x"):
        answer = running.client()("GET", path)
        assert answer.status == 200
        assert b"remit open" in answer.body
    assert (
        running.client()("GET", "/static/remit.css").headers["Content-Type"].startswith("text/css")
    )


def test_an_odd_login_form_is_refused_politely(running: Running) -> None:
    same = {"Sec-Fetch-Site": "same-origin"}
    for body in (b"", b"token=", b"token=%00", b"token=\xff\xfe", b"&" * 5000, b"x" * 5000):
        assert running.client()("POST", "/login", body=body, headers=same).status in (401, 413, 422)


def test_a_cookie_changes_nothing_for_another_site(world: World) -> None:
    posted, _ = sign_in(world)
    cookie = posted.headers["Set-Cookie"].partition(";")[0]
    host = urlsplit(world.running.url).netloc
    path = f"/api/companies/{world.company}/agents"
    client = world.running.client()
    for headers in (
        {},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": f"http://{host}.evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": f"http://{host}"},
        {"Sec-Fetch-Site": "none"},
    ):
        answer = client("POST", path, {"name": "forged"}, headers={"Cookie": cookie, **headers})
        assert (answer.status, answer.code) == (403, "csrf")
        assert client("GET", path, headers={"Cookie": cookie, **headers}).status == 200
        for page in ("/login", "/logout"):
            assert client("POST", page, headers={"Cookie": cookie, **headers}).code == "csrf"
    for number, headers in enumerate(
        [{"Sec-Fetch-Site": "same-origin"}, {"Origin": f"http://{host}"}]
    ):
        answer = client(
            "POST", path, {"name": f"own-{number}"}, headers={"Cookie": cookie, **headers}
        )
        assert answer.status == 201


# ── what every answer has ───────────────────────────────────────────────────────────────────────


def test_every_answer_has_the_headers_that_protect_a_browser(world: World) -> None:
    for path in ("/", "/login", "/health", "/nope", "/api/me", f"/api/files/{world.file}/content"):
        headers = world.board("GET", path).headers
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] in ("no-referrer", "same-origin")
        assert "Access-Control-Allow-Origin" not in headers


def test_a_name_that_is_not_ours_is_refused(world: World) -> None:
    for host in (
        "evil.example",
        "127.0.0.1.evil.example",
        "",
        "localhost@evil.example",
        "[::1",
        "0",
    ):
        answer = world.board("GET", "/api/me", headers={"Host": host})
        assert (answer.status, answer.code) == (421, "wrong_host"), host
    for host in ("localhost", "localhost:1234", "LOCALHOST", "[::1]:80", "127.0.0.1"):
        assert world.board("GET", "/api/me", headers={"Host": host}).status == 200


def test_an_instance_bound_everywhere_takes_addresses_but_no_foreign_names() -> None:
    everywhere = Hosts("0.0.0.0", ["remit.example"])  # noqa: S104  nothing is bound
    for host in ("192.0.2.7:8420", "[2001:db8::1]:8420", "remit.example", socket.gethostname()):
        assert everywhere.allows(host)
    assert not everywhere.allows("evil.example")
    assert not Hosts("127.0.0.1").allows("192.0.2.7")


def test_unknown_addresses_and_methods_have_the_shape_of_every_error(world: World) -> None:
    for path in ("/nope", "/api", "/api/companies/", "/api/agents//keys", "/docs", "/redoc"):
        answer = world.board("GET", path)
        assert (answer.status, answer.code) == (404, "not_found")
    wrong = world.board("PUT", "/api/companies")
    assert (wrong.status, wrong.code, wrong.headers["Allow"]) == (
        405,
        "method_not_allowed",
        "GET, HEAD, POST",
    )
    assert wrong.json["error"] == "PUT is not possible here, only GET, HEAD, POST."
    assert world.board("DELETE", f"/api/files/{world.file}/content").status == 405


def test_a_defect_of_ours_shows_a_reference_and_nothing_else(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> Any:
        raise RuntimeError("the password is hunter2")

    monkeypatch.setattr(type(world.running.app.gate), "__call__", broken)
    for path in ("/api/me", f"/api/files/{world.file}/content", "/api/agents/me"):
        answer = world.board("GET", path)
        assert (answer.status, answer.code) == (500, "internal")
        assert b"hunter2" not in answer.body
        reference = re.search(r"reference (\w{8})", answer.json["error"])
        assert reference is not None
        assert reference[1] in caplog.text
    assert "hunter2" in caplog.text


def test_the_description_covers_every_route_and_nothing_else(running: Running) -> None:
    document = running.client()("GET", "/openapi.json").json
    described = {
        (method.upper(), path) for path, found in document["paths"].items() for method in found
    }
    # What is also found below /api is described once, and the words of an outside are its own.
    served = {found for found in operations(running) if not found[1].startswith("/api/llms/")}
    served -= {("POST", "/api/channels/{kind}/{binding}"), ("POST", "/api/hooks/{repo}")}
    assert described == {*served, ("GET", "/health"), ("GET", "/metrics")}
    text = json.dumps(document)
    assert "HTTPValidationError" not in text
    ids = [found["operationId"] for path in document["paths"].values() for found in path.values()]
    assert len(ids) == len(set(ids))
    for reference in set(re.findall(r'"#/components/(\w+)/(\w+)"', text)):
        assert reference[1] in document["components"][reference[0]]


# ── bad input ───────────────────────────────────────────────────────────────────────────────────


def test_a_wrong_field_is_named_by_its_path(world: World) -> None:
    path = f"/api/companies/{world.company}/agents"
    for body, part in [
        ({}, "name: is required"),
        ({"name": 5}, "name: should be a valid string"),
        ({"name": "x", "grants": [{"resource": "a"}]}, "grants.0.level: is required"),
        ({"name": "x", "adapterConfig": []}, "adapterConfig: should be"),
        ({"name": "x", "reportsTo": "a\x00b"}, "reportsTo: has a character"),
        ([], "body: should be"),
        ({"name": "no spaces allowed"}, "name must be"),
        ({"name": "x", "role": "king"}, "role must be one of"),
    ]:
        answer = world.board("POST", path, body)
        assert (answer.status, answer.code) == (422, "invalid")
        assert part in answer.json["error"], answer.json["error"]
    assert (
        "content: is required"
        in world.board("POST", f"/api/companies/{world.company}/files", {"description": "x"}).json[
            "error"
        ]
    )


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"", 422),
        (b"\xff\xfe", 400),
        (b'{"name": NaN}', 400),
        (b'{"name": "\\ud800"}', 400),
        (b'{"name": "\xed\xa0\x80"}', 400),
        (b'{"adapterConfig": {"n": 1' + b"0" * 400 + b'}, "name": "x"}', 400),
        (b'{"adapterConfig": {"n": 1e999}, "name": "x"}', 400),
        (b'{"adapterConfig": {"n": 99999999999999999999}, "name": "x"}', 422),
        (b"[" * 40_000 + b"]" * 40_000, 400),
        (b"[" * 100_000 + b"]" * 100_000, 422),
        (b'{"adapterConfig":' + b'{"a":' * 100 + b"1" + b"}" * 100 + b"}", 422),
        (b'{"name": "a\\u0000b"}', 422),
        (b"null", 422),
        (b'"text"', 422),
    ],
)
def test_a_body_nobody_could_keep_is_refused(world: World, body: bytes, status: int) -> None:
    for path in ("agents", "users", "grants", "files"):
        answer = world.board(
            "POST", f"/api/companies/{world.company}/{path}", body=body, headers=JSON_TYPE
        )
        expected = (400, 422) if path == "files" or body == b"" else (status,)
        assert answer.status in expected, (path, answer.body)
        assert answer.code in ("malformed", "invalid", "too_many_values")


def test_a_body_that_is_no_object_is_not_taken_for_none(world: World) -> None:
    for method, path in (("POST", "/api/me/tokens"), ("PATCH", f"/api/files/{world.file}")):
        for body in (b"null", b"[]", b"0"):
            assert world.board(method, path, body=body, headers=JSON_TYPE).status == 422
    tried = f"/api/companies/{world.company}/adapters/scripted/test-environment"
    assert world.board("POST", tried, {"tryOut": 0}).status == 422


def test_json_is_taken_whatever_type_it_declares(world: World) -> None:
    for number, kind in enumerate(["application/x-www-form-urlencoded", "text/plain"]):
        answer = world.board(
            "POST",
            f"/api/companies/{world.company}/agents",
            body=b'{"name": "typed-%d"}' % number,
            headers={"Content-Type": kind},
        )
        assert answer.status == 201


def raw(running: Running, *pieces: bytes) -> bytes:
    """What comes back for bytes on the wire; stops sending when the answer is there."""
    parts = urlsplit(running.url)
    assert parts.hostname is not None
    assert parts.port is not None
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as connection:
        for piece in pieces:
            connection.sendall(piece)
        answer = b""
        while b'"nextStep"' not in answer and (piece := connection.recv(65536)):
            answer += piece
        return answer


def test_a_body_that_is_too_large_is_refused_before_it_is_read(world: World) -> None:
    head = (
        f"POST /api/companies/{world.company}/files?description=x HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {world.board.token}\r\n"
    ).encode()
    limit = LARGEST_FILE + ALLOWANCE
    declared = raw(world.running, head + b"Content-Length: %d\r\n\r\n" % (limit + 1))
    assert b" 413 " in declared.partition(b"\r\n")[0]
    assert b'"too_large"' in declared
    chunk = b"%x\r\n%b\r\n" % (65536, b"x" * 65536)
    chunks = [chunk] * (limit // 65536 + 1)
    chunked = raw(world.running, head + b"Transfer-Encoding: chunked\r\n\r\n", *chunks)
    assert b" 413 " in chunked.partition(b"\r\n")[0]
    api = head.replace(b"files?description=x", b"agents")
    chunked = raw(world.running, api + b"Transfer-Encoding: chunked\r\n\r\n", *chunks)
    assert b" 413 " in chunked.partition(b"\r\n")[0]
    for over in (LARGEST_FILE + 1, LARGEST_FILE + 1000):
        answer = world.board(
            "POST", f"/api/companies/{world.company}/files?description=x", body=b"x" * over
        )
        assert (answer.status, answer.code) == (413, "too_large")


def test_a_client_that_goes_away_in_the_middle_leaves_nothing(world: World) -> None:
    before = rows(world)
    head = (
        f"POST /api/companies/{world.company}/files?description=x HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {world.board.token}\r\nContent-Length: 500000\r\n\r\n"
    ).encode()
    parts = urlsplit(world.running.url)
    for _ in range(5):
        with socket.create_connection((parts.hostname, parts.port), timeout=10) as connection:
            connection.sendall(head + b"x" * 100_000)
    assert world.board("GET", "/health").status == 200
    assert rows(world) == before


ODD: list[str | bytes] = [
    "\x00",
    "a\x00b",
    "\ud800".encode("utf-8", "surrogatepass"),
    b"\xff",
    "..",
    "../../etc",
    "a" * 5000,
    "🙂",
    "' OR 1=1 --",
    "%",
    "-1",
    "0",
    "null",
    "kb://x",
    "agent:",
    "agent:\x00",
    "user:\x00",
    "\u202e",
    "00000000-0000-0000-0000-000000000000",
    "0" * 32,
    "deadbeef",
    "\r\nSet-Cookie: x=y",
    "true",
]
ODD_VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    10**18,
    "",
    "\x00",
    "a\x00",
    "x" * 100_000,
    [],
    {},
    [[]],
    {"a": {"b": []}},
    "\u202e",
    "🙂",
    "' OR 1=1 --",
    ["x"] * 200,
    [None],
]
FIELDS = [
    "name",
    "role",
    "title",
    "reportsTo",
    "adapterType",
    "adapterConfig",
    "purpose",
    "grants",
    "label",
    "expiresAt",
    "scope",
    "to",
    "resource",
    "level",
    "mode",
    "description",
    "content",
    "unlisted",
    "note",
    "rationale",
    "reason",
    "prompt",
    "parentId",
    "parents",
    "blockedBy",
    "urgent",
    "important",
    "deferredUntil",
    "evidence",
    "hire",
    "operations",
    "undo",
    "dryRun",
    "type",
    "payload",
    "decisionNote",
    "expectedRevision",
    "replyTo",
    "canCreateAgents",
    "permissionLevel",
    "permissions",
    "capabilities",
    "prompt",
    "adapterConfig",
    "runtimeConfig",
    "metadata",
    "budgetMonthlyCents",
    "outcomeId",
    "requireBoardApprovalForNewAgents",
    "chatLLMModel",
    "body",
    "fileId",
    "subject",
    "attachments",
    "deliverAt",
    "atMostOnce",
    "messaging",
    "question",
    "options",
    "answer",
    "agent",
    "cron",
    "timezone",
    "at",
]
NEEDED = ["name", "to", "resource", "level", "rationale", "parentId", "reason", "operations"]
NEEDED += ["body", "question", "answer", "messaging"]
NEEDED += ["type", "payload", "canCreateAgents", "permissionLevel", "adapterConfig"]
QUERIES = [
    "limit",
    "cursor",
    "after",
    "before",
    "agent",
    "unused",
    "query",
    "terminated",
    "version",
    "owner",
    "status",
    "actionable",
    "roots",
    "root",
    "depth",
    "at",
    "what",
    "status",
    "entityType",
    "entityId",
    "companyId",
    "all",
    "company",
]


def bad_request(
    chance: random.Random, method: str, template: str, world: World
) -> tuple[str, Any, dict[str, str]]:
    """A request with something wrong in it that cannot be meant well by accident."""

    def odd() -> str:
        found = chance.choice(ODD)
        return quote(found if isinstance(found, bytes) else found.encode(), safe="")

    # Reading a message is on record, as reading a file is.
    logged = template.endswith("/content") or template == "/api/messages/{id}"
    # There is no repository to show a change from, which is an answer of its own.
    fetched = template.endswith("/diff")
    looking = method == "GET" and not logged and not fetched
    path = world.path(template) if looking and chance.random() < 0.5 else template
    path = re.sub(r"{\w+}", lambda _: odd() or "x", path)
    query = [f"{chance.choice(QUERIES)}={odd()}" for _ in range(chance.randrange(4))]
    body: Any = None
    headers: dict[str, str] = {}
    if method in ("POST", "PATCH"):
        fields = chance.sample(FIELDS, chance.randrange(8))
        document = {name: chance.choice(ODD_VALUES) for name in fields}
        document[chance.choice(NEEDED)] = chance.choice([None, 5, [], {}, "\x00"])
        if template == "/api/companies":
            document["name"] = chance.choice([None, 5, "", "\x00", "x" * 500])
        text = json.dumps(document).encode()
        body = text[: chance.randrange(len(text))] if chance.random() < 0.1 else text
        headers["Content-Type"] = "application/json"
    if method == "PUT":
        body = b"bytes"
        headers["If-Match"] = chance.choice(["", '"1:x"', "*", '"-1:x"', f'"{"9" * 50}:x"'])
    if chance.random() < 0.2:
        headers["Idempotency-Key"] = chance.choice(["", "\x80", "x" * 300, "\t"])
    if chance.random() < 0.1:
        headers["Last-Event-ID"] = chance.choice(["x", "-1", "9" * 30, "1e3"])
    return path + ("?" + "&".join(query) if query else ""), body, headers


@pytest.mark.slow
@pytest.mark.campaign_on_postgresql("bad requests end before they come to a database")
def test_two_thousand_bad_requests_break_nothing_and_change_nothing(world: World) -> None:
    chance = random.Random(20260502)
    routes = [
        (method, template)
        for method, template in operations(world.running)
        # These make something whatever is sent along.
        if template not in ("/api/login-links", "/api/me/tokens", "/api/instance/backups")
    ]
    clients = [world.board, world.lead_client, world.worker_client, world.stranger]
    before = rows(world)
    refused = taken_along = 0
    for number in range(2000):
        method, template = routes[number % len(routes)]
        path, body, headers = bad_request(chance, method, template, world)
        answer = chance.choice(clients)(method, path, body=body, headers=headers)
        assert answer.status < 500, (method, path, body, headers, answer.body)
        if answer.status >= 400:
            assert answer.code
            refused += 1
        elif template.endswith("/export"):
            taken_along += 1
    assert refused > 1500
    # That a company was exported is recorded, though nobody but the board may; how often that comes
    # about depends on how many routes there are.
    assert taken_along < 20
    assert rows(world) == {**before, "events": before["events"] + taken_along}
    assert world.board.must("GET", f"/api/companies/{world.company}/events/verify")["ok"]


# ── the stream of events ────────────────────────────────────────────────────────────────────────


def test_a_stream_shows_what_happens_and_resumes_without_gap_or_repeat(world: World) -> None:
    path = f"/api/companies/{world.company}/events"
    total = world.board.must("GET", path)[0]["seq"]
    reader = world.running.client(world.board.token)
    events = server_sent(reader.open("GET", path, headers={**STREAM, "Last-Event-ID": "2"}))
    seen = [int(next(events)["id"]) for _ in range(total - 2)]
    assert seen == list(range(3, total + 1))
    world.board.must("POST", f"/api/companies/{world.company}/agents", {"name": "newest"})
    fresh = [next(events)]
    while "agent.create" not in fresh[-1]["data"]:
        fresh.append(next(events))
    assert json.loads(fresh[-1]["data"])["details"]["name"] == "newest"
    assert [int(event["id"]) for event in fresh] == list(range(total + 1, total + 1 + len(fresh)))
    reader.close()
    again = world.running.client(world.board.token)
    resumed = server_sent(again.open("GET", f"{path}?after={fresh[0]['id']}", headers=STREAM))
    world.board.must("POST", f"/api/companies/{world.company}/agents", {"name": "last"})
    assert int(next(resumed)["id"]) == int(fresh[0]["id"]) + 1


def test_a_stream_without_a_place_begins_now(world: World) -> None:
    path = f"/api/companies/{world.company}/events"
    reader = world.running.client(world.board.token)
    response = reader.open("GET", path, headers=STREAM)
    assert response.headers["Content-Type"].startswith("text/event-stream")
    events = server_sent(response)
    total = world.board.must("GET", path)[0]["seq"]
    world.board.must("POST", f"/api/agents/{world.lead}/keys")
    assert int(next(events)["id"]) == total + 1


def test_a_stream_ends_when_its_token_is_revoked(world: World) -> None:
    users = f"/api/companies/{world.company}/users/{world.user}/tokens"
    made = world.board.must("POST", users)
    reader = world.running.client(made["token"])
    events = server_sent(
        reader.open("GET", f"/api/companies/{world.company}/events", headers=STREAM)
    )
    world.board.must("DELETE", f"{users}/{made['id']}")
    assert [event["event"] for event in events] == ["end"]


def test_a_quiet_stream_says_that_it_is_still_there(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "KEEP_ALIVE_SECONDS", 0.05)
    reader = world.running.client(world.board.token)
    response = reader.open("GET", f"/api/companies/{world.company}/events", headers=STREAM)
    lines = [response.readline() for _ in range(5)]
    assert lines[:3:2] == [b": connected\n", b": still here\n"]


def test_a_stream_is_refused_like_any_other_request(world: World) -> None:
    path = f"/api/companies/{world.company}/events"
    assert world.worker_client("GET", path, headers=STREAM).code == "board_only"
    assert world.stranger("GET", path, headers=STREAM).status == 404
    assert world.running.client()("GET", path, headers=STREAM).status == 401
    for wrong in ("x", "-1", "9" * 19, "1.5"):
        headers = {**STREAM, "Last-Event-ID": wrong}
        assert world.board("GET", path, headers=headers).status == 422


def test_many_readers_of_a_stream_all_see_every_event(world: World) -> None:
    path = f"/api/companies/{world.company}/events"
    start = world.board.must("GET", path)[0]["seq"]
    readers = [world.running.client(world.board.token) for _ in range(8)]
    streams = [
        server_sent(reader.open("GET", f"{path}?after={start}", headers=STREAM))
        for reader in readers
    ]
    seen: list[list[int]] = [[] for _ in readers]

    def read(number: int) -> None:
        while not seen[number] or seen[number][-1] < start + 30:
            seen[number].append(int(next(streams[number])["id"]))

    threads = [threading.Thread(target=read, args=(number,)) for number in range(len(readers))]
    for thread in threads:
        thread.start()
    for _ in range(30):
        world.board.must("POST", f"/api/agents/{world.lead}/keys")
    for thread in threads:
        thread.join(30)
    assert seen == [list(range(start + 1, start + 31))] * len(readers)


# ── what programs that nobody here wrote expect ─────────────────────────────────────────────────


def test_contents_that_the_caller_has_are_not_sent_again(world: World) -> None:
    path = f"/api/files/{world.file}/content"
    first = world.board("GET", path)
    tag = first.headers["ETag"]
    for seen in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = world.board("GET", path, headers={"If-None-Match": seen})
        assert (again.status, again.body, again.headers["ETag"]) == (304, b"", tag), seen
    for other in ('"1:other"', tag.strip('"'), '""'):
        assert world.board("GET", path, headers={"If-None-Match": other}).status == 200
    assert world.stranger("GET", path, headers={"If-None-Match": "*"}).status == 404


def test_head_is_get_without_a_body(world: World) -> None:
    company = f"/api/companies/{world.company}"
    for path in ("/health", f"{company}/agents", f"/api/agents/{world.worker}", "/api/me"):
        shown, head = world.board("GET", path), world.board("HEAD", path)
        assert (head.status, head.body) == (200, b"")
        assert head.headers["Content-Length"] == str(len(shown.body))
    assert world.running.client()("HEAD", "/api/me").status == 401
    stream = world.board("HEAD", f"{company}/events", headers=STREAM)  # and does not go on for ever
    assert (stream.status, stream.body) == (200, b"")
    assert world.board("HEAD", f"{company}/nothing").status == 404


def test_allow_names_what_this_very_address_takes(world: World) -> None:
    for path, allowed in (
        ("/api/agents/me", "GET, HEAD"),
        ("/api/companies/import", "POST"),
        (f"/api/agents/{world.worker}", "DELETE, GET, HEAD, PATCH"),
        ("/health", "GET, HEAD"),
    ):
        answer = world.board("PUT", path)
        assert (answer.status, answer.headers["Allow"]) == (405, allowed), path


def test_a_name_is_looked_up_in_the_company_that_is_named(world: World) -> None:
    world.board.must("POST", f"/api/companies/{world.other}/agents", {"name": "worker"})
    ambiguous = world.board("GET", "/api/agents/worker")
    assert ambiguous.status == 422
    assert "?companyId=" in ambiguous.json["nextStep"]
    for named in (world.company, world.company[-12:]):
        found = world.board.must("GET", f"/api/agents/worker?companyId={named}")
        assert found["id"] == world.worker
    paused = world.board.must("POST", f"/api/agents/worker/pause?companyId={world.company}")
    assert (paused["id"], paused["status"]) == (world.worker, "paused")
    # It widens nothing: neither for who has no part in it, nor for an agent.
    foreign = f"/api/agents/worker?companyId={world.company}"
    assert world.stranger("GET", foreign).status == 404
    assert world.strange_agent("GET", foreign).status == 404
    # And it is meant: who is somewhere else is not found there, not even by id.
    by_id = f"/api/agents/{world.worker}?companyId="
    assert world.board.must("GET", by_id + world.company)["companyId"] == world.company
    assert world.board("GET", by_id + world.other).status == 404


def test_a_key_may_be_called_by_a_name(world: World) -> None:
    path = f"/api/agents/{world.worker}/keys"
    made = world.board.must("POST", path, {"name": "their laptop"})
    assert (made["label"], made["name"]) == ("their laptop", "their laptop")
    listed = {key["id"]: key["name"] for key in world.board.must("GET", path)}
    assert listed[made["id"]] == "their laptop"


def test_another_systems_permission_is_taken_when_it_gives_nothing(world: World) -> None:
    path = f"/api/agents/{world.worker}/permissions"
    both = {"canCreateAgents": True, "canAssignTasks": False}
    assert world.board.must("PATCH", path, both)["permissions"] == {"canCreateAgents": True}
    assert world.board("PATCH", path, {**both, "canAssignTasks": True}).status == 422
    assert world.board("PATCH", path, {**both, "canFly": False}).status == 422
    hires = f"/api/companies/{world.company}/agent-hires"
    hired = world.board.must("POST", hires, {"name": "theirs", "permissions": both})
    assert hired["agent"]["permissions"] == {"canCreateAgents": True}
    refused = world.board(
        "POST", hires, {"name": "more", "permissions": {**both, "canAssignTasks": True}}
    )
    assert (refused.status, "delegates" in refused.json["nextStep"]) == (422, True)


def test_what_changes_nothing_makes_no_revision_and_asks_nobody(world: World) -> None:
    path = f"/api/agents/{world.worker}"
    world.board.must("PATCH", path, {"title": "Writer", "adapterConfig": None})
    before = world.board.must("GET", f"{path}/config-revisions")
    for nothing in (
        {"title": "Writer"},
        {"title": " Writer "},
        {"metadata": None},
        {"prompt": None, "runtimeConfig": None, "capabilities": None},
    ):
        same = world.board.must("PATCH", path, nothing)
        assert same["title"] == "Writer"
        proposed = world.lead_client("POST", f"{path}/config-proposals", nothing)
        assert (proposed.status, proposed.code) == (409, "conflict"), nothing
    assert world.board.must("GET", f"{path}/config-revisions") == before
    # Null takes away what there is.
    wanted = {"adapterConfig": None, "title": None}
    asked = world.lead_client.must("POST", f"{path}/config-proposals", wanted)
    assert asked["approval"]["payload"]["changed"] == ["title"]
    assert asked["approval"]["payload"]["configuration"] == {"title": ""}
    for key in ("name", "role", "adapterType"):
        assert world.board("PATCH", path, {key: None}).status == 422


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb"])
def test_a_key_that_is_none_is_refused_by_whatever_changes_something(
    world: World, key: str
) -> None:
    tried = 0
    for method, template in operations(world.running):
        # By the sender's own id, or only a reason to look.
        if method == "GET" or template.startswith(("/api/channels/", "/api/hooks/")):
            continue
        answer = world.board(
            method, world.path(template), body=b"{}", headers={"Idempotency-Key": key}
        )
        assert (answer.status, answer.code) == (422, "invalid"), (method, template)
        tried += 1
    assert tried > 70


def test_a_wrong_token_is_told_from_none(world: World) -> None:
    none = world.running.client()("GET", "/api/me")
    wrong = world.running.client("rmt_user_" + "x" * 43)("GET", "/api/me")
    assert none.headers["WWW-Authenticate"] == "Bearer"
    assert wrong.headers["WWW-Authenticate"] == 'Bearer error="invalid_token"'
    assert "its run" in wrong.json["nextStep"]


def test_one_host_is_named_and_an_address_with_one_beats_the_header(world: World) -> None:
    for lines, status in (
        (b"GET /health HTTP/1.1\r\n\r\n", b"400"),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", b"400"),
        (b"GET http://evil.example/health HTTP/1.1\r\nHost: localhost\r\n\r\n", b"421"),
        (b"GET http://localhost/api/me HTTP/1.1\r\nHost: evil.example\r\n\r\n", b"401"),
    ):
        assert raw(world.running, lines).split(b" ")[1] == status, lines
