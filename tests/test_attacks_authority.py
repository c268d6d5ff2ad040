"""Who could be talked, tricked or reorganised into more than they have."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from remit.adapters.http import HttpConfig, _post
from remit.adapters.plugins import validate
from remit.clock import HOUR, SystemClock, to_iso
from remit.errors import BadInput
from remit.runtime.runs.lifecycle import begin, finish
from tests.attack_stage import Estate, Stage, estate, staged
from tests.http_client import Client
from tests.test_attacks_ids import bodies, operations
from tests.web_attacks import Pages


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("home")) as found:
        yield found


# ── tokens ──────────────────────────────────────────────────────────────────────────────────────


def dead_tokens(stage: Stage) -> dict[str, str]:
    """Tokens that opened something once, each ended in a different way."""
    ours, board = estate(stage.site, stage.operator, "Past", "past"), stage.operator
    ids = ours.ids

    async def worked() -> str:
        app = stage.site.app
        live = await begin(app.gate, app.ids, app.settings.workspaces, ids["report"])
        await finish(app.gate, live)
        return live.token

    found = {"of a run that ended": stage.site.wait(worked())}
    revoked = board.must("POST", f"/api/agents/{ids['report']}/keys")
    board.must("DELETE", f"/api/agents/{ids['report']}/keys/{revoked['id']}")
    found["that was revoked"] = revoked["token"]
    gone = board.must("POST", f"/api/agents/{ids['report']}/keys")["token"]
    board.must("POST", f"/api/agents/{ids['report']}/terminate")
    found["of an agent that was terminated"] = gone
    here = f"/api/companies/{ours.company}"
    board.must("POST", f"{here}/users", {"name": "leaver"})
    found["of a person who left"] = board.must("POST", f"{here}/users/leaver/tokens")["token"]
    pages = Pages.of(Client(stage.site.url, found["of a person who left"]))
    found["of a session of theirs"] = pages.cookie
    link = Client(stage.site.url, found["of a person who left"]).must("POST", "/api/login-links")
    found["of a link"] = link["url"].partition("token=")[2]
    board.must("DELETE", f"{here}/users/leaver")
    return found


def test_a_token_that_is_over_opens_no_route_no_page_and_no_tool(stage: Stage) -> None:
    found, tried = dead_tokens(stage), 0
    described = operations(stage.operator.must("GET", "/openapi.json"))
    for what, token in found.items():
        client = Client(stage.site.url, token)
        for operation in described:
            if operation.template in ("/health",):
                continue
            path = operation.path(stage.ours)
            body = bodies(stage.ours).get(str(operation))
            answer = client(operation.method, path, body, headers={"If-Match": '"1:a"'})
            assert answer.status == 401, (what, str(operation), answer.body)
            tried += 1
        said = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        accepted = {"Accept": "application/json, text/event-stream"}
        assert client("POST", "/mcp", said, headers=accepted).status == 401
        cookie = {"Cookie": f"remit_session={token}"}
        assert client.as_(None)("GET", "/org", headers=cookie).status == 401
    assert len(found) == 6
    assert tried > 700


MCP = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    },
    "ping": {},
    "tools/list": {},
    "a tool": {"name": "kb_list", "arguments": {}},
    "a tool without its arguments": {"name": "mail_send", "arguments": {}},
    "a tool with wrong ones": {"name": "kb_read", "arguments": {"id": []}},
    "a tool with none": {"name": "kb_list", "arguments": 5},
    "no tool": {"name": "no_such_tool", "arguments": {}},
    "a tool without a name": {},
    "resources/list": {},
    "resources/read": {"uri": "kb://x"},
    "prompts/list": {},
    "completion/complete": {},
    "logging/setLevel": {"level": "debug"},
    "server/discover": {},
    "no/such/method": {},
}


def test_no_mcp_method_answers_a_token_that_ended_within_the_last_minute(stage: Stage) -> None:
    """The guard remembers a token that it has just checked; what is answered is checked anew, also
    what the SDK answers by itself, and what failed."""
    ours, board = estate(stage.site, stage.operator, "Lately", "lately"), stage.operator
    accepted = {"Accept": "application/json, text/event-stream"}
    key = board.must("POST", f"/api/agents/{ours.ids['report']}/keys")
    client = Client(stage.site.url, key["token"])

    def answered(what: str) -> int:
        method = what if "/" in what or what in ("initialize", "ping") else "tools/call"
        said = {"jsonrpc": "2.0", "id": 1, "method": method, "params": MCP[what]}
        return client("POST", "/mcp", said, headers=accepted).status

    assert {what: answered(what) for what in MCP} == dict.fromkeys(MCP, 200)
    board.must("DELETE", f"/api/agents/{ours.ids['report']}/keys/{key['id']}")
    assert {what: answered(what) for what in MCP} == dict.fromkeys(MCP, 401)


def changing(stage: Stage) -> list[Any]:
    described = operations(stage.operator.must("GET", "/openapi.json"))
    return [one for one in described if one.method != "GET"]


def test_an_observer_changes_nothing_by_any_route(stage: Stage) -> None:
    seen = estate(stage.site, stage.operator, "Seen", "seen")
    here = f"/api/companies/{seen.company}"
    stage.operator.must("POST", f"{here}/users", {"name": "watcher", "role": "observer"})
    limit = {"expiresAt": to_iso(SystemClock().now() + HOUR)}
    token = stage.operator.must("POST", f"{here}/users/watcher/tokens", limit)
    # How they sign in, as long as they may, and how they are told outside, is their own affair.
    notify = "/api/companies/{companyId}/notify"
    own = {"POST /api/login-links", "POST /api/me/tokens"}
    own |= {f"PATCH {notify}", f"PATCH {notify}/rules", f"POST {notify}/test"}
    watcher = Client(stage.site.url, token["token"])
    check_powerless(stage, seen, watcher, own)
    ends = [one["expiresAt"] for one in watcher.must("GET", "/api/me/tokens")]
    assert ends == [token["expiresAt"]] * 2


def test_an_agent_without_rights_changes_nothing_of_others_by_any_route(stage: Stage) -> None:
    """Only what is its own to do: files, wishes and words of its own."""
    seen = estate(stage.site, stage.operator, "Small", "small")
    here = f"/api/companies/{seen.company}"
    made = stage.operator.must(
        "POST", f"{here}/agents", {"name": "nobody", "adapterType": "scripted", "purpose": "-"}
    )
    token = stage.operator.must("POST", f"/api/agents/{made['id']}/keys")["token"]
    own = {
        "POST /api/companies/{companyId}/files",
        "POST /api/companies/{companyId}/approvals",
        "POST /api/companies/{companyId}/questions",
        # Of what is below it, which is nothing.
        "POST /api/companies/{companyId}/dead-letters/revive",
    }
    check_powerless(stage, seen, Client(stage.site.url, token), own)


def check_powerless(stage: Stage, seen: Estate, client: Client, allowed: set[str]) -> None:
    done = set()
    for operation in changing(stage):
        body = bodies(seen).get(str(operation))
        answer = client(
            operation.method, operation.path(seen), body, headers={"If-Match": f'"1:{"0" * 64}"'}
        )
        assert answer.status < 500, (str(operation), answer.body)
        if answer.status < 300:
            done.add(str(operation))
    assert done <= allowed
    report = stage.operator.must("GET", f"/api/agents/{seen.ids['report']}")
    assert report["status"] == "idle"


def test_a_board_does_not_shut_others_out_of_their_companies(stage: Stage) -> None:
    """Whoever is known elsewhere can be given a part, but their tokens stay theirs."""
    ours, theirs = stage.ours, stage.theirs
    here = f"/api/companies/{ours.company}"
    for victim, token in (
        ("their-board", theirs.ids["token"]),
        ("board", operators_token(stage)),
    ):
        if victim == "their-board":
            ours.board.must("POST", f"{here}/users", {"name": victim})
        assert ours.board.must("GET", f"{here}/users/{victim}/tokens") == []
        ended = ours.board("DELETE", f"{here}/users/{victim}/tokens/{token}")
        assert (ended.status, ended.code) == (409, "conflict")
        assert ours.board("POST", f"{here}/users/{victim}/tokens").status == 409
    assert theirs.board("GET", "/api/me").status == 200
    assert stage.operator("GET", "/api/me").status == 200
    ours.board.must("DELETE", f"{here}/users/their-board")
    assert theirs.board("GET", "/api/me").status == 200


def operators_token(stage: Stage) -> str:
    found = stage.site.sql(
        "SELECT t.id FROM tokens t JOIN users u ON u.id = t.user_id"
        " WHERE u.operator AND t.kind = 'user' AND t.revoked_at IS NULL"
    )
    return str(found[0][0])


# ── addresses that Remit itself calls ───────────────────────────────────────────────────────────

LEADING = {
    "http": {"url": "http://169.254.169.254/latest/meta-data"},
    "llm": {"provider": "anthropic", "baseUrl": "http://127.0.0.1:9/collects-keys"},
    "claude": {"baseUrl": "http://127.0.0.1:9/collects-keys"},
}


@pytest.mark.parametrize("adapter", LEADING)
def test_an_agent_that_names_an_address_waits_for_a_person(stage: Stage, adapter: str) -> None:
    """Where the company asks for nothing, an agent could otherwise have the worker's key sent to
    itself, or have Remit knock at doors that it cannot reach."""
    ours, here = stage.ours, f"/api/companies/{stage.ours.company}"
    assert not ours.board.must("GET", here)["requireBoardApprovalForNewAgents"]
    hired = ours.boss.must(
        "POST",
        f"{here}/agent-hires",
        {"name": f"led-{adapter}", "adapterType": adapter, "adapterConfig": LEADING[adapter]},
    )
    assert hired["approval"]["status"] == "pending"
    assert hired["agent"]["status"] == "pending_approval"
    plain = ours.boss.must(
        "POST", f"{here}/agent-hires", {"name": f"plain-{adapter}", "adapterType": "scripted"}
    )
    assert plain["approval"] is None
    proposed = ours.boss.must(
        "POST",
        f"/api/agents/{plain['agent']['id']}/config-proposals",
        {"adapterType": adapter, "adapterConfig": LEADING[adapter]},
    )
    assert proposed["approval"]["status"] == "pending"
    kept = ours.board.must("GET", f"/api/agents/{plain['agent']['id']}/configuration")
    assert kept["adapterType"] == "scripted"


class Elsewhere:
    """Somebody who answers as told, and remembers who came."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes = b"{}") -> None:
        self.came: list[tuple[str, dict[str, str]]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                server.came.append((self.path, dict(self.headers)))
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,))

    def __enter__(self) -> Elsewhere:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def test_a_model_that_redirects_leads_nowhere() -> None:
    """Neither the talk nor the key goes on to whomever it names."""
    if find_spec("pydantic_ai") is None:
        pytest.skip("THE LOOP OF llm IS NOT TESTED: install the extra llm")
    for status in (301, 302, 307, 308):
        for provider in ("compatible", "anthropic"):
            check_stays(provider, status)


def check_stays(provider: str, status: int) -> None:
    from remit.adapters.llm import llm_loop

    with ExitStack() as stack:
        inner = stack.enter_context(Elsewhere(200, {}))
        outer = stack.enter_context(Elsewhere(status, {"Location": f"{inner.url}/internal"}))
        config = SimpleNamespace(base_url=outer.url, max_retries=0)

        async def talk() -> None:
            async with AsyncExitStack() as clients:
                model = llm_loop._model(config, provider, "m", "sk-secret-key", clients)
                said: Any = [{"role": "user", "content": "hello"}]
                more = {"max_tokens": 9}
                if provider == "anthropic":
                    ask = model.client.messages.create
                else:
                    ask = model.client.chat.completions.create
                with pytest.raises(Exception, match=str(status)):
                    await ask(model="m", messages=said, **more)

        asyncio.run(talk())
        assert outer.came
        assert inner.came == []


def test_a_remote_agent_that_packs_its_answer_is_not_unpacked() -> None:
    bomb = gzip.compress(json.dumps({"text": "x" * 50_000_000}).encode())
    assert len(bomb) < 100_000
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    with Elsewhere(200, headers, bomb) as remote:
        config = HttpConfig(url=f"{remote.url}/run")
        with pytest.raises(OSError, match="packed"):
            asyncio.run(_post(config, config.url, {}, None))
        headers = {name.lower(): value for name, value in remote.came[0][1].items()}
        assert headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "internal.example"},
        {"content-length": "4"},
        {"Transfer-Encoding": "chunked"},
        {"Connection": "upgrade"},
        {"X-Split": "a\r\nX-Evil: 1"},
        {"X\r\nY": "1"},
        {"X-Zero": "a\x00b"},
        {"X Y": "1"},
    ],
    ids=lambda given: next(iter(given)).encode("unicode_escape").decode(),
)
def test_headers_of_a_remote_agent_cannot_change_the_request(headers: dict[str, str]) -> None:
    wanted = {"url": "https://agents.example.org/run", "headers": headers}
    with pytest.raises(BadInput, match="headers"):
        validate(HttpConfig, wanted)


@pytest.mark.parametrize(
    "url",
    [
        *("file:///etc/passwd", "gopher://x/", "ftp://x/", "http://", "http:///x", "//x/", "x"),
        *("http://user:pw@x/", "http://user@x/", "http://x:0/", "http://x:99999/", "http://x y/"),
        *("http://[::1", "javascript:1", "unix:///run/docker.sock", "http://x/\r\nHost: y", 5),
    ],
)
@pytest.mark.parametrize("field", ["url", "cancelUrl"])
def test_an_address_of_a_remote_agent_is_a_plain_one(field: str, url: Any) -> None:
    with pytest.raises(BadInput, match=field):
        validate(HttpConfig, {"url": "https://x.example/", field: url})


def test_the_tests_have_somewhere_to_look(tmp_path: Path) -> None:
    """The control: who redirects would be followed by a client that follows."""
    import httpx2

    with ExitStack() as stack:
        inner = stack.enter_context(Elsewhere(200, {}))
        outer = stack.enter_context(Elsewhere(307, {"Location": f"{inner.url}/internal"}))
        httpx2.post(outer.url, json={}, follow_redirects=True, trust_env=False)
        assert inner.came
