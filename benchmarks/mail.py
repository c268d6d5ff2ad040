"""Mail: how soon it is seen, and that it costs the same however much of it waits elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks import office
from benchmarks.bulk import (
    fill_deferred,
    fill_mail,
    fill_mail_of_user,
    fill_tree,
    make_programs,
)
from benchmarks.harness import KIB_4, Cost, Plan, Row, compared, cost, interleaved, shown
from benchmarks.instance import NOOP, Instance, started
from benchmarks.office import Office
from benchmarks.wire import EARLIER, Put, Script, Wire, http, load, tool_call
from remit.clock import SECOND, Clock, to_iso
from remit.runtime.loop import LONGEST_SLEEP
from remit.runtime.runs import lifecycle
from remit.runtime.timers import Clockwork
from remit.services.identity import Caller
from remit.services.messaging import inbox, pending_items
from remit.services.organisation import agents
from remit.services.people import users
from remit.services.screens import needs_you
from remit.store.engine.migrate import sqlite_path

CLIENTS = 16
EACH = 10
FEW_AGENTS, MANY_AGENTS = 100, 10_000
ELSEWHERE = 10_000
MOST = 1.5


def measure(plan: Plan) -> Iterator[Row]:
    with started(plan.home("mail")) as instance:
        yield from _visible(plan, instance)
    yield from _among_many(plan)
    yield from _needs_you(plan)
    with office.opened(plan.home("deferred")) as here:
        yield from _deferred(plan, here)


# How soon


class Asked:
    """Requests that differ, with the last answer."""

    def __init__(self, make: Callable[[], bytes]) -> None:
        self.request = make
        self.answer = b""

    def take(self, _head: bytes, body: bytes, /) -> None:
        self.answer = body
        if b'"isError":true' in body[:5000]:
            raise AssertionError(body[:500])


def _visible(plan: Plan, instance: Instance) -> Iterator[Row]:
    key = instance.agent("reader")
    reader = instance.ask("GET", "/api/agents/me", token=key)["id"]
    posted = {"to": f"agent:{reader}", "body": "Have a look at this.", "subject": "Measured"}
    over_http: dict[str, Callable[[], bytes]] = {
        "send": lambda: _post(instance, posted),
        "look": lambda: http("GET", "/api/inbox", key),
        "nothing": lambda: http("GET", "/health", key),
    }
    over_mcp: dict[str, Callable[[], bytes]] = {
        "send": lambda: tool_call(EARLIER, key, "mail_send", **posted),
        "look": lambda: tool_call(EARLIER, key, "mail_inbox"),
        "nothing": lambda: tool_call(EARLIER, key, NOOP),
    }
    for name, floor, asked in (
        ("HTTP", "two GET /health", over_http),
        ("MCP, to oneself", "two no-op tools", over_mcp),
    ):
        taken, nothing = _there_and_seen(plan, instance, key, asked)
        yield Row(
            f"sent and seen over {name}",
            f"p50 {shown(taken.p50)}, p95 {shown(taken.p95)}",
            f"{floor}: {shown(nothing.p50)}",
            taken.p50 / nothing.p50,
        )


def _there_and_seen(
    plan: Plan, instance: Instance, key: str, asked: dict[str, Callable[[], bytes]]
) -> tuple[Cost, Cost]:
    """Measure from before the sending of a message until its receiver, polling next, has seen
    it."""
    scripts = {name: Asked(make) for name, make in asked.items()}
    wires = {name: Wire(instance.url, script) for name, script in scripts.items()}
    taken, nothing = [], []
    for _ in range(plan.some(400)):
        began = time.perf_counter()
        wires["send"].exchange()
        wires["look"].exchange()
        taken.append(time.perf_counter() - began)
        sent = _id(scripts["send"].answer)
        assert sent.encode() in scripts["look"].answer, "it is not seen"
        began = time.perf_counter()
        wires["nothing"].exchange()
        wires["nothing"].exchange()
        nothing.append(time.perf_counter() - began)
        instance.ask("POST", f"/api/messages/{sent}/ack", token=key)
    for wire in wires.values():
        wire.close()
    return cost(taken), cost(nothing)


def _id(answer: bytes) -> str:
    found = json.loads(answer)
    sent = found["result"]["structuredContent"] if "result" in found else found
    return str(sent["id"])


def _post(instance: Instance, document: dict[str, Any]) -> bytes:
    path = f"/api/companies/{instance.company}/messages"
    kind = {"Content-Type": "application/json"}
    return http("POST", path, instance.board, json.dumps(document).encode(), kind)


# Among how much


def _among_many(plan: Plan) -> Iterator[Row]:
    samples = min(plan.some(80), FEW_AGENTS - 1)
    most_agents = MANY_AGENTS // 10 if plan.quick else MANY_AGENTS
    with contextlib.ExitStack() as stack:
        works: dict[str, dict[str, Callable[[], float]]] = {}
        receivers: list[str] = []
        for size in (FEW_AGENTS, most_agents):
            here = stack.enter_context(office.opened(plan.home(f"mail-{size}")))
            receivers = fill_tree(here, [None] * size)
            body = here.file(KIB_4)["id"]
            fill_mail(here, receivers, EACH, body)
            for name, work in _inbox_works(here, receivers).items():
                works.setdefault(name, {})[str(size)] = work
        few, many = FEW_AGENTS * EACH, most_agents * EACH
        for name, both in works.items():
            taken: dict[str, list[float]] = {among: [] for among in both}
            for _ in range(samples):
                for among, work in both.items():
                    taken[among].append(work())
            p50 = {among: cost(found).p50 for among, found in taken.items()}
            yield compared(
                f"{name}, {many:,} waiting in all",
                p50[str(most_agents)],
                f"{few:,} in all",
                p50[str(FEW_AGENTS)],
                most=MOST,
            )
    with started(plan.home(f"mail-{most_agents}")) as instance:
        yield _many_clients(plan, instance, receivers)


def _inbox_works(here: Office, receivers: list[str]) -> dict[str, Callable[[], float]]:
    """Each answers how long it took, without what had to be prepared for it."""
    looking, taking, sending = iter(receivers), iter(receivers), iter(receivers)
    keys: dict[str, Caller] = {}

    def key(agent: str) -> Caller:
        if agent not in keys:
            keys[agent] = Caller(here.call(here.board, agents.create_key, agent=agent)["token"])
        return keys[agent]

    def timed(work: Callable[[], object]) -> float:
        began = time.perf_counter()
        work()
        return time.perf_counter() - began

    def look() -> float:
        caller = key(next(looking))
        return timed(lambda: here.call(caller, inbox.take))

    def take() -> float:
        app = here.app
        begun = lifecycle.begin(app.gate, app.ids, app.settings.workspaces, next(taking))
        run = here.wait(begun)
        taken = timed(lambda: here.call(Caller(run.token), inbox.take))
        here.wait(lifecycle.finish(app.gate, run))
        return taken

    def send() -> float:
        to = f"agent:{next(sending)}"
        return timed(lambda: here.wait(here.app.library.send(here.agent, to=to, body="Hello")))

    return {"look into an inbox": look, "take up 10 letters": take, "send one more": send}


class Send:
    """A message to another agent each time."""

    def __init__(self, instance: Instance, receivers: list[str], seed: int) -> None:
        self._company, self._board = instance.company, instance.board
        self._receivers, self._random = receivers, random.Random(seed)

    def request(self) -> bytes:
        to = f"agent:{self._random.choice(self._receivers)}"
        document = {"to": to, "body": "Have a look at this.", "subject": "Measured"}
        path = f"/api/companies/{self._company}/messages"
        kind = {"Content-Type": "application/json"}
        return http("POST", path, self._board, json.dumps(document).encode(), kind)

    def take(self, _head: bytes, _body: bytes, /) -> None:
        return


def _many_clients(plan: Plan, instance: Instance, receivers: list[str]) -> Row:
    key = instance.agent("measured")
    senders: list[Script] = [Send(instance, receivers[:1000], number) for number in range(CLIENTS)]
    files = [instance.file(key, KIB_4) for _ in range(CLIENTS)]
    writers: list[Script] = [
        Put(file["id"], key, f'"{file["version"]}:{file["hash"]}"', KIB_4) for file in files
    ]
    writes = load(instance.url, writers, plan.seconds(5)).per_second
    found = load(instance.url, senders, plan.seconds(5))
    return Row(
        f"send over HTTP, {CLIENTS} clients: {found.per_second:,.0f} a second",
        str(found.cost),
        f"PUT 4 KiB: {writes:,.0f} a second",
        writes / found.per_second,
    )


# What awaits a person


def _needs_you(plan: Plan) -> Iterator[Row]:
    most = ELSEWHERE // 10 if plan.quick else ELSEWHERE
    with contextlib.ExitStack() as stack:
        works: dict[str, dict[str, Callable[[], object]]] = {}
        for elsewhere in (EACH, most):
            here = stack.enter_context(office.opened(plan.home(f"needs-you-{elsewhere}")))
            for name, work in _waiting_works(here, elsewhere).items():
                works.setdefault(name, {})[str(elsewhere)] = work
        for name, both in works.items():
            taken = interleaved(both, plan.some(160), block=4, seconds=plan.patience)
            few, many = taken[str(EACH)].p50, taken[str(most)].p50
            yield compared(f"{name}, {most:,} elsewhere", many, f"{EACH} elsewhere", few, most=MOST)


def _waiting_works(here: Office, elsewhere: int) -> dict[str, Callable[[], object]]:
    """What awaits one person and one agent, next to what they have read and what others have."""
    me = here.call(here.board, users.me)["id"]
    body = here.file(KIB_4)["id"]
    mine, *others = fill_tree(here, [None] * (1 + elsewhere // EACH))
    make_programs(here, "/bin/true")  # mail for a seat without a person awaits the board
    key = Caller(here.call(here.board, agents.create_key, agent=mine)["token"])
    fill_mail_of_user(here, me, EACH, body, "queued")
    fill_mail_of_user(here, me, elsewhere, body, "done")
    fill_mail(here, others, EACH, body)
    fill_deferred(here, [mine, *others], EACH, body)

    def what_needs_a_person() -> None:
        found = here.call(here.board, needs_you.listing)
        assert len(found) == EACH, len(found)

    def loose_ends() -> None:
        found = here.call(key, pending_items.loose_ends)["loose_ends"]
        assert len(found) == EACH, len(found)

    return {"needs-you": what_needs_a_person, "loose ends": loose_ends}


# At its time


def _deferred(plan: Plan, here: Office) -> Iterator[Row]:
    count = plan.some(200)
    for name, earliest, spread in (
        ("deferred in good time", 2.0, 1.0),
        ("deferred while the clock slept", 0.1, 0.8),
    ):
        late = cost(here.wait(_lateness(here, count, earliest, spread)))
        timer = cost(here.wait(_bare_timer()))
        yield Row(
            f"{name}: how late",
            f"p50 {shown(late.p50)}, p95 {shown(late.p95)}",
            f"a bare timer: p95 {shown(timer.p95)}",
            None,
            f"< {shown(LONGEST_SLEEP)}",
            late.p95 < LONGEST_SLEEP,
        )


async def _lateness(here: Office, count: int, earliest: float, spread: float) -> list[float]:
    """How long after its time each message is there for somebody else to see."""
    app, moments = here.app, random.Random(count)
    beside = sqlite3.connect(sqlite_path(app.settings.database_url))
    before = beside.execute("SELECT coalesce(max(position), 0) FROM deliveries").fetchone()[0]
    clockwork = Clockwork(app.gate)  # one that was stopped does not start again
    clockwork.start()
    await asyncio.sleep(0.1)  # it has looked, found nothing, and sleeps
    seeing = asyncio.create_task(_seen(beside, app.clock, before, count))
    due: dict[str, int] = {}
    for _ in range(count):
        at = app.clock.now() + int((earliest + moments.random() * spread) * SECOND)
        sent = await app.library.send(
            here.agent, to="agent:ceo", body="Later", deliver_at=to_iso(at)
        )
        due[sent["id"]] = at
    async with asyncio.timeout(earliest + spread + 10):
        seen = await seeing
    beside.close()
    await clockwork.stop()
    return [(at - due[message]) / SECOND for message, at in seen.items()]


async def _seen(beside: sqlite3.Connection, clock: Clock, after: int, count: int) -> dict[str, int]:
    """When each of so many messages became visible."""
    seen: dict[str, int] = {}
    while len(seen) < count:
        rows = beside.execute(
            "SELECT message_id, position FROM deliveries WHERE position > ?", (after,)
        ).fetchall()
        for message, position in rows:
            seen[message] = clock.now()
            after = max(after, position)
        await asyncio.sleep(0.001)
    return seen


async def _bare_timer() -> list[float]:
    late = []
    for _ in range(50):
        began = time.perf_counter()
        await asyncio.sleep(0.005)
        late.append(time.perf_counter() - began - 0.005)
    return late
