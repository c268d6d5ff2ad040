"""Outcomes: changes to be accomplished in the world."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from remit.clock import Micros
from remit.ids import AgentId, CompanyId, OutcomeId

LONGEST_TITLE = 200
LONGEST_DESCRIPTION = 100_000
MOST_PARENTS = 50


class OutcomeKind(StrEnum):
    WORK = "work"
    #: Open exactly while its owner has unread mail; Remit opens and closes it.
    INBOX = "inbox"


class OutcomeStatus(StrEnum):
    OPEN = "open"
    COMPLETED = "completed"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Outcome:
    id: OutcomeId
    company_id: CompanyId
    kind: OutcomeKind
    title: str
    status: OutcomeStatus
    #: Never completed; the standing purpose of a company or a post.
    perpetual: bool
    owner_id: AgentId
    #: Handed over as a whole: its owner works below it, whoever handed it over judges it.
    delegated: bool
    #: The agent that handed it over; None when a person did, or when it is not delegated.
    delegator_id: AgentId | None
    urgent: bool
    important: bool
    deferred_until: Micros | None
    #: Open children and open blockers.
    open_prereqs: int
    #: JSON text: the judgement, once there is one.
    verdict: str | None
    version: int
    created_at: Micros
    updated_at: Micros
    finished_at: Micros | None


def why_not_actionable(outcome: Outcome, now: Micros) -> str | None:
    """The reason that its owner cannot work on it now; None when it can."""
    if outcome.status is not OutcomeStatus.OPEN:
        return f"it is {outcome.status.value}"
    if outcome.perpetual:
        return "it is perpetual; work on what is below it"
    if outcome.open_prereqs:
        return f"it waits for {outcome.open_prereqs} open outcomes below it or before it"
    if outcome.deferred_until is not None and now < outcome.deferred_until:
        return "it is deferred to a later time"
    return None
