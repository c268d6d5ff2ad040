"""How long one call keeps everybody else waiting: what looks at the most of a large company.

As in `door` it is what the instance itself computes between two turns of its event loop.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from urllib.parse import urlsplit

from benchmarks.harness import Plan, Row, shown
from benchmarks.instance import WAITED
from benchmarks.pages import HURRIED, LARGE, PAGES, Reader
from benchmarks.wire import EARLIER, LATER, tool_call
from remit.entrypoints.mcp.tools.kb_tools import MOST_INLINE

MOST_HELD = 0.05
#: What a tool hands over inline at most: text that costs most to write as JSON.
_TEXT = '"\x01' * (MOST_INLINE // 2)
_LISTS = (
    *("activity", "agent-configurations", "agents", "approvals", "budgets", "dashboard", "events"),
    *("events/verify", "files", "grants", "messages", "org", "outcomes", "outcomes/graph.json"),
    *("outcomes/graph.svg", "runs", "search?q=part"),
)


def measure(plan: Plan) -> Iterator[Row]:
    with contextlib.ExitStack() as stack:
        sizes = HURRIED if plan.quick else LARGE
        reader = Reader(stack, plan.home("held"), sizes, watched=True)
        told = plan.home("held") / WAITED
        for name, work in _works(reader).items():
            for _ in range(2):  # what only the first ones wait for
                size = work()
            told.unlink(missing_ok=True)
            began = time.perf_counter()
            for _ in range(3):
                work()
            took = (time.perf_counter() - began) / 3
            while not told.exists():
                time.sleep(0.001)
            held = float(told.read_text())
            yield Row(
                name,
                f"others wait {shown(held)} at most",
                f"{size / 1000:,.0f} kB in {shown(took)}",
                None,
                f"< {shown(MOST_HELD)}",
                held < MOST_HELD,
            )


def _works(reader: Reader) -> dict[str, Callable[[], int]]:
    instance, root = reader.instance, reader.root
    here = f"/api/companies/{instance.company}"
    board = {"Authorization": f"Bearer {instance.board}"}
    key: str = instance.ask("POST", f"/api/agents/{root}/keys")["token"]
    document = {"description": "Long", "content": _TEXT}
    long = instance.ask("POST", f"{here}/files", document, token=key)["id"]

    def get(path: str, **headers: str) -> Callable[[], int]:
        return lambda: _get(instance.url, path, headers)

    def tool(protocol: str, name: str, **given: object) -> Callable[[], int]:
        return lambda: _sent(instance.url, tool_call(protocol, key, name, **given))

    works = {
        f"page: {name}": get(reader.address(path), Cookie=reader.cookie) for path, name in PAGES
    }
    for path in (*(f"{here}/{one}" for one in _LISTS), f"/api/outcomes/{root}/subtree"):
        bare = path.rpartition("/")[2]
        more = "&" if "?" in path else "?"
        with contextlib.suppress(AssertionError):
            _get(instance.url, limited := f"{path}{more}limit=1000", board)
            path = limited
        works[f"list: {bare}"] = get(path, **board)
    for protocol in (EARLIER, LATER):
        for name, given in (
            ("kb_read", {"id": long}),
            ("kb_browse", {"limit": 500}),
            ("kb_list", {"limit": 500}),
            ("capability_list", {}),
            ("agent_configurations", {}),
            ("outcome_list", {"limit": 500}),
            ("outcome_subtree", {"id": root}),
            ("loose_ends", {}),
            ("mail_inbox", {}),
        ):
            works[f"tool: {name}, {protocol}"] = tool(protocol, name, **given)
    return works


def _get(url: str, path: str, headers: dict[str, str]) -> int:
    place = urlsplit(url)
    connection = HTTPConnection(place.hostname or "", place.port, timeout=60)
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        body = response.read()
    finally:
        connection.close()
    assert response.status == 200, (path, response.status, body[:500])
    return len(body)


def _sent(url: str, request: bytes) -> int:
    """A call of a tool, whatever it answers."""
    head, _, body = request.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    place = urlsplit(url)
    connection = HTTPConnection(place.hostname or "", place.port, timeout=60)
    try:
        method, path, _ = first.split()
        connection.request(method, path, body, dict(one.split(": ", 1) for one in lines))
        answer = connection.getresponse().read()
    finally:
        connection.close()
    result = json.loads(answer)["result"]
    assert not result.get("isError"), answer[:500]
    return len(answer)
