"""Outcomes: changes to be accomplished in the world."""

from dataclasses import dataclass
from enum import StrEnum

from remit.clock import Micros
from remit.ids import AgentId, CompanyId, MessageId, OutcomeId
from remit.model.text import plural

LONGEST_TITLE = 200
LONGEST_DESCRIPTION = 100_000
MOST_PARENTS = 50


#: INBOX: open exactly while its owner has unread mail; Remit opens and closes it.
OutcomeKind = StrEnum("OutcomeKind", "WORK INBOX")


OutcomeStatus = StrEnum("OutcomeStatus", "OPEN COMPLETED CLOSED")


#: Why the clock brings an outcome back. DEFERRAL: it was put off until then. NUDGE: its owner got
#: on with something and left it; the owner is asked to go on. REVIEW: it has not moved for a
#: while.
Look = StrEnum("Look", "DEFERRAL NUDGE REVIEW")


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
    #: Open children and open blockers, kept by the services so that "actionable" is an index.
    open_prereqs: int
    #: JSON text: the judgement, once there is one.
    verdict: str | None
    version: int
    created_at: Micros
    updated_at: Micros
    finished_at: Micros | None
    #: Undecided requests that its owner raised about it, kept by the services so that "due" is an
    #: index.
    open_waits: int = 0
    #: Places in the record: the last news about it, and what its owner's last good run was shown.
    news: int = 0
    seen: int = 0
    #: When the clock makes it due, and what for.
    look_at: Micros | None = None
    look_for: Look | None = None
    #: How often it was looked at again without moving.
    reviews: int = 0
    #: The letter of a person that it was made of; parts have it from what they are parts of.
    origin_id: MessageId | None = None


def why_not_actionable(outcome: Outcome, now: Micros) -> str | None:
    """The reason that its owner cannot work on it now; None when it can."""
    if outcome.status is not OutcomeStatus.OPEN:
        return f"it is {outcome.status.value}"
    if outcome.perpetual:
        return "it is perpetual; work on what is below it"
    if outcome.open_prereqs:
        waits_for = plural(outcome.open_prereqs, "open outcome")
        return f"it waits for {waits_for} below it or before it"
    if outcome.deferred_until is not None and now < outcome.deferred_until:
        return "it is deferred to a later time"
    return None


class Standing(StrEnum):
    """Where an outcome stands for its owner."""

    #: It cannot be worked on: ended, perpetual, blocked, put off, or somebody is hired for it.
    NOT_ACTIONABLE = "not_actionable"
    #: Its owner raised something about it that nobody has decided.
    WAITING = "waiting"
    #: Its owner is to be started for it.
    DUE = "due"
    #: It can be worked on, and nothing happened since its owner looked at it; the clock brings it
    #: back.
    REVIEWED_LATER = "reviewed_later"
    NOTHING_NEW = "nothing_new"


def standing(outcome: Outcome, now: Micros, *, promised: bool = False) -> Standing:
    """Whether an outcome makes its owner start. Waking, sweeping and claiming all ask this; in the
    database it is the condition `DUE` of `store/execution/due.py`.

    `promised` says that somebody is to be hired for it and the hire is not decided.
    """
    if promised or why_not_actionable(outcome, now) is not None:
        return Standing.NOT_ACTIONABLE
    if outcome.kind is OutcomeKind.INBOX:
        return Standing.DUE
    if outcome.open_waits:
        return Standing.WAITING
    if outcome.news > outcome.seen:
        return Standing.DUE
    if outcome.look_at is None:
        return Standing.NOTHING_NEW
    return Standing.DUE if outcome.look_at <= now else Standing.REVIEWED_LATER
