"""Waits: undecided requests of agents, on which the work concerned waits."""

from dataclasses import dataclass
from enum import StrEnum

from remit.clock import DAY, HOUR, MINUTE, Micros
from remit.ids import AgentId, CompanyId, OutcomeId, SubmissionId, UserId, WaitId

#: CAPABILITY: a capability request. REPLY: a message that expects a reply. SUBMISSION: submitted
#: work that awaits a verdict.
WaitKind = StrEnum("WaitKind", "QUESTION APPROVAL CAPABILITY REPLY SUBMISSION")


#: Pauses before each reminder of an awaited agent; then its boss is told.
REMINDERS_TO_AGENT: tuple[Micros, ...] = (10 * MINUTE, HOUR, 4 * HOUR, DAY)
#: The same for a person, who also sees the wait in a list.
REMINDERS_TO_PERSON: tuple[Micros, ...] = (DAY, DAY)


@dataclass(frozen=True, slots=True)
class Wait:
    """An undecided request of an agent.

    It holds up the outcomes that it names, each in a row of its own. One that names none is a wait
    of the desk: it holds up nothing that has news, and pauses the nudges and reviews of its agent.
    """

    id: WaitId
    company_id: CompanyId
    agent_id: AgentId
    kind: WaitKind
    #: The question, approval, submission, or the message that asks.
    subject_id: str
    #: The awaited agent or person; the board when neither.
    awaited_agent_id: AgentId | None
    awaited_user_id: UserId | None
    since: Micros
    #: Number of reminders so far, and the time of the next.
    reminders: int
    remind_at: Micros | None
    #: Whether it is a wait of its agent's whole desk, and not of outcomes that its rows name.
    desk: bool = False
    #: Its place in the record.
    place: int = 0


#: WITHDRAWN: the outcome ended or changed its owner before a verdict.
SubmissionStatus = StrEnum("SubmissionStatus", "OPEN ACCEPTED RETURNED WITHDRAWN")


#: Returns after which the judge's boss is told.
RETURNS_TOLD = 5


@dataclass(frozen=True, slots=True)
class Submission:
    id: SubmissionId
    company_id: CompanyId
    outcome_id: OutcomeId
    agent_id: AgentId
    note: str
    #: JSON text: files, each with its version and hash at the time.
    evidence: str
    status: SubmissionStatus
    verdict_note: str | None
    judged_by: str | None
    created_at: Micros
    ended_at: Micros | None
