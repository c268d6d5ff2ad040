"""Whatever is killed, whenever: no message is lost, none is dealt with twice once acknowledged."""

import hashlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import psycopg
import pytest

from remit.services.messaging import pending_items
from remit.services.record import events
from remit.services.screens import needs_you
from tests.company import Company, opened
from tests.mail_stage import MOMENTS, VERBS, Life, Stage, body_of, is_deferred
from tests.postgres import Cluster

Said = list[list[Any]]
#: How many messages each sender sends more with each process.
EACH = 2
STOLEN = pytest.mark.campaign("tests/test_lease_races.py takes leases over each time")
MORE = pytest.mark.campaign("many more random moments of the same kind")


class Office:
    """An instance that processes come and go in, and what they said so far."""

    def __init__(self, url: str, home: Path) -> None:
        self.url, self.home = url, home
        with opened(url, home) as company:
            lead = company.agent("lead")
            worker = company.agent("worker", boss="lead")
            helper = company.agent("helper", boss="worker")
            self.worker, self.worker_id = worker.caller.token, worker.id
            self.senders = {
                "board": company.board.token,
                "lead": lead.caller.token,
                "helper": helper.caller.token,
            }
        self.said: Said = []
        self.kills = self.letters = 0

    def life(self, **more: Any) -> Life:
        """One more process, with a little more to send."""
        self.letters += EACH
        sent = Counter(one[1] for one in self.said if one[0] == "sent")
        senders = {name: (token, sent[name]) for name, token in self.senders.items()}
        worker = {"worker": self.worker, "worker_id": self.worker_id}
        given = {"senders": senders, "letters": self.letters, **worker, **more}
        return Life(self.url, str(self.home), **given)

    def over(self, stage: Stage) -> bool:
        """Wait for the end of a process; tells whether it was killed."""
        code, said = stage.end()
        assert code in (0, -signal.SIGKILL), said
        self.kills += code != 0
        self.said += said
        return code != 0

    def subjects(self, kind: str) -> list[str]:
        return [one[1] for one in self.said if one[0] == kind]


def kill_at_random_moments(
    office: Office, stage: Stage, times: int, longest: float, seed: int
) -> None:
    moments = random.Random(seed)
    for _ in range(times):
        process = stage.begin(office.life())
        time.sleep(moments.random() * longest)
        os.kill(process, signal.SIGKILL)
        assert office.over(stage)


def kill_around_each_commit(office: Office, stage: Stage, rounds: Iterable[int]) -> None:
    for which, verb, moment in product(rounds, VERBS, MOMENTS):
        stage.begin(office.life(crash=(verb, moment, which)))
        office.over(stage)


def check(office: Office, stage: Stage) -> None:
    """Let it go on in peace; then everything was dealt with, in order, and is on record."""
    died: set[str] = set()
    for _ in range(2):
        stage.begin(office.life())
        assert not office.over(stage), "it was not killed"
        with opened(office.url, office.home) as company:
            died |= revive_dead(company)
    expected = [f"{name}-{number}" for name in office.senders for number in range(office.letters)]
    # None is lost, and each was processed at least once, with the body that was sent.
    processed = {one[1]: one[2] for one in office.said if one[0] == "processed"}
    assert sorted(processed) == sorted(expected)
    for subject, body in processed.items():
        name, _, number = subject.partition("-")
        assert body == body_of(name, int(number))
    check_acknowledged(office.said)
    check_order(office, died)
    with opened(office.url, office.home) as company:
        check_record(company, office, expected)


def revive_dead(company: Company) -> set[str]:
    """What was interrupted too often awaits the board, who puts it back in line."""
    found = company.call(company.board, needs_you.listing)
    dead = [one for one in found if one["kind"] == "dead_letter"]
    for one in dead:
        company.call(company.board, pending_items.revive, message=one["id"])
    return {one["title"].partition(" ")[0] for one in dead}


def check_acknowledged(said: Said) -> None:
    """What was acknowledged never comes again."""
    done: set[str] = set()
    for kind, *rest in said:
        if kind == "acknowledged":
            done.add(rest[0])
        if kind in ("leased", "processed"):
            assert rest[0] not in done, (kind, rest)


def check_order(office: Office, died: set[str]) -> None:
    """What was not deferred and never given up comes in the order in which it was sent."""
    first = list(dict.fromkeys(office.subjects("leased")))
    for name in office.senders:
        numbers = [
            int(subject.rpartition("-")[2])
            for subject in first
            if subject.startswith(f"{name}-") and subject not in died
        ]
        in_line = [number for number in numbers if not is_deferred(number)]
        assert in_line == sorted(in_line), (name, in_line)


def check_record(company: Company, office: Office, expected: list[str]) -> None:
    """What the database has: each once, all done, each answered once, and nothing half done."""
    rows = company.sql(
        "SELECT m.subject, d.status, d.ended_why FROM messages m JOIN deliveries d"
        " ON d.message_id = m.id WHERE d.agent_id = ?",
        office.worker_id,
    )
    assert sorted(row[0] for row in rows) == sorted(expected)
    assert {row[1] for row in rows} == {"done"}
    answers = company.sql(
        "SELECT o.subject, count(*) FROM messages m JOIN messages o ON o.id = m.reply_to"
        " GROUP BY o.subject"
    )
    assert sorted(answers) == sorted((subject, 1) for subject in expected)
    positions = [row[0] for row in company.sql("SELECT position FROM deliveries")]
    assert len(set(positions)) == len(positions)
    assert company.sql("SELECT count(*) FROM runs WHERE status = 'running'") == [(0,)]
    assert company.sql("SELECT count(*) FROM deliveries WHERE status = 'leased'") == [(0,)]
    (inbox_status,) = company.sql(
        "SELECT status FROM outcomes WHERE kind = 'inbox' AND owner_id = ?", office.worker_id
    )
    assert inbox_status == ("completed",)
    record = company.call(company.board, events.verify, company=company.id)
    assert record["ok"], record["faults"]
    for file, digest in company.sql("SELECT file_id, sha256 FROM file_versions"):
        with company.app.blobs.open(file, digest) as stream:
            assert hashlib.sha256(stream.read()).hexdigest() == digest
    if "sqlite" in office.url:
        assert company.sql("PRAGMA integrity_check") == [("ok",)]
        assert company.sql("PRAGMA foreign_key_check") == []


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage() as opened_stage:
        yield opened_stage


@pytest.mark.parametrize("rounds", [(1,), pytest.param((1, 2, 3), marks=MORE)])
def test_a_process_that_is_killed_around_each_commit(
    stage: Stage, tmp_path: Path, rounds: tuple[int, ...]
) -> None:
    office = Office(f"sqlite:///{tmp_path}/remit.db", tmp_path / "home")
    kill_around_each_commit(office, stage, rounds)
    assert office.kills >= 13 * len(rounds)
    check(office, stage)


@pytest.mark.parametrize(("seed", "count"), [(1, 45), pytest.param(2, 85, marks=MORE)])
def test_a_process_that_is_killed_at_any_moment(
    stage: Stage, tmp_path: Path, seed: int, count: int
) -> None:
    office = Office(f"sqlite:///{tmp_path}/remit.db", tmp_path / "home")
    kill_at_random_moments(office, stage, count, 0.15, seed)
    assert office.kills == count
    check(office, stage)


@pytest.mark.campaign("tests/test_crash_matrix.py kills mail there each time")
def test_a_process_that_is_killed_on_postgresql(
    stage: Stage, postgres_cluster: Cluster, tmp_path: Path
) -> None:
    office = Office(postgres_cluster.migrated_database(), tmp_path / "home")
    kill_around_each_commit(office, stage, (1,))
    assert office.kills >= 15
    check(office, stage)


@MORE
def test_a_process_that_is_killed_on_postgresql_at_any_moment(
    stage: Stage, postgres_cluster: Cluster, tmp_path: Path
) -> None:
    office = Office(postgres_cluster.migrated_database(), tmp_path / "home")
    kill_at_random_moments(office, stage, 12, 0.2, 3)
    assert office.kills == 12
    check(office, stage)


@pytest.mark.parametrize("steals_after", [0, pytest.param(3, marks=STOLEN)])
def test_two_workers_on_one_inbox_never_have_the_same_letter(
    stage: Stage, postgres_cluster: Cluster, tmp_path: Path, steals_after: int
) -> None:
    office = Office(postgres_cluster.migrated_database(), tmp_path / "home")
    office.letters = 10
    stage.begin(office.life(worker=""))
    assert not office.over(stage)
    at_work = {"starts": False, "senders": {}, "steals_after": steals_after}
    with Stage() as other:
        processes = [one.begin(office.life(**at_work)) for one in (stage, other)]
        office.letters -= 2 * EACH
        with psycopg.connect(office.url, autocommit=True) as watcher:
            while any(_is_alive(process) for process in processes):
                # A letter that a run has which is over would wait for ever.
                assert watcher.execute(LEASED_TO_NOBODY).fetchall() == []
                time.sleep(0.005)
        for one in (stage, other):
            assert not office.over(one)
    office.said.sort(key=lambda one: int(one[-1]))
    acknowledged = Counter(office.subjects("acknowledged"))
    assert set(acknowledged.values()) == {1}
    assert steals_after or not office.subjects("lost")
    if not steals_after:
        check_never_together(office.said)
        check_acknowledged(office.said)
    check(office, stage)


LEASED_TO_NOBODY = (
    "SELECT d.id, r.status FROM deliveries d JOIN runs r ON r.id = d.run_id"
    " WHERE d.status = 'leased' AND r.status <> 'running'"
)


def check_never_together(said: Said) -> None:
    """From when a run is told of a letter until it ends, no other run is told of it."""
    held: dict[str, str] = {}
    for kind, *rest, _ in said:
        if kind == "leased":
            subject, _, run = rest
            assert held.setdefault(subject, run) == run
        if kind == "ended":
            held = {subject: run for subject, run in held.items() if run != rest[0]}


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
