"""Secrets that were planted everywhere leave through no door: HTTP, MCP, CLI, logs, export.

The corpus is written into every document that an agent can be described by. Then everything that
can be read is read, by everybody, and searched for each secret: as it is, and as base64.
"""

from __future__ import annotations

import base64
import json
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from remit.entrypoints.http.logs import keep_logs
from remit.services import approvals
from remit.testing import ScriptedAgent, ToolRefused
from tests import cli_forks
from tests.http_client import Client, server_sent
from tests.test_mcp_tools import Site, serving

#: By what they look like.
SHAPES = {
    "anthropic": "sk-ant-api03-" + "Qw3rTy7uIoP9aSdF" * 3,
    "openai": "sk-proj-" + "aB3dE5fG7hJ9kL1m" * 3,
    "github": "ghp_" + "a1B2c3D4e5F6g7H8i9" * 2,
    "aws": "AKIA" + "Z7Y6X5W4V3U2T1S0",
    "slack": "xoxb-" + "123456789012-" * 2 + "AbCdEfGhIjKlMnOp",
    "jwt": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"
    ".eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkFkYSJ9.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
    "pem": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ\n"
    "-----END PRIVATE KEY-----",
}
#: By the name that stands beside them; nothing about them looks secret.
NAMED = {
    "password": "correct horse battery",
    "db_passwd": "tr0ub4dor",
    "client-secret": "plain words one",
    "apiKey": "plain words two",
    "Authorization": "Bearer plainwordsthree",
    "cookie": "session=plain4",
}
#: What an environment variable holds is secret, whatever it is called.
ENV = "nothing-looks-secret-here-5"
CORPUS = {**SHAPES, **NAMED, "env": ENV}
#: The part of each that must not be seen. A scheme such as Bearer may.
NEEDLES = {
    name: value.removeprefix("Bearer ").removeprefix("session=") for name, value in CORPUS.items()
}
NEEDLES["pem"] = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ"


def adapter_config() -> dict[str, Any]:
    env = {"UNREMARKABLE": ENV, **{f"V_{name.upper()}": value for name, value in SHAPES.items()}}
    return {"command": "x", "args": ["--token", SHAPES["github"]], "env": env}


def metadata() -> dict[str, Any]:
    return {
        "nested": [{"deep": {**NAMED}}],
        "notes": f"the key is {SHAPES['anthropic']}, keep it",
        "encoded": base64.b64encode(SHAPES["openai"].encode()).decode(),
        "url": f"https://user:{NAMED['db_passwd']}@db.example/x?token={SHAPES['slack']}",
    }


PROMPT = f"Use {SHAPES['openai']} when asked.\n{SHAPES['pem']}\nAWS {SHAPES['aws']} {SHAPES['jwt']}"


@dataclass
class Search:
    """What was read, and where a secret was found in it."""

    looked_at: int = 0
    found: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, where: str, seen: bytes | str) -> None:
        self.looked_at += 1
        text = seen.decode("utf-8", "replace") if isinstance(seen, bytes) else seen
        for name, needle in NEEDLES.items():
            escaped = json.dumps(needle)[1:-1]
            encoded = base64.b64encode(needle.encode()).decode().rstrip("=")
            if needle in text or escaped in text or encoded in text:
                self.found.append((where, name))


@dataclass
class Planted:
    site: Site
    board: Client
    agents: list[str]
    approvals: list[str]
    clients: dict[str, Client]
    log: Path


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planted]:
    home = tmp_path_factory.mktemp("home")
    with serving(home) as site, keep_logs(site.app.settings.log_folder, stderr=False):
        yield plant(site)


def plant(site: Site) -> Planted:
    board = Client(site.url, site.board.token)
    here = f"/api/companies/{site.company}"
    described = {
        "adapterType": "process",
        "adapterConfig": adapter_config(),
        "runtimeConfig": {"headers": {**NAMED}, "extra": {"env": {"X": ENV}}},
        "metadata": metadata(),
        "prompt": PROMPT,
        "capabilities": f"Knows {SHAPES['github']}",
    }
    direct = board.must(
        "POST", f"{here}/agents", {"name": "direct", "reportsTo": "ceo", **described}
    )
    key = board.must("POST", "/api/agents/ceo/keys")["token"]
    worker = board.must("POST", f"{here}/agents", {"name": "worker", "adapterType": "scripted"})
    low = board.must("POST", f"/api/agents/{worker['id']}/keys")["token"]
    board.must("POST", f"{here}/users", {"name": "watcher", "role": "observer"})
    watcher = board.must("POST", f"{here}/users/watcher/tokens")["token"]
    chief = Client(site.url, key)
    hired = chief.must("POST", f"{here}/agent-hires", {"name": "hired", **described})
    asked = hired["approval"]["id"]
    board.must("POST", f"/api/approvals/{asked}/request-revision", {"decisionNote": "More"})
    more = {"payload": {"metadata": {**metadata(), "more": NAMED}}}
    chief.must("POST", f"/api/approvals/{asked}/resubmit", more)
    path = f"/api/agents/{direct['id']}"
    changed = {**adapter_config(), "env": {"OTHER": SHAPES["anthropic"], "UNREMARKABLE": ENV}}
    board.must("PATCH", path, {"adapterConfig": changed})
    proposed = chief.must(
        "POST", f"{path}/config-proposals", {"adapterConfig": adapter_config(), "reason": "back"}
    )["approval"]["id"]
    wished = chief.must(
        "POST",
        f"{here}/approvals",
        {"type": "request_board_approval", "payload": {"title": "x", **NAMED, **metadata()}},
    )["id"]
    board.must("POST", f"/api/approvals/{wished}/approve")
    # A refused request, a wrong one and one that fails must not repeat what they were sent.
    chief("PATCH", path, described)
    board("PATCH", path, {"adapterConfig": {**adapter_config(), "color": SHAPES["github"]}})
    board("PATCH", path, {"adapterConfig": {"command": {"password": NAMED["password"]}}})
    clients = {"board": board, "ceo": chief, "worker": Client(site.url, low)}
    clients["watcher"] = Client(site.url, watcher)
    return Planted(
        site,
        board,
        [direct["id"], hired["agent"]["id"], worker["id"]],
        [asked, proposed, wished],
        clients,
        site.app.settings.log_folder,
    )


def test_the_search_finds_what_is_there() -> None:
    """A search that cannot find shows nothing."""
    search = Search()
    search("all of it", json.dumps([adapter_config(), metadata(), PROMPT]))
    assert {name for _, name in search.found} == set(NEEDLES)


def test_no_answer_over_http_has_a_secret(planted: Planted) -> None:
    site, search = planted.site, Search()
    paths = routes(planted)
    assert len(paths) > 60
    for name, client in planted.clients.items():
        for path in paths:
            answer = client("GET", path)
            assert answer.status < 500
            search(f"{name} GET {path}", answer.body)
            search(f"{name} GET {path}", str(answer.headers))
    search("board page", planted.board("GET", "/").body)
    assert search.looked_at > 400
    assert search.found == []
    assert site.call(site.board, approvals.listing, company=site.company)


def routes(planted: Planted) -> list[str]:
    """Every address that can be read, with every id that there is something to read about."""
    document = planted.board.must("GET", "/openapi.json")
    found = []
    for template, operations in document["paths"].items():
        if "get" not in operations or template in ("/metrics", "/health"):
            continue
        fixed = template.replace("{companyId}", planted.site.company)
        fixed = fixed.replace("{adapterType}", "process").replace("{user}", "watcher")
        fixed = fixed.replace("{name}", "main")
        ids = planted.approvals if "/approvals/" in fixed else planted.agents
        found += sorted({fixed.replace("{id}", one) for one in ids})
    events = planted.board.must("GET", f"/api/companies/{planted.site.company}/events?limit=1000")
    return [*found, *(f"/api/events/{one['id']}/why" for one in events[:20])]


def test_answers_to_changes_have_no_secret_either(planted: Planted) -> None:
    search, board = Search(), planted.board
    here, agent = f"/api/companies/{planted.site.company}", planted.agents[0]
    described = {"adapterType": "process", "adapterConfig": adapter_config(), "prompt": PROMPT}
    described["metadata"] = metadata()
    changes: list[tuple[str, str, Any]] = [
        ("POST", f"{here}/agents", {"name": "another", "reportsTo": "ceo", **described}),
        ("POST", f"{here}/agent-hires", {"name": "third", **described}),
        ("PATCH", f"/api/agents/{agent}", described),
        ("PATCH", f"/api/agents/{agent}/permissions", {"canCreateAgents": False}),
        ("POST", f"/api/agents/{agent}/config-proposals", {**described, "title": "x"}),
        ("POST", f"/api/agents/{agent}/config-revisions/1/rollback", None),
        ("POST", f"/api/agents/{agent}/pause", None),
        ("POST", f"/api/agents/{agent}/resume", None),
        ("POST", f"/api/agents/{agent}/wakeup", {"reason": "x"}),
        ("PATCH", f"/api/agents/{agent}", {"adapterConfig": {"color": NAMED["password"]}}),
        ("PATCH", f"/api/agents/{agent}", {"adapterConfig": {"env": [SHAPES["jwt"]]}}),
        ("POST", f"{here}/adapters/process/test-environment", described),
    ]
    for method, path, body in changes:
        answer = board(method, path, body)
        assert answer.status < 500
        search(f"{method} {path}", answer.body)
    approval = board.must("GET", f"{here}/approvals?status=pending")[0]["id"]
    for verb in ("request-revision", "reject"):
        search(verb, board("POST", f"/api/approvals/{approval}/{verb}").body)
    assert search.found == []


def test_the_stream_of_events_has_no_secret(planted: Planted) -> None:
    search, board = Search(), planted.board
    newest = board.must("GET", f"/api/companies/{planted.site.company}/events?limit=1")[0]["seq"]
    reader = board.as_(board.token)
    stream = reader.open(
        "GET",
        f"/api/companies/{planted.site.company}/events?after=0",
        headers={"Accept": "text/event-stream"},
    )
    for event in server_sent(stream):
        search(f"event {event['id']}", event["data"])
        if int(event["id"]) >= newest:
            break
    stream.close()
    reader.close()
    assert search.looked_at >= newest
    assert search.found == []


def test_no_tool_answers_with_a_secret(planted: Planted) -> None:
    search = Search()
    for name in ("ceo", "worker"):
        with ScriptedAgent(planted.site.url, planted.clients[name].token or "") as agent:
            calls: list[tuple[str, dict[str, Any]]] = [
                ("agent_configurations", {}),
                *(("agent_configurations", {"agent": one}) for one in planted.agents),
                ("approval_view", {}),
                *(("approval_view", {"id": one}) for one in planted.approvals),
                ("adapter_docs", {}),
                ("adapter_docs", {"adapter": "process"}),
                ("mail_inbox", {}),
                ("loose_ends", {}),
                ("outcome_list", {}),
                ("capability_list", {}),
                ("log_read", {}),
                ("kb_list", {}),
                ("kb_browse", {"query": "state"}),
                *(("outcome_view", {"id": one}) for one in planted.agents),
                (
                    "hire_agent",
                    {
                        "name": "x",
                        "adapterType": "process",
                        "config": adapter_config(),
                        "metadata": metadata(),
                        "prompt": PROMPT,
                    },
                ),
                (
                    "hire_agent",
                    {
                        "name": "y",
                        "adapterType": "process",
                        "config": {"password": NAMED["password"]},
                    },
                ),
                ("propose_config", {"agent": "direct", "changes": {"metadata": metadata()}}),
            ]
            for tool, arguments in calls:
                try:
                    search(f"{name} {tool}", json.dumps(agent.call(tool, **arguments)))
                except ToolRefused as refused:
                    search(f"{name} {tool}", f"{refused} {json.dumps(refused.details)}")
    assert search.looked_at > 30
    assert search.found == []


def test_no_command_prints_a_secret(planted: Planted, tmp_path: Path) -> None:
    search = Search()
    commands = [
        ["agent", "list", "--all"],
        ["agent", "show", "direct"],
        ["agent", "permissions", "direct"],
        *(["approval", "show", one] for one in planted.approvals),
        ["approval", "list", "--all"],
        ["event", "list", "--limit", "0"],
        ["grant", "list"],
        ["company", "show"],
        ["org", "tree"],
        ["outcome", "tree"],
        ["company", "export", str(tmp_path / "export")],
    ]
    for command in commands:
        for more in ([], ["--json"]):
            if command[1] == "export" and more:
                continue
            code, out, err = cli_forks.commands().run(
                [*command, *more],
                {
                    "PATH": "/usr/bin:/bin",
                    "REMIT_HOME": str(tmp_path),
                    "REMIT_URL": planted.site.url,
                    "REMIT_TOKEN": planted.board.token or "",
                },
            )
            assert code == 0, (command, err)
            search(" ".join(command), out)
            search(" ".join(command), err)
    written = [one for one in (tmp_path / "export").rglob("*") if one.is_file()]
    assert len(written) > 5
    for file in written:
        search(f"export {file.name}", file.read_bytes())
    assert search.found == []


def test_the_export_over_http_has_no_secret(planted: Planted, tmp_path: Path) -> None:
    search = Search()
    document = planted.board.must("GET", "/openapi.json")["paths"]
    (path,) = [one for one in document if one.endswith("/export")]
    answer = planted.board("GET", path.replace("{companyId}", planted.site.company))
    whole = tmp_path / "export.tar"
    whole.write_bytes(answer.body)
    with tarfile.open(whole) as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member)
            if file is not None:
                search(member.name, file.read())
    assert search.looked_at > 5
    assert search.found == []


def test_the_log_has_no_secret(planted: Planted) -> None:
    search = Search()
    for file in planted.log.rglob("*"):
        if file.is_file():
            search(file.name, file.read_bytes())
    assert search.found == []


def test_every_route_that_can_be_read_was_read(planted: Planted) -> None:
    """A route that is added later is searched as well, or this fails."""
    seen = " ".join(routes(planted))
    document = planted.board.must("GET", "/openapi.json")["paths"]
    for template, operations in document.items():
        if "get" in operations and template not in ("/metrics", "/health"):
            pattern = re.sub(r"{\w+}", "[^/ {}]+", template.replace(".", r"\."))
            assert re.search(pattern, seen), template
