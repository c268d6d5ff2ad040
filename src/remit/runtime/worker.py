"""Starts agents that have something to do, as many at once as there are slots."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Protocol

from remit import threads
from remit.adapters.contract import Check
from remit.adapters.running import RunResult
from remit.clock import SECOND, Micros
from remit.errors import Conflict, NotFound, RemitError, Unavailable
from remit.ids import CompanyId
from remit.runtime import checks
from remit.runtime.deadlines import within
from remit.runtime.execution import Claimed, Instance, execute, report, uninterrupted
from remit.runtime.processes import end_leftovers
from remit.runtime.silence import Silence
from remit.services import accounts, budgets, claiming, limits, mending, run_endings, runs
from remit.services.identity import as_system

log = logging.getLogger(__name__)

DEFAULT_SLOTS = 4
RENEW_SECONDS = 3.0
SWEEP_SECONDS = 30.0
LONGEST_SLEEP = 1.0
_MOST_SWEEPS = 1000
#: For what the worker itself is doing when it is stopped, and for its runs to be put away.
LOOPS_SECONDS = 1.5
RUNS_SECONDS = 5.0


class Dispatcher(Protocol):
    """How wakes reach workers. Who may run is decided by the lease, not by this."""

    def start(self) -> None:
        """Begin to claim agents that are ready."""

    def kick(self) -> None:
        """Somebody was woken, or a run was ended; from any thread."""

    def cancel(self, run: str) -> bool:
        """End a run on this machine; tells whether it was here."""

    async def stop(self) -> None:
        """Start nobody any more, and end what is running."""


class Worker:
    """The embedded dispatcher: one loop in the process of the instance."""

    def __init__(
        self,
        app: Instance,
        url: str,
        *,
        name: str = "local",
        slots: int = DEFAULT_SLOTS,
        per_company: int | None = None,
        per_adapter: Mapping[str, int] | None = None,
        lease: Micros = claiming.LEASE_TIME,
    ) -> None:
        self._app = app
        self._url = url
        self.name = name
        self.slots = slots
        self._per_company = per_company or slots
        self._per_adapter = dict(per_adapter or {})
        self._lease = lease
        self._silence: Silence[str] = Silence(lease / SECOND)
        self._running: dict[str, _Running] = {}
        #: Also those of runs that are over and only put their things away.
        self._at_it: set[asyncio.Task[None]] = set()
        self._woken = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False
        self._last_company = ""
        #: What opened just now, so that no more are started in this round.
        self._opening: set[tuple[str, str]] = set()
        #: When the clock brings back something that was put off.
        self._deferred: Micros | None = None

    def start(self) -> None:
        self._app.gate.listeners.append(self._changed)
        for work in (
            self._dispatch,
            self._renew,
            self._look_after,
            self._sweep_now_and_then,
            self._mend_now_and_then,
        ):
            self._tasks.append(asyncio.create_task(self._forever(work)))
        self._tasks.append(asyncio.create_task(self._look_up_secrets()))

    def kick(self) -> None:
        self._loop.call_soon_threadsafe(self._woken.set)

    def cancel(self, run: str) -> bool:
        return any(here.cancel() for here in self._running.values() if here.claimed.run_id == run)

    async def stop(self) -> None:
        """Once, and in a bounded time: what hangs is left behind, and found by the next start."""
        if self._stopping:
            return
        self._stopping = True
        if self._changed in self._app.gate.listeners:
            self._app.gate.listeners.remove(self._changed)
        for task in self._tasks:
            task.cancel()
        await within(
            LOOPS_SECONDS,
            asyncio.gather(*self._tasks, return_exceptions=True),
            "what the worker was doing",
        )
        for here in list(self._running.values()):
            here.cancel()
        await within(
            RUNS_SECONDS,
            asyncio.gather(*self._at_it, return_exceptions=True),
            "some run of this worker",
        )

    @property
    def busy(self) -> int:
        return len(self._running)

    def _changed(self, _: CompanyId) -> None:
        self.kick()

    async def _forever(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """What fails is tried again; a worker that stops quietly is the worst kind."""
        while not self._stopping:
            try:
                await work()
            except RemitError as error:
                log.warning("the worker goes on after: %s", error)
                await asyncio.sleep(LONGEST_SLEEP)
            except Exception:
                log.exception("the worker goes on after an unexpected error")
                await asyncio.sleep(LONGEST_SLEEP)

    async def _look_up_secrets(self) -> None:
        """Once; whoever needs one that was not to be had tries again, and says so."""
        try:
            await self._app.vault.open()
        except Exception:
            log.exception("secrets could not be looked up in advance")

    # ── starting ────────────────────────────────────────────────────────────────────────────

    async def _dispatch(self) -> None:
        self._woken.clear()
        if self._deferred is not None and self._deferred <= self._app.clock.now():
            await self._sweep()
        if self.busy:
            await self._end_cancelled()
        if self.busy < self.slots:
            await self._start_ready()
        following = await self._app.gate(as_system(), claiming.next_ready)
        self._deferred = following["deferred"]
        pause = LONGEST_SLEEP
        for due in following.values():
            if due is not None:
                left = (due - self._app.clock.now()) / SECOND
                pause = min(pause, max(left, 0.001))
        try:
            async with asyncio.timeout(pause):
                await self._woken.wait()
        except TimeoutError:
            pass

    async def _start_ready(self) -> None:
        # Those that run here are in the way only while their end is being written down.
        each = self._per_company + self.busy
        ready = await self._app.gate(as_system(), claiming.ready, each=each, worker=self.name)
        self._opening.clear()
        companies = Counter(here.claimed.company_id for here in self._running.values())
        adapters = Counter(here.adapter for here in self._running.values())
        for one in self._in_turn(ready):
            company, adapter = one["company_id"], one["adapter_type"]
            if self.busy >= self.slots or self._stopping:
                return
            if (
                one["agent_id"] not in self._running
                and (company, adapter) not in self._opening
                and companies[company] < self._per_company
                and adapters[adapter] < self._per_adapter.get(adapter, self.slots)
                and await uninterrupted(self._start(one["agent_id"], company, adapter))
            ):
                companies[company] += 1
                adapters[adapter] += 1
                self._last_company = company

    def _in_turn(self, ready: list[dict[str, str]]) -> list[dict[str, str]]:
        """One of each company after the other, so that a busy one does not starve the others."""
        by_company: dict[str, list[dict[str, str]]] = {}
        for one in ready:
            by_company.setdefault(one["company_id"], []).append(one)
        order = sorted(by_company, key=lambda company: (company <= self._last_company, company))
        turns: list[dict[str, str]] = []
        for place in range(max(map(len, by_company.values()), default=0)):
            turns += [
                by_company[company][place] for company in order if place < len(by_company[company])
            ]
        return turns

    async def _start(self, agent: str, company: str, adapter: str) -> bool:
        run_id = self._app.ids.new()
        folder = self._app.settings.workspaces / run_id
        try:
            answer = await self._app.gate(
                as_system(),
                claiming.claim,
                agent=agent,
                run=run_id,
                workspace=str(folder),
                worker=self.name,
                lease=self._lease,
            )
        except Conflict as refusal:
            if refusal.reason == claiming.NOTHING_TO_DO:
                await self._app.gate(as_system(), claiming.settle, agent=agent)
            elif refusal.reason == claiming.NOTHING_LEFT:
                await self._app.gate(as_system(), budgets.hold, agent=agent)
            elif refusal.reason == limits.REACHED:
                await self._app.gate(as_system(), limits.hold, agent=agent)
            elif refusal.reason == accounts.HELD:
                await self._app.gate(as_system(), accounts.wait, agent=agent, worker=self.name)
            elif refusal.reason == accounts.OPENING:
                self._opening.add((company, adapter))
            return False  # otherwise another worker was faster
        except NotFound:
            return False
        claimed = Claimed(
            run_id=run_id,
            agent_id=agent,
            company_id=answer["company_id"],
            token=answer["token"],
            epoch=answer["epoch"],
            seen=answer["seen"],
            workspace=folder,
            probe=answer["probe"],
        )
        task = asyncio.create_task(self._carry_out(claimed))
        self._running[agent] = _Running(claimed, adapter, task)
        self._at_it.add(task)
        task.add_done_callback(self._at_it.discard)
        return True

    async def _carry_out(self, claimed: Claimed) -> None:
        status = "cancelled"
        result = RunResult(False, reason="cancelled", error="it was ended")
        try:
            result = await execute(self._app, self._url, claimed)
            status = "completed" if result.ok else "failed"
        except asyncio.CancelledError:
            if self._stopping:
                status = "lost"
                result = RunResult(
                    False, reason=run_endings.STOPPED, error="Remit was stopped while it ran"
                )
        await uninterrupted(self._end(claimed, status, result))

    async def _end(self, claimed: Claimed, status: str, result: RunResult) -> None:
        try:
            await self._record_end(claimed, status, result)
        except Conflict:
            pass  # somebody ended it already: it was cancelled, or another worker took over
        except Exception:
            # It is not renewed any more, so it will be found and given up.
            log.exception("run %s could not be ended properly", claimed.run_id)
        finally:
            self._running.pop(claimed.agent_id, None)
            self._app.streaks.interrupt(claimed.run_id)
            self._woken.set()
        await self._remove(claimed.workspace)

    async def _record_end(self, claimed: Claimed, status: str, result: RunResult) -> None:
        """Say how it ended, for as long as it takes: what it did must not be done again."""
        while True:
            try:
                await self._app.gate(
                    as_system(),
                    runs.end,
                    run=claimed.run_id,
                    status=status,
                    seen=claimed.seen,
                    report=report(result),
                )
            except Unavailable as error:
                if self._stopping:
                    raise
                log.warning("the end of run %s is recorded later: %s", claimed.run_id, error)
                # It may be for want of room, and folders of runs may be what takes it.
                await self._app.kept.make_room(claimed.workspace)
                await asyncio.sleep(LONGEST_SLEEP)
            else:
                return

    async def _remove(self, workspace: Path) -> None:
        try:
            await self._app.kept.put_away(workspace.name, workspace)
        except RemitError as error:
            log.warning("the workspace of run %s is left: %s", workspace.name, error)

    # ── keeping ─────────────────────────────────────────────────────────────────────────────

    async def _renew(self) -> None:
        await asyncio.sleep(min(RENEW_SECONDS, self._lease / SECOND / 3))
        held = [(here.claimed.agent_id, here.claimed.epoch) for here in self._running.values()]
        if not held:
            return
        for agent in await self._app.gate(
            as_system(), claiming.renew, held=held, lease=self._lease
        ):
            here = self._running.get(agent)
            if here is not None and (agent, here.claimed.epoch) in held:
                here.cancel()  # it is somebody else's now, or was cancelled

    async def _look_after(self) -> None:
        """Take over from workers that are silent."""
        held = await self._app.gate(as_system(), claiming.held)
        here = {one.claimed.run_id for one in self._running.values()}
        others = {run: until for run, until in held.items() if run not in here}
        for run in self._silence.of(others, time.monotonic()):
            try:
                await self._app.gate(as_system(), claiming.take_over, run=run, until=held[run])
            except Conflict:
                continue
            # If that worker was on this machine, its programs and its folder may be, too.
            await threads.ENDINGS.run(end_leftovers, {run})
            await self._remove(self._app.settings.workspaces / run)
        await asyncio.sleep(LONGEST_SLEEP)

    async def _sweep_now_and_then(self) -> None:
        await self._sweep()
        await asyncio.sleep(SWEEP_SECONDS)

    async def _sweep(self) -> None:
        """Wake whom nobody woke; time, too, can bring something back, or be set back itself."""
        for agent in await self._app.gate(as_system(), claiming.misdated):
            await self._app.gate(as_system(), claiming.redate, agent=agent)
        for _ in range(_MOST_SWEEPS):
            woken = 0
            for company in await self._app.gate(as_system(), claiming.forgotten):
                answer = await self._app.gate(as_system(), claiming.sweep, company=company)
                woken += len(answer["woken"])
            if not woken:
                return

    async def _mend_now_and_then(self) -> None:
        await self._mend()
        await asyncio.sleep(LONGEST_SLEEP)

    async def _mend(self) -> None:
        """Look whether what was broken works again: set-ups of this worker, and agents that were
        left to a person."""
        for setup in await self._app.gate(as_system(), accounts.to_check, worker=self.name):
            found = await self._checked(setup["adapter_type"], setup["config"])
            with contextlib.suppress(Conflict):
                await self._app.gate(
                    as_system(),
                    accounts.checked,
                    account=setup["id"],
                    usable=found.usable,
                    cause=found.sentence,
                )
        for agent in await self._app.gate(as_system(), mending.to_check):
            found = await self._checked(agent["adapter_type"], agent["config"])
            with contextlib.suppress(Conflict):
                await self._app.gate(
                    as_system(),
                    mending.checked,
                    agent=agent["id"],
                    usable=found.usable,
                    cause=found.sentence,
                )

    async def _checked(self, adapter: str, config: Mapping[str, Any] | None) -> Check:
        """What an adapter finds when it looks around here; what nobody needs is fine."""
        if config is None:
            return Check(True, "Nobody needs it any more.")
        try:
            return await threads.CHECKS.run(checks.check, adapter, config, self._app.settings.home)
        except RemitError as error:
            return Check(False, error.sentence)

    async def _end_cancelled(self) -> None:
        """Runs that somebody ended in the database end on the machine, too."""
        here = [one.claimed.run_id for one in self._running.values()]
        for run in await self._app.gate(as_system(), claiming.over, runs=here):
            self.cancel(run)


class _Running:
    """A run on this machine."""

    def __init__(self, claimed: Claimed, adapter: str, task: asyncio.Task[None]) -> None:
        self.claimed = claimed
        self.adapter = adapter
        self.task = task
        self._cancelled = False

    def cancel(self) -> bool:
        """Once: it needs its time to put things away."""
        if not self._cancelled and not self.task.done():
            self._cancelled = True
            self.task.cancel()
        return True
