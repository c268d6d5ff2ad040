"""At random moments something is killed: the instance, a worker, an agent's program.

Afterwards every letter was worked on, none again that was acknowledged; nothing was completed,
hired or answered twice; no agent was at work twice; the record verifies and nothing is left over.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest

from tests import runtime_stage
from tests.kills import Office
from tests.mail_stage import MOMENTS
from tests.postgres import Cluster
from tests.runtime_stage import Stage
from tests.working import eventually

#: What a run consists of, from the claim to its end; killed before, in and after each commit.
VERBS = (
    "claiming.claim",
    "claiming.briefing",
    "claiming.append_log",
    "outcomes.create",
    "outcomes.complete",
    "delegation.delegate",
    "mail.send",
    "inbox.acknowledge",
    "runs.end",
)
#: A kill takes a third of a second; a machine that has much else to do takes ten times as long.
SECONDS = 400

MORE = pytest.mark.campaign("a minute for more random moments of the same kind")
OTHERS = pytest.mark.campaign("the same commits, each at another of its three moments")


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with runtime_stage.opened() as stage:
        yield stage


def kill_at_random(
    office: Office, victims: dict[str, str], count: int, within: float, patience: float
) -> None:
    """So many kills, half of them of programs; whoever is killed begins anew.

    `patience` is how often it is let begin before the next one is killed.
    """
    before = office.kills.total()
    names = cycle(sorted(victims))
    programs = cycle((True, False))
    while office.kills.total() < before + count:
        time.sleep(office.moments.random() * within)
        if next(programs):
            office.kill_agent()
        else:
            name = next(names)
            office.kill(name)
            office.check_alone()
            office.begin(victims[name], name, wait=office.moments.random() < patience)
        office.help_along()


@pytest.mark.timeout(SECONDS)
@pytest.mark.requirement("BX-06")
@pytest.mark.parametrize(
    ("seed", "count"), [(1, 10), *(pytest.param(seed, 30, marks=MORE) for seed in (1, 2, 3, 4))]
)
def test_an_instance_and_its_agents_are_killed_at_random_moments(
    stage: Stage, tmp_path: Path, seed: int, count: int
) -> None:
    office = Office(f"sqlite:///{tmp_path}/remit.db", tmp_path / "home", stage, seed)
    office.begin("up", "instance")
    with office.at_work():
        kill_at_random(office, {"instance": "up"}, count, 0.3, 0.7)
    assert office.kills.total() == count
    assert min(office.kills.values()) >= count // 4, office.kills
    office.settle()
    office.stop()
    office.check()


@pytest.mark.timeout(SECONDS)
@pytest.mark.requirement("BX-06", "HB-30")
@pytest.mark.parametrize(
    ("seed", "count"), [(5, 8), *(pytest.param(seed, 40, marks=MORE) for seed in (5, 6))]
)
def test_workers_and_agents_on_one_database_are_killed_at_random_moments(
    stage: Stage, postgres_cluster: Cluster, tmp_path: Path, seed: int, count: int
) -> None:
    office = Office(postgres_cluster.migrated_database(), tmp_path / "home", stage, seed, agents=6)
    processes = {"serve": "serve", "one": "worker", "two": "worker"}
    for name, kind in processes.items():
        office.begin(kind, name)
    with office.at_work():
        kill_at_random(office, processes, count, 0.3, 0.2)
    assert office.kills.total() == count
    assert len(office.kills) == 4, office.kills
    office.settle()
    office.stop()
    office.check()


@pytest.mark.timeout(SECONDS)
@pytest.mark.requirement("BX-06")
@pytest.mark.parametrize("turn", [0, *(pytest.param(turn, marks=OTHERS) for turn in (1, 2))])
def test_an_instance_is_killed_around_each_commit_of_a_run(
    stage: Stage, tmp_path: Path, turn: int
) -> None:
    """Before one, in the next, after the one after that; three turns have them all."""
    office = Office(f"sqlite:///{tmp_path}/remit.db", tmp_path / "home", stage, 4)
    office.begin("up", "instance")
    with office.at_work():
        office.kill("instance")
        for number, verb in enumerate(VERBS):
            moment = MOMENTS[(number + turn) % len(MOMENTS)]
            office.begin("up", "instance", wait=False, crash=(verb, moment, 1))
            eventually(office.ends_itself)
            office.check_alone()
        office.begin("up", "instance")
    office.settle()
    office.stop()
    office.check()
