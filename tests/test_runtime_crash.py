"""Whatever is killed or stopped, whenever: nothing is lost, nothing runs twice, nothing is left."""

import asyncio
import contextlib
import os
import random
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from remit.app import App
from remit.clock import SystemClock
from remit.errors import Unauthenticated
from remit.runtime.runs import lifecycle as local_runs
from remit.services.execution import run_queue, runs
from remit.services.identity import Caller, as_system
from remit.services.messaging import pending_items
from remit.services.people import users
from remit.services.screens import needs_you
from tests import runtime_stage
from tests.company import Company, Member, opened, run_sql, settings
from tests.mailing import send
from tests.organisation import problems
from tests.runtime_stage import Life, Stage
from tests.working import alive, eventually, processes_with, program

#: A lease that is short enough for a test and long enough for a busy machine.
LEASE = 2.0


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with runtime_stage.opened() as stage:
        yield stage


@pytest.fixture
def sqlite(tmp_path: Path) -> tuple[str, Path]:
    return f"sqlite:///{tmp_path}/remit.db", tmp_path / "home"


@pytest.fixture
def postgresql(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    cluster = request.getfixturevalue("postgres_cluster")
    url = cluster.migrated_database()
    yield url, tmp_path / "home"
    cluster.drop_database(url)


def mark(company: Company) -> str:
    return f"mark-{company.app.ids.new()}"


def rows(url: str, member: Member) -> list[tuple[str, str, int]]:
    found = run_sql(
        url, "SELECT id, status, epoch FROM runs WHERE agent_id = ? ORDER BY id", member.id
    )
    return [(run, status, epoch) for run, status, epoch in found]


def is_running(url: str, member: Member, *, epoch: int = 1) -> bool:
    return any(status == "running" and at >= epoch for _, status, at in rows(url, member))


def deliveries(url: str) -> list[tuple[str, bool]]:
    """What became of all letters, and whether a run had begun with them."""
    found = run_sql(url, "SELECT status, begun FROM deliveries WHERE agent_id IS NOT NULL")
    return [(status, bool(begun)) for status, begun in found]


def letters_to(url: str, team: list[Member]) -> list[str]:
    """What became of the mail of these agents."""
    ids = {member.id for member in team}
    found = run_sql(url, "SELECT agent_id, status FROM deliveries")
    return [status for agent, status in found if agent in ids]


def is_gone(pid: int) -> bool:
    return not alive(pid)


def kill(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    os.kill(pid, number)
    if number is signal.SIGKILL:
        eventually(lambda: not alive(pid))


@pytest.mark.requirement("BX-06")
def test_when_the_instance_is_killed_its_programs_end_at_once_or_at_the_next_start(
    stage: Stage, sqlite: tuple[str, Path]
) -> None:
    url, home = sqlite
    with opened(url, home) as company:
        held, loose = mark(company), mark(company)
        inside = program(
            company, "inside", f"(setsid sleep 600 &) ; touch $HOME/began; sleep 600; : {held}"
        )
        outside = program(
            company,
            "outside",
            f"setsid sh -c 'sleep 600; : {loose}' & sleep 600; : {loose}",
            config={"sandbox": "full"},
        )
        for member in (inside, outside):
            send(company, company.board, f"agent:{member.id}")
    life = Life(url, str(home))
    first = stage.begin(life)
    began = home / "agents" / inside.id / "began"  # so it is held by now
    eventually(lambda: began.exists() and len(processes_with(loose)) >= 2)
    folders = list((home / "run" / "workspaces").iterdir())
    assert len(folders) == 2
    kill(first)
    eventually(lambda: not processes_with(held))
    assert processes_with(loose)  # nothing ties this one to us
    before = processes_with(loose)
    second = stage.begin(life)
    assert not any(alive(pid) for pid in before)
    assert not any(folder.exists() for folder in folders)
    for member in (inside, outside):
        assert rows(url, member)[0][1] == "lost"
        eventually(partial(is_running, url, member, epoch=2))
    eventually(lambda: deliveries(url).count(("leased", True)) == 2)
    # Asked to stop, it takes everything along.
    os.kill(second, signal.SIGTERM)
    eventually(lambda: not alive(second))
    assert not processes_with(held)
    assert not processes_with(loose)
    assert run_sql(url, "SELECT count(*) FROM runs WHERE status = 'running'") == [(0,)]
    assert not list((home / "run" / "workspaces").iterdir())


@pytest.mark.requirement("BX-06", "HB-30")
def test_a_stopped_worker_that_goes_on_has_lost_its_run(
    stage: Stage, postgresql: tuple[str, Path]
) -> None:
    url, home = postgresql
    with opened(url, home) as company:
        here = mark(company)
        dev = program(company, "dev", f"echo $REMIT_TOKEN > $HOME/token; sleep 600; : {here}")
        send(company, company.board, "agent:dev")
    worker = {"alone": False, "lease_seconds": LEASE}
    zombie = stage.begin(Life(url, str(home), "zombie", **worker))  # type: ignore[arg-type]
    token_file = home / "agents" / dev.id / "token"
    eventually(lambda: token_file.exists() and token_file.read_text().strip())
    token = Caller(token_file.read_text().strip())
    kill(zombie, signal.SIGSTOP)
    began = time.monotonic()
    token_file.unlink()
    fresh = stage.begin(Life(url, str(home), "fresh", **worker))  # type: ignore[arg-type]
    eventually(lambda: is_running(url, dev, epoch=2))
    assert time.monotonic() - began < 15
    assert [(status, epoch) for _, status, epoch in rows(url, dev)] == [("lost", 1), ("running", 2)]
    with Beside(url, home) as company, pytest.raises(Unauthenticated):
        company.call(token, users.me)
    kill(zombie, signal.SIGCONT)
    eventually(lambda: token_file.exists())
    # It notices by itself; what it started ends, what the other started does not.
    time.sleep(LEASE)
    eventually(lambda: len(processes_with(f"sleep 600; : {here}")) > 0)
    assert [(status, epoch) for _, status, epoch in rows(url, dev)] == [("lost", 1), ("running", 2)]
    owner = run_sql(url, "SELECT worker FROM agent_leases WHERE agent_id = ?", dev.id)
    assert owner == [("fresh",)]
    for pid in (zombie, fresh):
        os.kill(pid, signal.SIGTERM)
    eventually(lambda: not alive(zombie) and not alive(fresh))
    assert not processes_with(here)


class Beside(Company):
    """The same company, looked at while workers are at it: nothing is recovered."""

    def __init__(self, url: str, home: Path) -> None:
        self.url, self.home, self.clock = url, home, SystemClock()
        self._runner = asyncio.Runner()
        self.app = App(settings(url, home), self.clock)
        self.board = Caller(self.app.settings.board_token_file.read_text().strip())
        self.id = str(run_sql(url, "SELECT id FROM companies ORDER BY id LIMIT 1")[0][0])

    def __enter__(self) -> "Beside":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@pytest.mark.requirement("BX-06", "HB-30")
def test_several_workers_share_a_database_while_some_of_them_are_killed(
    stage: Stage, postgresql: tuple[str, Path]
) -> None:
    url, home = postgresql
    moments = random.Random(7)
    with opened(url, home) as company:
        # Of its own: other tests run at the same time, and programs of theirs sleep as long.
        here = mark(company)
        team = [program(company, f"a{n}", f"sleep 0.05; : {here}") for n in range(8)]

    def life(number: int) -> Life:
        return Life(url, str(home), f"w{number}", alone=False, lease_seconds=LEASE, slots=3)

    workers = {number: stage.begin(life(number)) for number in range(3)}
    with Beside(url, home) as company:
        for turn in range(9):
            for member in team:
                send(company, company.board, f"agent:{member.id}", f"letter {turn}")
            time.sleep(moments.random() * 0.4)
            victim = turn % 3
            kill(workers[victim], moments.choice([signal.SIGKILL, signal.SIGTERM]))
            eventually(partial(is_gone, workers[victim]))
            workers[victim] = stage.begin(life(victim))
            live = run_sql(
                url,
                "SELECT agent_id, count(*) FROM runs WHERE status = 'running' GROUP BY agent_id",
            )
            assert all(count == 1 for _, count in live)

        def settled() -> bool:
            for one in company.call(company.board, needs_you.listing):
                if one["kind"] == "dead_letter":
                    company.call(company.board, pending_items.revive, message=one["id"])
            left = [status for status in letters_to(url, team) if status != "done"]
            running = run_sql(url, "SELECT count(*) FROM runs WHERE status = 'running'")
            return not left and running == [(0,)]

        eventually(settled, 45)
    for pid in workers.values():
        os.kill(pid, signal.SIGTERM)
    for pid in workers.values():
        eventually(partial(is_gone, pid))
    # Each lease was given once: an agent's runs have rising epochs, and none began before the one
    # before it was over. The record tells; by the clock, who waits for a turn may seem early.
    for member in team:
        found = rows(url, member)
        assert sorted(epoch for _, _, epoch in found) == list(range(1, len(found) + 1))
        order = {run: epoch for run, _, epoch in found}
        record = run_sql(
            url,
            "SELECT e.action, r.id FROM events e JOIN runs r ON e.resource = 'run:' || r.id"
            " WHERE r.agent_id = ? AND e.action IN ('run.start', 'run.end') AND e.allowed"
            " ORDER BY e.seq",
            member.id,
        )
        told = [(action, order[run]) for action, run in record]
        turns = range(1, len(found) + 1)
        assert told == [(what, turn) for turn in turns for what in ("run.start", "run.end")]
    with opened(url, home) as company:
        assert problems(company) == []
    assert not processes_with(here)


#: Does something again and again, whatever it is answered or asked, and writes the answers down.
RESTLESS = r"""
import json, os, signal, socket, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
host, port = os.environ["REMIT_URL"].removeprefix("http://").split(":")
said = os.open(os.environ["HOME"] + "/said", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
work = json.dumps({"parentId": os.environ["REMIT_AGENT"], "title": os.environ["REMIT_RUN"]})
head = [f"POST /api/companies/$COMPANY/outcomes HTTP/1.0", f"Host: {host}",
    "Content-Type: application/json", f"Content-Length: {len(work)}",
    "Authorization: Bearer " + os.environ["REMIT_TOKEN"], "", work]
while True:
    with socket.create_connection((host, int(port)), 60) as wire:
        wire.sendall("\r\n".join(head).encode())
        answer = b""
        while piece := wire.recv(65536):
            answer += piece
    os.write(said, os.environ["REMIT_RUN"].encode() + b" " + answer.split()[1] + b"\n")
    print("still here", flush=True)
    time.sleep(0.05)
"""


@pytest.mark.requirement("BX-06", "HB-30")
def test_whatever_a_stopped_worker_does_when_it_goes_on_is_refused(
    stage: Stage, postgresql: tuple[str, Path]
) -> None:
    url, home = postgresql
    with opened(url, home) as company:
        script = ["-I", "-S", "-c", RESTLESS.replace("$COMPANY", company.id)]
        config = {"command": "/usr/bin/python3", "args": script}
        team = [program(company, f"a{n}", "", config=config) for n in range(3)]
        for member in team:
            send(company, company.board, f"agent:{member.id}")

    def worker(name: str, slots: int) -> int:
        life = Life(url, str(home), name, kind="worker", slots=slots, elsewhere=True)
        return stage.begin(replace(life, lease_seconds=LEASE, pause_seconds=0.1))

    def heard(member: Member, epoch: int) -> list[str]:
        """What the calls of one of its runs were answered."""
        found = rows(url, member)
        said = home / "agents" / member.id / "said"
        if len(found) < epoch or not said.exists():
            return []
        lines = [line.split() for line in said.read_text().splitlines()]
        return [status for run, status in lines if run == found[epoch - 1][0]]

    zombie = worker("zombie", 4)
    eventually(lambda: all(heard(member, 1) for member in team))
    kill(zombie, signal.SIGSTOP)
    fresh = [worker("one", 2), worker("two", 2)]
    eventually(lambda: all("201" in heard(member, 2) for member in team))
    for member in team:
        assert [(status, epoch) for _, status, epoch in rows(url, member)] == [
            ("lost", 1),
            ("running", 2),
        ]
    before = {member.id: len(heard(member, 1)) for member in team}
    logs = "SELECT count(*) FROM run_logs l JOIN runs r ON r.id = l.run_id WHERE r.epoch = 1"
    printed = run_sql(url, logs)
    kill(zombie, signal.SIGCONT)
    # Its programs were alive all the while, and one call of each was on its way.
    eventually(lambda: all(len(heard(member, 1)) > before[member.id] for member in team))
    eventually(lambda: not any(processes_of(rows(url, member)[0][0]) for member in team))
    # It ended them itself: the others are elsewhere.
    for member in team:
        late = heard(member, 1)[before[member.id] :]
        # The call in the middle of which it was stopped was done before, or its transaction was
        # ended so that the others could have theirs; nothing of it was done since, see below.
        assert {"401"} <= set(late[1:]) <= {"401", "503"}, late
        assert [(status, epoch) for _, status, epoch in rows(url, member)] == [
            ("lost", 1),
            ("running", 2),
        ]
    assert run_sql(url, logs) == printed
    for pid in (zombie, *fresh):
        os.kill(pid, signal.SIGTERM)
    for pid in (zombie, *fresh):
        eventually(partial(is_gone, pid))
    assert run_sql(url, LATE) == []
    with opened(url, home) as company:
        assert problems(company) == []


def test_a_start_ends_no_program_that_another_worker_just_began(
    sqlite: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks around while others go on; what is new to it is not left over."""
    url, home = sqlite
    with opened(url, home) as company:
        dev = program(company, "dev", "true")
        send(company, company.board, "agent:dev")
        begun: list[int] = []

        def meanwhile(_: set[str]) -> int:
            if not begun:
                run = asyncio.run_coroutine_threadsafe(_claim(company, dev), loop[0]).result()
                folder = str(company.app.settings.workspaces / run)
                told = {"REMIT_RUN": run, "REMIT_WORKSPACE": folder}
                begun.append(os.posix_spawn("/bin/sleep", ["sleep", "600"], told))
            return 0

        loop: list[asyncio.AbstractEventLoop] = []

        async def start() -> None:
            loop.append(asyncio.get_running_loop())
            monkeypatch.setattr(local_runs, "end_leftovers", meanwhile)
            await local_runs.recover(
                company.app.gate, company.app.settings.workspaces, company.app.kept, alone=False
            )

        company.wait(start())
        assert len(begun) == 1
        company.wait(
            local_runs.tidy_up(company.app.gate, company.app.settings.workspaces, company.app.kept)
        )
        assert alive(begun[0])
        # When its run is over, it is.
        (run,) = company.sql("SELECT id FROM runs WHERE status = 'running'")[0]
        monkeypatch.undo()
        company.call(as_system(), runs.end, run=run, status="lost")
        company.wait(
            local_runs.tidy_up(company.app.gate, company.app.settings.workspaces, company.app.kept)
        )
        assert os.waitstatus_to_exitcode(os.waitpid(begun[0], 0)[1]) == -signal.SIGKILL


async def _claim(company: Company, member: Member) -> str:
    run = company.app.ids.new()
    folder = str(company.app.settings.workspaces / run)
    await company.app.gate(
        as_system(), run_queue.claim, agent=member.id, run=run, workspace=folder, worker="other"
    )
    return run


def test_a_worker_clears_away_what_a_killed_one_left(
    stage: Stage, postgresql: tuple[str, Path]
) -> None:
    url, home = postgresql
    with opened(url, home) as company:
        dev = program(company, "dev", "sleep 600")
        send(company, company.board, "agent:dev")
    workspaces = home / "run" / "workspaces"
    first = stage.begin(Life(url, str(home), "first", kind="worker", lease_seconds=LEASE))
    # A run is claimed first, its folder made after that.
    eventually(lambda: is_running(url, dev) and list(workspaces.iterdir()))
    (left,) = workspaces.iterdir()
    kill(first)
    second = stage.begin(Life(url, str(home), "second", kind="worker", lease_seconds=LEASE))
    eventually(lambda: not left.exists())
    eventually(lambda: is_running(url, dev, epoch=2) and list(workspaces.iterdir()))
    (left,) = workspaces.iterdir()
    kill(second)
    # Now the run is given up elsewhere, and the folder is found at the next start here.
    run_sql(url, "UPDATE agents SET status = 'paused'")
    with Beside(url, home) as company:
        held = company.call(as_system(), run_queue.held)
        for run, until in held.items():
            company.call(as_system(), run_queue.take_over, run=run, until=until)
    assert left.exists()
    third = stage.begin(Life(url, str(home), "third", kind="worker", lease_seconds=LEASE))
    assert not left.exists()
    os.kill(third, signal.SIGTERM)
    eventually(partial(is_gone, third))


#: What a run did after it was over.
LATE = (
    "SELECT e.action, e.run_id FROM events e JOIN events f ON f.company_id = e.company_id"
    " AND f.action = 'run.end' AND f.resource = 'run:' || e.run_id"
    " WHERE e.seq > f.seq AND e.allowed"
)


def processes_of(run: str) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            told = Path(f"/proc/{name}/environ").read_bytes() if name.isdigit() else b""
            if f"REMIT_RUN={run}".encode() in told and alive(int(name)):
                found.append(int(name))
    return found
