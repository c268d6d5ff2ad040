"""Background jobs: one program, one text, one answer by mail."""

from dataclasses import dataclass
from enum import StrEnum

from remit.clock import Micros
from remit.ids import AgentId, CompanyId, JobId, MessageId
from remit.model.execution.budget import Metered, Priced
from remit.model.leased import Leased

#: Most attempts of a job whose workers died: the job may be the cause.
MOST_ATTEMPTS = 3
#: The most unfinished jobs of one agent; more are refused, not put off.
MOST_UNFINISHED = 100
#: Largest text of a request; a longer one is attached as a file.
LARGEST_TEXT = 1 << 20
#: Longest answer in characters.
LONGEST_ANSWER = 1 << 20
#: Prefix of the reason for a failed job.
FAILED = "Background job failed: "


JobStatus = StrEnum("JobStatus", "QUEUED RUNNING COMPLETED FAILED CANCELLED")


UNFINISHED = frozenset({JobStatus.QUEUED, JobStatus.RUNNING})


@dataclass(frozen=True, slots=True)
class Job(Leased, Priced, Metered):
    id: JobId
    company_id: CompanyId
    #: The agent that asked for it, and its request.
    agent_id: AgentId
    message_id: MessageId
    status: JobStatus
    adapter_type: str
    #: JSON text: the sender's configuration when it asked.
    adapter_config: str
    #: Earliest time of its start.
    due_at: Micros
    created_at: Micros
    #: Number of starts of its program.
    attempts: int = 0
    #: The closed account or set-up that it waits for or, while it runs, probes.
    held_by: str | None = None
    started_at: Micros | None = None
    ended_at: Micros | None = None
    error: str | None = None
    #: The message that answered the sender.
    answer_id: MessageId | None = None

    @property
    def is_live(self) -> bool:
        return self.status in UNFINISHED
