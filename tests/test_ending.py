"""A real instance comes to its end, whatever hangs inside it, and nothing is lost by that."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from benchmarks.door import bodies as costly
from remit.adapters import registry
from remit.entrypoints import serve
from remit.entrypoints.bodies import LARGEST_DOCUMENT, MOST_VALUES
from remit.model.execution.limit import Limit
from remit.runtime import deadlines
from remit.runtime.deadlines import Deadline, within
from remit.services.connections import mcp_servers
from remit.services.execution import runs
from remit.services.messaging import threads
from remit.services.organisation import agents
from remit.services.people import companies
from remit.services.rights import grants
from tests import cli_forks
from tests.agent_stage import Stage, stage
from tests.http_client import _CHILD, SECONDS, SOURCE, Child, Client, server_sent

#: An adapter of somebody else's: it does not let itself be cancelled, or blocks everybody.
_DEAF = """
import asyncio, contextlib, time
from pydantic import BaseModel
from remit.adapters import registry
from remit.adapters.contract import adopt
from remit.entrypoints import serve
from remit.model.execution.limit import Limit
from remit.runtime import deadlines
class Deaf:
    type = "deaf"
    class Config(BaseModel):
        blocks: bool = False
    def check(self):
        return True
    async def run(self, context):
        if context.config.blocks:
            deadlines.END_SECONDS = 0.5
        context.home.joinpath("begun").touch()
        if context.config.blocks:
            time.sleep(600)
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(600)
registry.installed._plugins = {"deaf": adopt(Deaf)}
"""


class Hanging(Child):
    """An instance in which that adapter is installed."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.process = cli_forks.instances().open(
            ["0"],
            {**os.environ, "PYTHONPATH": str(SOURCE), "REMIT_HOME": str(home)},
            errors=True,
            script=_DEAF + _CHILD.replace("port=port,", "port=port, slots=8,"),
        )


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents can be hired for that adapter here, too."""
    monkeypatch.setattr(registry.installed, "_plugins", {})
    exec(_DEAF, {})  # noqa: S102  # as the instance does


class Nobody:
    """An address at which connections are taken and nothing is ever said."""

    def __init__(self, listening: socket.socket) -> None:
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        self._listening = listening
        self.taken: list[socket.socket] = []
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self.taken.append(self._listening.accept()[0])


@pytest.fixture
def nobody() -> Iterator[Nobody]:
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listening:
        found = Nobody(listening)
        yield found
        listening.shutdown(socket.SHUT_RDWR)
        for taken in found.taken:
            taken.close()


async def hire(at: Stage, name: str, adapter: str, config: Mapping[str, object]) -> str:
    made = await at.hire(name, adapter, config, perpetual=True)
    await at.send("Begin, and never end.", f"agent:{name}")
    return str(made["id"])


async def serve_nothing(at: Stage, agent: str, url: str) -> None:
    """Another MCP server that never answers, for an agent that calls it."""
    await at.app.gate(
        at.board, mcp_servers.add, company=None, name="up", definition={"url": url}, replace=True
    )
    resource = "mcp_server:up"
    await at.app.gate(at.board, grants.give, company=None, to=agent, resource=resource, level="use")


def wait_for(look: Callable[[], object]) -> None:
    end = time.monotonic() + SECONDS
    while not look():
        assert time.monotonic() < end
        time.sleep(0.02)


def begun(home: Path) -> int:
    """How many programs and adapters have said that they are at it."""
    return len(list((home / "agents").glob("*/begun")))


@pytest.mark.requirement("FX-15")
def test_an_instance_ends_in_ten_seconds_whatever_hangs_in_it(
    tmp_path: Path, nobody: Nobody
) -> None:
    """A run that ignores signals, a stream, a stuck MCP server, a stuck model, a stuck agent
    elsewhere and an adapter that does not let go, all at once."""
    stubborn = "trap '' TERM INT; touch $HOME/begun; while :; do sleep 1; done"
    local = {
        "provider": "compatible",
        "baseUrl": f"{nobody.url}/v1",
        "model": "any",
        "tools": "few",
    }

    async def prepare() -> None:
        async with stage(tmp_path, working=False) as at:
            await hire(at, "stubborn", "process", {"command": "/bin/sh", "args": ["-c", stubborn]})
            await hire(at, "elsewhere", "http", {"url": nobody.url, "cancelUrl": nobody.url})
            await hire(at, "deaf", "deaf", {})
            await hire(at, "thinking", "llm", local)
            script = [{"tool": "up__anything"}]
            calling = await hire(at, "calling", "scripted", {"script": script})
            await serve_nothing(at, calling, nobody.url)

    asyncio.run(prepare())
    with Hanging(tmp_path) as child:
        client = child.wait_until_ready()
        company = client.must("GET", "/api/companies")[0]["id"]
        reader = client.as_(client.token)
        stream = reader.open(
            "GET",
            f"/api/companies/{company}/events?after=0",
            headers={"Accept": "text/event-stream"},
        )
        next(server_sent(stream))
        wait_for(lambda: begun(tmp_path) == 2 and len(nobody.taken) >= 3)
        began = time.monotonic()
        assert child.stop() == 0, child.errors()
        took = time.monotonic() - began
        assert took < 10
        print(f"it ended within {took:.1f} seconds")

    async def look() -> None:
        async with stage(tmp_path, working=False) as at:
            found = await at.app.gate(at.board, runs.listing, company=None)
            assert {one["status"] for one in found} == {"lost"}
            mail = await at.app.gate(at.board, threads.listing, company=None)
            states = {one["status"] for letter in mail for one in letter["deliveries"]}
            assert states == {"queued"}

    asyncio.run(look())


@pytest.mark.requirement("FX-15")
def test_who_asks_twice_does_not_wait_and_a_blocked_loop_is_cut_off(tmp_path: Path) -> None:
    async def prepare(blocks: bool) -> None:
        async with stage(tmp_path, working=False) as at:
            name = "blocking" if blocks else "deaf"
            await hire(at, name, "deaf", {"blocks": blocks})

    asyncio.run(prepare(False))
    with Hanging(tmp_path) as child:
        child.wait_until_ready()
        wait_for(lambda: begun(tmp_path) == 1)
        began = time.monotonic()
        child.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        assert child.stop() == 128 + signal.SIGTERM
        assert time.monotonic() - began < 3
    # Nothing is answered any more, and still it ends.
    asyncio.run(prepare(True))
    with Hanging(tmp_path) as child:
        child.wait_until_ready()
        wait_for(lambda: begun(tmp_path) == 2)
        assert child.stop() == deadlines.CUT_OFF
    log = (tmp_path / "logs" / "remit.log").read_text()
    assert "what it was doing" in log
    assert "run (" in log.partition("what it was doing")[2]


@pytest.mark.requirement("FX-15")
def test_agents_in_stuck_tools_keep_nobody_else_waiting(tmp_path: Path, nobody: Nobody) -> None:
    """Eight of them, which is more than the event loop has threads on two cores."""

    async def story() -> None:
        async with stage(tmp_path, slots=8) as at:
            config = {"script": [{"tool": "up__anything"}]}
            for number in range(8):
                stuck = await at.hire(f"stuck-{number}", "scripted", config, perpetual=True)
                await serve_nothing(at, stuck["id"], nobody.url)
            for number in range(8):
                await at.send("Call it.", f"agent:stuck-{number}")
            async with asyncio.timeout(SECONDS):
                while len(nobody.taken) < 8:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            client = Client(at.url, at.board.token)
            company = (await asyncio.to_thread(client.must, "GET", "/api/companies"))[0]["id"]
            took = []
            for _ in range(5):
                began = time.monotonic()
                answer = await asyncio.to_thread(client, "GET", "/health")
                took.append(time.monotonic() - began)
                assert answer.status == 200
            print(f"/health within {max(took) * 1000:.0f} ms, {min(took) * 1000:.0f} at best")
            assert min(took) < 0.1
            beside = await asyncio.to_thread(beside_strangers, client, 8)
            print(f"/health beside strangers within {beside * 1000:.0f} ms at best")
            assert beside < 0.1
            began = time.monotonic()
            found = await asyncio.to_thread(
                client.must, "GET", f"/api/companies/{company}/adapters"
            )
            print(f"adapters within {(time.monotonic() - began) * 1000:.0f} ms")
            assert "scripted" in {one["type"] for one in found}
            assert len([one for one in await at.runs() if one["status"] == "running"]) == 8

    asyncio.run(story())


def beside_strangers(client: Client, count: int) -> float:
    """How long /health takes at best while so many strangers send all that they may."""
    place = urlsplit(client.url)
    body = costly(LARGEST_DOCUMENT, MOST_VALUES)[0]
    head = f"POST /api/companies HTTP/1.1\r\nHost: {place.netloc}\r\nAuthorization: Bearer x\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    over = threading.Event()
    answers: list[bytes] = []

    def send() -> None:
        while not over.is_set():
            with socket.create_connection((place.hostname, place.port), SECONDS) as connection:
                with contextlib.suppress(ConnectionError):
                    connection.sendall(request)
                with contextlib.suppress(ConnectionError):
                    answers.append(connection.recv(12))

    senders = [threading.Thread(target=send) for _ in range(count)]
    for sender in senders:
        sender.start()
    took = []
    while len(answers) < 2 * count:
        began = time.monotonic()
        assert client("GET", "/health").status == 200
        took.append(time.monotonic() - began)
    over.set()
    for sender in senders:
        sender.join()
    assert set(answers) <= {b"HTTP/1.1 401", b""}
    return min(took)


#: So many runs hung one for ever, twice.
STORM = 6_000
AGENTS = 12


async def storm(home: Path, count: int) -> None:
    """Scripted runs, as many at once as there are agents; each writes to its journal from a thread
    of its own, and calls tools of an instance that is busy with all the others."""
    async with stage(home, slots=AGENTS) as at:
        firm = (await at.app.gate(at.board, companies.listing))[0]["id"]
        none = {limit.spelled: "none" for limit in Limit}
        await at.app.gate(at.board, companies.change, company=firm, limits=none)
        steps = {"script": [{"tool": "outcome_list"}, {"tool": "mail_inbox"}]}
        for number in range(AGENTS):
            await at.hire(f"storm-{number}", "scripted", steps, perpetual=True)

        async def blow(number: int) -> None:
            for done in range(1, count // AGENTS + 1):
                await at.send("Again.", f"agent:storm-{number}")
                async with asyncio.timeout(300):  # a run that hangs is what is looked for
                    while over[f"storm-{number}"] < done:  # noqa: ASYNC110
                        await asyncio.sleep(0.02)

        over: Counter[str] = Counter()

        async def count_ends() -> None:
            names = {
                one["id"]: one["name"]
                for one in await at.app.gate(at.board, agents.listing, company=firm)
            }
            seen: set[str] = set()
            while True:
                for run in await at.app.gate(at.board, runs.listing, company=firm, limit=100):
                    if run["status"] != "running" and run["id"] not in seen:
                        seen.add(run["id"])
                        assert run["status"] == "completed", run
                        over[names[run["agent_id"]]] += 1
                await asyncio.sleep(0.02)

        async with asyncio.TaskGroup() as group:
            counting = group.create_task(count_ends())
            await asyncio.gather(*(blow(number) for number in range(AGENTS)))
            counting.cancel()
        began = time.monotonic()
    assert time.monotonic() - began < 10


LOOPS = [asyncio.new_event_loop, serve.loop_factory() or asyncio.new_event_loop]


@pytest.mark.campaign("thousands of runs on each event loop: the storm that hung one for ever")
@pytest.mark.timeout(3600)  # minutes when the machine is idle; a run that hangs is noticed above
@pytest.mark.requirement("FX-15")
@pytest.mark.parametrize("loop", LOOPS, ids=["asyncio", "uvloop"])
def test_thousands_of_scripted_runs_hang_nobody(tmp_path: Path, loop: Callable[[], Any]) -> None:
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(storm(tmp_path, STORM))


@pytest.mark.requirement("FX-15")
@pytest.mark.parametrize("loop", LOOPS, ids=["asyncio", "uvloop"])
def test_a_few_scripted_runs_at_once_hang_nobody(tmp_path: Path, loop: Callable[[], Any]) -> None:
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(storm(tmp_path, 2 * AGENTS))


def test_a_wait_has_an_end_and_what_hangs_is_left_behind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        assert await within(5, asyncio.sleep(0, "done"), "something") == "done"
        with pytest.raises(ZeroDivisionError):
            await within(5, fails(), "something")
        over = asyncio.Event()

        async def deaf() -> None:
            while not over.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await over.wait()
            raise ZeroDivisionError

        left: object = await within(0.01, deaf(), "the deaf one")
        assert left is None
        over.set()
        await asyncio.sleep(0.01)
        # Whoever waits can be told to stop waiting, and so is what it waited for.
        waiting = asyncio.create_task(within(600, (inner := asyncio.Event()).wait(), "it"))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        del inner

    async def fails() -> None:
        raise ZeroDivisionError

    asyncio.run(story())
    assert [record.message for record in caplog.records] == [
        "the deaf one did not come to an end within 0.01 seconds and is left behind",
        "what was left behind ended with ZeroDivisionError()",
    ]


def test_a_deadline_counts_from_the_first_signal_and_not_when_all_is_over() -> None:
    left: list[int] = []
    gone = threading.Event()

    def leave(code: int) -> None:
        left.append(code)
        gone.set()

    with Deadline(0.01, leave) as deadline:
        assert not gone.wait(0.05)
        deadline.begin()
        deadline.begin()
        assert gone.wait(5)
    with Deadline(0.05, leave) as deadline:
        deadline.begin()
    assert left == [deadlines.CUT_OFF]
