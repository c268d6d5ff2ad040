"""An agent that looks everywhere while it uses a server finds no trace of the server's secret."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
from pathlib import Path

import pytest

from remit.runtime.sandbox import sandbox_policy
from remit.services.connections import mcp_servers
from remit.services.execution import runs
from remit.services.organisation import agents
from remit.services.rights import grants
from remit.testing import ScriptedAgent
from tests.agent_stage import Stage, stage, until
from tests.agents import ClientMissing, program
from tests.agents.fake_anthropic import FakeAnthropic, Say, Use
from tests.http_client import Child
from tests.upstream_server import child_of
from tests.upstreams import SECRET, SERVER, SHA256, command
from tests.working import eventually, processes_with

LOOKING = (Path(__file__).parent / "looking_around.py").read_text()
PYTHON = "/usr/bin/python3"

needs_sandbox = pytest.mark.skipif(
    not sandbox_policy.look().usable or not Path(PYTHON).exists(),
    reason=f"AGENTS ARE NOT TESTED: {sandbox_policy.look().reason}",
)


async def prepare(at: Stage, mark: Path) -> str:
    """A server with a secret, and what it is told; answers the company."""
    ceo = await at.app.gate(at.board, agents.show, agent="ceo")
    company = str(ceo["company_id"])
    await at.app.vault.put(at.board, company=company, name="key", value=SECRET)
    definition = {
        "command": [*command()[:-1], mark.name, "good"],
        "env": {"UPSTREAM_MARK": str(mark), "UPSTREAM_SHA256": SHA256},
        "secret_env": {"UPSTREAM_SECRET": "key"},
    }
    await at.app.gate(at.board, mcp_servers.add, company=company, name="up", definition=definition)
    return company


async def grant(at: Stage, company: str, to: str = "ceo") -> str:
    made = await at.app.gate(
        at.board, grants.give, company=company, to=to, resource="mcp_server:up", level="use"
    )
    return str(made["id"])


def spellings(secret: str) -> list[bytes]:
    raw = secret.encode()
    return [raw, raw[::-1], base64.b64encode(raw)[:-4], raw.hex().encode(), raw[:16], raw[-16:]]


@needs_sandbox
@pytest.mark.requirement("AG-66", "AG-67")
def test_an_agent_that_looks_everywhere_does_not_find_the_secret_of_its_server(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        mark = tmp_path / "mark-4711"
        async with stage(tmp_path / "home") as at:
            company = await prepare(at, mark)
            await grant(at, company)
            await at.cast("process", {"command": PYTHON, "args": ["-c", LOOKING]})
            await at.send("Look around.")
            (run,) = await at.over()
            assert run["status"] == "completed", (run["error"], await at.log(run))
            ceo = await at.app.gate(at.board, agents.show, agent="ceo")
            seen = (at.settings.home / "agents" / ceo["id"] / "seen").read_bytes()
            shown = await at.log(run) + json.dumps(run)
        # It looked, and the server answered it …
        assert b"=== environment" in seen
        assert seen.count(b"/environ\n") >= 1
        assert b"the secret is right" in seen
        assert b"***REDACTED***" in seen
        assert b"up__leak" in seen
        # … which had the secret …
        assert f" {SECRET}\n" in mark.read_text()
        # … of which the agent saw nothing, in no spelling, and no part of it.
        for spelling in spellings(SECRET):
            assert spelling not in seen
            assert spelling not in shown.encode()
        # A control: what it may see, it found.
        assert b"UPSTREAM_SHA256" in seen
        assert os.fsencode(run["id"]) in seen

    asyncio.run(story())


@needs_sandbox
@pytest.mark.requirement("AG-55")
def test_a_server_that_is_granted_in_mid_run_is_there_in_the_next_one(tmp_path: Path) -> None:
    """The agent waits for mail about its tools, ends, and is started again with the new ones."""
    script = """
import json, os, time, urllib.request
def ask(method, **params):
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    request = urllib.request.Request(os.environ["REMIT_URL"] + "/mcp", json.dumps(body).encode(), {
        "Authorization": "Bearer " + os.environ["REMIT_TOKEN"],
        "Content-Type": "application/json", "Accept": "application/json, text/event-stream"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["result"]
tools = [tool["name"] for tool in ask("tools/list")["tools"]]
print("TOOLS", sorted(name for name in tools if "__" in name), flush=True)
deadline = time.time() + 20
while "up__echo" not in tools and time.time() < deadline:
    found = ask("tools/call", name="mail_inbox", arguments={})["structuredContent"]["messages"]
    if any(one["subject"] == "Your tools change" for one in found):
        print("SAVED AND ENDED")
        break
    time.sleep(0.1)
"""

    async def story() -> None:
        async with stage(tmp_path / "home") as at:
            company = await prepare(at, tmp_path / "mark-4712")
            await at.cast("process", {"command": PYTHON, "args": ["-c", script]})
            await at.send("Wait for it.")
            begun = await at.begun()

            async def said(words: str) -> None:
                async with asyncio.timeout(20):
                    while words not in await at.log(begun):  # noqa: ASYNC110
                        await asyncio.sleep(0.05)

            await said("TOOLS []")
            await grant(at, company)
            found = await at.over(2)
            assert "SAVED AND ENDED" in await at.log(found[0])
            assert "'up__echo'" in await at.log(found[1])
            assert [run["status"] for run in found[:2]] == ["completed", "completed"]

    asyncio.run(story())


def test_servers_of_an_instance_that_is_killed_are_gone_with_it(tmp_path: Path) -> None:
    home, name = tmp_path / "home", f"mark-{os.getpid()}"
    with Child(home) as child:
        board = child.wait_until_ready()
        company = board.must("GET", "/api/companies")[0]["id"]
        ceo = board.must("GET", f"/api/companies/{company}/agents")[0]["id"]
        argv = [*command()[:-1], name, "parent"]
        path = f"/api/companies/{company}"
        board.must("POST", f"{path}/mcp-servers", {"name": "up", "command": argv})
        board.must(
            "POST", f"{path}/grants", {"to": ceo, "resource": "mcp_server:up", "level": "use"}
        )
        key = board.must("POST", f"/api/agents/{ceo}/keys", {})["token"]
        with ScriptedAgent(board.url, key) as agent:
            result = agent._request("tools/call", {"name": "up__count", "arguments": {}})
        assert result["content"][0]["text"] == "1"
        assert processes_with(f"{SERVER}\0{name}")
        assert processes_with(child_of(name))
        board.close()
        child.stop(signal.SIGKILL)
    eventually(lambda: not processes_with(f"{SERVER}\0{name}"))
    eventually(lambda: not processes_with(child_of(name)))


@needs_sandbox
@pytest.mark.requirement("AG-81")
def test_the_real_claude_sees_and_uses_a_tool_of_another_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-fake-0123456789abcdef")
    try:
        claude = str(program("claude"))
    except ClientMissing as missing:
        pytest.skip(f"THE REAL CLAUDE IS NOT TESTED: {missing}")

    async def story() -> None:
        use = Use("mcp__remit__up__whoami", {})
        with FakeAnthropic([use, Say("I am done.")]) as fake:
            async with stage(tmp_path / "home") as at:
                company = await prepare(at, tmp_path / "mark-4713")
                await grant(at, company)
                config = {"command": claude, "baseUrl": fake.url, "model": "claude-sonnet-4-5"}
                await at.cast("claude", {"tools": [], **config})
                await at.send("Who are you?")
                (run,) = await at.over()
                assert run["status"] == "completed", (run["error"], await at.log(run))
                log = await at.log(run)
        assert fake.failures == []
        offered = [one["name"] for request in fake.requests for one in request.get("tools", ())]
        assert "mcp__remit__up__whoami" in offered
        assert "the secret is right" in log
        assert SECRET not in log + json.dumps(fake.requests)

    asyncio.run(story())


@needs_sandbox
def test_a_key_that_a_configuration_names_reaches_the_program_and_no_log(tmp_path: Path) -> None:
    async def story() -> None:
        async with stage(tmp_path / "home") as at:
            ceo = await at.app.gate(at.board, agents.show, agent="ceo")
            await at.app.vault.put(at.board, company=ceo["company_id"], name="key", value=SECRET)
            script = tmp_path / "claude"
            script.write_text(
                '#!/bin/sh\necho "$ANTHROPIC_API_KEY" | tee "$HOME/key" >&2\nexit 1\n'
            )
            script.chmod(0o755)
            await at.cast("claude", {"command": str(script), "secretRef": "key"})
            await at.send("go")
            run = (await at.over())[0]
            key = at.settings.home / "agents" / ceo["id"] / "key"
            await until(key.exists)
            assert key.read_text().strip() == SECRET
            log = await at.log(run)
            assert "***REDACTED***" in log
            whole = await at.app.gate(at.board, runs.show, run=run["id"])
            assert SECRET not in log + json.dumps(whole)

    asyncio.run(story())
