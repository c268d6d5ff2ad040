"""Background jobs in tests: asked for, carried out, and what came of them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from remit.runtime.jobs import Jobs
from remit.services.execution import jobs
from tests.company import Answer, Company, Member
from tests.mailing import look, send
from tests.working import SECONDS, program

BACKGROUND = "agent:background"


def ask(company: Company, member: Member, text: str = "Count.", /, **more: Any) -> Answer:
    return send(company, member.caller, BACKGROUND, text, **more)


def worker_of(company: Company, name: str, script: str, **more: Any) -> Member:
    """An agent whose jobs, and runs, are a shell script; asked for by hand, it is never started."""
    return program(company, name, script, **more)


def listed(company: Company, member: Member | None = None, **more: Any) -> list[Answer]:
    agent = member.id if member else None
    return company.call(company.board, jobs.listing, company=company.id, agent=agent, **more)


def statuses(company: Company, *members: Member) -> list[str]:
    """Of all jobs, or of these agents', the oldest first."""
    rows = company.sql("SELECT agent_id, status FROM jobs ORDER BY id")
    ids = {member.id for member in members}
    return [status for agent, status in rows if not ids or agent in ids]


def over(company: Company, count: int = 1) -> Callable[[], bool]:
    """Whether so many jobs were asked for, and none is left."""

    def look() -> bool:
        states = statuses(company)
        return len(states) >= count and not {"queued", "running"} & set(states)

    return look


def carried_out(
    company: Company, until: Callable[[], object], seconds: float = SECONDS, **options: Any
) -> None:
    """Let jobs be done until something is so, which is looked at from outside."""

    async def story(_: Jobs) -> None:
        async with asyncio.timeout(seconds):
            while not await asyncio.to_thread(until):  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    while_carried_out(company, story, **options)


def while_carried_out(
    company: Company, story: Callable[[Jobs], Awaitable[None]], **options: Any
) -> None:
    async def work() -> None:
        carrier = Jobs(company.app, **options)
        carrier.start()
        try:
            await story(carrier)
        finally:
            await carrier.stop()

    company.wait(work())


def answers(company: Company, member: Member) -> list[Answer]:
    """What the background wrote to an agent."""
    return [message for message in look(company, member) if message["sender"] == BACKGROUND]


def events(company: Company, prefix: str = "job.") -> list[str]:
    rows = company.sql("SELECT action FROM events ORDER BY seq")
    return [action for (action,) in rows if action.startswith(prefix)]
