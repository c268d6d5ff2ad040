"""A worker and real programs: well-behaved ones, and those that are not."""

import asyncio
import errno
import json
import os
import signal
import time
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from remit.adapters.process import Process
from remit.adapters.running import RunResult
from remit.clock import SECOND, SystemClock
from remit.errors import StorageFull
from remit.runtime.runs import execution, journal, processes, workspace
from remit.runtime.runs.worker import Worker
from remit.services import redaction
from remit.services.command import Context, Gate, Verb, logged
from remit.services.execution import run_endings, run_queue, runs
from remit.services.identity import Caller, as_system
from remit.services.organisation import agents
from remit.store.blob_store.blobs import storage_error
from tests.company import Company, Member
from tests.mailing import look, send
from tests.working import (
    alive,
    at_work,
    eventually,
    is_awake,
    listed,
    log_of,
    looked_again,
    over,
    processes_with,
    program,
    statuses,
    told,
    why_idle,
    with_worker,
)


@pytest.fixture
def clock() -> SystemClock:
    return SystemClock()


@pytest.fixture
def company(small: Company) -> Company:
    return small


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "GRACE_SECONDS", 0.5)


def started(company: Company, member: Member, count: int = 1) -> None:
    eventually(lambda: statuses(company, member).count("running") >= count)


async def until(look_: object, seconds: float = 15) -> None:
    assert callable(look_)
    async with asyncio.timeout(seconds):
        while not await asyncio.to_thread(look_):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


@pytest.mark.requirement("AG-72", "AG-73", "AG-74", "HB-01")
def test_mail_starts_a_program_and_everything_of_its_run_ends_with_it(company: Company) -> None:
    script = "cat > task; echo hello; echo oops >&2; pwd; echo $REMIT_TOKEN > t; cat t"
    dev = program(company, "dev", script)
    send(company, company.board, "agent:dev", "Please do it.")
    at_work(company, over(company, dev))
    (run,) = listed(company, dev)
    assert (run["status"], run["error"], run["why"]) == ("completed", None, "mail")
    said = log_of(company, run)
    assert "hello\n" in said
    assert "oops\n" in said
    assert redaction.REMOVED in said  # its token is not in its log
    assert "rmt_run_" not in said
    folder = next(line for line in said.splitlines() if line.endswith(run["id"]))
    assert not Path(folder).exists()
    assert not list(company.app.settings.workspaces.iterdir())
    assert look(company, dev) == []
    assert run["log_bytes"] == len(said)


def test_a_claimed_run_starts_with_one_transaction(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that its program is told is of one moment."""
    starting = ContextVar("starting", default=False)
    asked: list[str] = []
    work, execute, call = Gate._work, execution._execute, execution.call

    def noted(gate: Gate, caller: Caller, verb: Verb[..., Any], *given: Any) -> Any:
        if starting.get():
            asked.append(verb.name)
        return work(gate, caller, verb, *given)

    async def executed(*given: Any) -> RunResult:
        starting.set(True)
        return await execute(*given)

    async def called(*given: Any) -> RunResult:
        starting.set(False)
        return await call(*given)

    monkeypatch.setattr(Gate, "_work", noted)
    monkeypatch.setattr(execution, "_execute", executed)
    monkeypatch.setattr(execution, "call", called)
    dev = program(company, "dev", "exit 0")
    send(company, company.board, "agent:dev", "Please do it.")
    at_work(company, over(company, dev))
    assert asked == ["claiming.briefing"]


def test_a_program_that_does_nothing_is_not_run_at_full_speed(company: Company) -> None:
    dev = program(company, "dev", "exit 0", perpetual=False)

    async def story(worker: Worker) -> None:
        while not await asyncio.to_thread(over(company, dev)):
            await looked_again(worker)
        for _ in range(3):
            await looked_again(worker)

    with_worker(company, story)
    assert statuses(company, dev) == ["completed"]
    assert why_idle(company, dev) == "reviewing_at"


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("exit 7", "the program ended with 7"),
        ("kill -9 $$", "the program ended with"),
        ("exec /no/such/thing", "the program ended with"),
        ('echo \'{"ok": false, "error": "no luck"}\'', "no luck"),
    ],
)
def test_a_program_that_fails_is_a_failed_run(company: Company, script: str, error: str) -> None:
    dev = program(company, "dev", script)
    send(company, company.board, "agent:dev")
    at_work(company, over(company, dev))
    run = listed(company, dev)[-1]
    assert run["status"] == "failed"
    assert run["error"].startswith(error)
    assert [one["may_have_been_handled"] for one in look(company, dev)] == [True]
    assert [one["subject"] for one in look(company, company.ceo)] == ["A run of dev failed"]


def test_a_complaint_of_several_lines_is_heard_whole(
    company: Company, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-fake-0123456789abcdef")
    codex = tmp_path / "codex"
    # In two pieces: what is read at once follows from when it comes.
    codex.write_text(
        "#!/bin/sh\necho Error loading config.toml: no >&2; sleep 0.5\n"
        "echo in model_providers >&2; exit 1\n"
    )
    codex.chmod(0o755)
    settings = {"command": str(codex)}
    dev = company.agent("dev", adapter_type="codex", adapter_config=settings, perpetual=True)
    send(company, company.board, "agent:dev")
    at_work(company, over(company, dev))
    run = listed(company, dev)[-1]
    assert run["error"] == "Error loading config.toml: no\nin model_providers"
    assert run["fault"] == "setup"


def test_garbage_is_a_log_like_any_other(company: Company) -> None:
    script = (
        "head -c 300000 /dev/urandom; printf '\\000\\377\\376'; head -c 3000000 /dev/zero;"
        r""" printf '\n{"text": "\\ud800\\u0000", "usage": {"tokens_in": 9e99}}\n'"""
    )
    dev = program(company, "dev", script)
    send(company, company.board, "agent:dev")
    at_work(company, over(company, dev))
    (run,) = listed(company, dev)
    assert run["status"] == "completed"
    assert run["log_bytes"] <= journal.MOST_HEAD + journal.MOST_TAIL + 100


def test_a_flood_is_cut_in_the_middle_and_costs_no_memory(company: Company) -> None:
    line = "x" * 1000
    script = f"echo first; yes {line} | head -c 268435456; echo; echo last"
    dev = program(company, "dev", script)
    send(company, company.board, "agent:dev")
    before = _memory()
    at_work(company, over(company, dev), seconds=60)
    assert _memory() - before < 100 << 20
    (run,) = listed(company, dev)
    assert run["status"] == "completed"
    said = log_of(company, run)
    assert said.startswith("first\n")
    assert said.endswith("last\n")
    assert "characters are left out" in said
    assert journal.MOST_HEAD < len(said) <= journal.MOST_HEAD + journal.MOST_TAIL + 100


def _memory() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.requirement("HB-60")
@pytest.mark.parametrize("sandbox", ["workspace", "full"])
def test_a_cancelled_run_ends_with_all_that_it_started(company: Company, sandbox: str) -> None:
    mark = f"mark-{company.app.ids.new()}"
    stubborn = f"trap '' TERM; (setsid sh -c 'trap \"\" TERM; sleep 600 # {mark}' &); "
    dev = program(
        company,
        "dev",
        f"{stubborn} sh -c 'trap \"\" TERM; sleep 600 # {mark}' & while :; do sleep 1; done",
        config={"sandbox": sandbox},
    )
    send(company, company.board, "agent:dev")

    async def story(worker: Worker) -> None:
        await until(lambda: len(processes_with(mark)) >= 2 and statuses(company, dev))
        run = (await company.app.gate(company.board, runs.listing, company=company.id))[0]
        began = time.monotonic()
        await company.app.gate(company.board, runs.cancel, run=run["id"])
        await until(lambda: not processes_with(mark))
        assert time.monotonic() - began < 5
        await until(lambda: worker.busy == 0)

    with_worker(company, story)
    assert statuses(company, dev) == ["cancelled"]
    assert not is_awake(company, dev)


@pytest.mark.parametrize("sandbox", ["workspace", "full"])
def test_a_program_is_asked_to_end_before_it_is_ended(company: Company, sandbox: str) -> None:
    dev = program(
        company,
        "dev",
        "trap 'echo tidying up; exit 3' TERM; echo on; while :; do sleep 0.05; done",
        config={"sandbox": sandbox, "timeoutSeconds": 1},
    )
    send(company, company.board, "agent:dev")
    at_work(company, over(company, dev))
    run = listed(company, dev)[-1]
    assert (run["status"], run["exit_reason"]) == ("failed", "timeout")
    assert run["error"] == "it took longer than 1 seconds"
    assert log_of(company, run).endswith("tidying up\n")


def test_what_left_its_session_and_its_parent_is_found(company: Company) -> None:
    mark = f"mark-{company.app.ids.new()}"
    dev = program(
        company,
        "dev",
        f"setsid sh -c 'sleep 600; : {mark}' >/dev/null 2>&1 & sleep 0.3; echo on",
        config={"sandbox": "full"},
    )
    send(company, company.board, "agent:dev")
    at_work(company, over(company, dev))
    assert statuses(company, dev) == ["completed"]
    eventually(lambda: not processes_with(mark))


def test_a_pipe_that_somebody_else_holds_keeps_no_run_open(company: Company) -> None:
    mark = f"mark-{company.app.ids.new()}"
    dev = program(
        company,
        "dev",
        f"setsid sh -c 'sleep 600; : {mark}' & echo on",
        config={"sandbox": "full"},
    )
    send(company, company.board, "agent:dev")
    at_work(company, over(company, dev))
    assert statuses(company, dev) == ["completed"]
    assert log_of(company, listed(company, dev)[0]) == "on\n"
    eventually(lambda: not processes_with(mark))


def test_a_worker_that_stops_takes_its_runs_along(company: Company) -> None:
    mark = f"mark-{company.app.ids.new()}"
    dev = program(company, "dev", f"sleep 600; : {mark}")
    send(company, company.board, "agent:dev")
    at_work(company, lambda: processes_with(mark))
    assert not processes_with(mark)
    (run,) = listed(company, dev)
    assert (run["status"], run["exit_reason"]) == ("lost", run_endings.STOPPED)
    assert [one["may_have_been_handled"] for one in look(company, dev)] == [True]
    assert is_awake(company, dev)
    assert told(company) == []
    assert not list(company.app.settings.workspaces.iterdir())


@pytest.mark.requirement("HB-30")
def test_slots_and_limits_hold_and_no_company_starves_another(company: Company) -> None:
    # Everybody waits in the same way until all are counted.
    script = "sleep 0.4"
    mine = [program(company, f"a{n}", script) for n in range(5)]
    other = company.second_company()
    strangers = []
    for number in range(2):
        made = company.call(
            other.board,
            agents.create,
            company=other.id,
            name=f"s{number}",
            perpetual=True,
            adapter_type="process",
            adapter_config={"command": "/bin/sh", "args": ["-c", script]},
        )
        strangers.append(made["id"])
    for member in mine:
        send(company, company.board, f"agent:{member.id}", company=company.id)
    for stranger in strangers:
        company.wait(
            company.app.library.send(
                other.board, to=f"agent:{stranger}", body="x", company=other.id
            )
        )
    most = 0

    def done() -> bool:
        nonlocal most
        found = company.sql("SELECT company_id, status FROM runs")
        live = [where for where, status in found if status == "running"]
        assert live.count(company.id) <= 2
        assert len(live) <= 3
        most = max(most, len(live))
        return len(found) == 7 and not live

    at_work(company, done, slots=3, per_company=2)
    assert most == 3
    first = company.sql("SELECT company_id FROM runs ORDER BY id LIMIT 2")
    assert {where for (where,) in first} == {company.id, other.id}


def test_an_adapter_s_limit_holds(company: Company) -> None:
    mine = [program(company, f"a{n}", "sleep 0.2") for n in range(3)]
    for member in mine:
        send(company, company.board, f"agent:{member.id}")

    def done() -> bool:
        found = [status for (status,) in company.sql("SELECT status FROM runs")]
        assert found.count("running") <= 1
        return len(found) == 3 and "running" not in found

    at_work(company, done, per_adapter={"process": 1})


def test_no_room_for_a_workspace_fails_the_run_and_nothing_else(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    dev, other = program(company, "dev", "exit 0"), program(company, "other", "exit 0")
    create = workspace.create_workspace
    calls: list[str] = []

    def full(root: Path, run: str) -> Path:
        calls.append(run)
        if len(calls) == 1:
            raise storage_error(OSError(errno.ENOSPC, "No space left on device"))
        return create(root, run)

    monkeypatch.setattr(execution, "create_workspace", full)
    send(company, company.board, "agent:dev")
    at_work(company, over(company, dev))
    assert listed(company, dev)[-1]["status"] == "failed"
    assert listed(company, dev)[-1]["exit_reason"] == "storage_full"
    send(company, company.board, "agent:other")
    at_work(company, over(company, other))
    assert statuses(company, other) == ["completed"]


@pytest.mark.requirement("PC-53")
def test_what_fails_on_our_side_is_told_without_what_it_happened_to(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {"command": "x", "env": {"PLAIN": "hunter2"}, "args": ["--password", "hunter2"]}

    def broken(*_: object, **__: object) -> None:
        raise ValueError(f"cannot use {config} with API_KEY=hunter2")

    monkeypatch.setattr(execution, "create_workspace", broken)
    dev = program(company, "dev", "exit 0")
    send(company, company.board, "agent:dev")
    at_work(company, over(company, dev))
    run = listed(company, dev)[-1]
    assert run["error"].startswith("Remit failed (ValueError(")
    assert "cannot use {'command': 'x'" in run["error"]
    assert "hunter2" not in json.dumps(run)
    assert not any("hunter2" in text for (text,) in company.sql("SELECT details FROM events"))


def test_an_exception_inside_an_adapter_is_no_fault_of_the_agent(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> RunResult:
        raise FileNotFoundError(2, "No such file or directory")

    with monkeypatch.context() as defect:
        defect.setattr(Process, "run", broken)
        dev = program(company, "dev", "exit 0")
        send(company, company.board, "agent:dev")
        at_work(company, over(company, dev))
    run = listed(company, dev)[-1]
    assert (run["exit_reason"], run["fault"]) == ("adapter", "setup")
    assert run["error"].startswith("the adapter process failed inside Remit (FileNotFoundError")
    assert "`remit doctor` checks the installation" in run["error"]
    assert why_idle(company, dev) == "held"
    # The worker checks the set-up again, and finds it sound; so does the run after that.
    at_work(company, over(company, dev, 2))
    assert statuses(company, dev) == ["failed", "completed"]
    assert look(company, dev) == []


def test_no_room_for_a_log_leaves_the_run_alone(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    @logged("test_worker.full")
    def full(ctx: Context, *, run: str, pieces: object) -> None:
        raise StorageFull("There is no room left to record this.")

    monkeypatch.setattr(run_queue, "append_log", full)
    dev = program(company, "dev", "echo something")
    send(company, company.board, "agent:dev")
    at_work(company, over(company, dev))
    assert statuses(company, dev) == ["completed"]


@pytest.mark.requirement("HB-36")
def test_more_mail_than_fits_a_turn_causes_another_at_once(company: Company) -> None:
    dev = program(company, "dev", "exit 0")
    for number in range(13):
        send(company, company.board, "agent:dev", str(number))
    at_work(company, over(company, dev, 2))
    assert [len(run["envelope_ids"]) for run in listed(company, dev)] == [3, 10]
    assert look(company, dev) == []


def test_a_lost_lease_ends_the_program(company: Company) -> None:
    mark = f"mark-{company.app.ids.new()}"
    dev = program(company, "dev", f"sleep 600; : {mark}")
    send(company, company.board, "agent:dev")

    async def story(worker: Worker) -> None:
        await until(lambda: processes_with(mark))
        # Somebody else holds it now.
        await asyncio.to_thread(
            company.sql, "UPDATE agent_leases SET epoch = epoch + 1 WHERE agent_id = ?", dev.id
        )
        await until(lambda: not processes_with(mark))

    with_worker(company, story, lease=SECOND)


def test_runs_of_a_dead_worker_are_taken_over_within_seconds(company: Company) -> None:
    mark = f"mark-{company.app.ids.new()}"
    dev = program(company, "dev", f"sleep 600; : {mark}")
    send(company, company.board, "agent:dev")
    run = company.app.ids.new()
    company.call(
        as_system(),
        run_queue.claim,
        agent=dev.id,
        run=run,
        workspace=str(company.app.settings.workspaces / run),
        worker="dead",
    )
    leftover = os.posix_spawn("/bin/sleep", ["sleep", "600"], {"REMIT_RUN": run}, setsid=True)
    began = time.monotonic()
    at_work(company, lambda: processes_with(mark), lease=2 * SECOND)
    assert 2 < time.monotonic() - began < 15
    assert statuses(company, dev)[0] == "lost"
    assert os.waitstatus_to_exitcode(os.waitpid(leftover, 0)[1]) == -signal.SIGKILL
    assert not alive(leftover)
