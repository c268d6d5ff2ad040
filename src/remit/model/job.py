"""Background jobs: one program, one text, one answer by mail."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from remit.clock import Micros
from remit.ids import AgentId, CompanyId, JobId, MessageId

#: A job whose workers vanished this often is given up: it may be what makes them vanish.
MOST_ATTEMPTS = 3
#: What one agent may have under way and in line; more is refused, not put off.
MOST_UNFINISHED = 100
#: Of the text that is run; what is longer is attached as a file.
LARGEST_TEXT = 1 << 20
#: Of the answer, in characters.
LONGEST_ANSWER = 1 << 20
#: What stands before the reason when a job did not work.
FAILED = "Background job failed: "


class JobStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


UNFINISHED = frozenset({JobStatus.QUEUED, JobStatus.RUNNING})


@dataclass(frozen=True, slots=True)
class Job:
    id: JobId
    company_id: CompanyId
    #: Who asked for it, and with what.
    agent_id: AgentId
    message_id: MessageId
    status: JobStatus
    adapter_type: str
    #: JSON text: the sender's configuration when it asked.
    adapter_config: str
    due_at: Micros
    attempts: int
    worker: str | None
    epoch: int
    lease_until: Micros | None
    #: The closed account or set-up that it waits for or, while it runs, finds out about.
    held_by: str | None
    created_at: Micros
    started_at: Micros | None
    ended_at: Micros | None
    error: str | None
    answer_id: MessageId | None
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    cost_micros: int
