"""Outcomes, delegation and the organisation over HTTP, through real sockets, on both databases."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest

from remit.clock import SystemClock, to_iso
from remit.entrypoints.http.routes.org import nested
from remit.ids import Ids
from remit.services.identity import Caller
from remit.services.organisation import agents
from tests.company import run_sql
from tests.http_client import Client, Running, serving

HOSTILE = "</script>{{7*7}}'; DROP TABLE outcomes;-- [bold]x[/bold] 宣伝"
NOBODY = "01234567-89ab-7def-8123-456789abcdef"


@dataclass
class World:
    """A company with a boss and two reports, and another one beside it."""

    board: Client
    company: str
    boss: str
    boss_client: Client
    worker: str
    worker_client: Client
    peer: str
    #: The board of the other company, and an agent there.
    stranger: Client
    other: str
    foreign: str

    @property
    def outcomes(self) -> str:
        return f"/api/companies/{self.company}/outcomes"

    @property
    def reorganise(self) -> str:
        return f"/api/companies/{self.company}/reorganise"

    def create(self, who: Client, parent: str, title: str, **more: Any) -> Any:
        return who.must("POST", self.outcomes, {"parentId": parent, "title": title, **more})

    def org(self) -> list[Any]:
        found = self.board.must("GET", f"/api/companies/{self.company}/org")
        assert isinstance(found, list)
        return found


@pytest.fixture(scope="module")
def running(
    served_database: str | None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("home"), served_database) as found:
        yield found


@pytest.fixture
def world(running: Running) -> World:
    board, unique = running.client(running.board.token), Ids(SystemClock()).new()[-12:]
    made = board.must("POST", "/api/companies", {"name": f"One {unique}", "rootName": "boss"})
    company, boss = made["id"], made["rootAgentId"]
    asking = {"requireBoardApprovalForNewAgents": False}
    board.must("PATCH", f"/api/companies/{company}", asking)  # how hires wait is tested elsewhere
    other = board.must("POST", "/api/companies", {"name": f"Two {unique}"})["id"]
    board.must("POST", f"/api/companies/{other}/users", {"name": f"stranger-{unique}"})
    token = board.must("POST", f"/api/companies/{other}/users/stranger-{unique}/tokens")["token"]

    def agent(name: str, boss: str | None = None, where: str = company) -> str:
        body = {"name": name, "reportsTo": boss, "purpose": f"See to {name}", "perpetual": False}
        made: str = board.must("POST", f"/api/companies/{where}/agents", body)["id"]
        return made

    def client(agent_id: str) -> Client:
        return running.client(board.must("POST", f"/api/agents/{agent_id}/keys")["token"])

    worker, peer = agent("worker", "boss"), agent("peer", "boss")
    return World(
        board,
        company,
        boss,
        client(boss),
        worker,
        client(worker),
        peer,
        running.client(token),
        other,
        agent("spy", where=other),
    )


# ── outcomes ────────────────────────────────────────────────────────────────────────────────────


def test_an_outcome_is_created_shown_listed_and_changed(world: World) -> None:
    first = world.create(world.boss_client, world.boss, "First")
    body = {
        "parentId": world.boss,
        "title": HOSTILE,
        "description": "*why*",
        "parents": [],
        "blockedBy": [first["id"]],
        "urgent": True,
        "important": True,
        "deferredUntil": "2999-01-01T00:00:00Z",
        "unknown": 1,
    }
    made = world.boss_client("POST", world.outcomes, body)
    assert made.status == 201
    second = made.json
    assert (second["title"], second["ownerId"], second["status"]) == (HOSTILE, world.boss, "open")
    assert (second["urgent"], second["important"], second["actionable"]) == (True, True, False)
    path = f"/api/outcomes/{second['id']}"
    shown = world.boss_client.must("GET", path)
    assert shown["description"] == "*why*"
    assert [one["id"] for one in shown["blockedBy"]] == [first["id"]]
    assert [one["id"] for one in shown["parents"]] == [world.boss]
    assert shown["history"][0]["action"] == "outcome.create"

    changed = world.boss_client.must(
        "PATCH",
        path,
        {"version": 1, "title": "Second", "blockedBy": [], "deferredUntil": None, "urgent": False},
    )
    assert (changed["title"], changed["version"], changed["urgent"]) == ("Second", 2, False)
    assert (changed["deferredUntil"], changed["actionable"]) == (None, True)
    stale = world.boss_client("PATCH", path, {"version": 1, "title": "Third"})
    assert (stale.status, stale.code, stale.json["version"]) == (409, "conflict", 2)
    assert world.boss_client("PATCH", path, {"title": "Third"}).status == 422
    assert world.boss_client("PATCH", path, {"version": 2, "urgent": "yes"}).status == 422

    mine = world.boss_client.must("GET", world.outcomes)
    assert {one["id"] for one in mine} == {world.boss, first["id"], second["id"]}
    ready = world.board.must("GET", f"{world.outcomes}?owner=boss&actionable=1")
    assert [one["id"] for one in ready] == [second["id"], first["id"]]
    assert world.board.must("GET", f"{world.outcomes}?status=closed") == []
    assert world.board("GET", f"{world.outcomes}?status=nonsense").status == 422
    assert world.board("GET", f"{world.outcomes}?actionable=1").status == 422
    roots = world.board.must("GET", f"{world.outcomes}?roots=1")
    assert [one["id"] for one in roots] == [world.boss]


@pytest.mark.requirement("FX-02", "FX-06")
def test_what_was_handed_in_is_sent_back_and_accepted(world: World, running: Running) -> None:
    path = f"/api/outcomes/{world.worker}"
    evidence = world.worker_client.must(
        "POST", f"/api/companies/{world.company}/files", {"description": "it", "content": "It."}
    )["id"]
    assert world.boss_client("POST", f"{path}/return", {"note": "x"}).code == "not_submitted"
    handed_in = {"note": "It is there.", "evidence": [evidence]}
    shown = world.worker_client.must("POST", f"{path}/submit", handed_in)
    assert (shown["submissions"][0]["status"], shown["status"]) == ("open", "open")
    assert world.worker_client("POST", f"{path}/submit", {}).code == "submitted"
    assert world.boss_client("POST", f"{path}/return", {}).status == 422
    shown = world.boss_client.must("POST", f"{path}/return", {"note": "Not yet."})
    assert shown["submissions"][0]["verdictNote"] == "Not yet."
    world.worker_client.must("POST", f"{path}/submit", handed_in)
    done = world.boss_client.must("POST", f"{path}/complete", {"note": "Good."})
    assert [one["name"] for one in done["agentsEnded"]] == ["worker"]
    assert [one["id"] for one in done["verdict"]["evidence"]] == [evidence]
    # What does not move is listed.
    slow = world.create(world.boss_client, world.boss, "Slow")["id"]
    stale = f"{world.outcomes}?stale=true"
    assert world.board.must("GET", stale) == []
    url = running.app.settings.database_url
    run_sql(url, "UPDATE outcomes SET reviews = 4 WHERE id = ?", slow)
    assert [one["id"] for one in world.board.must("GET", stale)] == [slow]


def test_outcomes_come_in_pages(world: World) -> None:
    for number in range(5):
        world.create(world.boss_client, world.boss, f"Part {number}")
    seen: list[str] = []
    path: str | None = f"{world.outcomes}?limit=3"
    while path is not None:
        answer = world.board("GET", path)
        seen += [one["id"] for one in answer.json]
        link = answer.headers["Link"]
        path = link.partition("<")[2].partition(">")[0] if link else None
    assert len(seen) == len(set(seen)) == 8


def test_an_outcome_is_created_once_under_a_key(world: World) -> None:
    headers = {"Idempotency-Key": "the-same"}
    body = {"parentId": world.boss, "title": "Once", "description": "text"}
    first = world.boss_client.must("POST", world.outcomes, body, headers=headers)
    assert world.boss_client.must("POST", world.outcomes, body, headers=headers) == first
    other = world.boss_client("POST", world.outcomes, {**body, "title": "x"}, headers=headers)
    assert (other.status, other.code) == (409, "key_reused")
    assert len(world.boss_client.must("GET", world.outcomes)) == 2


def test_why_and_how_and_what_happened(world: World) -> None:
    whole = world.create(world.boss_client, world.boss, "Whole")["id"]
    part = world.create(world.boss_client, whole, "Part")["id"]
    shared = world.create(world.boss_client, part, "Shared", parents=[whole])["id"]
    why = world.boss_client.must("GET", f"/api/outcomes/{shared}/ancestors")
    chains = sorted(why["chains"], key=len)
    assert chains == [[shared, whole, world.boss], [shared, part, whole, world.boss]]
    assert why["moreChains"] is False

    how = world.boss_client.must("GET", f"/api/outcomes/{whole}/subtree")
    assert {one["id"]: bool(one.get("elsewhere")) for one in how["children"]} == {
        part: False,
        shared: False,
    }
    inner = next(one for one in how["children"] if one["id"] == part)
    assert inner["children"][0]["elsewhere"] is True
    short = world.boss_client.must("GET", f"/api/outcomes/{world.boss}/subtree?depth=1")
    (node,) = (one for one in short["children"] if one["id"] == whole)
    assert (node["children"], node["more"]) == ([], 2)
    assert world.boss_client("GET", f"/api/outcomes/{whole}/subtree?depth=-1").status == 422
    assert world.boss_client("GET", f"/api/outcomes/{whole}/subtree?depth=9999").status == 422

    world.worker_client("POST", f"/api/outcomes/{whole}/close", {"rationale": "mine"})
    history = world.boss_client("GET", f"/api/outcomes/{whole}/history?limit=1")
    assert [(one["action"], one["allowed"]) for one in history.json] == [("outcome.finish", False)]
    link = history.headers["Link"].partition("<")[2].partition(">")[0]
    assert [one["action"] for one in world.boss_client.must("GET", link)] == ["outcome.create"]


def test_a_chain_deeper_than_json_can_be_is_cut_and_says_so(world: World) -> None:
    at = top = world.create(world.boss_client, world.boss, "Top")["id"]
    for number in range(110):
        at = world.create(world.boss_client, at, f"Level {number}")["id"]
    node, levels = world.boss_client.must("GET", f"/api/outcomes/{top}/subtree"), 0
    while node["children"]:
        node, levels = node["children"][0], levels + 1
    assert (levels, node["more"]) == (100, 1)
    assert len(world.boss_client.must("GET", f"/api/outcomes/{at}/ancestors")["chains"][0]) == 112


def test_outcomes_are_completed_with_evidence_closed_and_reopened(world: World) -> None:
    part = world.create(world.boss_client, world.boss, "Part")["id"]
    file = world.boss_client.must(
        "POST", f"/api/companies/{world.company}/files", {"description": "d", "content": "proof"}
    )
    body = {"evidence": [file["id"]], "note": "seen"}
    done = world.boss_client.must("POST", f"/api/outcomes/{part}/complete", body)
    assert (done["status"], done["verdict"]["note"]) == ("completed", "seen")
    evidence = [{"id": file["id"], "version": 1, "hash": file["hash"]}]
    assert done["verdict"]["evidence"] == evidence
    assert world.boss_client("POST", f"/api/outcomes/{part}/complete").status == 409
    again = world.boss_client.must("POST", f"/api/outcomes/{part}/reopen", {"note": "not yet"})
    assert (again["status"], again["verdict"]) == ("open", None)
    assert world.boss_client("POST", f"/api/outcomes/{part}/close", {}).status == 422
    closed = world.boss_client.must("POST", f"/api/outcomes/{part}/close", {"rationale": "no"})
    assert (closed["status"], closed["verdict"]["note"]) == ("closed", "no")
    own = world.worker_client("POST", f"/api/outcomes/{world.worker}/complete")
    assert (own.status, own.code) == (403, "own_mandate")


def test_evidence_and_parents_come_from_the_same_company(world: World) -> None:
    """The board has a part in both companies; one call works in one of them."""
    path = f"/api/companies/{world.other}/files"
    foreign = world.board.must("POST", path, {"description": "d", "content": "c"})["id"]
    part = world.create(world.board, world.boss, "Part")
    complete = f"/api/outcomes/{part['id']}/complete"
    assert world.board("POST", complete, {"evidence": [foreign]}).status == 404
    for body in (
        {"parentId": world.foreign, "title": "x"},
        {"parentId": world.boss, "title": "x", "parents": [world.foreign]},
        {"parentId": world.boss, "title": "x", "blockedBy": [world.foreign]},
    ):
        assert world.board("POST", world.outcomes, body).status == 404
    change = {"version": part["version"], "parents": [world.foreign]}
    assert world.board("PATCH", f"/api/outcomes/{part['id']}", change).status == 404
    assert world.board.must("GET", f"/api/outcomes/{part['id']}")["status"] == "open"


# ── delegation ──────────────────────────────────────────────────────────────────────────────────


def test_an_outcome_is_delegated_and_reclaimed(world: World) -> None:
    whole = world.create(world.boss_client, world.boss, "Whole")["id"]
    world.create(world.boss_client, whole, "Part")
    file = world.boss_client.must(
        "POST", f"/api/companies/{world.company}/files", {"description": "d", "content": "c"}
    )["id"]
    hire = {"name": "hired", "role": "engineer", "adapterType": "scripted", "prompt": "Be good."}
    grants = [{"resource": f"kb_file:{file}", "level": "read"}]
    path = f"/api/outcomes/{whole}"
    handed = world.boss_client.must("POST", f"{path}/delegate", {"hire": hire, "grants": grants})
    assert (handed["agent"]["id"], handed["agent"]["name"]) == (whole, "hired")
    assert (handed["outcome"]["delegated"], handed["moved"]) == (True, 1)
    assert {"seatUserId", "stateFileId", "logFileId"} <= set(handed["agent"])
    held = f"/api/companies/{world.company}/grants?agent=hired&derived=1"
    resources = {one["resource"]: one for one in world.boss_client.must("GET", held)}
    assert resources[f"kb_file:{file}"]["scope"] == whole
    assert resources[f"outcome:{whole}"]["derived"] is True
    assert resources[f"outcome:{whole}"]["holderId"] == whole

    inside = {"parentId": whole, "title": "My way"}
    reach = world.boss_client("POST", world.outcomes, inside)
    assert (reach.status, reach.code) == (403, "delegated_away")
    twice = world.boss_client("POST", f"{path}/delegate", {"to": "worker"})
    assert twice.status in (403, 409)
    assert world.boss_client("POST", f"{path}/delegate", {}).status in (403, 422)
    assert world.worker_client("POST", f"{path}/reclaim", {"reason": "x"}).status == 404

    back = world.boss_client.must("POST", f"{path}/reclaim", {"reason": "Too slow."})
    assert back["agents"] == [whole]
    assert (back["outcome"]["ownerId"], back["outcome"]["delegated"]) == (world.boss, False)
    handover = world.boss_client("GET", f"/api/files/{back['handoverFileId']}/content")
    assert b"Too slow." in handover.body
    assert world.board.must("GET", f"/api/agents/{whole}")["status"] == "terminated"
    assert world.boss_client("POST", f"{path}/reclaim", {"reason": "x"}).status in (403, 409)


def test_an_outcome_is_delegated_to_a_report_with_grants_that_end_with_it(world: World) -> None:
    whole = world.create(world.boss_client, world.boss, "Whole")["id"]
    file = world.boss_client.must(
        "POST", f"/api/companies/{world.company}/files", {"description": "d", "content": "c"}
    )["id"]
    body = {"to": "worker", "grants": [{"resource": f"kb_file:{file}", "level": "read"}]}
    handed = world.boss_client.must("POST", f"/api/outcomes/{whole}/delegate", body)
    assert handed["agent"]["id"] == world.worker
    assert world.worker_client("GET", f"/api/files/{file}/content").body == b"c"
    world.boss_client.must("POST", f"/api/outcomes/{whole}/complete")
    assert world.worker_client("GET", f"/api/files/{file}/content").status == 403
    lost = world.boss_client(
        "POST",
        f"/api/outcomes/{world.create(world.boss_client, world.boss, 'x')['id']}/delegate",
        {"to": "spy"},
    )
    assert lost.status == 404


# ── agents ──────────────────────────────────────────────────────────────────────────────────────


def test_an_agent_is_paused_and_resumed(world: World) -> None:
    path = f"/api/agents/{world.worker}"
    assert world.boss_client.must("POST", f"{path}/pause")["status"] == "paused"
    assert world.worker_client("POST", f"/api/agents/{world.boss}/pause").status == 403
    assert world.boss_client.must("POST", f"{path}/resume")["status"] == "idle"
    assert world.boss_client("POST", f"{path}/resume").status == 409
    above = world.worker_client("POST", f"/api/agents/{world.boss}/pause")
    assert (above.status, above.code) == (403, "not_below_you")


def test_an_agents_log_is_for_it_and_those_above(world: World, running: Running) -> None:
    for number in range(3):
        caller = Caller(world.worker_client.token or "")
        asyncio.run(running.app.gate(caller, agents.submit_log, summary=f"Step {number}"))
    path = f"/api/agents/{world.worker}/log"
    first = world.boss_client("GET", f"{path}?limit=2")
    assert [one["summary"] for one in first.json] == ["Step 2", "Step 1"]
    link = first.headers["Link"].partition("<")[2].partition(">")[0]
    assert [one["summary"] for one in world.boss_client.must("GET", link)] == ["Step 0"]
    assert len(world.board.must("GET", path)) == 3
    assert world.worker_client("GET", f"/api/agents/{world.boss}/log").status == 404


# ── the organisation ────────────────────────────────────────────────────────────────────────────


def test_the_organisation_is_a_nested_tree(world: World) -> None:
    (boss,) = world.org()
    assert {"id", "name", "role", "title", "status", "adapterType", "reports"} <= set(boss)
    assert {one["name"]: one["reports"] for one in boss["reports"]} == {"worker": [], "peer": []}
    assert world.worker_client.must("GET", f"/api/companies/{world.company}/org") == world.org()


def test_a_damaged_tree_is_still_shown_whole() -> None:
    def row(own: str, boss: str | None) -> dict[str, Any]:
        return {
            **dict.fromkeys(("name", "role", "title", "status", "adapter_type"), own),
            "id": own,
            "reports_to": boss,
            "seat_user_id": None,
        }

    found = nested(
        [row("a", "c"), row("b", "a"), row("c", "b"), row("d", "d"), row("e", "x"), row("f", "b")]
    )
    seen: list[str] = []
    pending = list(found)
    while pending:
        node = pending.pop()
        seen.append(node["id"])
        pending += node["reports"]
    assert sorted(seen) == list("abcdef")


@pytest.mark.parametrize("spelling", ["camel", "snake"])
def test_a_layer_is_previewed_inserted_and_undone(world: World, spelling: str) -> None:
    snake = spelling == "snake"
    operation = {
        "op": "insert_layer" if snake else "insertLayer",
        "name": "middle",
        "agents": ["worker", "peer"],
        "adapter_type" if snake else "adapterType": "scripted",
        "adapter_config" if snake else "adapterConfig": {"timeoutSeconds": 5},
    }
    before = world.org()
    tried = world.board.must("POST", world.reorganise, {"operations": [operation], "dryRun": True})
    assert (tried["dryRun"], tried["eventId"]) == (True, None)
    assert world.org() == before
    done = world.board.must("POST", world.reorganise, {"operations": [operation]})
    (boss,) = world.org()
    (middle,) = boss["reports"]
    assert (middle["name"], middle["adapterType"]) == ("middle", "scripted")
    assert {one["name"] for one in middle["reports"]} == {"worker", "peer"}

    def facts(answer: Any) -> set[tuple[str, ...]]:
        return {
            (one["change"], one["whoName"], one["right"], one["overName"])
            for one in answer["changes"]
            if one["right"] != "holds"  # the books of a new agent get new ids each time
        }

    assert facts(tried) == facts(done)
    assert ("loses", "boss", "is boss of", "worker") in facts(done)
    assert ("gains", "middle", "is boss of", "worker") in facts(done)

    would = world.board.must("POST", world.reorganise, {"undo": done["eventId"], "dryRun": True})
    assert world.org() == [boss]
    undone = world.board.must("POST", world.reorganise, {"undo": done["eventId"]})
    assert would["changes"] == undone["changes"]
    assert ("gains", "boss", "is boss of", "worker") in facts(undone)
    assert world.org() == before
    assert world.board("POST", world.reorganise, {"undo": done["eventId"]}).status == 409


def test_a_wrong_reorganisation_changes_nothing(world: World) -> None:
    before = world.org()
    move = {"op": "move", "agent": "worker", "to": "peer"}
    for body, status in (
        ({}, 422),
        ({"operations": []}, 422),
        ({"operations": [move], "undo": NOBODY}, 422),
        ({"operations": [{"op": "nonsense"}]}, 422),
        ({"operations": [{"op": "move"}]}, 422),
        ({"operations": [{"op": "move", "agent": "worker"}]}, 422),
        ({"operations": [{**move, "adapterConfig": [1]}]}, 422),
        ({"operations": [move], "dryRun": "yes"}, 422),
        ({"operations": [{"op": "seat", "agent": "worker", "adapterType": "x"}]}, 422),
        ({"operations": [move, {**move, "to": "nobody"}]}, 404),
        ({"operations": [{**move, "agent": "spy"}]}, 404),
        ({"operations": [{**move, "agent": world.foreign}]}, 404),
        ({"operations": [{**move, "agent": "boss"}]}, 409),
        ({"undo": NOBODY}, 404),
        ({"undo": "0"}, 422),
    ):
        answer = world.board("POST", world.reorganise, body)
        assert (answer.status, bool(answer.code)) == (status, True), (body, answer.body)
    refused = world.boss_client("POST", world.reorganise, {"operations": [move], "dryRun": True})
    assert (refused.status, refused.code) == (403, "board_only")
    assert world.org() == before


def test_a_person_takes_a_seat(world: World) -> None:
    me = world.board.must("GET", "/api/me")
    seat = {"op": "seat", "agent": "worker", "user": me["name"]}
    done = world.board.must("POST", world.reorganise, {"operations": [seat]})
    (gain,) = (one for one in done["changes"] if one["right"] == "acts as")
    assert (gain["change"], gain["whoName"], gain["overName"]) == ("gains", me["name"], "worker")
    agent = world.board.must("GET", f"/api/agents/{world.worker}")
    assert (agent["seatUserId"], agent["adapterType"]) == (me["id"], "human")


# ── the past ────────────────────────────────────────────────────────────────────────────────────


def test_the_past_is_shown_as_it_was(world: World) -> None:
    file = world.board.must(
        "POST", f"/api/companies/{world.company}/files", {"description": "d", "content": "then"}
    )
    grant = world.board.must(
        "POST",
        f"/api/companies/{world.company}/grants",
        {"to": "worker", "resource": f"kb_file:{file['id']}", "level": "read"},
    )
    then = to_iso(SystemClock().now())
    tag = f'"{file["version"]}:{file["hash"]}"'
    content = f"/api/files/{file['id']}/content"
    world.board.must("PUT", content, body=b"now", headers={"If-Match": tag})
    world.board.must("DELETE", f"/api/grants/{grant['id']}")
    move = {"op": "move", "agent": "worker", "to": "peer"}
    world.board.must("POST", world.reorganise, {"operations": [move]})

    past = f"/api/companies/{world.company}/as-of?at={quote(then)}"
    org = {one["name"]: one["reportsTo"] for one in world.board.must("GET", f"{past}&what=org")}
    assert org == {"boss": None, "worker": world.boss, "peer": world.boss}
    held = world.board.must("GET", f"{past}&what=grants&agent=worker")
    assert grant["id"] in {one["id"] for one in held}
    now = f"/api/companies/{world.company}/as-of?at={quote(to_iso(SystemClock().now()))}"
    held = world.board.must("GET", f"{now}&what=grants&agent=worker")
    assert grant["id"] not in {one["id"] for one in held}

    old = world.board("GET", f"{content}?at={quote(then)}")
    assert (old.body, old.headers["ETag"]) == (b"then", tag)
    assert world.board("GET", content).body == b"now"
    assert world.board("GET", f"{content}?at=1999-01-01").status == 404
    assert world.board("GET", f"{content}?at=2999-01-01").status == 422
    assert world.board("GET", f"{content}?at=nonsense").status == 422
    assert world.board("GET", f"{content}?at={quote(then)}&version=1").status == 422
    assert world.worker_client("GET", f"{content}?at={quote(then)}").status == 403
    assert world.board("GET", f"{past}&what=nonsense").status == 422
    assert world.board("GET", past.partition("?")[0]).status == 422
    assert world.worker_client("GET", f"{past}&what=org").status == 403


# ── who may know ────────────────────────────────────────────────────────────────────────────────


def test_another_company_is_not_there(world: World) -> None:
    outcome = world.create(world.board, world.boss, "Ours")["id"]
    body = {"parentId": world.boss, "title": "x"}
    delegate = {"hire": {"name": "x"}}
    for method, path, document in (
        ("GET", world.outcomes, None),
        ("POST", world.outcomes, body),
        ("POST", f"/api/companies/{world.other}/outcomes", body),
        ("GET", f"/api/outcomes/{outcome}", None),
        ("PATCH", f"/api/outcomes/{outcome}", {"version": 1, "title": "x"}),
        ("GET", f"/api/outcomes/{outcome}/ancestors", None),
        ("GET", f"/api/outcomes/{outcome}/subtree", None),
        ("GET", f"/api/outcomes/{outcome}/history", None),
        ("POST", f"/api/outcomes/{outcome}/complete", {}),
        ("POST", f"/api/outcomes/{outcome}/close", {"rationale": "x"}),
        ("POST", f"/api/outcomes/{outcome}/reopen", {}),
        ("POST", f"/api/outcomes/{outcome}/delegate", delegate),
        ("POST", f"/api/outcomes/{outcome}/reclaim", {"reason": "x"}),
        ("POST", f"/api/agents/{world.worker}/pause", None),
        ("POST", f"/api/agents/{world.worker}/resume", None),
        ("GET", f"/api/agents/{world.worker}/log", None),
        ("GET", f"/api/companies/{world.company}/org", None),
        ("POST", world.reorganise, {"operations": [{"op": "seat", "agent": "x"}]}),
        ("GET", f"/api/companies/{world.company}/as-of?at=2020-01-01&what=org", None),
    ):
        answer = world.stranger(method, path, document)
        assert (answer.status, answer.code) == (404, "not_found"), (method, path, answer.body)
        assert world.board.as_(None)(method, path, document).status == 401


def test_observers_look_and_members_of_a_part_name_an_owner(world: World) -> None:
    users = f"/api/companies/{world.company}/users"
    for name, body in (
        ("looker", {"role": "observer"}),
        ("part", {"scope": "worker"}),
    ):
        world.board.must("POST", users, {"name": f"{name}-{world.boss[-12:]}", **body})

    def token(name: str) -> Client:
        path = f"{users}/{name}-{world.boss[-12:]}/tokens"
        return world.board.as_(world.board.must("POST", path)["token"])

    looker, part = token("looker"), token("part")
    assert len(looker.must("GET", world.outcomes)) == 3
    assert len(looker.must("GET", f"{world.outcomes}?owner=worker")) == 1
    close = looker("POST", f"/api/outcomes/{world.worker}/close", {"rationale": "x"})
    assert (close.status, close.code) == (403, "observer")
    assert part("GET", world.outcomes).code == "outside_scope"
    assert part("GET", f"{world.outcomes}?owner=boss").code == "outside_scope"
    assert len(part.must("GET", f"{world.outcomes}?owner=worker")) == 1


def test_the_routes_are_in_the_document(running: Running) -> None:
    paths = running.client().must("GET", "/openapi.json")["paths"]
    for path, methods in {
        "/api/companies/{companyId}/outcomes": {"get", "post"},
        "/api/outcomes/{id}": {"get", "patch"},
        "/api/outcomes/{id}/delegate": {"post"},
        "/api/outcomes/{id}/reclaim": {"post"},
        "/api/agents/{id}/pause": {"post"},
        "/api/agents/{id}/update": {"post"},
        "/api/companies/{companyId}/permission-policy": {"get", "patch"},
        "/api/companies/{companyId}/org": {"get"},
        "/api/companies/{companyId}/reorganise": {"post"},
        "/api/companies/{companyId}/as-of": {"get"},
    }.items():
        assert methods <= set(paths[path]), path
    content = paths["/api/files/{id}/content"]["get"]["parameters"]
    assert "at" in {parameter["name"] for parameter in content}
