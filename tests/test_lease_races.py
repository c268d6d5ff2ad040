"""A worker that is heard of again just as others take over from it, and a connection that is lost.

Histories of several processes showed both; see `test_linearizability.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import psycopg
import pytest

from remit.clock import MINUTE, SystemClock
from remit.errors import Conflict
from remit.services.execution import job_queue, jobs, run_queue
from remit.services.identity import as_system
from remit.store.engine import migrate
from remit.store.engine.database import Transaction, open_database
from tests import background
from tests.company import Company
from tests.postgres import Cluster
from tests.working import claim

#: Long enough for a renewal that does not have to wait for anybody.
A_MOMENT = 0.5


@pytest.fixture
def clock() -> SystemClock:
    return SystemClock()


async def _meanwhile(
    company: Company, monkeypatch: pytest.MonkeyPatch, module: Any, renew: Any, take_over: Any
) -> tuple[Any, Any]:
    """Renew while a take-over has found the worker silent and has not committed yet."""
    loop = asyncio.get_running_loop()
    finish = module.finish
    renewals: list[Any] = []

    def slowly(*args: Any, **kwargs: Any) -> Any:
        renewals.append(asyncio.run_coroutine_threadsafe(renew(), loop))
        with contextlib.suppress(TimeoutError):
            renewals[0].result(A_MOMENT)
        return finish(*args, **kwargs)

    monkeypatch.setattr(module, "finish", slowly)
    taken = await take_over()
    return taken, await asyncio.wrap_future(renewals[0])


def test_who_is_taken_over_from_is_not_told_that_it_holds_its_run(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = company.agent("agent", adapter_type="scripted")
    run = claim(company, agent, lease=10 * MINUTE)
    until = company.call(as_system(), run_queue.held)[run.id]
    gate = company.app.gate
    asked: Any = {"held": [(agent.id, 1)], "lease": 20 * MINUTE}
    taken, lost = company.wait(
        _meanwhile(
            company,
            monkeypatch,
            run_queue,
            lambda: gate(as_system(), run_queue.renew, **asked),
            lambda: gate(as_system(), run_queue.take_over, run=run.id, until=until),
        )
    )
    assert (taken["status"], lost) == ("lost", [(agent.id, 1)])


def test_who_was_heard_of_again_keeps_its_run(company: Company) -> None:
    agent = company.agent("agent", adapter_type="scripted")
    run = claim(company, agent, lease=10 * MINUTE)
    until = company.call(as_system(), run_queue.held)[run.id]
    asked: Any = {"held": [(agent.id, 1)], "lease": 20 * MINUTE}
    assert company.call(as_system(), run_queue.renew, **asked) == []
    with pytest.raises(Conflict, match="renewed the lease"):
        company.call(as_system(), run_queue.take_over, run=run.id, until=until)
    assert company.call(as_system(), run_queue.held).keys() == {run.id}


def test_who_is_taken_over_from_is_not_told_that_it_holds_its_job(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = company.agent("agent", adapter_type="process", adapter_config={"command": "/bin/true"})
    background.ask(company, agent, "Count.", at_most_once=True)
    (job,) = [one["id"] for one in background.listed(company)]
    held = company.call(as_system(), job_queue.claim, job=job, worker="w", lease=1)
    gate = company.app.gate
    asked: Any = {"held": [(job, held["epoch"])], "lease": 20 * MINUTE}
    taken, lost = company.wait(
        _meanwhile(
            company,
            monkeypatch,
            jobs,
            lambda: gate(as_system(), job_queue.renew, **asked),
            lambda: gate(as_system(), job_queue.take_over, job=job, epoch=held["epoch"]),
        )
    )
    assert (taken["status"], lost) == ("failed", [(job, held["epoch"])])


def test_a_connection_that_is_lost_while_something_is_undone_hides_nothing(
    postgres_cluster: Cluster,
) -> None:
    url = postgres_cluster.migrated_database()
    migrate.migrate(url)
    database = open_database(url)

    def refused(tx: Transaction) -> None:
        (pid,) = tx.execute("SELECT pg_backend_pid()", {}).fetchone()
        with psycopg.connect(url, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))
        raise Conflict("on purpose")

    try:
        with pytest.raises(Conflict, match="on purpose"):
            database.submit_write(refused).result(30)
        assert database.submit_read(lambda tx: tx.execute("SELECT 1", {}).fetchone()).result(30)
        assert database.submit_write(lambda tx: tx.execute("SELECT 1", {}).fetchone()).result(30)
    finally:
        database.close()
