"""Waits: what an agent raised and nobody has decided. While it is open, what it concerns waits."""

from dataclasses import dataclass
from enum import StrEnum

from remit.clock import DAY, HOUR, MINUTE, Micros
from remit.ids import AgentId, CompanyId, OutcomeId, SubmissionId, UserId, WaitId

#: CAPABILITY: a request for one. REPLY: a message that expects one. SUBMISSION: something handed
#: in, which awaits a verdict.
WaitKind = StrEnum("WaitKind", "QUESTION APPROVAL CAPABILITY REPLY SUBMISSION")


#: After how long an agent that is awaited hears of it again; then its boss does.
REMINDERS_TO_AGENT: tuple[Micros, ...] = (10 * MINUTE, HOUR, 4 * HOUR, DAY)
#: The same for a person, who finds it in their list all the time.
REMINDERS_TO_PERSON: tuple[Micros, ...] = (DAY, DAY)


@dataclass(frozen=True, slots=True)
class Wait:
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
    #: How often who is awaited was reminded, and when that happens next.
    reminders: int
    remind_at: Micros | None


#: WITHDRAWN: the outcome ended or went to somebody else before anybody judged it.
SubmissionStatus = StrEnum("SubmissionStatus", "OPEN ACCEPTED RETURNED WITHDRAWN")


#: So many returns are worth a word to the judge's boss.
RETURNS_TOLD = 5


@dataclass(frozen=True, slots=True)
class Submission:
    id: SubmissionId
    company_id: CompanyId
    outcome_id: OutcomeId
    agent_id: AgentId
    note: str
    #: JSON text: files, each with the version and the hash that it had.
    evidence: str
    status: SubmissionStatus
    verdict_note: str | None
    judged_by: str | None
    created_at: Micros
    ended_at: Micros | None
