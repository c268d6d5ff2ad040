"""Outcomes: changes to be accomplished in the world."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from remit.clock import Micros
from remit.ids import AgentId, CompanyId, OutcomeId


class OutcomeStatus(StrEnum):
    OPEN = "open"
    COMPLETED = "completed"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Outcome:
    id: OutcomeId
    company_id: CompanyId
    title: str
    status: OutcomeStatus
    #: Never completed; the standing purpose of a company or a post.
    perpetual: bool
    owner_id: AgentId
    created_at: Micros
    finished_at: Micros | None
