"""Whatever is killed, whenever: a background job is run again or answered, and answered once."""

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from remit.services.messaging import threads
from tests import runtime_stage
from tests.background import ask, listed
from tests.company import Member, opened, run_sql
from tests.postgres import Cluster
from tests.runtime_stage import Life, Stage
from tests.working import alive, eventually, processes_with, program

LEASE = 2.0


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with runtime_stage.opened() as stage:
        yield stage


def statuses(url: str) -> list[str]:
    return [status for (status,) in run_sql(url, "SELECT status FROM jobs ORDER BY id")]


def answers_to(url: str, member: Member) -> list[str]:
    """The requests that the background answered, as often as it did."""
    found = run_sql(
        url,
        "SELECT reply_to FROM messages JOIN deliveries ON deliveries.message_id = messages.id"
        " WHERE background AND agent_id = ?",
        member.id,
    )
    return [request for (request,) in found]


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not alive(pid))


@pytest.mark.requirement("HH-44")
def test_a_job_goes_on_after_the_instance_was_killed_and_nothing_is_left(
    stage: Stage, database_url: str, tmp_path: Path
) -> None:
    home, go = tmp_path / "home", tmp_path / "go"
    with opened(database_url, home) as company:
        mark = f"mark-{company.app.ids.new()}"
        inside = program(company, "inside", f"sleep 600; : {mark}", perpetual=True)
        script = f"test -e {go} && echo done && exit; setsid sh -c 'sleep 600; : {mark}'; : {mark}"
        outside = program(company, "outside", script, config={"sandbox": "full"})
        for member in (inside, outside):
            ask(company, member)
    life = Life(database_url, str(home))
    first = stage.begin(life)
    jobs = home / "run" / "jobs"
    # One of them has three processes already.
    eventually(lambda: len(processes_with(mark)) >= 3 and len(list(jobs.iterdir())) == 2)
    folders = list(jobs.iterdir())
    before = processes_with(mark)
    kill(first)
    go.touch()
    second = stage.begin(life)
    assert not any(alive(pid) for pid in before)
    assert not any(folder.exists() for folder in folders)
    eventually(lambda: sorted(statuses(database_url)) == ["completed", "running"])
    assert len(answers_to(database_url, outside)) == 1
    # Asked to stop, it takes everything along.
    os.kill(second, signal.SIGTERM)
    eventually(lambda: not alive(second))
    assert not processes_with(mark)
    assert sorted(statuses(database_url)) == ["completed", "queued"]
    assert list((home / "run" / "jobs").iterdir()) == []
    with opened(database_url, home) as company:
        (job,) = listed(company, outside)
        shown = company.call(company.board, threads.show, message=job["answer_id"])
        assert shown["body"] == "done"


@pytest.mark.campaign_on_postgresql("one kill is tried there each time")
def test_killed_again_and_again_every_job_is_answered_once(
    stage: Stage, database_url: str, tmp_path: Path
) -> None:
    home, count = tmp_path / "home", 24
    with opened(database_url, home) as company:
        team = [program(company, f"dev{number}", "sleep 0.05; echo done") for number in range(3)]
        requests = {ask(company, team[number % 3])["id"]: number % 3 for number in range(count)}
    picks = random.Random(7)
    life = Life(database_url, str(home), slots=1)
    for _ in range(6):
        living = stage.begin(life)
        time.sleep(picks.uniform(0.0, 0.25))
        kill(living)
    living = stage.begin(life)
    eventually(lambda: not {"queued", "running"} & set(statuses(database_url)), 60)
    os.kill(living, signal.SIGTERM)
    eventually(lambda: not alive(living))
    for number, member in enumerate(team):
        mine = sorted(request for request, whose in requests.items() if whose == number)
        assert sorted(answers_to(database_url, member)) == mine
    # Those whose workers died three times with them were given up, and that was the answer.
    assert set(statuses(database_url)) <= {"completed", "failed"}
    ends = run_sql(database_url, "SELECT resource FROM events WHERE action = 'job.end'")
    assert len(ends) == len(set(ends)) == count


def test_a_worker_that_was_only_asleep_has_lost_its_job(
    stage: Stage, postgres_cluster: Cluster, tmp_path: Path
) -> None:
    url, home = postgres_cluster.migrated_database(), tmp_path / "home"
    seen = tmp_path / "seen"
    with opened(url, home) as company:
        script = f"cat >> {seen}; sleep 1.5; echo done"
        dev = program(company, "dev", script, config={"sandbox": "full"})
        request = ask(company, dev)["id"]
    worker = {"alone": False, "lease_seconds": LEASE}
    zombie = stage.begin(Life(url, str(home), "zombie", **worker))  # type: ignore[arg-type]
    eventually(lambda: seen.exists() and seen.read_text().count("turn") == 1)
    os.kill(zombie, signal.SIGSTOP)
    stage.begin(Life(url, str(home), "fresh", **worker))  # type: ignore[arg-type]
    eventually(lambda: seen.read_text().count("turn") == 2)
    os.kill(zombie, signal.SIGCONT)
    eventually(lambda: statuses(url) == ["completed"])
    eventually(lambda: not list((home / "run" / "jobs").iterdir()))  # both have put it away
    assert answers_to(url, dev) == [request]
    assert run_sql(url, "SELECT worker, epoch FROM jobs") == [("fresh", 2)]
