"""Runs: single executions of an agent, and the lease that allows only one at a time."""

from dataclasses import dataclass
from enum import StrEnum

from remit.clock import DAY, HOUR, MINUTE, SECOND, Micros
from remit.ids import AgentId, CompanyId, RunId, UserId
from remit.model.execution.budget import Metered, Priced
from remit.model.work.outcome import Look

RunStatus = StrEnum("RunStatus", "RUNNING COMPLETED FAILED CANCELLED LOST")


#: Final statuses that count as success.
ENDED_WELL = frozenset({RunStatus.COMPLETED, RunStatus.CANCELLED})


@dataclass(frozen=True, slots=True)
class Run(Priced, Metered):
    id: RunId
    company_id: CompanyId
    agent_id: AgentId
    status: RunStatus
    workspace: str | None
    started_at: Micros
    #: The agent's lease epoch at the start; a later one has superseded the run.
    epoch: int
    worker: str | None
    adapter_type: str | None
    #: Reason of its start.
    why: str | None
    #: The person at the top of its tree.
    accountable_user_id: UserId | None
    #: The occasion of its start: `news`, `nudge` or `review`; None when it was begun by hand.
    occasion: str | None
    #: JSON text: the outcomes that were due when it began.
    outcome_ids: str
    #: Sequence number of the last event that it was shown.
    shown: int
    ended_at: Micros | None = None
    session_id: str | None = None
    #: JSON text: the messages it claimed.
    message_ids: str = "[]"
    final_response: str | None = None
    context_length: int | None = None
    exit_reason: str | None = None
    error: str | None = None
    log_bytes: int = 0
    #: Whether it asked to be continued at once.
    goes_on: bool = False
    #: The fault of a failed run, and its end if that is known.
    fault: str | None = None
    fault_until: Micros | None = None
    #: The account of a provider that it used.
    account_id: str | None = None
    #: Whether its program called tools that are not Remit's, such as a shell.
    acted: bool = False
    #: Of a run that did not end well, the digest of the files that it changed; None without any.
    changed_files: str | None = None

    @property
    def is_live(self) -> bool:
        return self.status is RunStatus.RUNNING


@dataclass(frozen=True, slots=True)
class Lease:
    """A worker's claim on an agent, and whether the agent has work.

    There is work while `wake_seq` is ahead of `done_seq`. Each claim raises `epoch`.
    """

    agent_id: AgentId
    company_id: CompanyId
    wake_seq: int
    done_seq: int
    epoch: int
    lease_until: Micros | None
    worker: str | None
    #: Earliest time of the next start.
    due_at: Micros
    why: str
    #: Number of nudges since the last news or progress.
    idle_runs: int
    #: Failures in a row, and the number of them at which news already ended the pause.
    failures: int
    spared: int
    #: The failure last reported to its boss.
    told: str | None
    #: Time of the first failure since the last good run.
    failing_since: Micros | None = None
    #: The closed account or set-up that it waits for.
    held_by: str | None = None
    #: Time at which it is started for what it left alone, and the reason; None if nothing is left.
    look_at: Micros | None = None
    look_for: Look | None = None
    #: Whether a wait of its desk pauses that, and the place in the record of its last own act that
    #: ended such a pause.
    rests: bool = False
    own_act: int = 0

    @property
    def awake(self) -> bool:
        return self.wake_seq > self.done_seq

    @property
    def held(self) -> bool:
        return self.due_at >= HELD


#: Due time of an agent that only news or a person can start.
HELD: Micros = 1 << 62

#: Pauses before a nudge: the next run after one with progress and work left.
NUDGES: tuple[Micros, ...] = (30 * SECOND, 2 * MINUTE, 10 * MINUTE, 30 * MINUTE, HOUR)
#: Failures in a row after which the boss is told again.
FAILURES_TOLD = 5
LONGEST_BACKOFF = HOUR
#: Time of nothing but failures after which a person must look at the agent.
FAILING_TOO_LONG: Micros = DAY


def was_review(run: Run, lease: Lease | None) -> bool:
    """Return whether the time of a review of its agent had come when a run began."""
    return (
        lease is not None
        and lease.look_for in (Look.REVIEW, Look.START)
        and lease.look_at is not None
        and lease.look_at <= run.started_at
    )


def pause_after(failures: int) -> Micros:
    """Return the back-off after a number of failures in a row; it is bounded, so no agent is ever
    switched off."""
    return 0 if failures == 0 else min(2 * SECOND * 4 ** min(failures - 1, 10), LONGEST_BACKOFF)


def longest_pause(lease: Lease) -> Micros:
    """Return the longest pause that an agent can have now, whatever its clock said."""
    idle = NUDGES[min(lease.idle_runs, len(NUDGES)) - 1] if lease.idle_runs else 0
    return max(idle, pause_after(lease.failures))
