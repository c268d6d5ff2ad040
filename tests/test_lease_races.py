"""A worker that is heard of again just as others take over from it, and a connection that is lost.

Histories of several processes showed both; see `test_linearizability.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from remit.clock import MINUTE, SystemClock
from remit.errors import Conflict, Unavailable
from remit.services.execution import job_queue, jobs, run_queue
from remit.services.identity import as_system
from remit.store.engine import migrate
from remit.store.engine.database import Transaction, open_database
from remit.store.engine.postgres import connection_address
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


def test_what_a_lost_connection_undid_is_done_again_with_a_new_one(
    postgres_cluster: Cluster,
) -> None:
    """As after a restart of the server: no call has to fail for it."""
    url = postgres_cluster.migrated_database()
    database = open_database(url)
    attempts = []

    def add(tx: Transaction) -> None:
        tx.execute("INSERT INTO users VALUES ('u', 'u', true, 1, 'u')", {})
        attempts.append(tx)
        if len(attempts) == 1:
            _end_all(url)
            tx.execute("SELECT 1", {})

    def end_in_commit(tx: Transaction) -> None:
        attempts.append(tx)
        tx.execute("SELECT 1", {})
        _end_all(url)

    try:
        database.submit_write(add).result(30)
        assert len(attempts) == 2
        _end_all(url)
        read = database.submit_read(lambda tx: tx.execute("SELECT id FROM users", {}).fetchall())
        assert read.result(30) == [("u",)]
        # Whether a commit took effect is unknown when the connection is lost in it.
        with pytest.raises(Unavailable):
            database.submit_write(end_in_commit).result(30)
        assert len(attempts) == 3
    finally:
        database.close()


def test_a_server_that_went_away_without_a_word_is_noticed_unless_the_address_says_otherwise(
    postgres_cluster: Cluster,
) -> None:
    url = postgres_cluster.migrated_database()
    given = f"{url}?keepalives_idle=77&options=-c%20work_mem%3D5MB"
    for address, idle, memory in ((url, "10", "4MB"), (given, "77", "5MB")):
        patience = conninfo_to_dict(connection_address(address))
        assert (patience["keepalives_idle"], patience["tcp_user_timeout"]) == (idle, "25000")
        database = open_database(address)
        try:
            for name, value in (
                *(("jit", "off"), ("work_mem", memory)),
                ("idle_in_transaction_session_timeout", "5s"),
            ):
                shown = database.submit_read(partial(_shown, name=name)).result(30)
                assert (name, shown) == (name, value)
        finally:
            database.close()


def _end_all(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as beside:
        beside.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def _shown(tx: Transaction, name: str) -> str:
    (value,) = tx.execute(f"SHOW {name}", {}).fetchone()
    return str(value)
