"""Questions: requests for information. Answering one never changes rights."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from remit.clock import Micros
from remit.ids import AgentId, CompanyId, QuestionId

LONGEST_QUESTION = 10_000
MOST_OPTIONS = 20


QuestionStatus = StrEnum("QuestionStatus", "OPEN ANSWERED CANCELLED")


def chosen(text: str, options: Sequence[str]) -> str | None:
    """Return the option that an answer names, whatever its case; None if it names none."""
    wanted = text.strip().casefold()
    return next((option for option in options if option.casefold() == wanted), None)


@dataclass(frozen=True, slots=True)
class Question:
    id: QuestionId
    company_id: CompanyId
    agent_id: AgentId
    #: The boss it is for; the board when None.
    to_agent_id: AgentId | None
    text: str
    #: JSON text: the options, if any.
    options: str
    created_at: Micros
    status: QuestionStatus = QuestionStatus.OPEN
    answer: str | None = None
    answered_by: str | None = None
    ended_at: Micros | None = None
