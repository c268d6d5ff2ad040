"""Secrets that were planted everywhere leave through no door: HTTP, MCP, CLI, logs, export.

The corpus is written into every document that an agent can be described by. Then everything that
can be read is read, by everybody, and searched for each secret: as it is, and as base64.
"""

from __future__ import annotations

import base64
import gc
import json
import re
import tarfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import click
import pytest
from click.testing import CliRunner

from remit.clock import SystemClock, to_iso
from remit.entrypoints.cli.main import cli
from remit.entrypoints.http.server.logs import keep_logs
from remit.services.governance import approvals
from remit.testing import ScriptedAgent, ToolRefused
from tests import chat_stage
from tests.attack_stage import Estate, ended_run, estate
from tests.http_client import Client, server_sent
from tests.test_attacks_ids import Operation, operations
from tests.test_cli_help import commands
from tests.test_mcp_tools import Site, serving
from tests.web_attacks import Pages

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
    #: A company that has one of everything besides.
    firm: Estate
    board: Client
    agents: list[str]
    approvals: list[str]
    #: A decision that the board's person is to confirm.
    confirmation: str
    #: The run of an agent that secrets were planted in.
    run: str
    #: What a person wrote to that agent.
    letter: str
    clients: dict[str, Client]
    log: Path

    @property
    def company(self) -> str:
        return self.firm.company


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planted]:
    home = tmp_path_factory.mktemp("home")
    with serving(home) as site, keep_logs(site.app.settings.log_folder, stderr=False):
        yield plant(site)


def plant(site: Site) -> Planted:
    board = Client(site.url, site.board.token)
    firm = estate(site, board, "Planted", "planted")
    here = f"/api/companies/{firm.company}"
    asking = {"requireBoardApprovalForNewAgents": True, "requireApprovalForConfigChanges": True}
    board.must("PATCH", here, asking)
    ceo = next(one["id"] for one in board.must("GET", f"{here}/agents") if one["name"] == "ceo")
    described = {
        "adapterType": "process",
        "adapterConfig": adapter_config(),
        "runtimeConfig": {"headers": {**NAMED}, "extra": {"env": {"X": ENV}}},
        "metadata": metadata(),
        "prompt": PROMPT,
        "capabilities": f"Knows {SHAPES['github']}",
    }
    direct = board.must("POST", f"{here}/agents", {"name": "direct", "reportsTo": ceo, **described})
    key = board.must("POST", f"/api/agents/{ceo}/keys")["token"]
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
    titled = chief.must(
        "POST",
        f"{here}/approvals",
        {
            "type": "request_board_approval",
            "payload": {"title": f"Use {SHAPES['github']}", **metadata()},
        },
    )
    act = {"act": "approve", "approval": titled["id"], "revision": 1, "digest": "", "note": PROMPT}
    told: Any = {"company": firm.company, "binding": firm.ids["binding"], "act": act}
    site.call(site.board, chat_stage.ASK_TO_CONFIRM, **told)
    # A refused request, a wrong one and one that fails must not repeat what they were sent.
    chief("PATCH", path, described)
    board("PATCH", path, {"adapterConfig": {**adapter_config(), "color": SHAPES["github"]}})
    board("PATCH", path, {"adapterConfig": {"command": {"password": NAMED["password"]}}})
    to = {"to": direct["id"], "body": "Please."}
    letter = board.must("POST", f"{here}/messages", to)["id"]
    clients = {"board": board, "ceo": chief, "worker": Client(site.url, low)}
    clients["watcher"] = Client(site.url, watcher)
    return Planted(
        site,
        firm,
        board,
        [direct["id"], hired["agent"]["id"], worker["id"]],
        [asked, proposed, wished, titled["id"]],
        board.must("GET", "/api/confirmations")[0]["id"],
        ended_run(site, direct["id"]),
        letter,
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
    paths, answered = routes(planted), set()
    assert len(paths) > 80
    for name, client in planted.clients.items():
        for operation, path in paths:
            answer = client("GET", path)
            if operation in ELSEWHERE and answer.status == 503:
                answered.add(operation)
            else:
                assert answer.status < 500
            if name == "board" and answer.status < 300:
                answered.add(operation)
            search(f"{name} GET {path}", answer.body)
            search(f"{name} GET {path}", str(answer.headers))
    signed_in = Pages.of(planted.board)
    requests = [f"/approvals/{approval}" for approval in planted.approvals]
    for page in ("/", "/approvals", *requests, f"/confirmations/{planted.confirmation}"):
        answer = signed_in.get(page)
        assert answer.status == 200
        search(f"board page {page}", answer.body)
    assert search.looked_at > 600
    assert search.found == []
    # Whoever may see everything saw something at every route.
    assert {operation for operation, _ in paths} - answered == FOR_AGENTS | NEVER_MADE
    assert site.call(site.board, approvals.listing, company=planted.company)


#: What is fetched from the remote of a repository, which is nowhere here.
ELSEWHERE = {
    "/api/changes/{id}/diff",
    "/api/companies/{companyId}/repos/{name}/lendable",
}
#: A backup, of which there is none here; it is everything, and for operators alone. And bytes that
#: wait to be written, which are shown as they are, as those of a file.
NEVER_MADE = {"/api/instance/backups/{name}", "/api/approvals/{id}/content"}
#: What only an agent is answered.
FOR_AGENTS = {"/api/agents/me"}


def routes(planted: Planted) -> list[tuple[str, str]]:
    """Every address that can be read, with the id of each thing that can be read there."""
    several = {
        "agents": planted.agents,
        "approvals": planted.approvals,
        "outcomes": planted.agents,
        "runs": [planted.run],
        "messages": [planted.letter],
        "confirmations": [planted.confirmation],
    }
    found = []
    for operation in readable(planted):
        of = re.search(r"/(\w+)/\{id\}", operation.template)
        choices = [{}, *({"id": one} for one in (several.get(of[1], []) if of else []))]
        for chosen in choices:
            path = operation.path(planted.firm, adapterType="process", **chosen)
            if path.endswith("/as-of"):
                path += "?" + urlencode({"at": to_iso(SystemClock().now()), "what": "grants"})
            found.append((operation.template, path))
    events = planted.board.must("GET", f"/api/companies/{planted.company}/events?limit=1000")
    return [
        *found,
        *(("/api/events/{id}/why", f"/api/events/{one['id']}/why") for one in events[:20]),
    ]


def readable(planted: Planted) -> list[Operation]:
    described = operations(planted.board.must("GET", "/openapi.json"))
    return [
        one
        for one in described
        if one.method == "GET" and one.template not in ("/metrics", "/health")
    ]


def test_answers_to_changes_have_no_secret_either(planted: Planted) -> None:
    search, board = Search(), planted.board
    here, agent = f"/api/companies/{planted.company}", planted.agents[0]
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
    newest = board.must("GET", f"/api/companies/{planted.company}/events?limit=1")[0]["seq"]
    reader = board.as_(board.token)
    stream = reader.open(
        "GET",
        f"/api/companies/{planted.company}/events?after=0",
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


#: Commands that are about an instance, this machine or other files, and show nothing of a company;
#: and those that do not end.
NOT_ASKED = {
    *("up", "serve", "worker", "down", "open", "doctor", "demo", "login", "backup", "restore"),
    *("simulate", "mcp-stdio", "help", "completion", "version", "event tail", "company import"),
}
#: They end or remove something, so they come last.
ENDING = {
    *("abort", "terminate", "purge", "remove", "cancel", "revoke", "delete-agent", "reject"),
    *(
        "approve",
        "close",
        "complete",
        "accept",
        "reclaim",
        "unused",
        "stop",
        "undo",
        "insert-layer",
    ),
    *("remove-layer", "seat"),
}
#: Arguments that need not be there, and are here.
OPTIONAL = {"id_", "type_", "text", "resource", "level", "agent"}
#: What a command takes besides, by its name.
MORE = {
    "agent create": ["--adapter", "process", "--config", json.dumps(adapter_config())],
    "agent hire": ["--adapter", "process", "--config", json.dumps(adapter_config())],
    "agent purge": ["--yes"],
    "approval delete-agent": ["--yes"],
    "grant unused": ["--revoke", "--yes"],
    "outcome create": ["--parent", "direct"],
    "outcome delegate": ["--to", "planted-worker"],
    "outcome update": ["--title", "Other"],
    "adapter test": ["--config", json.dumps(adapter_config())],
    "mcp add": ["--command", "true"],
    "company policy set": ["--governs", "company"],
    "org seat": ["--user", "watcher"],
    "top": ["--once"],
    "company set": ["--messaging", "team"],
    "notify set": ["--webhook", "https://n.example/in"],
    "schedule add": ["--cron", "0 9 * * *", "--agent", "direct"],
    "secret set": ["--env", "X"],
}


def arguments_of(words: str, planted: Planted, folder: Path) -> list[list[str]]:
    """What a command is asked about: each time with things that are there."""
    ids, names = planted.firm.ids, planted.firm.names
    setup = folder / "setup.json"
    setup.write_text(json.dumps({"company": {"messaging": "team"}}))
    noun = words.split(" ")[0]
    if words == "as-of":
        return [[to_iso(SystemClock().now()), what] for what in ("org", "grants")]
    about = {
        "approval": planted.approvals,
        "approve": planted.approvals[:1],
        "reject": planted.approvals[1:2],
        "outcome": [planted.agents[0], ids["own"]],
        "kb": [ids["file"]],
        "grant": [ids["grant"]],
        "run": [planted.run],
        "job": [ids["job"]],
        "question": [ids["question"]],
        "schedule": [ids["schedule"]],
        "read": [ids["message"]],
        "reply": [ids["message"]],
        "why": [planted.agents[0]],
        "cancel": [ids["sent"]],
    }.get(noun, [ids["event"]])
    named = {
        "agent": ["direct", "hired"],
        "user": ["watcher"],
        "account": [ids["account"]],
        "mcp": [names["server name"]],
        "secret": [names["secret name"]],
        "repo": [names["repo name"]],
        "company": ["Planted"],
        "org": ["between"],
    }.get(noun, ["direct"])
    if words.split(" ")[-1] in ("create", "hire", "add"):
        named = [words.replace(" ", "-")]
    if words == "grant refuse":
        about = [ids["message"]]
    fitting = {
        "id": named if noun == "agent" else about,
        "id_": about,
        "name": named,
        "agent": ["direct"],
        "agents": ["direct"],
        "boss": ["ceo"],
        "changes": [f"metadata={json.dumps(metadata())}", "title=Chief"],
        "channel": ["webhook"],
        "event": [ids["change"]],
        "file": [str(setup)],
        "folder": [str(folder / "export")],
        "level": ["read" if noun == "grant" else "standard"],
        "resource": [f"kb_file:{ids['file']}"],
        "source": [str(setup)],
        "to": ["agent:direct"],
        "type_": ["process"],
        "address": ["/srv/more.git"],
    }
    command = dict(commands(cli))[f"remit {words}"]
    given: list[list[str]] = [[]]
    for one in command.params:
        if isinstance(one, click.Argument) and (one.required or one.name in OPTIONAL):
            values = fitting.get(str(one.name), ["words"])
            given = [[*before, value] for before in given for value in values]
    return given


@pytest.mark.usefixtures("left_open")
def test_no_command_prints_a_secret(planted: Planted, tmp_path: Path) -> None:
    """Every command there is, on things that are there."""
    search, runner, worked = Search(), CliRunner(), set()
    environment = {
        "REMIT_HOME": str(tmp_path),
        "REMIT_URL": planted.site.url,
        "REMIT_TOKEN": planted.board.token or "",
        "REMIT_COMPANY": planted.company,
    }
    paths = [
        path.removeprefix("remit ")
        for path, command in commands(cli)
        if not isinstance(command, click.Group)
    ]
    assert set(paths) >= NOT_ASKED
    asked = [path for path in paths if path not in NOT_ASKED]
    asked.sort(key=lambda path: path.split(" ")[-1] in ENDING)
    for path in asked:
        for given in arguments_of(path, planted, tmp_path):
            # How things are shown, and as they are.
            for shape in ([], ["--json"]) if path.split(" ")[-1] not in ENDING else ([],):
                words = [*path.split(" "), *given, *MORE.get(path, []), *shape]
                result = runner.invoke(cli, words, env=environment)
                if result.exit_code == 0:
                    worked.add(path)
                search(" ".join(words[:3]), f"{result.output} {result.exception}")
    assert len(asked) > 120
    assert len(worked) > 100, sorted(set(asked) - worked)
    written = [one for one in (tmp_path / "export").rglob("*") if one.is_file()]
    assert len(written) > 5
    for file in written:
        search(f"export {file.name}", file.read_bytes())
    assert search.found == []


@pytest.fixture
def left_open() -> Iterator[None]:
    """A command leaves its connection to the end of its process, which is ours here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        gc.collect()


def test_the_export_over_http_has_no_secret(planted: Planted, tmp_path: Path) -> None:
    search = Search()
    document = planted.board.must("GET", "/openapi.json")["paths"]
    (path,) = [one for one in document if one.endswith("/export")]
    answer = planted.board("GET", path.replace("{companyId}", planted.company))
    whole = tmp_path / "export.tar"
    whole.write_bytes(answer.body)
    with tarfile.open(whole) as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member)
            if file is not None:
                search(member.name, file.read())
    assert search.looked_at > 5
    assert search.found == []


@pytest.mark.requirement("PC-53")
def test_the_log_has_no_secret(
    planted: Planted, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also when a defect of ours puts whole configurations into an error."""

    def broken(*_: object, **__: object) -> Any:
        raise RuntimeError(
            f"cannot use {adapter_config()}\nwith {json.dumps(metadata())}\n{PROMPT}"
        )

    with monkeypatch.context() as patched:
        patched.setattr(type(planted.site.app.gate), "__call__", broken)
        answer = planted.board("GET", "/api/me")
    assert answer.status == 500
    before, after = Search(), Search()
    before("what was to be written", caplog.text)
    assert {name for _, name in before.found} == set(NEEDLES)
    written = "".join(file.read_text() for file in planted.log.rglob("*") if file.is_file())
    reference = re.search(r"reference (\w{8})", answer.json["error"])
    assert reference is not None
    assert reference[1] in written  # it was written, and can be found
    assert "RuntimeError: cannot use {'command': 'x', " in written
    after("the log", written)
    after("the answer", answer.body)
    assert after.found == []


def test_every_route_that_can_be_read_was_read(planted: Planted) -> None:
    """A route that is added later is searched as well, or this fails."""
    document = planted.board.must("GET", "/openapi.json")["paths"]
    wanted = {template for template, methods in document.items() if "get" in methods}
    assert {template for template, _ in routes(planted)} == wanted - {"/metrics", "/health"}
