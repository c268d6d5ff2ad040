"""Runs: single executions of an agent, and the lease that lets one be at a time."""

from dataclasses import dataclass
from enum import StrEnum

from remit.clock import DAY, HOUR, MINUTE, SECOND, Micros
from remit.ids import AgentId, CompanyId, RunId, UserId
from remit.model.execution.budget import Metered

RunStatus = StrEnum("RunStatus", "RUNNING COMPLETED FAILED CANCELLED LOST")


#: A run that ended like this did what it was started for, as far as anybody can tell.
ENDED_WELL = frozenset({RunStatus.COMPLETED, RunStatus.CANCELLED})


@dataclass(frozen=True, slots=True)
class Run(Metered):
    id: RunId
    company_id: CompanyId
    agent_id: AgentId
    status: RunStatus
    workspace: str | None
    started_at: Micros
    #: The count of the agent's leases when it began; a later one has taken over.
    epoch: int
    worker: str | None
    adapter_type: str | None
    #: The cause that woke it.
    why: str | None
    #: The person at the top of its tree.
    accountable_user_id: UserId | None
    #: The occasion of its start: `news`, `nudge` or `review`; None when it was begun by hand.
    occasion: str | None
    #: JSON text: the outcomes that were due when it began.
    outcome_ids: str
    #: The place in the record up to which it was shown what happened.
    shown: int
    ended_at: Micros | None = None
    session_id: str | None = None
    #: JSON text: the messages it took up.
    message_ids: str = "[]"
    final_response: str | None = None
    context_length: int | None = None
    exit_reason: str | None = None
    error: str | None = None
    log_bytes: int = 0
    #: Whether it said that it has more to do, and wants to be started again at once.
    goes_on: bool = False
    #: Whether its cost was worked out from what earlier runs cost, because nobody said.
    cost_estimated: bool = False
    #: The fault of a run that did not end well, and until when that lasts, if anybody said.
    fault: str | None = None
    fault_until: Micros | None = None
    #: The account of a provider that it used.
    account_id: str | None = None


@dataclass(frozen=True, slots=True)
class Lease:
    """The claim of a worker on an agent, and whether the agent has something to do.

    There is work while `wake_seq` is ahead of `done_seq`. Each claim raises `epoch`.
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
    #: How often it was nudged since something new came or something was finished.
    idle_runs: int
    #: How often in a row it failed, and at which of these news ended the pause already.
    failures: int
    spared: int
    #: The failure that its boss was told of last.
    told: str | None
    #: Since when it has been failing without a good run between.
    failing_since: Micros | None = None
    #: The closed account or set-up that it waits for.
    held_by: str | None = None

    @property
    def awake(self) -> bool:
        return self.wake_seq > self.done_seq

    @property
    def held(self) -> bool:
        return self.due_at >= HELD


#: When an agent is due that is not to be started until something new comes, or somebody says so.
HELD: Micros = 1 << 62

#: A run that got on and left something to do is followed by another after these pauses: a nudge.
NUDGES: tuple[Micros, ...] = (30 * SECOND, 2 * MINUTE, 10 * MINUTE, 30 * MINUTE, HOUR)
#: So many failed runs in a row are worth another word to the boss.
FAILURES_TOLD = 5
LONGEST_BACKOFF = HOUR
#: An agent of which everything failed for so long is for a person to look at.
FAILING_TOO_LONG: Micros = DAY


def pause_after(failures: int) -> Micros:
    """How long an agent waits after so many failed runs in a row. It is slowed, never switched
    off."""
    return 0 if failures == 0 else min(2 * SECOND * 4 ** min(failures - 1, 10), LONGEST_BACKOFF)


def longest_pause(lease: Lease) -> Micros:
    """How long an agent could be made to wait at most, whatever its clock said."""
    idle = NUDGES[min(lease.idle_runs, len(NUDGES)) - 1] if lease.idle_runs else 0
    return max(idle, pause_after(lease.failures))
