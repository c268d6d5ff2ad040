"""Stop and go with real programs: live runs end at once in every process, and nothing is lost."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from remit.clock import SystemClock
from remit.runtime.jobs import Jobs
from remit.runtime.runs import processes
from remit.runtime.runs.worker import Worker
from remit.services.organisation import halts
from tests import background
from tests.company import Company, Member
from tests.mailing import send
from tests.worker_process import beside
from tests.working import (
    at_work,
    eventually,
    listed,
    looked_again,
    processes_with,
    program,
    with_worker,
)

pytestmark = pytest.mark.requirement("FX-13")
#: How long it may take until no program of a stopped agent is left.
PROMPT = 3.0


@pytest.fixture
def clock() -> SystemClock:
    return SystemClock()


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "GRACE_SECONDS", 0.5)


def running(company: Company) -> int:
    return int(company.sql("SELECT count(*) FROM runs WHERE status = 'running'")[0][0])


def staff(company: Company, count: int, mark: str) -> list[Member]:
    """Agents that sleep for a minute the first time they run, and end well the second time."""
    seen = company.home / "seen"
    seen.mkdir()
    script = (
        f"if [ -e {seen}/$REMIT_AGENT ]; then exit 0; fi; touch {seen}/$REMIT_AGENT; sleep {mark}"
    )
    full = {"sandbox": "full"}
    made = [program(company, f"dev{n}", script, config=full) for n in range(count)]
    for member in made:
        send(company, company.board, f"agent:{member.name}", "Please.")
    return made


def at_it(company: Company, count: int) -> bool:
    """Whether so many programs run."""
    return len(list((company.home / "seen").iterdir())) == count == running(company)


async def until(look: Any, seconds: float = 30) -> float:
    began = time.monotonic()
    async with asyncio.timeout(seconds):
        while not await asyncio.to_thread(look):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return time.monotonic() - began


def attempts(company: Company) -> set[tuple[str, int]]:
    return set(company.sql("SELECT status, attempt FROM deliveries WHERE agent_id IS NOT NULL"))


def test_a_stop_with_50_live_runs_ends_all_of_them_and_loses_nothing(small: Company) -> None:
    mark = "61.0501"
    made = staff(small, 50, mark)

    async def story(worker: Worker) -> None:
        await until(lambda: at_it(small, 50))
        halt = await small.app.gate(small.board, halts.stop, company=small.id)
        assert halt["runs_ended"] == 50
        assert await until(lambda: not processes_with(mark)) < PROMPT * 3
        await until(lambda: worker.busy == 0)
        await looked_again(worker)
        assert (running(small), worker.busy) == (0, 0)

    with_worker(small, story, slots=50)
    assert {(run["status"], run["exit_reason"]) for run in listed(small)} == {("lost", "stopped")}
    assert attempts(small) == {("queued", 1)}
    small.call(small.board, halts.go, company=small.id)
    at_work(small, lambda: attempts(small) == {("done", 1)}, slots=8)
    assert len(listed(small)) == 2 * len(made)


def test_runs_in_other_processes_end_as_promptly(small: Company) -> None:
    mark = "61.0502"
    staff(small, 6, mark)
    with beside(small, "one", 3), beside(small, "two", 3):
        eventually(lambda: at_it(small, 6))
        assert small.call(small.board, halts.stop, company=small.id)["runs_ended"] == 6
        began = time.monotonic()
        eventually(lambda: not processes_with(mark))
        assert time.monotonic() - began < PROMPT + 2
        assert running(small) == 0
        assert attempts(small) == {("queued", 1)}
        small.call(small.board, halts.go, company=small.id)
        eventually(lambda: attempts(small) == {("done", 1)})


def test_a_job_under_way_ends_and_is_done_after_the_go(small: Company, tmp_path: Path) -> None:
    mark = "61.0503"
    flag = tmp_path / "begun"
    script = f"if [ -e {flag} ]; then echo done; exit 0; fi; touch {flag}; sleep {mark}"
    dev = background.worker_of(small, "dev", script, config={"sandbox": "full"})
    background.ask(small, dev)

    async def story(carrier: Jobs) -> None:
        await until(flag.exists)
        halt = await small.app.gate(small.board, halts.stop, agent=dev.id)
        assert halt["jobs_put_back"] == 1
        assert await until(lambda: not processes_with(mark)) < PROMPT
        await until(lambda: carrier.busy == 0)
        await looked_again(carrier)
        assert carrier.busy == 0
        assert background.statuses(small) == ["queued"]
        await small.app.gate(small.board, halts.go, agent=dev.id)
        await until(lambda: background.statuses(small) == ["completed"])

    background.while_carried_out(small, story)
