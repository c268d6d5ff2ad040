"""Agents: how soon one starts, how many run in a second, and what those cost that wait."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import office
from benchmarks.bulk import fill_leases, fill_tree, make_programs
from benchmarks.harness import Plan, Row, cost, interleaved, shown
from benchmarks.office import Office
from remit.runtime.runs.worker import Worker
from remit.services.execution import run_queue, runs
from remit.services.identity import as_system
from remit.services.organisation import agents
from remit.store.engine.migrate import sqlite_path

SLOTS = 4
AT_ONCE = 1_000
READY, FEW_AGENTS, MANY_AGENTS = 100, 1_000, 100_000
IDLE_AGENTS = 10_000
MOST_P50, MOST_P95, LEAST_PER_SECOND = 0.040, 0.100, 40
MOST_READY, MOST_CPU, MOST = 0.005, 0.005, 1.5
#: Nobody listens there; the programs do not call Remit.
NOWHERE = "http://127.0.0.1:9"
TELLS_THE_TIME = ("/bin/date", "+%s%N")
#: How many agents have had a run that ended so; not counting the root agent, which hears of them.
_ENDED = "SELECT status, count(DISTINCT agent_id) FROM runs WHERE agent_id <> ? GROUP BY status"


def measure(plan: Plan) -> Iterator[Row]:
    with office.opened(plan.home("runtime-start")) as here:
        yield here.wait(_start(plan, here))
    with office.opened(plan.home("runtime-true")) as here:
        yield here.wait(_each_second(plan, here))
    with office.opened(plan.home("runtime-at-once")) as here:
        yield _at_once(plan, here)
    yield _who_is_ready(plan)
    with office.opened(plan.home("runtime-idle")) as here:
        yield _idle(plan, here)


# How soon, and how many


async def program(here: Office, name: str, command: str, *args: str) -> None:
    await here.app.gate(
        here.board,
        agents.create,
        company=here.company,
        name=name,
        reports_to="ceo",
        perpetual=True,
        adapter_type="process",
        adapter_config={"command": command, "args": list(args)},
    )


async def _start(plan: Plan, here: Office) -> Row:
    """From before the message is sent until the program looks at the clock."""
    await program(here, "clock", *TELLS_THE_TIME)
    worker = Worker(here.app, NOWHERE)
    worker.start()
    taken, bare = [], []
    for _ in range(plan.some(60)):
        began = time.time_ns()
        await here.app.library.send(here.board, to="agent:clock", body="What time is it?")
        taken.append((int(await _last_words(here, began)) - began) / 1e9)
        began = time.time_ns()
        said = await asyncio.to_thread(
            subprocess.run, TELLS_THE_TIME, capture_output=True, check=True
        )
        bare.append((int(said.stdout) - began) / 1e9)
    await worker.stop()
    found, floor = cost(taken), cost(bare)
    return Row(
        "from the message to the running program",
        f"p50 {shown(found.p50)}, p95 {shown(found.p95)}",
        f"started directly: p50 {shown(floor.p50)}",
        found.p50 / floor.p50,
        f"≤ {MOST_P50 * 1e3:.0f}, {MOST_P95 * 1e3:.0f} ms",
        found.p50 <= MOST_P50 and found.p95 <= MOST_P95,
    )


async def _last_words(here: Office, after: int) -> str:
    """What the run said that was begun since then, and has ended."""
    async with asyncio.timeout(30):
        while True:
            last = (await here.app.gate(here.board, runs.listing, company=None, limit=1))[:1]
            if last and last[0]["status"] != "running" and int(last[0]["final_response"]) > after:
                return str(last[0]["final_response"])
            await asyncio.sleep(0.002)


async def _each_second(plan: Plan, here: Office) -> Row:
    count = plan.some(160)
    for number in range(count):
        await program(here, f"true-{number}", "/bin/true")
        await here.app.library.send(here.board, to=f"agent:true-{number}", body="Go")
    began = time.perf_counter()
    await until_ended(here, count, SLOTS)
    taken = time.perf_counter() - began
    spawn = time.perf_counter()
    for _ in range(20):
        await asyncio.to_thread(subprocess.run, ("/bin/true",), check=True)
    bare = 20 / (time.perf_counter() - spawn)
    return Row(
        f"runs of /bin/true, {SLOTS} slots: {count / taken:,.0f} a second",
        f"{shown(taken / count)} each",
        f"bare, one by one: {bare:,.0f} a second",
        bare / (count / taken),
        f"≥ {LEAST_PER_SECOND} a second",
        count / taken >= LEAST_PER_SECOND,
    )


async def until_ended(here: Office, count: int, slots: int) -> float:
    """Run a worker until `count` agents have had a run; return the longest hold of the event
    loop."""
    beside = sqlite3.connect(sqlite_path(here.app.settings.database_url))
    worker = Worker(here.app, NOWHERE, slots=slots)
    worker.start()
    longest = 0.0
    async with asyncio.timeout(300):
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.01)
            longest = max(longest, time.perf_counter() - began - 0.01)
            ended = dict(beside.execute(_ENDED, (here.agent_id,)).fetchall())
            assert "failed" not in ended, ended
            if ended.get("completed", 0) >= count:
                break
    await worker.stop()
    beside.close()
    return longest


def _at_once(plan: Plan, here: Office) -> Row:
    count = AT_ONCE // 10 if plan.quick else AT_ONCE
    fill_tree(here, [None] * count)
    make_programs(here, "/bin/true")
    began = time.perf_counter()
    stalled = here.wait(until_ended(here, count, SLOTS))
    taken = time.perf_counter() - began
    return Row(
        f"{count:,} agents woken at once: {count / taken:,.0f} runs a second",
        f"all done in {shown(taken)}",
        f"the loop stood still for {shown(stalled)}",
        None,
    )


# Who waits


def _who_is_ready(plan: Plan) -> Row:
    most = MANY_AGENTS // 10 if plan.quick else MANY_AGENTS
    works: dict[str, Callable[[], object]] = {}
    with contextlib.ExitStack() as stack:
        for count in (FEW_AGENTS, most):
            here = stack.enter_context(office.opened(plan.home(f"runtime-ready-{count}")))
            ids = fill_tree(here, [None] * count)
            make_programs(here, "/bin/true")
            fill_leases(here, ids, READY)
            works[str(count)] = _looking(here)
        taken = interleaved(works, plan.some(200), seconds=plan.patience)
    found, few = taken[str(most)].p50, taken[str(FEW_AGENTS)].p50
    return Row(
        f"who is ready: {READY} of {most:,} agents",
        shown(found),
        f"{READY} of {FEW_AGENTS:,}: {shown(few)}",
        found / few,
        f"≤ {shown(MOST_READY)}, {MOST}x",
        found <= MOST_READY and found / few <= MOST,
    )


def _looking(here: Office) -> Callable[[], object]:
    def look() -> None:
        found = here.call(as_system(), run_queue.ready)
        assert len(found) == READY, len(found)

    return look


def _idle(plan: Plan, here: Office) -> Row:
    count = IDLE_AGENTS // 10 if plan.quick else IDLE_AGENTS
    ids = fill_tree(here, [None] * count)
    fill_leases(here, ids, 0)
    seconds = plan.seconds(10)
    share = here.wait(_cpu_of_waiting(here, seconds))
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    memory = pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
    return Row(
        f"a worker with {count:,} idle agents",
        f"{share:.2%} of a core",
        f"{memory:.0f} MiB in all",
        None,
        f"≤ {MOST_CPU:.1%}",
        share <= MOST_CPU,
    )


async def _cpu_of_waiting(here: Office, seconds: float) -> float:
    worker = Worker(here.app, NOWHERE)
    worker.start()
    await asyncio.sleep(0.5)  # it has swept once
    before, began = time.process_time(), time.perf_counter()
    await asyncio.sleep(seconds)
    share = (time.process_time() - before) / (time.perf_counter() - began)
    await worker.stop()
    return share
