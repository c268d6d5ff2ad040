"""The knowledge base through MCP, as a multiple of a tool that does nothing on the same server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from benchmarks.harness import KIB_4, Plan, Row, compared, cost, interleaved
from benchmarks.instance import NOOP, Instance, started
from benchmarks.wire import EARLIER, LATER, Fixed, Script, ToolWrite, Wire, load, tool_call

MOST_READ = 1.5
MOST_WRITE = 2.5
CLIENTS = 16
_TEXT = KIB_4.decode()


def measure(plan: Plan) -> Iterator[Row]:
    with started(plan.home("tools")) as instance:
        key = instance.agent("measured")
        for version in (EARLIER, LATER):
            yield from _one_client(plan, instance, key, version)
        yield from _official_client(plan, instance, key)
        yield from _many_clients(plan, instance, key)


def _one_client(plan: Plan, instance: Instance, key: str, version: str) -> Iterator[Row]:
    wires = {name: Wire(instance.url, script) for name, script in _scripts(instance, key, version)}
    works = {name: wire.exchange for name, wire in wires.items()}
    taken = interleaved(works, plan.some(1200), seconds=plan.patience)
    for wire in wires.values():
        wire.close()
    noop = taken["noop"].p50
    who = f"protocol {version}"
    yield compared(f"read 4 KiB, {who}", taken["read"].p50, "no-op", noop, most=MOST_READ)
    yield compared(f"write 4 KiB, {who}", taken["write"].p50, "no-op", noop, most=MOST_WRITE)


def _many_clients(plan: Plan, instance: Instance, key: str) -> Iterator[Row]:
    rates: dict[str, float] = {}
    for name in ("noop", "read", "write"):
        scripts = [dict(_scripts(instance, key, EARLIER))[name] for _ in range(CLIENTS)]
        rates[name] = load(instance.url, scripts, plan.seconds(4)).per_second
    for name, most in (("read", MOST_READ), ("write", MOST_WRITE)):
        ratio = rates["noop"] / rates[name]
        yield Row(
            f"{name} 4 KiB, {CLIENTS} clients",
            f"{rates[name]:,.0f} a second",
            f"no-op: {rates['noop']:,.0f} a second",
            ratio,
            f"≤ {most:g}x",
            ratio <= most,
        )


def _scripts(instance: Instance, key: str, version: str) -> Iterator[tuple[str, Script]]:
    file = instance.file(key, KIB_4)
    yield "noop", Fixed(tool_call(version, key, NOOP))
    yield "read", Fixed(tool_call(version, key, "kb_read", id=file["id"]))
    yield "write", ToolWrite(version, key, instance.file(key, KIB_4), _TEXT)


def _official_client(plan: Plan, instance: Instance, key: str) -> Iterator[Row]:
    taken = asyncio.run(_with_official_client(plan, instance, key))
    noop = taken["noop"]
    yield compared("read 4 KiB, the official client", taken["read"], "no-op", noop, most=MOST_READ)
    yield compared(
        "write 4 KiB, the official client", taken["write"], "no-op", noop, most=MOST_WRITE
    )


async def _with_official_client(plan: Plan, instance: Instance, key: str) -> dict[str, float]:
    files = [instance.file(key, KIB_4) for _ in range(2)]
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as over:
        transport = streamable_http_client(f"{instance.url}/mcp", http_client=over)
        async with Client(transport, mode="auto") as client:

            async def noop() -> None:
                await client.call_tool(NOOP, {})

            async def read() -> None:
                await client.call_tool("kb_read", {"id": files[0]["id"]})

            async def write() -> None:
                text = f"{files[1]['version']:08}{_TEXT[8:]}"
                done = await client.call_tool("kb_write", {**files[1], "content": text})
                assert not done.is_error, done
                files[1] = dict(done.structured_content or {})

            return await _in_turns({"noop": noop, "read": read, "write": write}, plan.some(120))


async def _in_turns(works: dict[str, Callable[[], Awaitable[Any]]], count: int) -> dict[str, float]:
    taken: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(count):
        for name, work in works.items():
            began = time.perf_counter()
            await work()
            taken[name].append(time.perf_counter() - began)
    return {name: cost(samples).p50 for name, samples in taken.items()}
