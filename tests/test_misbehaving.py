"""Programs that do what none should, in a real worker: nothing is left, nobody else suffers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from remit import threads
from remit.adapters import registry
from remit.adapters.contract import adopt
from remit.adapters.running import RunContext, RunResult
from remit.clock import HOUR
from remit.entrypoints import serve
from remit.model.execution.transcript import Entry, EntryKind
from remit.runtime import loop as loops
from remit.runtime.runs import context, execution, journal, processes
from remit.runtime.runs import worker as worker_module
from remit.runtime.sandbox import cgroups, sandbox_policy
from tests.company import Company, Member
from tests.mailing import look, send
from tests.test_clock_jumps import SettableClock
from tests.working import (
    REVIEWS,
    at_work,
    eventually,
    listed,
    log_of,
    over,
    processes_with,
    program,
    statuses,
)

PYTHON = "/usr/bin/python3"


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


@pytest.fixture
def company(small: Company) -> Company:
    return small


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "GRACE_SECONDS", 0.5)


def script(company: Company, name: str, text: str, **config: object) -> Member:
    given = {"command": PYTHON, "args": ["-I", "-S", "-c", text], **config}
    return program(company, name, "", config=given)


def processes_of(company: Company, member: Member) -> list[int]:
    """Whatever runs for an agent, inside or outside of a sandbox."""
    told = f"REMIT_AGENT={member.id}".encode()
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and told in Path(f"/proc/{name}/environ").read_bytes():
                found.append(int(name))
        except OSError:
            continue
    return found


def need(kind: str) -> None:
    if kind not in cgroups.look().bound:
        pytest.skip(f"A BOUND ON {kind.upper()} IS NOT TESTED: there is no cgroup for it here")


def counted(company: Company, member: Member) -> int:
    """How many processes the kernel counts for a run; to look at each would take too long."""
    found = company.sql("SELECT id FROM runs WHERE agent_id = ? ORDER BY id DESC", member.id)
    folder = cgroups.look().folders[cgroups.PROCESSES]
    try:
        return int((folder / f"remit-{found[0][0]}" / "pids.current").read_text())
    except (IndexError, OSError):
        return 0


BOMB = """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""


@pytest.mark.parametrize("kind", ["workspace", "full"])
def test_a_program_that_forks_without_end_is_held_and_ends_with_its_run(
    company: Company, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    need(cgroups.PROCESSES)
    monkeypatch.setattr(sandbox_policy, "MOST_PROCESSES", 60)
    bomb = script(company, "bomb", BOMB, timeoutSeconds=4, sandbox=kind)
    other = program(company, "other", "echo fine")
    most = 0

    def goes_off() -> bool:
        nonlocal most
        most = max(most, counted(company, bomb))
        return over(company, bomb)() and over(company, other)()

    for member in (bomb, other):
        send(company, company.board, f"agent:{member.id}")
    at_work(company, goes_off, seconds=60)
    assert 40 < most <= 60
    assert listed(company, bomb)[-1]["exit_reason"] == "timeout"
    assert "more than 60 processes" in log_of(company, listed(company, bomb)[-1])
    assert statuses(company, other) == ["completed"]
    eventually(lambda: not processes_of(company, bomb))
    assert listed(company, bomb)[-1]["id"] not in cgroups.leftovers()


def test_a_run_has_the_memory_that_it_was_given(company: Company) -> None:
    need(cgroups.MEMORY)
    hungry = script(company, "hungry", "print('so far'); x = bytearray(400 << 20)", memoryMb=64)
    modest = script(company, "modest", "x = bytearray(8 << 20); print('fine')", memoryMb=64)
    for member in (hungry, modest):
        send(company, company.board, f"agent:{member.id}")
    at_work(company, lambda: over(company, hungry)() and over(company, modest)())
    run = listed(company, hungry)[-1]
    assert (run["status"], run["exit_reason"]) == ("failed", "memory")
    assert run["error"] == "it took more memory than its 64 MiB"
    assert statuses(company, modest) == ["completed"]


def test_a_run_whose_memory_cannot_be_bounded_as_asked_is_refused(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "look", lambda: cgroups.Places({}))
    bounded = program(company, "bounded", "echo fine", config={"memoryMb": 64})
    free = program(company, "free", "echo fine")
    for member in (bounded, free):
        send(company, company.board, f"agent:{member.id}")
    at_work(company, lambda: over(company, bounded)() and over(company, free)())
    assert listed(company, bounded)[-1]["exit_reason"] == "no_memory_bound"
    assert statuses(company, free) == ["completed"]
    assert any("there is no cgroup" in one for one in sandbox_policy.look().not_enforced)


@pytest.mark.parametrize("kind", ["workspace", "full"])
def test_a_daemon_that_forgot_where_it_came_from_ends_with_the_run(
    company: Company, kind: str
) -> None:
    if kind == "full":
        need(cgroups.PROCESSES)
    mark = f"mark-{company.app.ids.new()}"
    daemon = f"(setsid env -i /bin/sh -c 'sleep 600; : {mark}' >/dev/null 2>&1 </dev/null &)"
    dev = program(company, "dev", f"{daemon}; sleep 0.3; echo on", config={"sandbox": kind})
    send(company, company.board, "agent:dev")
    at_work(company, over(company, dev))
    assert statuses(company, dev) == ["completed"]
    assert not processes_with(mark)


DEAF = """
import signal, time
for number in set(range(1, 32)) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
while True:
    time.sleep(1)
"""


def test_a_program_that_never_ends_and_does_not_listen_is_ended(company: Company) -> None:
    dev = script(company, "dev", DEAF, timeoutSeconds=1)
    send(company, company.board, "agent:dev")
    at_work(company, over(company, dev))
    assert listed(company, dev)[-1]["exit_reason"] == "timeout"
    assert not processes_of(company, dev)


def test_a_program_that_does_nothing_is_tried_less_and_less_and_told_of_once(
    company: Company, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "LONGEST_SLEEP", 0.1)
    dev = program(company, "dev", "exit 0", perpetual=False)
    looks = []
    for count in range(1, len(REVIEWS) + 2):
        at_work(company, over(company, dev, count))
        (look_at,) = company.sql("SELECT look_at FROM agent_leases WHERE agent_id = ?", dev.id)[0]
        looks.append(look_at)
        clock.off_by += 25 * HOUR
    assert looks[-1] is None
    assert looks[:-1] == sorted(looks[:-1])
    subjects = [one["subject"] for one in look(company, company.ceo)]
    assert subjects == ["It does not move: What dev is for"]
    assert company.sql("SELECT status FROM agents WHERE id = ?", dev.id) == [("idle",)]


GARBAGE = {
    "binary": "out.write(bytes(range(256)) * 4000)",
    "half a letter": "out.write('\\u20ac'.encode()[:2])",
    "a line of 10 MiB": "out.write(b'x' * (10 << 20))",
    "deep": "out.write(b'[' * 200000)",
    "deep and closed": "out.write(b'{\"text\":' + b'[' * 20000 + b']' * 20000 + b'}')",
    "not a number": 'out.write(b\'{"usage": {"tokens_in": NaN, "cost_micros": Infinity}}\')',
    "too large": "out.write(b'{\"usage\": {\"tokens_in\": 1' + b'0' * 4000 + b'}}')",
    "wrong types": 'out.write(b\'{"ok": "no", "text": {}, "session": [], "usage": 7}\')',
    "lone surrogate": 'out.write(b\'{"text": "\\\\ud800"}\')',
    "controls": "out.write(b'\\x1b]0;title\\x07\\x1b[2J\\r\\r\\x00\\x9b31m')",
    "carriage returns": "out.write(b'\\r' * 1000000)",
    "stderr": "os.write(2, b'\\xff' * 3000000)",
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_an_answer_of_no_worth_and_no_more(company: Company, name: str) -> None:
    dev = script(company, "dev", f"import os, sys\nout = sys.stdout.buffer\n{GARBAGE[name]}")
    send(company, company.board, "agent:dev")
    at_work(company, over(company, dev))
    (run,) = listed(company, dev)
    assert run["exit_reason"] in ("completed", "failed"), run
    assert run["log_bytes"] <= journal.MOST_HEAD + journal.MOST_TAIL + 100
    assert run["tokens_in"] >= 0
    log_of(company, run).encode()  # valid text


def test_a_flood_without_lines_on_both_streams_costs_no_memory(company: Company) -> None:
    flood = "head -c 134217728 /dev/zero >&2 & head -c 134217728 /dev/zero; wait; echo; echo last"
    dev = program(company, "dev", flood)
    send(company, company.board, "agent:dev")
    before, most = _memory(), 0

    def seen() -> bool:
        nonlocal most
        most = max(most, _memory())
        return over(company, dev)()

    at_work(company, seen, seconds=120)
    assert most - before < 150 << 20
    (run,) = listed(company, dev)
    assert run["status"] == "completed"
    assert "characters are left out" in log_of(company, run)


def test_a_log_that_comes_letter_by_letter_is_kept_in_few_pieces(company: Company) -> None:
    async def keep() -> int:
        book = journal.Journal(company.app.gate, company.clock, company.app.ids.new())
        for number in range(300_000):
            book.add("x" * 9 + "\n", "stderr" if number % 1000 == 0 else "stdout")
        kept = len(book._waiting) + len(book._tail)
        await book.close()
        return kept

    assert company.wait(keep()) < 6000


def _memory() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


# ── what hangs ──────────────────────────────────────────────────────────────────────────────────


class Shouting:
    """Writes to the journal of its run from threads, as an adapter of somebody else may."""

    def __init__(self, book: journal.Journal, threads: int, lines: int) -> None:
        self._book = book
        self._threads = threads
        self._lines = lines

    def _shout(self, number: int) -> None:
        for line in range(self._lines):
            self._book.add(f"{number} {line}\n", "stdout")

    async def run(self) -> None:
        shouting = (threads.alone(self._shout, number) for number in range(self._threads))
        await asyncio.gather(*shouting)


def shouted(company: Company, rounds: int, seconds: float) -> None:
    """Journals that are written to from threads while they are closed: none hangs or fails."""
    lost: list[str] = []

    async def gate(_: object, __: object, *, pieces: list[dict[str, str]], **more: object) -> None:
        lost.extend(line for piece in pieces for line in piece["text"].splitlines())

    async def story() -> None:
        async with asyncio.timeout(seconds):
            for _ in range(rounds):
                lost.clear()
                book = journal.Journal(gate, company.clock, "r")  # type: ignore[arg-type]
                await Shouting(book, 4, 3).run()
                await book.close()
                # All that was written before is there, and what each wrote in its order.
                assert len(lost) == 12
                for number in range(4):
                    mine = [line for line in lost if line.startswith(f"{number} ")]
                    assert mine == [f"{number} {line}" for line in range(3)]

    for loop in (asyncio.new_event_loop, serve.loop_factory() or asyncio.new_event_loop):
        with asyncio.Runner(loop_factory=loop) as runner:
            runner.run(story())


@pytest.mark.requirement("FX-15")
def test_a_journal_is_written_to_from_threads_and_closes(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "_EVERY_SECONDS", 0.001)
    shouted(company, 20, 30)


@pytest.mark.requirement("FX-15")
def test_nothing_of_a_journal_is_touched_by_another_thread(company: Company) -> None:
    """Its events and lists are the loop's: whoever else touches them may be missed for ever."""

    async def story() -> None:
        book = journal.Journal(company.app.gate, company.clock, company.app.ids.new())
        before = {name: repr(value) for name, value in vars(book).items()}
        for write in (
            lambda: book.add("line\n", "stdout"),
            lambda: book.tell(Entry(EntryKind.SAID, "text")),
            lambda: book.tell(Entry(EntryKind.DENIED, "no", "tool")),
        ):
            other = threading.Thread(target=write)
            other.start()
            other.join()  # the loop stands still meanwhile
            assert {name: repr(value) for name, value in vars(book).items()} == before
        await asyncio.sleep(0)
        assert "line" in str(book._waiting)
        assert book._denied == {"tool": 1}
        await book.close()
        # Who talks on when all is over is not heard, and disturbs nobody.
        book.add("late\n", "stdout")
        assert book._waiting == []

    company.wait(story())


@pytest.mark.campaign("a minute of threads: the storm that once hung a run in 1,200")
@pytest.mark.requirement("FX-15")
def test_twelve_thousand_writes_from_threads_hang_no_journal(company: Company) -> None:
    for _ in range(2):
        shouted(company, 1000, 600)


class Deaf:
    """An adapter that does not let itself be cancelled, and one that says nothing."""

    type = "deaf"

    class Config(BaseModel):
        timeout_seconds: float = 0.2
        silence_seconds: float | None = None
        talks: int = 0

    def check(self) -> bool:
        return True

    async def run(self, context: RunContext) -> RunResult:
        at_it.set()
        for _ in range(context.config.talks):
            await asyncio.sleep(0.05)
            context.log("still here")
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.5)
                if over_and_out.is_set():
                    return RunResult(True)


at_it = threading.Event()
over_and_out = threading.Event()


@pytest.fixture
def deaf(company: Company, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    del company  # its loop ends after this, and waits for every task
    monkeypatch.setattr(registry.installed, "_plugins", {"deaf": adopt(Deaf)})
    monkeypatch.setattr(execution, "LET_GO_SECONDS", 0.1)
    at_it.clear()
    over_and_out.clear()
    yield
    over_and_out.set()


@pytest.mark.usefixtures("deaf")
@pytest.mark.requirement("FX-15")
@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({}, "timeout"),
        ({"timeout_seconds": 60, "silence_seconds": 0.2}, "silent"),
        # What is heard counts: it is silent from its last word on.
        ({"timeout_seconds": 3, "silence_seconds": 1.5, "talks": 100}, "timeout"),
    ],
)
def test_a_run_whose_adapter_hangs_is_ended_and_its_mail_returns(
    company: Company, config: dict[str, object], reason: str
) -> None:
    dev = company.agent("dev", adapter_type="deaf", adapter_config=config, perpetual=True)
    send(company, company.board, "agent:dev", "Do it.")
    at_work(company, over(company, dev), seconds=20)
    (run,) = listed(company, dev)
    assert (run["status"], run["exit_reason"], run["fault"]) == ("failed", reason, "agent")
    (letter,) = look(company, dev)
    assert letter["body"] == "Do it."


@pytest.mark.usefixtures("deaf")
@pytest.mark.requirement("FX-15")
def test_a_worker_stops_although_an_adapter_and_a_journal_hang(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "TASKS_SECONDS", 0.5)
    monkeypatch.setattr(context, "CLOSE_SECONDS", 0.1)

    async def never(_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(journal.Journal, "close", never)
    dev = company.agent(
        "dev", adapter_type="deaf", adapter_config={"timeout_seconds": 600}, perpetual=True
    )
    send(company, company.board, "agent:dev", "Do it.")
    began = time.monotonic()
    at_work(company, at_it.is_set, seconds=20)
    assert time.monotonic() - began < 10
    assert statuses(company, dev) == ["lost"]
    assert len(look(company, dev)) == 1


def test_a_program_that_is_stuck_keeps_no_other_kind_of_work_waiting() -> None:
    stuck = threading.Event()
    few = threads.Threads("test", 2)

    async def story() -> None:
        waiting = [asyncio.create_task(few.run(stuck.wait)) for _ in range(8)]
        waiting += [asyncio.create_task(threads.alone(stuck.wait)) for _ in range(8)]
        async with asyncio.timeout(5):
            assert await threads.FILES.run(lambda: 1) == 1
            assert await threads.alone(lambda: 2) == 2
            with pytest.raises(ZeroDivisionError):
                await threads.CHECKS.run(lambda: 1 // 0)
        # Who stops waiting gets nothing done, and everybody else all of it.
        waiting[7].cancel()
        stuck.set()
        async with asyncio.timeout(5):
            done = await asyncio.gather(*waiting, return_exceptions=True)
        assert [one for one in done if one is not True] == [done[7]]

    asyncio.run(story())
