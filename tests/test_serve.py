"""A whole instance as a process: start, stop, crash, and start again."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from remit.adapters.registry import best_adapter
from remit.app import App, InstanceLock
from remit.entrypoints import serve, work
from remit.entrypoints.http.server.logs import Redacting, keep_logs
from remit.errors import BadInput, Conflict
from remit.runtime import diagnosis
from remit.services.command import Gate
from remit.services.identity import Caller
from remit.services.people import instance, users
from tests.company import opened, run_sql, settings
from tests.http_client import Child, Client, server_sent, serving, settings_for
from tests.postgres import Cluster
from tests.working import eventually


def first_company(client: Client) -> str:
    return str(client.must("GET", "/api/companies")[0]["id"])


def test_an_empty_home_becomes_a_company_with_a_root_agent(tmp_path: Path) -> None:
    with Child(tmp_path / "home", PATH="/nowhere") as child:
        client = child.wait_until_ready()
        assert client.as_(None)("GET", "/health").json["status"] == "ok"
        company = first_company(client)
        agents = client.must("GET", f"/api/companies/{company}/agents")
        assert [(agent["role"], agent["adapterType"]) for agent in agents] == [("ceo", "scripted")]
        assert child.stop() == 0


def test_of_two_that_start_at_once_on_an_empty_database_each_gets_a_token(
    tmp_path: Path, postgres_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres_cluster.migrated_database()
    apps = [App(settings(url, tmp_path / name)) for name in ("one", "other")]
    call = Gate.__call__

    async def start() -> list[bool]:
        both = asyncio.Barrier(2)

        async def in_step(gate: Gate, caller: Caller, verb: Any, *args: Any, **kwargs: Any) -> Any:
            answer = await call(gate, caller, verb, *args, **kwargs)
            if verb is instance.is_empty:
                await both.wait()
            return answer

        monkeypatch.setattr(Gate, "__call__", in_step)
        return list(await asyncio.gather(*(app.first_start(alone=False) for app in apps)))

    async def users_of_tokens() -> list[Any]:
        tokens = [app.settings.board_token_file.read_text().strip() for app in apps]
        found = [await apps[0].gate(Caller(token), users.me) for token in tokens]
        await asyncio.gather(*(app.aclose() for app in apps))
        return found

    with asyncio.Runner() as runner:
        assert sorted(runner.run(start())) == [False, True]
        one, other = runner.run(users_of_tokens())
    assert one == other
    assert len(run_sql(url, "SELECT id FROM companies")) == 1
    # Lists of tokens say of which machine each is, and nothing of its folders.
    labels = run_sql(url, "SELECT label FROM tokens WHERE kind = 'user'")
    assert labels == [(f"board.token on {os.uname().nodename.partition('.')[0]}",)] * 2


def _end(_: str) -> None:
    """End a process that has started, which was not expected."""
    os.kill(os.getpid(), signal.SIGTERM)


def test_who_would_store_contents_elsewhere_than_the_others_does_not_start(
    tmp_path: Path, postgres_cluster: Cluster
) -> None:
    url = postgres_cluster.migrated_database()
    with opened(url, tmp_path / "one") as company:
        company.file(company.board, b"first")
        newest = company.file(company.board, b"second")
        elsewhere = settings(url, tmp_path / "other")
        for start in (
            partial(work.run, elsewhere, name="w", slots=1),
            partial(serve.run, elsewhere, host="127.0.0.1", port=0),
        ):
            with pytest.raises(BadInput, match="none of the newest contents") as error:
                start(log_to_stderr=False, ready=_end)
            assert "REMIT_BLOB_URL" in error.value.step
        assert not elsewhere.board_token_file.exists()
        company.wait(company.app.library.check_place())
        # A content that is lost does not keep the others from being worked with.
        shutil.rmtree(tmp_path / "one/blobs" / newest["id"])
        company.wait(company.app.library.check_place())


def test_a_store_that_lost_its_contents_is_not_well(tmp_path: Path) -> None:
    with serving(tmp_path) as running:
        health = running.board
        place = f"/api/companies/{first_company(health)}/files"
        health.must("POST", place, {"description": "The only content", "content": "text"})
        assert health("GET", "/health").status == 200
        (before,) = diagnosis.look(running.app.settings, (diagnosis._contents,))
        assert before.state == "ok"
        for content in (tmp_path / "blobs").glob("*/*"):
            content.unlink()
        (found,) = diagnosis.look(running.app.settings, (diagnosis._contents,))
        assert (found.state, found.found[:22]) == ("fail", "the blob store lacks 1")
        eventually(lambda: health("GET", "/health").status == 503)
        assert "none of the newest contents" in health("GET", "/health").json["error"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_open_streams_and_then_the_process(
    tmp_path: Path, number: signal.Signals
) -> None:
    with Child(tmp_path) as child:
        client = child.wait_until_ready()
        company = first_company(client)
        reader = client.as_(client.token)
        stream = reader.open(
            "GET",
            f"/api/companies/{company}/events?after=0",
            headers={"Accept": "text/event-stream"},
        )
        assert next(server_sent(stream))["id"] == "1"
        began = time.monotonic()
        assert child.stop(number) == 0
        assert time.monotonic() - began < 10  # what is promised, also on a busy machine
        stream.read()  # ends, and does not break off
        assert (tmp_path / "run" / "instance.lock").read_text() == ""


def test_what_was_acknowledged_before_a_stop_is_there_after_the_next_start(tmp_path: Path) -> None:
    with Child(tmp_path) as child:
        client = child.wait_until_ready()
        company = first_company(client)
        acknowledged: list[str] = []
        stopped = threading.Event()

        def write(worker: int) -> None:
            mine = client.as_(client.token)
            for number in range(1000):
                try:
                    answer = mine(
                        "POST",
                        f"/api/companies/{company}/agents",
                        {"name": f"agent-{worker}-{number}"},
                    )
                except OSError:
                    break
                if answer.status != 201:
                    break
                acknowledged.append(answer.json["name"])
            stopped.set()

        writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for writer in writers:
            writer.start()
        while len(acknowledged) < 20:
            assert not stopped.is_set()
            time.sleep(0.01)
        assert child.stop() == 0
        for writer in writers:
            writer.join()
    with Child(tmp_path) as child:
        client = child.wait_until_ready()
        found = client.must("GET", f"/api/companies/{company}/agents?limit=1000")
        assert set(acknowledged) <= {agent["name"] for agent in found}
        assert client.must("GET", f"/api/companies/{company}/events/verify")["ok"]


def test_after_a_crash_the_instance_starts_again_with_everything(tmp_path: Path) -> None:
    with Child(tmp_path) as child:
        client = child.wait_until_ready()
        company = first_company(client)
        made = client.must(
            "POST",
            f"/api/companies/{company}/files",
            {"description": "kept", "content": "still here"},
        )
        assert child.stop(signal.SIGKILL) == -signal.SIGKILL
    with Child(tmp_path) as child:
        again = child.wait_until_ready()
        assert again.token == client.token
        assert again("GET", f"/api/files/{made['id']}/content").body == b"still here"
        assert again.must("GET", f"/api/companies/{company}/events/verify")["ok"]
        assert child.stop() == 0


def test_a_second_instance_in_the_same_home_is_refused(tmp_path: Path) -> None:
    with Child(tmp_path) as first:
        port = int(first.wait_until_ready().url.rpartition(":")[2])
        for wanted in (0, port):
            with Child(tmp_path, wanted) as second:
                assert "running in this home already" in second.errors()
                assert second.process.returncode == 1
        assert first.stop() == 0


_KILLED = """
import os, signal, sys, time
from pathlib import Path
from remit.app import App, InstanceLock
from remit.settings import load
with InstanceLock(load({"REMIT_HOME": sys.argv[1]})) as lock:
    lock.describe("http://127.0.0.1:1")
    if os.fork() == 0:
        # As one that is about to become an agent's program, and has everything of its parent.
        time.sleep(1)
        os._exit(0)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_an_instance_that_was_killed_while_it_started_a_program_is_not_in_the_way(
    tmp_path: Path,
) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED, str(tmp_path)], check=False, stdout=subprocess.DEVNULL
    )
    assert killed.returncode == -signal.SIGKILL
    with InstanceLock(settings_for(tmp_path)) as lock:
        lock.describe("http://127.0.0.1:2")
        # One that lives is told of at once.
        began = time.monotonic()
        with pytest.raises(Conflict, match=str(os.getpid())), InstanceLock(settings_for(tmp_path)):
            pass
        assert time.monotonic() - began < 1


def test_a_port_in_use_is_said_before_anything_is_created(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Conflict, match=f"Port {port} on 127.0.0.1 cannot be used"):
            serve.run(settings_for(home), host="127.0.0.1", port=port)
    assert not home.exists()


def test_an_address_that_is_not_ours_is_said_before_anything_is_created(tmp_path: Path) -> None:
    for host, port in [("no such host", 0), ("127.0.0.1", 99_999)]:
        with pytest.raises(BadInput):
            serve.run(settings_for(tmp_path / "home"), host=host, port=port)
    assert not (tmp_path / "home").exists()


def test_the_lock_says_who_serves_where(tmp_path: Path) -> None:
    with Child(tmp_path) as child:
        client = child.wait_until_ready()
        lines = (tmp_path / "run" / "instance.lock").read_text().split()
        assert lines == [str(child.process.pid), client.url]


def test_the_log_is_in_the_home_and_has_no_token(tmp_path: Path) -> None:
    with Child(tmp_path) as child:
        client = child.wait_until_ready()
        assert client.as_("rmt_user_" + "a" * 43)("GET", "/api/me").status == 401
        assert client.as_(None)("GET", f"/login?token={client.token}").status == 200
        assert child.stop() == 0
        log = (tmp_path / "logs" / "remit.log").read_text()
        assert f"serving at {client.url}" in log
        assert "rmt_" not in log + child.errors()


def test_a_token_in_a_traceback_does_not_reach_the_log(tmp_path: Path) -> None:
    with keep_logs(tmp_path, stderr=False):
        try:
            raise ValueError("rmt_user_abcDEF-123_456 is wrong")
        except ValueError:
            logging.getLogger("remit.x").exception("rmt_run_%s", "secret")
    text = (tmp_path / "remit.log").read_text()
    assert "ValueError: rmt_user_… is wrong" in text
    assert "secret" not in text
    assert isinstance(Redacting(), logging.Formatter)


def test_an_address_is_one_that_can_be_opened() -> None:
    assert serve.address("0.0.0.0", 1) == "http://127.0.0.1:1"  # noqa: S104  nothing is bound
    assert serve.address("::", 1) == "http://[::1]:1"
    assert serve.address("192.0.2.1", 1) == "http://192.0.2.1:1"


def test_the_first_agent_runs_by_what_is_usable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "HOME"):
        monkeypatch.delenv(name, raising=False)
    assert best_adapter() == "scripted"
    for name in ("codex", "claude"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\necho 9.0.1\n")
        program.chmod(0o755)
    assert best_adapter() == "scripted"  # without a key they can do nothing
    monkeypatch.setenv("CODEX_API_KEY", "k")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert best_adapter() == "codex"
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    assert best_adapter() == "claude"


# ── MCP, which takes a while to import ──────────────────────────────────────────────────────────


class Toy:
    """Answers with whether it was entered."""

    def __init__(self) -> None:
        self.entered = False

    @contextlib.asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        self.entered = True
        yield
        self.entered = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await JSONResponse({"entered": self.entered})(scope, receive, send)


def test_an_early_mcp_request_waits_for_the_endpoint(tmp_path: Path) -> None:
    may_load = threading.Event()

    def load() -> Toy:
        assert may_load.wait(10)
        return Toy()

    with serving(tmp_path, load_mcp=load) as running:
        early = running.client()
        threading.Timer(0.3, may_load.set).start()
        assert running.client()("GET", "/health").status == 200
        assert not may_load.is_set()
        assert early("POST", "/mcp", {}).json == {"entered": True}
        assert early("POST", "/mcp/", {}).json == {"entered": True}


def test_an_endpoint_that_cannot_be_loaded_leaves_the_rest_running(tmp_path: Path) -> None:
    def load() -> Toy:
        raise ImportError("no such module")

    with serving(tmp_path, load_mcp=load) as running:
        assert running.client()("POST", "/mcp", {}).code == "unavailable"
        assert running.client()("GET", "/health").status == 200


def test_agents_reach_the_real_endpoint(tmp_path: Path) -> None:
    with Child(tmp_path) as child:
        client = child.wait_until_ready()
        agent = client.must("GET", f"/api/companies/{first_company(client)}/agents")[0]["id"]
        key = client.must("POST", f"/api/agents/{agent}/keys")["token"]
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        accept = {"Accept": "application/json, text/event-stream"}
        answer = client.as_(key)("POST", "/mcp", request, headers=accept)
        assert answer.status == 200
        assert json.loads(answer.body)["result"]["tools"]
        assert client.as_("rmt_agent_x")("POST", "/mcp", request, headers=accept).status == 401
        rebound = {**accept, "Host": "evil.example"}
        assert client.as_(key)("POST", "/mcp", request, headers=rebound).status == 421
