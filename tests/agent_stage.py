"""A whole instance with a worker, on which an agent of any adapter can be put to work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remit.app import App
from remit.clock import Clock, Micros, SystemClock
from remit.entrypoints import transcripts
from remit.entrypoints.serve import running
from remit.model.execution.transcript import Entry
from remit.runtime.runs.worker import Worker
from remit.services.execution import accounts, run_queue, runs
from remit.services.hiring import configuration
from remit.services.identity import Caller, as_system
from remit.services.messaging import threads
from remit.services.organisation import agents
from remit.settings import DEFAULT_SLOTS, Settings, load

Answer = dict[str, Any]
SECONDS = 60.0
#: Everybody rests when nobody runs or is about to at so many looks in a row.
QUIET_LOOKS = 3


class LeapingClock(SystemClock):
    """The clock of this machine, and as much ahead of it as a story has leapt over."""

    ahead: Micros = 0

    def now(self) -> Micros:
        return super().now() + self.ahead


@dataclass
class Stage:
    app: App
    url: str
    board: Caller
    settings: Settings

    async def cast(self, adapter: str, config: Mapping[str, Any], agent: str = "ceo") -> None:
        """Let an agent be run by this adapter."""
        await self.app.gate(
            self.board,
            configuration.change,
            agent=agent,
            changes={"adapterType": adapter, "adapterConfig": dict(config)},
        )

    async def hire(self, name: str, adapter: str, config: Mapping[str, Any], **more: Any) -> Answer:
        companies = await self.app.gate(self.board, agents.listing, company=None)
        return await self.app.gate(
            self.board,
            agents.create,
            company=companies[0]["company_id"],
            name=name,
            role="engineer",
            reports_to="agent:ceo",
            adapter_type=adapter,
            adapter_config=dict(config),
            **more,
        )

    async def send(self, body: str, to: str = "agent:ceo") -> None:
        await self.app.library.send(self.board, body=body, to=to)

    async def runs(self) -> list[Answer]:
        """Of everybody, the oldest first."""
        listing = await self.app.gate(self.board, runs.listing, company=None)
        return list(reversed(listing))

    async def over(self, count: int = 1, seconds: float = SECONDS) -> list[Answer]:
        async with asyncio.timeout(seconds):
            while True:
                all_runs = await self.runs()
                if len(all_runs) >= count and all(run["status"] != "running" for run in all_runs):
                    return all_runs
                await asyncio.sleep(0.05)

    async def first_over(self, seconds: float = SECONDS) -> Answer:
        """Of runs that follow each other at once, the first."""
        async with asyncio.timeout(seconds):
            while True:
                for run in (await self.runs())[:1]:
                    if run["status"] != "running":
                        return run
                await asyncio.sleep(0.05)

    async def rest(self, seconds: float = SECONDS) -> None:
        """Until nobody runs or is about to."""
        quiet = 0
        async with asyncio.timeout(seconds):
            while quiet < QUIET_LOOKS:
                quiet = 0 if await self.is_busy() else quiet + 1
                await asyncio.sleep(0.1)

    async def is_busy(self) -> bool:
        """Whether somebody runs, or is about to."""
        ready = await self.app.gate(as_system(), run_queue.ready)
        live = await self.app.gate(as_system(), run_queue.live)
        return bool(ready or live)

    async def begun(self) -> Answer:
        async with asyncio.timeout(SECONDS):
            while True:
                for run in await self.runs():
                    if run["status"] == "running":
                        return run
                await asyncio.sleep(0.02)

    async def log(self, run: Answer) -> str:
        log = await self.app.gate(self.board, runs.log, run=run["id"])
        return "".join(piece["text"] for piece in log["pieces"])

    async def transcript(self, run: Answer) -> list[Entry]:
        """What a run did, as people read it."""
        return await self.app.gate.together(
            self.board, lambda ask: [entry for _, entry in transcripts.entries(ask, run["id"])]
        )

    async def accounts(self) -> list[Answer]:
        return await self.app.gate(self.board, accounts.listing, company=None)

    async def deliveries(self) -> list[tuple[str, int]]:
        """What became of the mail to agents: its state, and how many attempts count."""
        messages = await self.app.gate(self.board, threads.listing, company=None)
        return [
            (delivery["status"], delivery["attempt"])
            for message in messages
            for delivery in message["deliveries"]
            if delivery["to"].startswith("agent:")
        ]

    async def mail(self) -> list[str]:
        """What the board has not read."""
        messages = await self.app.gate(self.board, threads.own_inbox, company=None)
        return [message["body"] for message in messages]


async def until(condition: Callable[[], object], seconds: float = 15) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110  # it is outside, and announces nothing
            await asyncio.sleep(0.02)


@asynccontextmanager
async def stage(
    home: Path, *, working: bool = True, clock: Clock | None = None, slots: int = DEFAULT_SLOTS
) -> AsyncIterator[Stage]:
    settings = load({"REMIT_HOME": str(home)})
    async with running(settings, clock=clock) as (app, url, _):
        worker = Worker(app, url, slots=slots)
        if working:
            worker.start()
        try:
            board = Caller(settings.board_token_file.read_text().strip())
            yield Stage(app, url, board, settings)
        finally:
            await worker.stop()
