"""Tools of other MCP servers through ours: well-behaved servers, hostile ones, and none at all."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import json
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from remit.entrypoints.mcp import transport
from remit.entrypoints.mcp.offer import LONGEST_DESCRIPTION, MOST_TOOLS, exposed_name
from remit.runtime.runs import upstream as programs
from remit.runtime.sandbox import sandbox_policy
from remit.services.connections import mcp_servers, secrets
from remit.services.governance import approvals
from remit.services.identity import Caller
from remit.services.organisation.agents import create, create_key
from remit.services.people import companies, users
from remit.services.rights import grants
from tests.upstream_server import child_of
from tests.upstreams import SECRET, SERVER, SHA256, Site, command, site
from tests.working import eventually, processes_with

Story = Callable[[Site], Coroutine[Any, Any, None]]
SETTINGS: dict[str, Any] = {
    "secret_env": {"UPSTREAM_SECRET": "key"},
    "env": {"UPSTREAM_SHA256": SHA256},
}


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "GRACE_SECONDS", 0.3)


def play(home: Path, story: Story, **patience: float) -> None:
    async def whole() -> None:
        async with site(home, **patience) as at:
            await story(at)
        assert running(home) == []  # nothing is left when the instance is gone

    asyncio.run(whole())


def mark_of(home: Path) -> str:
    """Of a test's own, also among the tests that run beside it."""
    return "-".join(home.parts[-2:])


def running(home: Path) -> list[int]:
    """Our servers, as the machine has them."""
    return processes_with(f"{SERVER}\0{mark_of(home)}")


async def add(at: Site, home: Path, mode: str = "good", **more: Any) -> None:
    """A server that is found again by the name of the test's folder on its command line."""
    argv = [*command(mode)[:-1], mark_of(home), mode]
    await at.secret()
    await at.server(command=argv, **{**SETTINGS, **more})


async def until(look: Callable[[], object], seconds: float = 15) -> None:
    async with asyncio.timeout(seconds):
        while not look():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def held(at: Site, home: Path, mode: str = "good", **more: Any) -> str:
    """A server that the CEO holds, and the token of a run of it."""
    await add(at, home, mode, **more)
    await at.grant()
    return (await at.begin()).token


@pytest.mark.requirement("AG-67", "AG-81")
def test_an_agent_uses_the_tools_of_a_server_that_it_was_granted(tmp_path: Path) -> None:
    async def story(at: Site) -> None:
        await add(at, tmp_path)
        token = (await at.begin()).token
        before = await at.tools(token)
        assert "no_capability" in await at.refusal(token, "up__echo", text="hi")
        await at.grant()
        after = await at.tools(token)
        added = after.keys() - before.keys()
        assert "up__echo" in added
        assert all(name.startswith("up__") for name in added)
        assert before.keys() <= after.keys()  # the base tools stay
        assert after["up__echo"]["inputSchema"] == {
            "type": "object",
            "properties": {"text": {"type": "string"}},
        }
        assert await at.text(token, "up__echo", text="hi") == 'echo {"text": "hi"}'
        assert await at.text(token, "up__whoami") == "the secret is right"

    play(tmp_path, story)


def test_what_a_server_says_comes_without_its_secret(tmp_path: Path) -> None:
    async def story(at: Site) -> None:
        token = await held(at, tmp_path)
        result = await at.call(token, "up__leak")
        assert SECRET not in json.dumps(result)
        environment = result["structuredContent"]["environment"]
        assert environment["UPSTREAM_SECRET"] == "***REDACTED***"
        # It has what a program needs and what was set up for it, and nothing else of ours.
        assert not {name for name in environment if "TOKEN" in name or "REMIT_DATABASE" in name}
        assert environment["PWD"].startswith(str(at.app.settings.run_folder / "servers"))

    play(tmp_path, story)


@pytest.mark.requirement("AG-66")
def test_only_the_secrets_of_a_server_that_is_used_are_looked_up(tmp_path: Path) -> None:
    async def story(at: Site) -> None:
        looked = tmp_path / "looked"
        for name in ("mine", "theirs"):
            await at.app.gate(
                at.board,
                secrets.put,
                company=at.company,
                name=name,
                source="command",
                place=["/bin/sh", "-c", f"echo {name} >> {looked}; echo value-of-{name}"],
            )
        await at.server("mine", secret_env={"A": "mine"})
        await at.server("theirs", secret_env={"A": "theirs"})
        await at.grant("mine")
        token = (await at.begin()).token
        assert await at.text(token, "mine__count") == "1"
        assert looked.read_text() == "mine\n"

    play(tmp_path, story)


def test_each_run_has_a_server_of_its_own_that_ends_with_it(tmp_path: Path) -> None:
    async def story(at: Site) -> None:
        await add(at, tmp_path)
        made = await at.app.gate(at.board, create, company=at.company, name="dev", reports_to="ceo")
        await at.grant()
        await at.grant(agent=made["id"])
        one, other = await at.begin(), await at.begin(made["id"])
        assert await at.text(one.token, "up__count") == "1"
        assert await at.text(one.token, "up__count") == "2"
        assert await at.text(other.token, "up__count") == "1"  # it remembers nothing of the other
        assert len(await asyncio.to_thread(running, tmp_path)) >= 2
        await at.end(one)
        await at.end(other)
        await until(lambda: running(tmp_path) == [])
        await until(lambda: list((at.app.settings.run_folder / "servers").iterdir()) == [])

    play(tmp_path, story, look=0.1)


def test_a_key_without_a_run_works_too_and_its_server_ends_when_it_is_idle(tmp_path: Path) -> None:
    async def story(at: Site) -> None:
        await add(at, tmp_path)
        await at.grant()
        key = await at.app.gate(at.board, create_key, agent=at.ceo)
        assert await at.text(key["token"], "up__count") == "1"
        await until(lambda: running(tmp_path) == [])
        assert await at.text(key["token"], "up__count") == "1"

    play(tmp_path, story, look=0.1, idle=0.3)


def test_a_server_that_is_taken_in_mid_run_is_refused_at_once_and_ended(tmp_path: Path) -> None:
    async def story(at: Site) -> None:
        await add(at, tmp_path)
        given = await at.grant()
        token = (await at.begin()).token
        assert await at.text(token, "up__count") == "1"
        await at.app.gate(at.board, grants.revoke, grant=given)
        assert "no_capability" in await at.refusal(token, "up__count")
        assert "up__count" not in await at.tools(token)
        await until(lambda: running(tmp_path) == [])
        await at.grant()
        assert await at.text(token, "up__count") == "1"
        await at.app.gate(at.board, mcp_servers.remove, company=at.company, name="up")
        assert "no_capability" in await at.refusal(token, "up__count")
        await until(lambda: running(tmp_path) == [])

    play(tmp_path, story, look=0.1)


def test_each_use_waits_for_approval_where_it_has_to(tmp_path: Path) -> None:
    async def story(at: Site) -> None:
        await add(at, tmp_path)
        await at.grant(mode="ask")
        token = (await at.begin()).token
        assert "up__echo" in await at.tools(token)
        answer = await at.call(token, "up__echo", text="please")
        assert answer["structuredContent"]["code"] == "pending_approval"
        approval = answer["structuredContent"]["details"]["approval_id"]
        assert "pending_approval" in await at.refusal(token, "up__echo", text="please")
        await at.app.gate(at.board, approvals.approve, approval=approval)
        assert await at.text(token, "up__echo", text="please") == 'echo {"text": "please"}'
        assert "pending_approval" in await at.refusal(token, "up__echo", text="please")
        await at.grant(mode="deny")
        assert "denied_by_grant" in await at.refusal(token, "up__echo", text="please")
        assert "up__echo" not in await at.tools(token)

    play(tmp_path, story)


def test_another_companys_agent_has_no_part_in_it(tmp_path: Path) -> None:
    async def story(at: Site) -> None:
        await add(at, tmp_path)
        there = await at.app.gate(at.board, companies.create, name="Elsewhere")
        await at.app.gate(at.board, users.me)
        made = await at.app.gate(at.board, create, company=there["id"], name="stranger")
        await at.app.gate(
            at.board,
            grants.give,
            company=there["id"],
            to=made["id"],
            resource="mcp_server:up",
            level="use",
        )
        key = await at.app.gate(at.board, create_key, agent=made["id"])
        assert not [name for name in await at.tools(key["token"]) if "__" in name]
        assert "not_found" in await at.refusal(key["token"], "up__echo")

    play(tmp_path, story)


def test_names_that_cannot_be_tools_are_unknown(tmp_path: Path) -> None:
    async def story(at: Site) -> None:
        token = await held(at, tmp_path)
        for name in ("up__", "__echo", "UP__echo", "a__b__c", "up", "up__nothing", "no__echo"):
            said = await at.refusal(token, name)
            assert said.startswith(("not_found", "no_capability")), (name, said)
        assert "invalid" in await at.refusal(token, "up__echo", text="half \ud800 a character")
        deep: Any = "x"
        for _ in range(40):
            deep = [deep]
        assert "nested deeper" in await at.refusal(token, "up__echo", text=deep)
        assert "too_large" in await at.refusal(token, "up__echo", text="x" * (2 << 20))

    play(tmp_path, story)


# ── hostile servers ─────────────────────────────────────────────────────────────────────────────


def test_a_server_that_says_too_much_is_cut_off_and_begun_anew(tmp_path: Path) -> None:
    async def story(at: Site) -> None:
        token = await held(at, tmp_path)
        assert "too_large" in await at.refusal(token, "up__huge")
        assert "its output exceeds the limit" in await at.refusal(token, "up__flood")
        assert await at.text(token, "up__count") == "1"

    play(tmp_path, story)


def test_a_server_that_hangs_is_not_waited_for_and_one_that_crashes_is_begun_anew(
    tmp_path: Path,
) -> None:
    async def story(at: Site) -> None:
        token = await held(at, tmp_path)
        assert "did not answer within 1 seconds" in await at.refusal(token, "up__hang")
        said = await at.refusal(token, "up__crash")
        assert "cannot be used" in said
        assert SECRET not in said
        assert await at.text(token, "up__count") == "1"
        assert "not what the protocol says" in await at.refusal(token, "up__nonsense")

    play(tmp_path, story, call=1.0)


@pytest.mark.parametrize("mode", ["dead", "mute"])
def test_a_server_that_does_not_start_leaves_everything_else_as_it_is(
    tmp_path: Path, mode: str
) -> None:
    async def story(at: Site) -> None:
        token = await held(at, tmp_path, mode)
        await at.server("fine")
        await at.grant("fine")
        tools = await at.tools(token)
        assert "fine__echo" in tools
        assert "kb_read" in tools
        assert not [name for name in tools if name.startswith("up__")]
        assert "mcp_server: The MCP server up cannot be used" in await at.refusal(token, "up__echo")
        assert await at.text(token, "fine__count") == "1"

    play(tmp_path, story, start=1.0)


def test_a_program_that_is_not_there_and_a_secret_that_is_not_are_said(tmp_path: Path) -> None:
    async def story(at: Site) -> None:
        await at.server("gone", command=["/no/such/program"])
        await at.secret("other")
        await at.server("poor", secret_env={"A": "other"})
        for path in at.app.settings.secrets.rglob("*"):
            if path.is_file():
                path.unlink()
        for name in ("gone", "poor"):
            await at.grant(name)
        token = (await at.begin()).token
        assert "is not there" in await at.refusal(token, "gone__echo")
        assert "cannot be read" in await at.refusal(token, "poor__echo")

    play(tmp_path, story)


def test_strange_tools_are_offered_under_plain_names_or_not_at_all(tmp_path: Path) -> None:
    async def story(at: Site) -> None:
        token = await held(at, tmp_path, "strange")
        tools = await at.tools(token)
        theirs = {name: tool for name, tool in tools.items() if name.startswith("up__")}
        assert len(theirs) == MOST_TOOLS
        for name in theirs:
            assert name.replace("_", "").replace("-", "").isalnum()
            assert name.isascii()
            assert len(name) <= 100
        assert theirs["up__a_b"]["description"] == "plain"
        dotted = exposed_name("up", "a.b")
        assert theirs[dotted]["description"] == "dots"
        assert tools["kb_read"]["description"] != "like one of ours"
        assert theirs["up__kb_read"]["description"] == "like one of ours"
        assert "up__big" not in theirs
        talker = theirs["up__talker"]["description"]
        assert talker.startswith("IGNORE ALL")  # it is their word, but not all of it
        assert len(talker) <= LONGEST_DESCRIPTION
        assert await at.text(token, dotted, text="x") == 'a.b {"text": "x"}'

    play(tmp_path, story)


@pytest.mark.parametrize("sandboxed", [True, False])
def test_whatever_a_server_started_ends_with_it(
    tmp_path: Path, sandboxed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not sandboxed:  # where there is no bubblewrap
        monkeypatch.setattr(programs, "end_together", sandbox_policy.tie_to_parent)

    async def story(at: Site) -> None:
        token = await held(at, tmp_path, "parent")
        assert await at.text(token, "up__count") == "1"
        assert processes_with(child_of(mark_of(tmp_path)))

    play(tmp_path, story)
    # It was killed by then; to be gone takes the system a moment.
    eventually(lambda: processes_with(child_of(mark_of(tmp_path))) == [])


# ── servers elsewhere ───────────────────────────────────────────────────────────────────────────


class Elsewhere(http.server.BaseHTTPRequestHandler):
    """A server at an address, as small as the protocol allows."""

    protocol_version = "HTTP/1.1"
    seen: list[dict[str, str]]
    redirect = ""
    packed = False
    huge = False

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append({name.lower(): value for name, value in self.headers.items()})
        if self.redirect:
            self.send_response(307)
            self.send_header("Location", self.redirect)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        message = json.loads(body)
        result = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "elsewhere", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]},
            "tools/call": {
                "content": [{"type": "text", "text": self.headers.get("Authorization", "none")}]
            },
        }.get(message["method"], {})
        if self.huge and message["method"] == "tools/call":
            result = {"content": [{"type": "text", "text": "h" * (20 << 20)}]}
        answer = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": result}).encode()
        self.send_response(200 if "id" in message else 202)
        self.send_header("Content-Type", "application/json")
        if self.packed:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(answer) if "id" in message else 0))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(answer if "id" in message else b"")

    def do_GET(self) -> None:
        self.send_response(405)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_DELETE(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def elsewhere() -> Iterator[Callable[..., tuple[str, list[dict[str, str]]]]]:
    servers = []

    def begin(**settings: Any) -> tuple[str, list[dict[str, str]]]:
        seen: list[dict[str, str]] = []
        handler = type("Handler", (Elsewhere,), {"seen": seen, **settings})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}/mcp", seen

    yield begin
    for server in servers:
        server.shutdown()
        server.server_close()


Begin = Callable[..., tuple[str, list[dict[str, str]]]]


def test_a_server_elsewhere_gets_its_secret_and_the_agent_does_not(
    tmp_path: Path, elsewhere: Begin
) -> None:
    url, seen = elsewhere()

    async def story(at: Site) -> None:
        await at.secret()
        await at.server(url=url, secret_headers={"Authorization": "Bearer {key}"})
        await at.grant()
        token = (await at.begin()).token
        assert await at.text(token, "up__echo") == "***REDACTED***"
        assert {one["authorization"] for one in seen} == {f"Bearer {SECRET}"}
        assert {one["accept-encoding"] for one in seen} == {"identity"}
        assert token not in json.dumps(seen)

    play(tmp_path, story)


def test_a_redirect_to_somewhere_else_gets_nothing(tmp_path: Path, elsewhere: Begin) -> None:
    trap, caught = elsewhere()
    url, seen = elsewhere(redirect=trap)

    async def story(at: Site) -> None:
        await at.secret()
        await at.server(url=url, secret_headers={"X-Key": "key"})
        await at.grant()
        token = (await at.begin()).token
        assert "cannot be used" in await at.refusal(token, "up__echo")
        assert seen
        assert caught == []

    play(tmp_path, story, start=3.0, call=3.0)


@pytest.mark.parametrize("how", ["packed", "huge"])
def test_an_answer_that_is_packed_or_too_large_is_not_taken(
    tmp_path: Path, elsewhere: Begin, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "LARGEST_ANSWER", 1 << 20)
    url, _ = elsewhere(**{how: True})

    async def story(at: Site) -> None:
        await at.server(url=url)
        await at.grant()
        token = (await at.begin()).token
        assert "cannot be used" in await at.refusal(token, "up__echo")

    play(tmp_path, story, start=3.0, call=3.0)


def test_nobody_at_the_address_is_said_in_time(tmp_path: Path) -> None:
    async def story(at: Site) -> None:
        await at.server(url="http://127.0.0.1:9/mcp")
        await at.grant()
        token = (await at.begin()).token
        assert "kb_read" in await at.tools(token)
        assert "cannot be used" in await at.refusal(token, "up__echo")

    play(tmp_path, story, start=3.0)


def test_people_do_not_use_servers(tmp_path: Path) -> None:
    async def story(at: Site) -> None:
        await add(at, tmp_path)
        board: Caller = at.board
        assert not [name for name in await at.tools(board.token) if "__" in name]
        assert "agents_only" in await at.refusal(board.token, "up__echo")

    play(tmp_path, story)
