"""Secrets and MCP servers over HTTP and on the command line."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.http_client import Client, Running, serving
from tests.test_cli import Home, only, refused, remit
from tests.upstreams import SECRET, SHA256, command

__all__ = ["only", "remit"]  # fixtures


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with serving(tmp_path / "home") as found:
        yield found


def below(client: Client, *parts: str) -> str:
    return "/".join(["/api/companies", client.must("GET", "/api/companies")[0]["id"], *parts])


def test_a_value_that_comes_in_never_goes_out(running: Running, tmp_path: Path) -> None:
    board = running.board
    place = below(board, "secrets")
    made = board.must("POST", place, {"name": "key", "value": SECRET})
    assert (made["source"], made["version"]) == ("file", 1)
    home = tmp_path / "home"
    first = home / made["place"]
    assert first.read_text() == SECRET
    (listed,) = board.must("GET", place)
    assert (listed["usable"], listed["problem"]) == (True, None)
    again = board.must("POST", place, {"name": "key", "value": SECRET + "-new"})
    assert again["version"] == 2
    assert not first.exists()  # nothing is kept of what it was
    assert (home / again["place"]).read_text() == SECRET + "-new"
    board.must("DELETE", f"{place}/key")
    assert not (home / again["place"]).exists()
    assert board.must("GET", place) == []
    everything = json.dumps([made, listed, again, board.must("GET", below(board, "activity"))])
    assert SECRET not in everything
    # Ids, times and the name of its file are digits by chance.
    told = {name: listed[name] for name in ("name", "source", "version", "usable", "problem")}
    by_chance = {"id", "companyId", "place", "createdAt", "updatedAt"}
    assert set(listed) == set(told) | by_chance
    assert str(len(SECRET)) not in json.dumps(told)
    for file in home.rglob("*"):
        if file.is_file():
            assert SECRET.encode() not in file.read_bytes(), file


def test_the_same_request_twice_keeps_one_value(running: Running, tmp_path: Path) -> None:
    board, key = running.board, {"Idempotency-Key": "once"}
    place = below(board, "secrets")
    body = {"name": "key", "value": SECRET}
    first = board("POST", place, body, headers=key)
    second = board("POST", place, body, headers=key)
    assert first.json == second.json
    assert len([one for one in (tmp_path / "home" / "secrets").rglob("*") if one.is_file()]) == 1


def test_who_may_not_set_a_secret_leaves_no_file_behind(running: Running, tmp_path: Path) -> None:
    board = running.board
    board.must("POST", below(board, "users"), {"name": "member"})
    token = board.must("POST", below(board, "users", "member", "tokens"), {})["token"]
    ceo = board.must("GET", below(board, "agents"))[0]["id"]
    key = board.must("POST", f"/api/agents/{ceo}/keys", {})["token"]
    path = below(board, "secrets")
    for who, code in ((token, "not_operator"), (key, "board_only")):
        answer = running.client(who)("POST", path, {"name": "key", "value": SECRET})
        assert (answer.status, answer.code) == (403, code)
        assert running.client(who)("DELETE", f"{path}/key").status == 403
    assert running.client()("POST", path, {"name": "key", "value": SECRET}).status == 401
    assert not (tmp_path / "home" / "secrets").exists()
    malformed: list[Any] = [
        {"name": "key"},
        {"name": "key", "value": "short"},
        {"name": "key", "value": SECRET, "source": "env", "place": "X"},
        {"name": "key", "source": "env"},
        {"name": "key", "source": "nowhere", "place": "X"},
        {"name": "Not A Name", "value": SECRET},
        {"name": 7, "value": SECRET},
        {"value": SECRET},
        [],
    ]
    for wrong in malformed:
        assert board("POST", path, wrong).status == 422, wrong
    assert board("DELETE", f"{path}/nothing").status == 404
    assert not list((tmp_path / "home").glob("secrets/*/*"))


def test_a_list_says_what_can_be_had_here(running: Running, tmp_path: Path) -> None:
    board = running.board
    path = below(board, "secrets")
    board.must("POST", path, {"name": "gone", "source": "env", "place": "NO_SUCH_VARIABLE"})
    command = ["/bin/echo", SECRET]
    board.must("POST", path, {"name": "said", "source": "command", "place": command})
    found = {one["name"]: one for one in board.must("GET", path)}
    assert "is not set" in found["gone"]["problem"]
    assert found["said"]["usable"]


def test_servers_are_added_listed_tried_and_removed(running: Running) -> None:
    board = running.board
    path = below(board, "mcp-servers")
    board.must("POST", below(board, "secrets"), {"name": "key", "value": SECRET})
    body: dict[str, Any] = {
        "name": "up",
        "command": command(),
        "env": {"UPSTREAM_SHA256": SHA256, "LANG": "C"},
        "secretEnv": {"UPSTREAM_SECRET": "key"},
    }
    made = board.must("POST", path, body)
    assert made["secretEnv"] == {"UPSTREAM_SECRET": "{key}"}  # names of variables stay as they are
    assert made["env"]["LANG"] == "C"
    assert board("POST", path, body).status == 409
    assert board.must("POST", path, {**body, "replace": True})["version"] == 2
    tried = board.must("POST", f"{path}/up/test")
    assert tried["usable"]
    assert "up__echo" in [tool["name"] for tool in tried["tools"]]
    board.must("POST", path, {**body, "name": "dead", "command": command("dead")})
    tried = board.must("POST", f"{path}/dead/test")
    assert (tried["usable"], tried["complaint"]) == (False, "I was never alive")
    assert board("POST", f"{path}/none/test").status == 404
    assert board.must("DELETE", f"{path}/up")["removed"]
    assert board("DELETE", f"{path}/up").status == 404
    for wrong in ({"name": "x"}, {"name": "x", "command": "a b"}, {"name": "x", "url": "y"}, 7):
        assert board("POST", path, wrong).status == 422


# ── the command line ────────────────────────────────────────────────────────────────────────────


def test_a_secret_and_a_server_from_the_command_line(remit: Home, only: Home) -> None:
    company = only.json("company", "list")[0]["id"]
    mine = Home(remit.folder, {"REMIT_COMPANY": company})  # as the operator
    refused(only("secret", "set", "key", stdin=SECRET.encode()), 1, "Only an operator")
    refused(only("mcp", "add", "up", "--command", "true"), 1, "Only an operator")
    made = mine.json("secret", "set", "key", stdin=SECRET.encode() + b"\n")
    assert (remit.folder / made["place"]).read_text() == SECRET
    key = mine("company", "signing-key", "--new").out
    assert key.startswith("ssh-ed25519 ")
    assert mine("company", "signing-key").out == key
    mine("company", "set", "--signing", "")
    mine.json("secret", "remove", "commit-signing")
    mine.json("secret", "set", "other", "--env", "NO_SUCH_VARIABLE")
    mine.json("secret", "set", "third", "--command", "/bin/echo 'a long value'")
    listed = mine("secret", "list").out
    assert SECRET not in listed
    assert "NO_SUCH_VARIABLE is not set" in listed
    assert "/bin/echo 'a long value'" in listed
    added = mine.json(
        *("mcp", "add", "up", "--command", shlex.join(command())),
        *("--env", f"UPSTREAM_SHA256={SHA256}", "--secret-env", "UPSTREAM_SECRET=key"),
    )
    assert added["secret_env"] == {"UPSTREAM_SECRET": "{key}"}
    mine.json("mcp", "add", "far", "--url", "https://up.example/mcp", "--header", "X-A=b")
    mine.json("agent", "create", "ada")
    mine.json("grant", "give", "ada", "mcp_server:up", "use")
    shown = mine("mcp", "list").out
    assert "https://up.example/mcp" in shown
    assert "ada" in shown
    assert "up__whoami" in mine("mcp", "test", "up").out
    refused(mine("secret", "remove", "key"), 4, "up uses it")
    mine.json("mcp", "remove", "up")
    mine.json("secret", "remove", "key")
    assert not (remit.folder / made["place"]).exists()


def test_what_a_command_line_cannot_mean_is_said_before_anybody_is_asked(remit: Home) -> None:
    for wrong in (
        ("secret", "set", "x", "--env", "A", "--file", "/b"),
        ("secret", "set", "x", "--source", "a"),
        ("mcp", "add", "x"),
        ("mcp", "add", "x", "--command", "a", "--url", "https://b.example"),
        ("mcp", "add", "x", "--command", "a", "--env", "novalue"),
        ("mcp", "add", "x", "--command", "'"),
    ):
        assert remit(*wrong).code == 2, wrong
