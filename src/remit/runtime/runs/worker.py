"""The worker: starts agents that are due, as many at once as it has slots."""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from remit import threads
from remit.adapters import registry
from remit.adapters.contract import Check
from remit.adapters.running import RunResult
from remit.adapters.setup.probe import Tried, is_answered
from remit.clock import Micros
from remit.errors import Conflict, NotFound, RemitError, Unavailable
from remit.runtime.deadlines import uninterrupted
from remit.runtime.loop import BACKOFF_SECONDS, LONGEST_SLEEP, Loop
from remit.runtime.runs import checks
from remit.runtime.runs.execution import Claimed, Instance, execute, report
from remit.runtime.runs.processes import end_leftovers
from remit.services.command import Ask
from remit.services.execution import (
    account_faults,
    accounts,
    error_recovery,
    provider_questions,
    run_endings,
    run_queue,
    runs,
)
from remit.services.execution.error_recovery import Broken
from remit.services.execution.provider_questions import Question
from remit.services.execution.run_queue import Following
from remit.services.spending import budgets, limits
from remit.services.verbs import Verb
from remit.settings import DEFAULT_SLOTS
from remit.store.execution.leases import Ready

log = logging.getLogger(__name__)

SWEEP_SECONDS = 30.0
#: Shortest time between two rounds, which batches bursts of mail; less than a start takes.
SHORTEST_SLEEP = 0.005
_MOST_SWEEPS = 1000
#: The verb to call for an agent whose claim was refused, by the reason.
_AFTER_REFUSAL: dict[str, Verb[..., Any]] = {
    run_queue.NOTHING_TO_DO: run_queue.settle,
    run_queue.NOTHING_LEFT: budgets.hold,
    limits.REACHED: limits.hold,
}


class Worker(Loop[Claimed]):
    """Runs agents in this process; the lease decides which worker runs an agent."""

    def __init__(
        self,
        app: Instance,
        url: str,
        *,
        name: str = "local",
        slots: int = DEFAULT_SLOTS,
        per_company: int | None = None,
        per_adapter: Mapping[str, int] | None = None,
        lease: Micros = run_queue.LEASE_TIME,
    ) -> None:
        super().__init__(app.gate, "the worker", shortest=SHORTEST_SLEEP)
        self._app = app
        self._url = url
        self.name = name
        self.slots = slots
        self._per_company = per_company or slots
        self._per_adapter = dict(per_adapter or {})
        self._lease = lease
        self._renew(lease, run_queue.renew)
        self._watch(lease, self._held_elsewhere, self._take_over)
        self._every(SWEEP_SECONDS, self._sweep)
        self._every(LONGEST_SLEEP, self._mend)
        self._every(LONGEST_SLEEP, self._ask_providers)
        self._secrets: asyncio.Task[None] | None = None
        self._last_company = ""
        #: Companies and adapters whose account is opening, which get no more starts in this round.
        self._opening: set[tuple[str, str]] = set()
        #: When the next deferred outcome becomes due.
        self._deferred: Micros | None = None

    def start(self) -> None:
        super().start()
        self._secrets = asyncio.create_task(self._look_up_secrets())

    async def stop(self) -> None:
        if self._secrets is not None:
            self._secrets.cancel()
        await super().stop()

    async def _look_up_secrets(self) -> None:
        """Read all secrets in advance, once; a use of one that failed reads it again."""
        try:
            await self._app.vault.open()
        except Exception:
            log.exception("secrets could not be looked up in advance")

    # ── starting ────────────────────────────────────────────────────────────────────────────

    async def _look(self) -> Micros | None:
        if self._deferred is not None and self._deferred <= self._app.clock.now():
            await self._sweep()
        here = {run.run_id: held for held, run in self._held.items()}
        # Agents that run here may still be listed as ready while their end is being recorded.
        each, room = self._per_company + self.busy, self.busy < self.slots

        def questions(ask: Ask) -> tuple[list[str], list[Ready], Following]:
            return (
                ask(run_queue.over, runs=[*here]) if here else [],
                ask(run_queue.ready, each=each, worker=self.name) if room else [],
                ask(run_queue.next_ready),
            )

        over, ready, following = await self._ask(questions)
        # Runs that were ended in the database are cancelled here.
        for run in over:
            self._cancel(here[run])
        if ready:
            await self._start_ready(ready)
            following = await self._do(run_queue.next_ready)
        self._deferred = following.deferred
        return min((due for due in following if due is not None), default=None)

    async def _start_ready(self, ready: list[Ready]) -> None:
        self._opening.clear()
        here = self._held.values()
        companies = Counter(run.company_id for run in here)
        adapters = Counter(run.adapter_type for run in here)
        agents = {run.agent_id for run in here}
        for candidate in self._in_turn(ready):
            agent, company, adapter = (
                candidate.agent_id,
                candidate.company_id,
                candidate.adapter_type,
            )
            if self.busy >= self.slots or self._stopping:
                return
            if (
                agent not in agents
                and (company, adapter) not in self._opening
                and companies[company] < self._per_company
                and adapters[adapter] < self._per_adapter.get(adapter, self.slots)
                and await uninterrupted(self._start(agent, company, adapter))
            ):
                agents.add(agent)
                companies[company] += 1
                adapters[adapter] += 1
                self._last_company = company

    def _in_turn(self, ready: list[Ready]) -> list[Ready]:
        """Order agents round-robin by company, so that a busy one does not starve the others."""
        by_company: dict[str, list[Ready]] = {}
        for candidate in ready:
            by_company.setdefault(candidate.company_id, []).append(candidate)
        order = sorted(by_company, key=lambda company: (company <= self._last_company, company))
        turns: list[Ready] = []
        for place in range(max(map(len, by_company.values()), default=0)):
            turns += [
                by_company[company][place] for company in order if place < len(by_company[company])
            ]
        return turns

    async def _start(self, agent: str, company: str, adapter: str) -> bool:
        run_id = self._app.ids.new()
        folder = self._app.settings.workspaces / run_id
        try:
            answer = await self._do(
                run_queue.claim,
                agent=agent,
                run=run_id,
                workspace=str(folder),
                worker=self.name,
                lease=self._lease,
            )
        except Conflict as refusal:
            if (follows := _AFTER_REFUSAL.get(refusal.reason)) is not None:
                await self._do(follows, agent=agent)
            elif refusal.reason == accounts.HELD:
                await self._do(accounts.wait, agent=agent, worker=self.name)
            elif refusal.reason == accounts.OPENING:
                self._opening.add((company, adapter))
            return False  # otherwise another worker was faster
        except NotFound:
            return False
        claimed = Claimed(
            run_id=run_id,
            agent_id=agent,
            company_id=company,
            adapter_type=adapter,
            token=answer["token"],
            epoch=answer["epoch"],
            seen=answer["seen"],
            workspace=folder,
            probe=answer["probe"],
        )
        self._begin((agent, claimed.epoch), claimed, self._carry_out(claimed))
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
            pass  # it has ended already: it was cancelled, or another worker took over
        except Exception:
            # Its lease is not renewed any more, so the run will be recorded as lost.
            log.exception("run %s could not be ended properly", claimed.run_id)
        finally:
            self._app.streaks.forget(claimed.run_id)
            self._release((claimed.agent_id, claimed.epoch))
        await self._remove(claimed.workspace)

    async def _record_end(self, claimed: Claimed, status: str, result: RunResult) -> None:
        """Record the end of a run, retrying until it succeeds: its work must not be repeated."""
        while True:
            try:
                await self._do(
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
                # The disk may be full, and retained workspaces may be what fills it.
                await self._app.kept.make_room(claimed.workspace)
                await asyncio.sleep(BACKOFF_SECONDS)
            else:
                return

    async def _remove(self, workspace: Path) -> None:
        try:
            await self._app.kept.put_away(workspace.name, workspace)
        except RemitError as error:
            log.warning("the workspace of run %s is left: %s", workspace.name, error)

    # ── keeping ─────────────────────────────────────────────────────────────────────────────

    async def _held_elsewhere(self) -> dict[str, Micros]:
        here = {run.run_id for run in self._held.values()}
        held = await self._do(run_queue.held)
        return {run: until for run, until in held.items() if run not in here}

    async def _take_over(self, run: str, until: Micros) -> None:
        await self._do(run_queue.take_over, run=run, until=until)
        # The other worker may have been on this machine: end its programs, remove its folder.
        await threads.ENDINGS.run(end_leftovers, {run})
        await self._remove(self._app.settings.workspaces / run)

    async def _sweep(self) -> None:
        """Repair missed wakes: redate agents after the clock was set back, and wake owners of due
        outcomes that were not woken, such as those that became due by the clock."""
        for agent in await self._do(run_queue.misdated):
            await self._do(run_queue.redate, agent=agent)
        for _ in range(_MOST_SWEEPS):
            woken = 0
            for company in await self._do(run_queue.forgotten):
                answer = await self._do(run_queue.sweep, company=company)
                woken += len(answer["woken"])
            if not woken:
                return

    async def _mend(self) -> None:
        """Check whether broken set-ups of this worker and agents in error work again."""
        setups = await self._do(account_faults.to_check, worker=self.name)
        agents = await self._do(error_recovery.to_check)
        broken: list[tuple[Verb[..., Any], str, Broken]] = [
            *((account_faults.checked, "account", setup) for setup in setups),
            *((error_recovery.checked, "agent", agent) for agent in agents),
        ]
        for verb, noun, subject in broken:
            readiness = await self._checked(subject.adapter_type, subject.config)
            arguments = {noun: subject.id, "usable": readiness.usable, "cause": readiness.sentence}
            with contextlib.suppress(Conflict):
                await self._do(verb, **arguments)

    async def _ask_providers(self) -> None:
        """Ask the providers of closed accounts whether they answer again, at no cost."""
        questions = await self._do(provider_questions.to_ask)
        await asyncio.gather(*map(self._ask_provider, questions))

    async def _ask_provider(self, question: Question) -> None:
        if not await self._do(provider_questions.begin, account=question.account):
            return  # another worker asks, or nobody needs to any more
        try:
            settings = registry.read(question.adapter_type, question.config)
            name = getattr(settings, "secret_ref", None)
            secret = await self._app.vault.value(question.company_id, name) if name else None
            tried = await registry.try_out(
                question.adapter_type, question.config, secret, free=True
            )
        except RemitError as error:
            tried = Tried(None, error.sentence)
        answered = is_answered(tried, for_long=question.for_long)
        report = {"account": question.account, "cause": tried.sentence if tried else ""}
        with contextlib.suppress(Conflict):
            if answered is not False:
                await self._do(provider_questions.asked, **report, answered=answered is True)
            elif question.to_be_told:
                await self._do(provider_questions.unanswered, **report)

    async def _checked(self, adapter: str, config: Mapping[str, Any] | None) -> Check:
        """Check an adapter with a configuration; without one, nobody uses it, and it passes."""
        if config is None:
            return Check(True, "Nobody needs it any more.")
        try:
            return await threads.CHECKS.run(checks.check, adapter, config, self._app.settings.home)
        except RemitError as error:
            return Check(False, error.sentence)
