"""From the command to the first answer, what an idle instance takes, and what a tool list costs."""

from __future__ import annotations

import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import office
from benchmarks.bulk import fill_agents
from benchmarks.harness import Plan, Row, bounded, shown
from benchmarks.instance import Instance, environment, started
from remit.adapters.running import FEW_TOOLS

REMIT = (sys.executable, "-m", "remit.entrypoints.cli.main")
AGENTS = 10_000
MOST_SECONDS_UP, MOST_SECONDS_COMMAND = 2.0, 0.150
MOST_MEMORY, MOST_CPU = 120, 0.005
MOST_TOKENS = 3_000
MOST_TOKENS_OF_FEW = 1_500
_STEP_SECONDS = 0.005


def measure(plan: Plan) -> Iterator[Row]:
    home = plan.home("startup")
    yield from _up(home)
    yield from _commands(plan)
    yield from _idle(plan)


def _up(home: Path) -> Iterator[Row]:
    python = _run_for((sys.executable, "-c", "pass"), home, 3)
    against = f"python -c pass: {shown(python)}"
    for name in ("remit up on an empty home, to /health", "remit up again"):
        yield bounded(name, _seconds_until_healthy(home), MOST_SECONDS_UP, against)


def _commands(plan: Plan) -> Iterator[Row]:
    home = plan.home("no-instance")
    times = 5 if plan.quick else 15
    python = _run_for((sys.executable, "-c", "pass"), home, times)
    for arguments in (["--help"], ["version"]):
        taken = _run_for((*REMIT, *arguments), home, times)
        against = f"python -c pass: {shown(python)}"
        yield bounded(f"remit {arguments[0]}", taken, MOST_SECONDS_COMMAND, against)


def _idle(plan: Plan) -> Iterator[Row]:
    home = plan.home("idle")
    with office.opened(home) as here:
        fill_agents(here, AGENTS)
    with started(home, slots=4) as instance:
        listed, few = _tool_list(instance), _tool_list(instance, FEW_TOOLS)
        time.sleep(0.5)
        before = _cpu_seconds(instance.pid)
        seconds = plan.seconds(5) * 2
        time.sleep(seconds)
        cpu = (_cpu_seconds(instance.pid) - before) / seconds
        memory = _resident_megabytes(instance.pid)
    name = f"idle with {AGENTS:,} agents"
    yield Row(
        f"{name}: memory",
        f"{memory:.0f} MB",
        "",
        None,
        f"≤ {MOST_MEMORY} MB",
        memory <= MOST_MEMORY,
    )
    yield Row(
        f"{name}: processor", f"{cpu:.2%} of a core", "", None, f"≤ {MOST_CPU:.1%}", cpu <= MOST_CPU
    )
    yield Row(
        "base tools",
        f"about {listed} tokens",
        "",
        None,
        f"≤ {MOST_TOKENS:,}",
        listed <= MOST_TOKENS,
    )
    yield Row(
        "tools of a small model",
        f"about {few} tokens",
        "",
        None,
        f"≤ {MOST_TOKENS_OF_FEW:,}",
        few <= MOST_TOKENS_OF_FEW,
    )


def _tool_list(instance: Instance, which: str = "") -> int:
    """About how many tokens the tools take in every conversation, without our own no-op."""
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    token = instance.agent(f"listing{len(which)}")
    answer = instance.ask("POST", f"/mcp{which}", request, token=token)
    tools = [tool for tool in answer["result"]["tools"] if tool["name"] != "noop"]
    return len(json.dumps(tools, separators=(",", ":"))) // 4


def _seconds_until_healthy(home: Path) -> float:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    began = time.perf_counter()
    with subprocess.Popen(
        [*REMIT, "up", "--port", str(port)],
        env=environment(home),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            while not _is_healthy(port):
                if process.poll() is not None:
                    raise AssertionError("remit up ended")
                time.sleep(_STEP_SECONDS)
            return time.perf_counter() - began
        finally:
            process.terminate()


def _is_healthy(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _run_for(command: Sequence[str], home: Path, times: int) -> float:
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        subprocess.run(command, env=environment(home), stdout=subprocess.DEVNULL, check=True)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def _cpu_seconds(pid: int) -> float:
    """To the nanosecond: a clock that ticks would miss all that an idle process does."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def _resident_megabytes(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
