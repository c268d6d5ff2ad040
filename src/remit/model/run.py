"""Runs: single executions of an agent, and the lease that lets one be at a time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from remit.clock import DAY, HOUR, MINUTE, SECOND, Micros
from remit.ids import AgentId, CompanyId, RunId, UserId


class RunStatus(StrEnum):
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"


#: A run that ended like this did what it was started for, as far as anybody can tell.
ENDED_WELL = frozenset({RunStatus.COMPLETED, RunStatus.CANCELLED})


@dataclass(frozen=True, slots=True)
class Run:
    id: RunId
    company_id: CompanyId
    agent_id: AgentId
    status: RunStatus
    workspace: str | None
    started_at: Micros
    ended_at: Micros | None
    #: The count of the agent's leases when it began; a later one has taken over.
    epoch: int
    worker: str | None
    adapter_type: str | None
    session_id: str | None
    #: What woke it.
    why: str | None
    #: JSON text: the messages it took up.
    message_ids: str
    final_response: str | None
    context_length: int | None
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    cost_micros: int
    exit_reason: str | None
    error: str | None
    #: The person at the top of its tree.
    accountable_user_id: UserId | None
    log_bytes: int


@dataclass(frozen=True, slots=True)
class Lease:
    """Whether an agent has something to do, and who is seeing to it.

    Something is to do while `wake_seq` is ahead of `done_seq`. Whoever claims it raises `epoch`.
    """

    agent_id: AgentId
    company_id: CompanyId
    wake_seq: int
    done_seq: int
    epoch: int
    lease_until: Micros | None
    worker: str | None
    #: Not before this time.
    due_at: Micros
    why: str
    #: How often in a row it was run and changed nothing, or failed.
    idle_runs: int
    failures: int
    #: The failure that its boss was told of last.
    told: str | None

    @property
    def awake(self) -> bool:
        return self.wake_seq > self.done_seq

    @property
    def held(self) -> bool:
        return self.due_at >= HELD


#: When an agent is due that is not to be started until something new comes, or somebody says so.
HELD: Micros = 1 << 62

#: How long an agent waits after each run in a row that changed nothing; the last one repeats.
IDLE_PAUSES: tuple[Micros, ...] = (
    30 * SECOND,
    2 * MINUTE,
    10 * MINUTE,
    30 * MINUTE,
    HOUR,
    4 * HOUR,
    DAY,
)
#: So many idle or failed runs in a row are worth a word to the boss.
IDLE_RUNS_TOLD = len(IDLE_PAUSES)
FAILURES_TOLD = 5


def pause_after(idle_runs: int, failures: int) -> Micros:
    """How long an agent waits before it is tried again. It is slowed down, never switched off."""
    idle = 0 if idle_runs == 0 else IDLE_PAUSES[min(idle_runs, len(IDLE_PAUSES)) - 1]
    failed = 0 if failures == 0 else min(2 * SECOND * 4 ** (failures - 1), 10 * MINUTE)
    return max(idle, failed)
