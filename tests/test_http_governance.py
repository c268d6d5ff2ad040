"""Governance over HTTP, by a client that knows the routes and fields and nothing else of Remit."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from remit.clock import SystemClock
from remit.ids import Ids
from tests.http_client import Answer, Client, Running, serving
from tests.model_server import ModelServer

APPROVAL_FIELDS = {
    *("id", "companyId", "type", "requestedByAgentId", "requestedByUserId", "status", "payload"),
    *("decisionNote", "decidedByUserId", "decidedAt", "createdAt", "updatedAt"),
    *("revision", "digest"),
}
AGENT_FIELDS = {
    *("id", "companyId", "name", "role", "title", "status", "reportsTo", "capabilities"),
    *("adapterType", "adapterConfig", "runtimeConfig", "permissions", "budgetMonthlyCents"),
    *("metadata", "createdAt", "updatedAt"),
}
CONFIGURATION_FIELDS = {"adapterConfig", "runtimeConfig", "permissions", "prompt", "metadata"}
COMMENT_FIELDS = {
    *("id", "companyId", "approvalId", "authorAgentId", "authorUserId", "body"),
    *("createdAt", "updatedAt"),
}
ABSENT = "01890000-0000-7000-8000-000000000000"
MARK = "***REDACTED***"


class Api:
    """What a front end does: JSON over the documented routes, one person or agent each."""

    def __init__(self, client: Client, company: str) -> None:
        self.client, self.company = client, company

    def __call__(self, method: str, path: str, document: Any = None) -> Answer:
        return self.client(method, f"/api{path}", document)

    def must(self, method: str, path: str, document: Any = None) -> Any:
        return self.client.must(method, f"/api{path}", document)

    def hire(self, **described: Any) -> Any:
        return self.must("POST", f"/companies/{self.company}/agent-hires", described)

    def approvals(self, status: str | None = None) -> Any:
        query = f"?status={status}" if status else ""
        return self.must("GET", f"/companies/{self.company}/approvals{query}")

    def decide(self, approval: str, verb: str, **body: Any) -> Answer:
        return self("POST", f"/approvals/{approval}/{verb}", body or None)

    def agent(self, agent: str) -> Any:
        return self.must("GET", f"/agents/{agent}")

    def settings(self, **changed: Any) -> Any:
        return self.must("PATCH", f"/companies/{self.company}", changed)


@dataclass
class World:
    running: Running
    company: str
    board: Api
    #: The CEO, a manager below it, and somebody below that one.
    ceo: Api
    ceo_id: str
    manager: Api
    manager_id: str
    worker: Api
    worker_id: str

    def person(self, name: str, **part: Any) -> Api:
        unique = f"{name}-{Ids(SystemClock()).new()[-12:]}"
        self.board.must("POST", f"/companies/{self.company}/users", {"name": unique, **part})
        made = self.board.must("POST", f"/companies/{self.company}/users/{unique}/tokens")
        return Api(self.running.client(made["token"]), self.company)


@pytest.fixture(scope="module")
def running(
    served_database: str | None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("home"), served_database) as found:
        yield found


@pytest.fixture
def world(running: Running) -> World:
    name = f"Paper {Ids(SystemClock()).new()[-12:]}"
    asked = {"name": name, "rootName": "chief"}
    made = running.board.must("POST", "/api/companies", asked)
    company, ceo_id = made["id"], made["rootAgentId"]
    board = Api(running.board, company)

    def acting(agent: str) -> Api:
        key = board.must("POST", f"/agents/{agent}/keys")
        return Api(running.client(key["token"]), company)

    def agent(name: str, **described: Any) -> tuple[Api, str]:
        made = board.must("POST", f"/companies/{company}/agents", {"name": name, **described})
        return acting(made["id"]), made["id"]

    ceo = acting(ceo_id)
    manager, manager_id = agent("manager", reportsTo=ceo_id, adapterType="scripted")
    worker, worker_id = agent("worker", reportsTo=manager_id, adapterType="scripted")
    return World(running, company, board, ceo, ceo_id, manager, manager_id, worker, worker_id)


# ── the setting ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("PC-02", "PC-03", "PC-04")
def test_a_company_asks_before_hires_until_its_settings_say_otherwise(world: World) -> None:
    made = world.running.board.must(
        "POST",
        "/api/companies",
        {"name": f"New {world.company}", "requireBoardApprovalForNewAgents": False},
    )
    assert made["requireBoardApprovalForNewAgents"] is True  # creation does not know the setting
    assert (
        world.board.settings(requireBoardApprovalForNewAgents=False)[
            "requireBoardApprovalForNewAgents"
        ]
        is False
    )
    shown = world.board.must("GET", f"/companies/{world.company}")
    assert shown["requireBoardApprovalForNewAgents"] is False
    wrong = world.board(
        "PATCH", f"/companies/{world.company}", {"requireBoardApprovalForNewAgents": "no"}
    )
    assert wrong.status == 422
    assert wrong.json["error"].startswith("requireBoardApprovalForNewAgents: ")
    refused = world.ceo(
        "PATCH", f"/companies/{world.company}", {"requireBoardApprovalForNewAgents": True}
    )
    assert (refused.status, refused.code) == (403, "board_only")
    assert world.board("PATCH", f"/companies/{world.company}", {}).status == 422


def test_the_defaults_of_created_agents_are_settings_too(world: World) -> None:
    changed = world.board.settings(chatLLMProvider="anthropic", chatLLMModel="large")
    assert (changed["chatLLMProvider"], changed["chatLLMModel"]) == ("anthropic", "large")
    assert world.board.settings(chatLLMModel="")["chatLLMModel"] is None
    assert (
        world.board.settings(requireApprovalForConfigChanges=False)[
            "requireApprovalForConfigChanges"
        ]
        is False
    )


# ── hiring ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("PC-36", "PC-28", "PC-40", "PC-43", "PC-48")
def test_a_hire_is_asked_for_looked_at_and_approved(world: World) -> None:
    answer = world.ceo(
        "POST",
        f"/companies/{world.company}/agent-hires",
        {
            "name": "designer",
            "role": "designer",
            "title": "Designs",
            "reportsTo": world.manager_id,
            "capabilities": "Draws and paints",
            "adapterType": "scripted",
            "adapterConfig": {"timeoutSeconds": 5},
            "runtimeConfig": {"heartbeat": {"enabled": True, "interval_sec": 5}},
            "budgetMonthlyCents": 5000,
            "metadata": {"made_by": "form"},
            "prompt": "Draw.",
            "icon": "unknown fields are ignored",
        },
    )
    assert answer.status == 201
    assert set(answer.json) == {"agent", "approval"}
    agent, approval = answer.json["agent"], answer.json["approval"]
    assert set(agent) >= AGENT_FIELDS
    assert set(approval) >= APPROVAL_FIELDS
    assert (agent["status"], agent["reportsTo"]) == ("pending_approval", world.manager_id)
    assert agent["runtimeConfig"] == {"heartbeat": {"enabled": True, "interval_sec": 5}}
    assert agent["metadata"] == {"made_by": "form"}
    assert agent["permissions"] == {"canCreateAgents": False}
    assert (approval["type"], approval["status"]) == ("hire_agent", "pending")
    assert approval["requestedByAgentId"] == world.ceo_id
    payload = approval["payload"]
    assert (payload["agentId"], payload["requestedByAgentId"]) == (agent["id"], world.ceo_id)
    assert payload["requestedConfigurationSnapshot"]["prompt"] == "Draw."
    assert payload["requestedConfigurationSnapshot"]["runtimeConfig"] == agent["runtimeConfig"]

    assert [one["id"] for one in world.board.approvals("pending")] == [approval["id"]]
    shown = world.board.must("GET", f"/approvals/{approval['id']}")
    assert {key: shown[key] for key in approval} == approval
    decided = world.board.decide(
        approval["id"], "approve", decisionNote="Welcome", expectedRevision=1
    )
    assert (decided.status, decided.json["status"]) == (200, "approved")
    assert decided.json["decisionNote"] == "Welcome"
    assert decided.json["decidedByUserId"]
    assert decided.json["decidedAt"]
    assert world.board.agent(agent["id"])["status"] == "idle"
    assert world.board.approvals("pending") == []
    key = world.board("POST", f"/agents/{agent['id']}/keys")
    assert key.status == 201


@pytest.mark.requirement("PC-37")
def test_with_the_setting_off_a_hire_is_ready_at_once(world: World) -> None:
    world.board.settings(requireBoardApprovalForNewAgents=False)
    hired = world.ceo.hire(name="ready", adapterType="scripted")
    assert (hired["agent"]["status"], hired["approval"]) == ("idle", None)


@pytest.mark.requirement("PC-34", "PC-12")
def test_hires_are_for_the_board_and_for_who_may(world: World) -> None:
    refused = world.manager("POST", f"/companies/{world.company}/agent-hires", {"name": "friend"})
    assert (refused.status, refused.code) == (403, "may_not_hire")
    assert refused.json["decision"]["reason"] == "may_not_hire"
    world.board.must("PATCH", f"/agents/{world.manager_id}/permissions", {"canCreateAgents": True})
    assert world.manager.hire(name="friend")["agent"]["reportsTo"] == world.manager_id
    elsewhere = world.manager(
        "POST",
        f"/companies/{world.company}/agent-hires",
        {"name": "peer", "reportsTo": world.ceo_id},
    )
    assert (elsewhere.status, elsewhere.code) == (403, "not_below_you")


@pytest.mark.requirement("PC-38", "PC-39", "AW-15", "AW-28")
def test_the_board_creates_directly_and_agents_do_not(world: World) -> None:
    body = {"name": "direct", "adapterType": "scripted", "permissions": {"canCreateAgents": True}}
    made = world.board("POST", f"/companies/{world.company}/agents", body)
    assert (made.status, made.json["status"]) == (201, "idle")
    assert set(made.json) >= AGENT_FIELDS
    assert made.json["permissions"] == {"canCreateAgents": True}
    recorded = [
        one for one in world.board.approvals("approved") if one["agentId"] == made.json["id"]
    ]
    assert [one["type"] for one in recorded] == ["hire_agent"]
    refused = world.ceo("POST", f"/companies/{world.company}/agents", {"name": "no"})
    assert (refused.status, refused.code) == (403, "board_only")


@pytest.mark.requirement("PC-15", "PC-16", "PC-18", "PC-20")
def test_an_agent_in_limbo_is_seen_and_every_door_is_shut(world: World) -> None:
    agent = world.ceo.hire(name="limbo", adapterType="scripted")["agent"]["id"]
    forest = world.board.must("GET", f"/companies/{world.company}/org")
    below = {one["id"]: one["status"] for one in forest[0]["reports"]}
    assert below[agent] == "pending_approval"
    assert world.worker.agent(agent)["status"] == "pending_approval"
    doors = {
        "wakeup": world.board("POST", f"/agents/{agent}/wakeup", {"reason": "now"}),
        "keys": world.board("POST", f"/agents/{agent}/keys"),
        "pause": world.board("POST", f"/agents/{agent}/pause"),
        "resume": world.board("POST", f"/agents/{agent}/resume"),
        "update": world.board("PATCH", f"/agents/{agent}", {"title": "Working"}),
        "permissions": world.board(
            "PATCH", f"/agents/{agent}/permissions", {"canCreateAgents": True}
        ),
    }
    assert {name: answer.status for name, answer in doors.items()} == dict.fromkeys(doors, 409)
    assert world.board.agent(agent)["status"] == "pending_approval"


@pytest.mark.requirement("PC-41", "PC-42", "PC-74")
def test_a_rejected_agent_is_terminated_and_can_be_deleted(world: World) -> None:
    hired = world.ceo.hire(name="rejected", adapterType="scripted")
    approval, agent = hired["approval"]["id"], hired["agent"]["id"]
    world.board.must("POST", f"/approvals/{approval}/comments", {"body": "Not now"})
    early = world.board("DELETE", f"/approvals/{approval}/agent")
    assert early.status == 409
    decided = world.board.decide(approval, "reject", decisionNote="No budget")
    assert decided.json["status"] == "rejected"
    assert world.board.agent(agent)["status"] == "terminated"
    assert world.ceo.hire(name="rejected")["agent"]["id"] != agent  # the name is free
    refused = world.ceo("DELETE", f"/approvals/{approval}/agent")
    assert (refused.status, refused.code) == (403, "board_only")
    assert world.board.must("DELETE", f"/approvals/{approval}/agent")["deleted"] is True
    assert world.board("GET", f"/agents/{agent}").status == 404
    kept = world.board.must("GET", f"/approvals/{approval}")
    assert kept["status"] == "rejected"
    assert "Not now" in [one["body"] for one in kept["comments"]]


# ── the revision round ──────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("PC-44", "PC-45", "PC-26")
def test_a_hire_is_sent_back_revised_and_approved(world: World) -> None:
    hired = world.ceo.hire(name="draft", adapterType="scripted", prompt="Do it.")
    approval, agent = hired["approval"]["id"], hired["agent"]["id"]
    back = world.board.decide(approval, "request-revision", decisionNote="Do what?")
    assert (back.status, back.json["status"]) == (200, "revision_requested")
    early = world.board.decide(approval, "approve")
    assert (early.status, early.code) == (409, "wrong_status")
    mine = world.ceo.must("GET", f"/approvals/{approval}")
    assert (mine["status"], mine["decisionNote"]) == ("revision_requested", "Do what?")
    assert world.manager("POST", f"/approvals/{approval}/resubmit").status == 404
    again = world.ceo("POST", f"/approvals/{approval}/resubmit", {"payload": {"prompt": "Draw."}})
    assert (again.status, again.json["status"], again.json["revision"]) == (200, "pending", 2)
    assert again.json["payload"]["requestedConfigurationSnapshot"]["prompt"] == "Draw."
    stale = world.board.decide(approval, "approve", expectedRevision=1)
    assert (stale.status, stale.code, stale.json["revision"]) == (409, "stale_revision", 2)
    assert world.board.decide(approval, "approve", expectedRevision=2).status == 200
    assert world.board.agent(agent)["prompt"] == "Draw."
    revisions = world.board.must("GET", f"/approvals/{approval}")["revisions"]
    assert [one["number"] for one in revisions] == [1, 2]
    assert revisions[0]["payload"]["requestedConfigurationSnapshot"]["prompt"] == "Do it."


@pytest.mark.requirement("PC-46", "PC-47", "PC-30", "PC-29")
def test_people_and_agents_comment_and_answer_each_other(world: World) -> None:
    approval = world.ceo.hire(name="talked-about", adapterType="scripted")["approval"]["id"]
    path = f"/approvals/{approval}/comments"
    first = world.board("POST", path, {"body": "Why now?"})
    assert first.status == 201
    assert set(first.json) >= COMMENT_FIELDS
    assert first.json["authorUserId"]
    assert first.json["authorAgentId"] is None
    answer = world.ceo.must("POST", path, {"body": "Because.", "replyTo": first.json["id"]})
    assert (answer["authorAgentId"], answer["replyTo"]) == (world.ceo_id, first.json["id"])
    listed = world.board.must("GET", path)
    assert [one["body"] for one in listed] == ["Why now?", "Because."]
    page = world.board.client("GET", f"/api{path}?limit=1")
    assert [one["body"] for one in page.json] == ["Why now?"]
    assert 'rel="next"' in page.headers["Link"]
    assert world.worker("POST", path, {"body": "Me too"}).status == 404
    assert world.board("POST", path, {"body": ""}).status == 422
    assert world.board("POST", path, {}).json["error"] == "body: is required."
    assert world.board("POST", path, {"body": "x", "replyTo": ABSENT}).status == 404


# ── deciding ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("PC-27")
def test_what_is_decided_stays_decided(world: World) -> None:
    verbs = ["approve", "reject", "request-revision", "resubmit", "cancel"]
    for first in ("approve", "reject", "cancel"):
        asked = world.ceo.hire(name=f"for-{first}", adapterType="scripted")["approval"]["id"]
        assert world.board.decide(asked, first).status == 200
        for verb in verbs:
            who = world.ceo if verb == "resubmit" else world.board
            again = who.decide(asked, verb)
            assert (again.status, again.code) == (409, "wrong_status"), (first, verb)


def test_of_two_board_members_one_decides_and_the_other_is_told(world: World) -> None:
    people = [world.board, world.person("second")]
    for number in range(5):
        hired = world.ceo.hire(name=f"contested-{number}", adapterType="scripted")
        asked, agent = hired["approval"]["id"], hired["agent"]["id"]
        answers: dict[str, Answer] = {}
        start = threading.Barrier(2)

        def decide(person: Api, verb: str, asked: str = asked) -> None:
            start.wait(10)  # noqa: B023  this round's
            answers[verb] = person.decide(asked, verb, expectedRevision=1)  # noqa: B023

        threads = [
            threading.Thread(target=decide, args=pair)
            for pair in zip(people, ("approve", "reject"), strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert sorted(answer.status for answer in answers.values()) == [200, 409]
        won = next(verb for verb, answer in answers.items() if answer.status == 200)
        status = world.board.agent(agent)["status"]
        assert status == {"approve": "idle", "reject": "terminated"}[won]


def test_who_may_not_know_of_an_approval_does_not_learn_of_it(world: World) -> None:
    asked = world.ceo.hire(name="quiet", adapterType="scripted")["approval"]["id"]
    observer, scoped = (
        world.person("watcher", role="observer"),
        world.person("part", scope=world.manager_id),
    )
    for path in (f"/approvals/{asked}", f"/approvals/{asked}/comments"):
        assert world.ceo("GET", path).status == 200
        assert observer("GET", path).status == 200
        for stranger in (world.manager, world.worker, scoped):
            missing = stranger("GET", path.replace(asked, ABSENT))
            hidden = stranger("GET", path)
            assert (hidden.status, hidden.json) == (404, missing.json)
    for verb in ("approve", "reject", "request-revision", "cancel"):
        assert world.worker.decide(asked, verb).status == 404
        assert (observer.decide(asked, verb).status, scoped.decide(asked, verb).status) == (
            403,
            404,
        )
    own = world.ceo.decide(asked, "approve")
    assert (own.status, own.code) == (403, "own_request")
    assert world.worker.approvals() == []
    assert [one["id"] for one in world.ceo.approvals()] == [asked]


def test_the_board_is_asked_for_anything_and_the_requester_withdraws_it(world: World) -> None:
    path = f"/companies/{world.company}/approvals"
    made = world.worker(
        "POST",
        path,
        {"type": "request_board_approval", "payload": {"title": "Buy a car", "max_price": 9}},
    )
    assert (made.status, made.json["requestedByAgentId"]) == (201, world.worker_id)
    assert made.json["payload"] == {"title": "Buy a car", "max_price": 9}
    assert made.json["status"] == "pending"
    wrong = world.worker("POST", path, {"type": "hire_agent", "payload": {}})
    assert (wrong.status, wrong.json["error"][:5]) == (422, "type ")
    assert world.worker.decide(made.json["id"], "cancel").json["status"] == "cancelled"
    budget = world.worker.must(
        "POST", path, {"type": "budget", "payload": {"budgetMonthlyCents": 700}}
    )
    world.board.must("POST", f"/approvals/{budget['id']}/approve")
    assert world.board.agent(world.worker_id)["budgetMonthlyCents"] == 700


def test_lists_are_filtered_and_paged(world: World) -> None:
    asked = [
        world.ceo.hire(name=f"one-of-{number}", adapterType="scripted")["approval"]["id"]
        for number in range(5)
    ]
    world.board.must("POST", f"/approvals/{asked[0]}/reject")
    assert [one["id"] for one in world.board.approvals("pending")] == asked[:0:-1]
    assert [one["id"] for one in world.board.approvals("rejected")] == asked[:1]
    path = f"/api/companies/{world.company}/approvals?status=pending&limit=2"
    seen: list[str] = []
    while path:
        page = world.board.client("GET", path)
        seen += [one["id"] for one in page.json]
        link = page.headers["Link"] or ""
        path = link.partition("<")[2].partition(">")[0] if page.json else ""
    assert seen == asked[:0:-1]
    assert world.board("GET", f"/companies/{world.company}/approvals?status=odd").status == 422


# ── permissions ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("PC-07", "PC-11", "PC-08", "PC-09", "PC-10", "PC-13")
def test_the_permissions_route_takes_exactly_one_key(world: World) -> None:
    path = f"/agents/{world.worker_id}/permissions"
    changed = world.board("PATCH", path, {"canCreateAgents": True})
    assert changed.status == 200
    assert changed.json["permissions"] == {"canCreateAgents": True}
    for body in (
        {"canCreateAgents": True, "canFly": True},
        {"can_create_agents": True},
        {"canCreateAgents": "yes"},
        {"canCreateAgents": 1},
        {"canCreateAgents": None},
        {},
    ):
        assert world.board("PATCH", path, body).status == 422, body
    assert world.ceo("PATCH", path, {"canCreateAgents": False}).status == 200
    own = world.ceo("PATCH", f"/agents/{world.ceo_id}/permissions", {"canCreateAgents": True})
    assert (own.status, own.code) == (403, "own_permissions")
    world.board.must("PATCH", f"/agents/{world.manager_id}/permissions", {"canCreateAgents": True})
    refused = world.manager("PATCH", path, {"canCreateAgents": True})
    assert (refused.status, refused.code) == (403, "not_ceo")


@pytest.mark.requirement("HB-09")
def test_a_level_comes_with_a_new_agent(world: World) -> None:
    path = f"/companies/{world.company}/agents"
    body = {"name": "trusted", "adapterType": "scripted", "permissionLevel": "privileged"}
    view = world.board.must("POST", path, body)
    assert (view["permissionLevel"], view["permissions"]) == (
        *("privileged", {"canCreateAgents": True}),
    )
    assert world.board("POST", path, {**body, "permissionLevel": "king"}).status == 422
    refused = world.manager("POST", path, {**body, "name": "other"})
    assert refused.status == 403


@pytest.mark.requirement("HB-09")
def test_levels_are_the_board_s_to_give(world: World) -> None:
    path = f"/agents/{world.manager_id}/permission-level"
    made = world.board.must("PATCH", path, {"permissionLevel": "boss"})
    assert (made["permissionLevel"], made["permissions"]) == ("boss", {"canCreateAgents": True})
    assert world.board("PATCH", path, {"permissionLevel": "king"}).status == 422
    assert world.ceo("PATCH", path, {"permissionLevel": "boss"}).status == 403
    # A boss-level agent decides about what those below it ask for.
    asked = world.worker.must(
        "POST",
        f"/companies/{world.company}/approvals",
        {"type": "request_board_approval", "payload": {"title": "A day off"}},
    )
    assert asked["routedToAgentId"] == world.manager_id
    assert world.manager.decide(asked["id"], "approve").json["status"] == "approved"


# ── configurations ──────────────────────────────────────────────────────────────────────────────

SECRET = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"


@pytest.mark.requirement("PC-50", "PC-51", "PC-52", "PC-53", "PC-54", "PC-56")
def test_configurations_are_for_those_who_may_and_without_secrets(world: World) -> None:
    made = world.board.must(
        "POST",
        f"/companies/{world.company}/agents",
        {
            "name": "configured",
            "reportsTo": world.manager_id,
            "adapterType": "process",
            "adapterConfig": {"command": "x", "env": {"API_KEY": SECRET, "LANG": "C"}},
            "prompt": "Keep it short.",
        },
    )
    agent = made["id"]
    assert made["adapterConfig"]["env"]["API_KEY"] == MARK
    assert "adapterConfig.env.API_KEY" in made["redacted"]
    paths = [f"/agents/{agent}/configuration", f"/companies/{world.company}/agent-configurations"]
    for reader in (world.board, world.ceo, world.person("reader", role="observer")):
        one, listed = (reader.must("GET", path) for path in paths)
        assert one in listed
        assert (one["adapterConfig"]["env"]["API_KEY"], one["prompt"]) == (MARK, "Keep it short.")
        assert one["redacted"] == ["adapterConfig.env.API_KEY"]
        assert set(reader.agent(agent)) >= CONFIGURATION_FIELDS
    for path in (*paths, f"/agents/{agent}/config-revisions"):
        refused = world.worker("GET", path)
        assert (refused.status, refused.code) == (403, "no_configurations")
    seen = world.worker.agent(agent)
    assert {"name", "role", "status"} <= set(seen)
    assert not CONFIGURATION_FIELDS & set(seen)
    everybody = world.worker.must("GET", f"/companies/{world.company}/agents")
    assert not any(CONFIGURATION_FIELDS & set(one) for one in everybody)
    assert "adapterConfig" not in world.worker.must("GET", "/agents/me")
    world.board.must("PATCH", f"/agents/{world.worker_id}/permissions", {"canCreateAgents": True})
    assert world.worker.must("GET", paths[0])["adapterConfig"]["env"]["API_KEY"] == MARK
    part = world.person("part", scope=world.manager_id)
    assert part.must("GET", paths[0])["name"] == "configured"
    assert "adapterConfig" in part.agent(agent)
    assert "adapterConfig" not in part.agent(world.ceo_id)


@pytest.mark.requirement("HH-14")
def test_a_configuration_changes_by_revisions_and_rolls_back(world: World) -> None:
    agent = world.board.must(
        "POST",
        f"/companies/{world.company}/agents",
        {
            "name": "changing",
            "reportsTo": world.manager_id,
            "adapterType": "process",
            "adapterConfig": {"command": "x", "env": {"API_KEY": SECRET}},
        },
    )
    path = f"/agents/{agent['id']}"
    changed = world.board.must(
        "PATCH",
        path,
        # A whole form comes back: with markers, and with the boss it has.
        {**agent, "permissions": None, "title": "Changed", "expectedRevision": 1},
    )
    assert (changed["title"], changed["configRevision"]) == ("Changed", 2)
    assert (
        world.running.app.database.submit_read(
            lambda tx: tx.execute(
                "SELECT adapter_config FROM agents WHERE name = 'changing' ORDER BY id DESC", {}
            ).fetchone()[0]
        )
        .result()
        .count(SECRET)
        == 1
    )
    stale = world.board("PATCH", path, {"title": "Again", "expectedRevision": 1})
    assert (stale.status, stale.code) == (409, "stale_revision")
    assert world.ceo("PATCH", path, {"title": "Mine"}).code == "board_only"
    moved = world.board("PATCH", path, {"reportsTo": world.ceo_id})
    assert (moved.status, moved.json["error"]) == (422, "reportsTo: is not changed here.")
    assert world.board("PATCH", path, {"permissions": {"canCreateAgents": True}}).status == 422
    wrong = world.board("PATCH", path, {"adapterConfig": {"command": "x", "color": "red"}})
    assert (wrong.status, "adapterConfig" in wrong.json["error"]) == (422, True)
    revisions = world.board.must("GET", f"{path}/config-revisions")
    assert (revisions[0]["number"], revisions[0]["changed"]) == (2, ["title"])
    assert revisions[0]["difference"] == [{"path": "title", "was": "", "now": "Changed"}]
    assert revisions[0]["configuration"]["adapterConfig"]["env"] == {"API_KEY": MARK}
    back = world.board.must("POST", f"{path}/config-revisions/{revisions[1]['id']}/rollback")
    assert (back["title"], back["configRevision"]) == ("", 3)
    assert world.board("POST", f"{path}/config-revisions/{ABSENT}/rollback").status == 404
    proposed = world.ceo(
        "POST", f"{path}/config-proposals", {"title": "Proposed", "reason": "It grew"}
    )
    assert proposed.status == 201
    assert proposed.json["approval"]["payload"]["difference"] == [
        {"path": "title", "was": "", "now": "Proposed"}
    ]
    assert world.worker("POST", f"{path}/config-proposals", {"title": "x"}).status == 403
    world.board.must("POST", f"/approvals/{proposed.json['approval']['id']}/approve")
    assert world.board.agent(agent["id"])["title"] == "Proposed"


@pytest.mark.requirement("PC-57", "PC-58", "PC-59", "PC-61")
def test_reflection_is_plain_text_behind_the_same_gate(world: World) -> None:
    index = "/llms/agent-configuration.txt"
    for reader in (world.board, world.ceo):
        answer = reader.client("GET", index)
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith("text/plain")
        text = answer.body.decode()
        assert "/llms/agent-configuration/claude.txt" in text
        assert "POST /api/companies/{companyId}/agent-hires" in text
        one = reader.client("GET", "/llms/agent-configuration/process.txt")
        assert (one.status, one.headers["Content-Type"][:10]) == (200, "text/plain")
        assert "command" in one.body.decode()
        for path, found in ((index, answer), ("/llms/agent-configuration/process.txt", one)):
            assert reader.client("GET", f"/api{path}").body == found.body
    for path in (index, f"/api{index}", "/llms/agent-configuration/process.txt"):
        refused = world.worker.client("GET", path)
        assert (refused.status, refused.code) == (403, "no_configurations")
        assert world.running.client()("GET", path).status == 401
    assert world.board.client("GET", "/llms/agent-configuration/none.txt").status == 404


# ── at a glance ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("PC-49")
def test_activity_tells_who_did_what_to_what(world: World) -> None:
    hired = world.ceo.hire(name="watched", adapterType="scripted")
    approval = hired["approval"]["id"]
    world.board.decide(approval, "request-revision", decisionNote="Hm")
    world.ceo.must("POST", f"/approvals/{approval}/resubmit")
    world.board.decide(approval, "approve")
    path = f"/companies/{world.company}/activity"
    found = world.board.must("GET", f"{path}?entityType=approval&entityId={approval}")
    assert [one["action"] for one in found][::-1][:3] == [
        "approval.request",
        "approval.revise",
        "approval.resubmit",
    ]
    assert "approval.approve" in [one["action"] for one in found]
    first = found[-1]
    assert (first["actorType"], first["agentId"]) == ("agent", world.ceo_id)
    assert (first["entityType"], first["entityId"]) == ("approval", approval)
    assert {"id", "companyId", "actorId", "runId", "details", "createdAt"} <= set(first)
    newest = world.board.must("GET", f"{path}?limit=2")
    assert newest[0]["seq"] > newest[1]["seq"]
    assert world.worker("GET", path).status == 403


def test_the_dashboard_counts(world: World) -> None:
    world.ceo.hire(name="counted", adapterType="scripted")
    path = f"/companies/{world.company}/dashboard"
    seen = world.board.must("GET", path)
    assert seen["agents"] == {
        **dict.fromkeys(("running", "paused", "error", "terminated"), 0),
        "idle": 3,
        "pendingApproval": 1,
    }
    assert (seen["pendingApprovals"], seen["running"]) == (1, 0)
    assert seen["outcomes"]["open"] == 4
    assert world.ceo.must("GET", path)["pendingApprovals"] == 1
    assert world.worker.must("GET", path)["pendingApprovals"] == 0
    scoped = world.person("part", scope=world.manager_id).must("GET", path)
    assert (scoped["pendingApprovals"], scoped["outcomes"]) == (None, None)


def test_a_use_that_needs_approval_is_a_403_that_names_it(world: World) -> None:
    world.board.must(
        "POST",
        f"/companies/{world.company}/grants",
        {"to": world.worker_id, "resource": "agent.create", "level": "use", "mode": "ask"},
    )
    file = world.board.must(
        "POST", f"/companies/{world.company}/files", {"description": "plan", "content": "x"}
    )["id"]
    world.board.must(
        "POST",
        f"/companies/{world.company}/grants",
        {"to": world.worker_id, "resource": f"kb_file:{file}", "level": "read", "mode": "ask"},
    )
    waits = world.worker("GET", f"/files/{file}/content")
    assert (waits.status, waits.code) == (403, "pending_approval")
    world.board.must("POST", f"/approvals/{waits.json['approvalId']}/approve")
    assert world.worker("GET", f"/files/{file}/content").body == b"x"
    assert world.worker("GET", f"/files/{file}/content").code == "pending_approval"


def test_waking_sends_mail(world: World) -> None:
    woken = world.board("POST", f"/agents/{world.worker_id}/wakeup", {"reason": "Look"})
    assert (woken.status, woken.json["id"]) == (202, world.worker_id)
    assert woken.json["messageId"]
    assert world.board("POST", f"/agents/{world.worker_id}/wakeup").status == 202


def test_adapters_are_listed_and_tried_out_by_the_board(world: World) -> None:
    path = f"/companies/{world.company}/adapters"
    types = [one["type"] for one in world.ceo.must("GET", path)]
    assert {"claude", "codex", "human", "scripted"} <= set(types)
    shown = world.ceo.must("GET", f"{path}/scripted")
    assert shown["text"].startswith("# scripted")
    assert 0 < shown["baseTools"]["tokens"] < 6000
    tried = world.board.must("POST", f"{path}/scripted/test-environment")
    assert (tried["usable"], tried["adapterType"]) == (True, "scripted")
    wrong = world.board(
        "POST", f"{path}/scripted/test-environment", {"adapterConfig": {"color": 1}}
    )
    assert wrong.status == 422
    # It starts programs, so it is not for agents.
    assert world.ceo("POST", f"{path}/scripted/test-environment").code == "board_only"
    assert world.worker("GET", path).status == 403


def test_the_board_lets_a_model_be_asked_with_the_settings_of_an_agent(world: World) -> None:
    """The settings stay inside; what comes back is a sentence."""
    path = f"/companies/{world.company}/adapters"
    with ModelServer("small") as server:
        config = {"provider": "compatible", "baseUrl": f"{server.url}/v1", "model": "small"}
        described = {"name": "local", "adapterType": "llm", "adapterConfig": config}
        agent = world.board.must("POST", f"/companies/{world.company}/agents", described)["id"]
        target, body = f"{path}/llm/test-environment", {"agentId": agent, "tryOut": True}
        found = world.board.must("POST", target, body)
        assert (found["usable"], found["tried"]["ok"]) == (True, True)
        assert found["tried"]["details"]["model"] == "small"
        assert world.board.must("POST", target, {"agentId": agent})["tried"] is None
        named = {"adapterConfig": {**config, "secretRef": "nothing"}, "tryOut": True}
        missing = world.board.must("POST", target, named)["tried"]
        assert missing["ok"] is False
        assert "There is no secret 'nothing'" in missing["sentence"]
        # Nobody else sends our keys anywhere.
        asked = len(server.asked)
        assert world.ceo("POST", target, body).code == "board_only"
        other = world.board("POST", f"{path}/claude/test-environment", body)
        assert (other.status, other.json["error"]) == (
            *(422, "That agent has its own settings, of the adapter llm."),
        )
        assert world.board("POST", target, {**body, "adapterConfig": config}).status == 422
        assert world.board("POST", target, {"agentId": "nobody"}).status == 404
        assert len(server.asked) == asked


# ── odd documents ───────────────────────────────────────────────────────────────────────────────

ODD: list[Any] = [
    *(None, True, 0, -1, 2**62, 1.5, "", "x", "\0", "\u202e", "x" * 300, "ü🙂", MARK),
    *([], [1], {}, {"a": None}, {"": ""}, {"env": {"A": MARK}}, [[{}]], {"a": {"b": [MARK]}}),
]
FIELDS = [
    *("name", "role", "title", "capabilities", "prompt", "adapterType", "adapterConfig"),
    *("runtimeConfig", "budgetMonthlyCents", "metadata", "permissions", "grants", "outcomeId"),
    *("reportsTo", "purpose", "permissionLevel", "expectedRevision", "reason"),
    *("payload", "decisionNote", "body", "replyTo", "type", "expiresAt", "configuration"),
    *("requestedConfigurationSnapshot", "agentId", "canCreateAgents", "changed", "difference"),
]


def test_odd_documents_are_refused_or_kept_and_break_nothing(world: World) -> None:
    chance = random.Random(7)
    hired = [world.ceo.hire(name=f"odd-{number}", adapterType="scripted") for number in range(3)]
    proposed = world.ceo.must(
        "POST", f"/agents/{world.worker_id}/config-proposals", {"title": "Odd"}
    )
    asked = [one["approval"]["id"] for one in hired] + [proposed["approval"]["id"]]
    agents = [world.worker_id, hired[0]["agent"]["id"]]

    def document(depth: int = 2) -> Any:
        if depth == 0 or chance.random() < 0.1:
            return chance.choice(ODD)
        chosen = chance.sample(FIELDS, chance.randrange(1, 5))
        return {
            name: document(depth - 1) if chance.random() < 0.4 else chance.choice(ODD)
            for name in chosen
        }

    refused = 0
    for _ in range(600):
        approval, agent = chance.choice(asked), chance.choice(agents)
        method, path = chance.choice(
            [
                ("POST", f"/companies/{world.company}/agent-hires"),
                ("POST", f"/companies/{world.company}/approvals"),
                ("POST", f"/companies/{world.company}/agents"),
                ("PATCH", f"/companies/{world.company}"),
                ("PATCH", f"/agents/{agent}"),
                ("PATCH", f"/agents/{agent}/permissions"),
                ("POST", f"/agents/{agent}/config-proposals"),
                ("POST", f"/approvals/{approval}/request-revision"),
                ("POST", f"/approvals/{approval}/resubmit"),
                ("POST", f"/approvals/{approval}/resubmit"),
                ("POST", f"/approvals/{approval}/comments"),
            ]
        )
        who = chance.choice([world.board, world.ceo])
        body = document()
        if path.endswith("/resubmit") and chance.random() < 0.8:
            who, body = world.ceo, {"payload": document()}
        elif path.endswith("agent-hires") and isinstance(body, dict):
            body |= {"name": f"odd-{chance.randrange(10**6)}"}
        answer = who(method, path, body)
        assert answer.status < 500, (method, path, body, answer.body)
        refused += answer.status >= 400
    assert 100 < refused < 600
    assert world.board.must("GET", f"/companies/{world.company}/events/verify")["ok"]


# ── levels as data ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("HB-08")
def test_the_permission_policy_is_shown_and_changed_by_the_board(world: World) -> None:
    path = f"/companies/{world.company}/permission-policy"
    policy = world.board.must("GET", path)
    assert (policy["version"], policy["levels"]["boss"]["governs"]) == (0, "below")
    for client in (world.ceo, world.worker):
        assert client("GET", path).code == "board_only"
        assert client("PATCH", path, {"level": "boss", "governs": "company"}).code == "board_only"
    world.board.must(
        "PATCH", f"/agents/{world.manager_id}/permission-level", {"permissionLevel": "boss"}
    )
    asked = {"level": "boss", "allow": ["approval.decide"], "governs": "company", "version": 0}
    done = world.board.must("PATCH", path, asked)
    assert (done["version"], done["agentsChanged"]) == (1, ["manager"])
    assert world.board("PATCH", path, {**asked, "allow": []}).code == "stale_revision"
    none = world.board.must("PATCH", path, {"level": "boss", "canCreateAgents": None})
    assert none["levels"]["boss"]["canCreateAgents"] is None
    for body in (
        {"level": "boss"},
        {"level": "boss", "shipped": True, "governs": "below"},
        {"level": "king", "governs": "below"},
        {"level": "boss", "governs": "all"},
        {"level": "boss", "allow": "x"},
        {"governs": "below"},
        {"level": "boss", "canCreateAgents": 1},
    ):
        assert world.board("PATCH", path, body).status == 422, body
    shipped = world.board.must("PATCH", path, {"level": "boss", "shipped": True})
    assert shipped["levels"]["boss"] == {**policy["levels"]["boss"], "agents": 1}


@pytest.mark.requirement("HB-10")
def test_a_boss_level_agent_changes_what_works_below_it_over_http(world: World) -> None:
    path = f"/agents/{world.worker_id}"
    assert world.manager("PATCH", path, {"title": "New"}).code == "board_only"
    world.board.must(
        "PATCH", f"/agents/{world.manager_id}/permission-level", {"permissionLevel": "boss"}
    )
    assert world.manager.must("PATCH", path, {"title": "New"})["title"] == "New"
    assert world.manager("PATCH", f"/agents/{world.manager_id}", {"title": "x"}).status == 403
    assert world.manager("PATCH", f"/agents/{world.ceo_id}", {"title": "x"}).status == 403
    made = world.manager.must(
        "POST",
        f"/companies/{world.company}/agents",
        {"name": "extra", "reportsTo": world.worker_id},
    )
    assert made["reportsTo"] == world.worker_id


@pytest.mark.requirement("HH-12", "HH-27", "HH-41")
def test_an_agent_is_updated_and_a_subtree_terminated_with_a_preview(world: World) -> None:
    worker, manager = f"/agents/{world.worker_id}", f"/agents/{world.manager_id}"
    for client in (world.worker, world.manager):
        assert client("POST", f"{manager}/update").code == "not_below_you"
        assert client("POST", f"{manager}/terminate", {"subtree": True}).code == "not_below_you"
    seen = world.manager.must("POST", f"{worker}/update", {"dryRun": True})
    assert (seen["dryRun"], seen["changes"]) == (True, [])
    done = world.manager.must("POST", f"{worker}/update")
    assert (done["dryRun"], done["revision"]) == (False, 2)
    assert world.board("POST", f"{worker}/update", {"dryRun": 1}).status == 422
    assert world.ceo("POST", f"{manager}/terminate").code == "conflict"
    preview = world.ceo.must("POST", f"{manager}/terminate", {"subtree": True, "dryRun": True})
    assert [one["name"] for one in preview["agentsEnded"]] == ["manager", "worker"]
    assert preview["dryRun"] is True
    assert world.board.must("GET", worker)["status"] == "idle"
    ended = world.ceo.must("POST", f"{manager}/terminate", {"subtree": True})
    assert (ended["status"], ended["agentsEnded"]) == ("terminated", preview["agentsEnded"])
    assert world.board.must("GET", worker)["status"] == "terminated"
    assert world.worker("GET", "/agents/me").status == 401
