"""Statements of one call: each is a way to the database and back, and the company waits for most.

The second call of its kind is counted, so nothing that happens only once. No worker works beside
the calls.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import closing, contextmanager
from itertools import count
from typing import Any

from benchmarks import office
from benchmarks.harness import KIB_4, Plan, Row
from benchmarks.office import Office
from benchmarks.runtime import NOWHERE, program
from remit.entrypoints.http.server.asgi import build_asgi
from remit.entrypoints.http.wire.caller import COOKIE
from remit.runtime.runs.worker import Worker
from remit.services.governance import approvals
from remit.services.hiring import hiring
from remit.services.people import sessions
from remit.store.engine import sqlite
from remit.store.engine.migrate import sqlite_path
from remit.store.engine.sqlite import SqliteTransaction

#: At most, without the beginning and the commit.
BUDGETS = {
    "kb_read": 4,
    "kb_write": 7,
    "outcome create": 8,
    "mail": 10,
    "approve": 14,
    "hire": 16,
    "first page": 12,
}
MOST_OF_RUN, MOST_COMMITS = 40, 6
#: Seconds after which a worker waits for the next, having looked.
SETTLED = 0.3
_ENDED = "SELECT count(*) FROM runs WHERE status = 'completed'"


def measure(plan: Plan) -> Iterator[Row]:
    with office.opened(plan.home("statements")) as here:
        calls = _calls(here)
        for name, call in calls.items():
            call()
            with counted() as done:
                call()
            taken = done["statements"]
            most = BUDGETS[name]
            yield Row(name, f"{taken} statements", "", None, f"≤ {most}", taken <= most)
    with office.opened(plan.home("statements-run")) as here:
        done = here.wait(_of_run(here))
    taken, commits = done["statements"], done["commits"]
    within = taken <= MOST_OF_RUN and commits <= MOST_COMMITS
    said = f"{taken} statements, {commits} commits"
    yield Row("run of /bin/true", said, "", None, f"≤ {MOST_OF_RUN}, {MOST_COMMITS}", within)


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Statements and commits that are done meanwhile, by whatever thread."""
    execute, commit = SqliteTransaction.execute, sqlite._commit_together
    done: Counter[str] = Counter()

    def counting(*given: Any) -> Any:
        done["statements"] += 1
        return execute(*given)

    def committing(*given: Any) -> None:
        done["commits"] += 1
        commit(*given)

    SqliteTransaction.execute = counting  # type: ignore[assignment,method-assign]
    sqlite._commit_together = committing  # type: ignore[assignment]
    try:
        yield done
    finally:
        SqliteTransaction.execute = execute  # type: ignore[method-assign]
        sqlite._commit_together = commit


def _calls(here: Office) -> dict[str, Callable[[], object]]:
    file, number = here.file(KIB_4), count()

    def write() -> None:
        nonlocal file
        file = here.write(file, b"%08d" % next(number) + KIB_4[8:])

    def hire() -> str:
        made = here.call(
            here.agent,
            hiring.hire,
            company=None,
            name=f"hired-{next(number)}",
            adapter_type="scripted",
        )
        return str(made["approval"]["id"])

    asked = iter([hire() for _ in range(2)])
    here.call(here.board, approvals.approve, approval=hire())
    return {
        "kb_read": lambda: here.read(file["id"]),
        "kb_write": write,
        "outcome create": lambda: here.wait(
            here.app.library.create_outcome(
                here.agent, title="A part", parent=here.agent_id, description="Do it."
            )
        ),
        "mail": lambda: here.wait(
            here.app.library.send(here.board, to="agent:ceo", body="Have a look at this.")
        ),
        "approve": lambda: here.call(here.board, approvals.approve, approval=next(asked)),
        "hire": hire,
        "first page": _page(here),
    }


def _page(here: Office) -> Callable[[], object]:
    """The first page, as the instance answers it to a browser."""
    instance = build_asgi(here.app)
    session = here.call(here.board, sessions.open_)["token"]
    headers = {"host": "127.0.0.1", "cookie": f"{COOKIE}={session}"}
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/",
        "raw_path": b"/",
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }

    async def look() -> None:
        answers: list[MutableMapping[str, Any]] = []

        async def send(message: MutableMapping[str, Any]) -> None:
            answers.append(message)

        async def receive() -> MutableMapping[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        await instance(dict(scope), receive, send)
        assert answers[0]["status"] == 200, answers

    return lambda: here.wait(look())


async def _of_run(here: Office) -> Counter[str]:
    """Count a run that the letter of a person started, and whatever its worker looks for until
    it waits for the next."""
    await program(here, "true", "/bin/true")
    worker = Worker(here.app, NOWHERE)
    worker.start()
    await asyncio.sleep(SETTLED)
    await here.app.library.send(here.board, to="agent:true", body="Go")
    with counted() as done, closing(_beside(here)) as beside:
        async with asyncio.timeout(30):
            while beside.execute(_ENDED).fetchone() == (0,):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await asyncio.sleep(SETTLED)
    await worker.stop()
    return done


def _beside(here: Office) -> sqlite3.Connection:
    """A look at the database that nobody counts."""
    return sqlite3.connect(sqlite_path(here.app.settings.database_url))
