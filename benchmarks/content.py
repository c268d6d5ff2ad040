"""File contents over HTTP, with one client and with sixteen."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.harness import KIB_4, Plan, Row
from benchmarks.instance import Instance, started
from benchmarks.wire import Fixed, Put, Script, http, load

CLIENTS = 16
LEAST = {"GET": 2_500, "PUT": 900}


def measure(plan: Plan) -> Iterator[Row]:
    with started(plan.home("content")) as instance:
        key = instance.agent("measured")
        for clients in (1, CLIENTS):
            health: list[Script] = [Fixed(http("GET", "/health", key)) for _ in range(clients)]
            floor = load(instance.url, health, plan.seconds(3)).per_second
            for method in ("GET", "PUT"):
                scripts = [_script(instance, key, method) for _ in range(clients)]
                found = load(instance.url, scripts, plan.seconds(5))
                many = clients == CLIENTS
                yield Row(
                    f"{method} 4 KiB, {clients} clients: {found.per_second:,.0f} a second",
                    str(found.cost),
                    f"GET /health: {floor:,.0f} a second",
                    floor / found.per_second,
                    f"≥ {LEAST[method]:,}" if many else "",
                    found.per_second >= LEAST[method] if many else None,
                )


def _script(instance: Instance, key: str, method: str) -> Script:
    file = instance.file(key, KIB_4)
    if method == "GET":
        return Fixed(http("GET", f"/api/files/{file['id']}/content", key))
    return Put(file["id"], key, f'"{file["version"]}:{file["hash"]}"', KIB_4)
