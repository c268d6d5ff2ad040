"""What happens in a company while somebody looks at its pages."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from remit.runtime.runs import LiveRun, begin, finish
from tests.browsing import Office
from tests.http_client import Client

T = TypeVar("T")
#: What agents may try to have a page carry out.
HOSTILE = (
    "<script>window.hacked = 1</script> ![x](http://198.51.100.7/x.png) "
    "[y](javascript:alert(1)) </textarea></code><img src=x onerror=alert(1)> \u202eevil"
)


def aside(work: Coroutine[Any, Any, T]) -> T:
    """Do something in a loop of its own; the browser has one in this thread."""
    found: list[T] = []
    thread = threading.Thread(target=lambda: found.append(asyncio.run(work)))
    thread.start()
    thread.join()
    return found[0]


def run(office: Office, agent: dict[str, Any]) -> LiveRun:
    """Begin a run, as a worker would."""
    app = office.running.app
    return aside(begin(app.gate, app.ids, app.settings.workspaces, agent["id"]))


def end(office: Office, live: LiveRun, status: str = "completed") -> None:
    aside(finish(office.running.app.gate, live, status))


def person(office: Office, name: str, role: str = "board", scope: str | None = None) -> Client:
    """Another person with a part in the company."""
    asked: dict[str, Any] = {"name": name, "role": role}
    if scope is not None:
        asked["scope"] = scope
    made = office.board.must("POST", office.path("users"), asked)
    key = office.board.must("POST", office.path(f"users/{made['id']}/tokens"), {"label": "test"})
    return office.running.client(key["token"])


def refusals(office: Office) -> int:
    found = office.board.must("GET", office.path("activity?limit=200"))
    return sum(not one["allowed"] for one in found)
