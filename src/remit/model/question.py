"""Questions: requests for information. Answering one never changes rights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from remit.clock import Micros
from remit.ids import AgentId, CompanyId, QuestionId

LONGEST_QUESTION = 10_000
MOST_OPTIONS = 20


class QuestionStatus(StrEnum):
    OPEN = "open"
    ANSWERED = "answered"
    CANCELLED = "cancelled"


def chosen(text: str, options: Sequence[str]) -> str | None:
    """Which of the options an answer names, whatever its case."""
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
    #: JSON text: what can be chosen, if anything.
    options: str
    status: QuestionStatus
    answer: str | None
    answered_by: str | None
    created_at: Micros
    ended_at: Micros | None
