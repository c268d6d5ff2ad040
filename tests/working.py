"""Agents that are started: leases as the database has them, claims by hand, and a real worker."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from remit.clock import DAY, HOUR, Micros
from remit.model.organisation.grant import FULL_ACCESS
from remit.model.work.wait import REMINDERS_TO_AGENT
from remit.runtime.jobs import Jobs
from remit.runtime.runs.worker import Worker
from remit.services.execution import run_queue, runs
from remit.services.identity import Caller, as_system
from remit.services.messaging import escalation
from remit.services.organisation import idleness
from remit.services.rights import grants
from remit.testing.clock import VirtualClock
from tests.company import Answer, Company, Member, Run
from tests.mailing import take, unread

#: An address without a server, for programs that do not call Remit.
NOWHERE = "http://127.0.0.1:9"
SECONDS = 60.0
#: Default pauses before each review of an outcome that does not move.
REVIEWS = (HOUR, 4 * HOUR, DAY)


class Lease(NamedTuple):
    wake_seq: int
    done_seq: int
    epoch: int
    due_at: int
    idle_runs: int
    failures: int
    told: str | None
    lease_until: int | None


def lease(company: Company, member: Member) -> Lease | None:
    rows = company.sql(
        "SELECT wake_seq, done_seq, epoch, due_at, idle_runs, failures, told, lease_until"
        " FROM agent_leases WHERE agent_id = ?",
        member.id,
    )
    return Lease(*rows[0]) if rows else None


def held(company: Company, member: Member) -> Lease:
    current = lease(company, member)
    assert current is not None
    return current


def is_awake(company: Company, member: Member) -> bool:
    current = lease(company, member)
    return current is not None and current.wake_seq > current.done_seq


def let_sleep(company: Company, *members: Member) -> None:
    """As if all that they were woken for had been seen to."""
    for member in members:
        company.sql("UPDATE agent_leases SET done_seq = wake_seq WHERE agent_id = ?", member.id)


def ready(company: Company, **more: Any) -> list[str]:
    return [entry.agent_id for entry in company.call(as_system(), run_queue.ready, **more)]


def claim(company: Company, member: Member, worker: str = "w", **more: Any) -> Run:
    run_id = company.app.ids.new()
    folder = company.app.settings.workspaces / run_id
    answer = company.call(
        as_system(),
        run_queue.claim,
        agent=member.id,
        run=run_id,
        workspace=str(folder),
        worker=worker,
        **more,
    )
    return Run(run_id, member.id, Caller(answer["token"]), folder)


def end(company: Company, run: Run, status: str = "completed", **report: Any) -> None:
    company.call(as_system(), runs.end, run=run.id, status=status, report=report)


def shown(company: Company, run: Run) -> Answer:
    return company.call(company.board, runs.show, run=run.id)


def listed(company: Company, member: Member | None = None) -> list[Answer]:
    agent = member.id if member else None
    return company.call(company.board, runs.listing, company=company.id, agent=agent)


def why_idle(company: Company, member: Member) -> str:
    return str(company.call(company.board, idleness.why_idle, agent=member.id)["reason"])


def ignored(
    company: Company, clock: VirtualClock, awaited: Member, what: str, *, read: bool = False
) -> None:
    """An agent that is awaited reads its mail each time, and decides nothing."""
    if not read:
        ignoring = claim(company, awaited)
        take(company, ignoring)
        end(company, ignoring)
    for pause in REMINDERS_TO_AGENT[:-1]:
        clock.advance(pause)
        assert company.call(as_system(), escalation.companies) == [company.id]
        company.call(as_system(), escalation.remind, company=company.id)
        assert awaited.id in ready(company)
        ignoring = claim(company, awaited)
        assert [letter["subject"] for letter in take(company, ignoring)] == [
            f"Still awaited: {what}"
        ]
        end(company, ignoring)
    clock.advance(DAY)
    company.call(as_system(), escalation.remind, company=company.id)


def log_of(company: Company, run: Answer | Run) -> str:
    which = run.id if isinstance(run, Run) else run["id"]
    log = company.call(company.board, runs.log, run=which)
    return "".join(piece["text"] for piece in log["pieces"])


def told(company: Company) -> list[str]:
    """The subjects of what the board has not read."""
    return [message["subject"] for message in unread(company, company.board)]


def written(company: Company) -> list[str]:
    """The subjects of what the board was written, read or not."""
    return [message["subject"] for message in unread(company, company.board, everything=True)]


def program(company: Company, name: str, script: str, boss: str = "ceo", **more: Any) -> Member:
    """An agent that is a shell script, started for mail only unless told otherwise."""
    config = {"command": "/bin/sh", "args": ["-c", script], **more.pop("config", {})}
    more.setdefault("perpetual", True)
    agent = company.agent(name, boss=boss, adapter_type="process", adapter_config=config, **more)
    if config.get("sandbox") == "full":
        company.call(
            company.board,
            grants.give,
            company=company.id,
            to=agent.id,
            resource=FULL_ACCESS,
            level="use",
        )
    return agent


def at_work(
    company: Company, until: Callable[[], object], seconds: float = SECONDS, **options: Any
) -> None:
    """Let a worker work until something is so, which is looked at from outside."""

    async def work() -> None:
        worker = Worker(company.app, NOWHERE, **options)
        worker.start()
        try:
            async with asyncio.timeout(seconds):
                while not await asyncio.to_thread(until):  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
        finally:
            await worker.stop()

    company.wait(work())


def with_worker(
    company: Company, story: Callable[[Worker], Awaitable[None]], **options: Any
) -> None:
    """A worker, and a story that happens while it works."""

    async def work() -> None:
        worker = Worker(company.app, NOWHERE, **options)
        worker.start()
        try:
            async with asyncio.timeout(SECONDS):
                await story(worker)
        finally:
            await worker.stop()

    company.wait(work())


async def looked_again(worker: Worker | Jobs) -> None:
    """Wait until the worker has polled for work, for one whole round."""
    for _ in range(2):  # the first begins the round, the second the one after it
        worker._woken.set()
        while worker._woken.is_set():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def statuses(company: Company, member: Member) -> list[str]:
    """Return the statuses of an agent's runs, the oldest first."""
    rows = company.sql("SELECT status FROM runs WHERE agent_id = ? ORDER BY id", member.id)
    return [status for (status,) in rows]


def over(company: Company, member: Member, count: int = 1) -> Callable[[], bool]:
    """Whether an agent has had so many runs, and none is alive."""

    def look() -> bool:
        states = statuses(company, member)
        return len(states) >= count and "running" not in states

    return look


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def processes_with(mark: str) -> list[int]:
    """Processes whose command line contains a mark."""
    pids = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                command = Path(f"/proc/{name}/cmdline").read_bytes()
            except OSError:
                continue
            if mark.encode() in command:
                pids.append(int(name))
    return pids


def eventually(look: Callable[[], object], seconds: float = SECONDS) -> None:
    end_at = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < end_at, "it did not come to pass"
        time.sleep(0.02)


def later(company: Company, by: Micros) -> None:
    """Let time pass for the leases; for tests on a clock of their own."""
    company.clock.advance(by)  # type: ignore[attr-defined]
