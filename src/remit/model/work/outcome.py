"""Outcomes: changes to be accomplished in the world."""

from dataclasses import dataclass
from enum import StrEnum

from remit.clock import Micros
from remit.ids import AgentId, CompanyId, MessageId, OutcomeId
from remit.model.text import plural

LONGEST_TITLE = 200
LONGEST_DESCRIPTION = 100_000
MOST_PARENTS = 50


#: INBOX: open exactly while its owner has unread mail; only Remit opens and closes it.
OutcomeKind = StrEnum("OutcomeKind", "WORK INBOX")


OutcomeStatus = StrEnum("OutcomeStatus", "OPEN COMPLETED CLOSED")


#: Reason of a timed return of work. DEFERRAL: its date has come. NUDGE: its owner made progress and
#: stopped, and is asked to go on. REVIEW: it has not moved for a while. START: its owner was
#: started by hand, and looks at all that it could work on.
Look = StrEnum("Look", "DEFERRAL NUDGE REVIEW START")


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
    #: Delegated as a whole: its owner works below it, and its delegator judges it.
    delegated: bool
    #: The delegating agent; None if a person delegated it, or nobody did.
    delegator_id: AgentId | None
    urgent: bool
    important: bool
    deferred_until: Micros | None
    #: Open children and open blockers, kept by the services so that "actionable" is an index.
    open_prereqs: int
    #: JSON text: the verdict, once there is one.
    verdict: str | None
    version: int
    created_at: Micros
    updated_at: Micros
    finished_at: Micros | None
    #: Undecided requests of its owner about it, counted by the services so that "due" is an index.
    open_waits: int = 0
    #: Sequence numbers in the record: its last news, and the last event shown to its owner's last
    #: good run.
    news: int = 0
    seen: int = 0
    #: Time of its next timed return, and the reason.
    look_at: Micros | None = None
    look_for: Look | None = None
    #: Number of reviews without progress.
    reviews: int = 0
    #: The person's letter that it was made from; parts inherit it.
    origin_id: MessageId | None = None


def why_not_actionable(outcome: Outcome, now: Micros) -> str | None:
    """Return the reason why its owner cannot work on it now; None if it can."""
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
    """State of an outcome for its owner."""

    #: Not actionable: ended, perpetual, blocked, deferred, or waiting for a hire.
    NOT_ACTIONABLE = "not_actionable"
    #: A request of its owner about it is undecided.
    WAITING = "waiting"
    #: Its owner is started for it.
    DUE = "due"
    #: Actionable, without news since its owner's last look; it has a timed return.
    REVIEWED_LATER = "reviewed_later"
    NOTHING_NEW = "nothing_new"


def standing(
    outcome: Outcome, now: Micros, *, promised: bool = False, asked_for: Look | None = None
) -> Standing:
    """Return the state of an outcome for its owner, who is started if it is `DUE`.

    Waking, sweeping and claiming all use this; in the database these are the conditions of
    `store/execution/due.py`. `promised`: a hire for it is undecided. `asked_for`: the time has come
    at which its owner looks at what it left alone, for this reason, and no wait pauses that.
    """
    if promised or why_not_actionable(outcome, now) is not None:
        return Standing.NOT_ACTIONABLE
    if outcome.open_waits and outcome.kind is OutcomeKind.WORK:
        return Standing.WAITING
    if comes_by_itself(outcome, now) or asked_for is Look.START:
        return Standing.DUE
    is_fresh = outcome.look_at is None and outcome.reviews == 0
    if asked_for is not None and (is_fresh or _came(outcome, now)):
        return Standing.DUE
    return Standing.REVIEWED_LATER if is_fresh or outcome.look_at else Standing.NOTHING_NEW


def comes_by_itself(outcome: Outcome, now: Micros) -> bool:
    """Return whether mail, news or its date starts its owner for an outcome, without the time of a
    nudge or review."""
    return (
        outcome.kind is OutcomeKind.INBOX
        or outcome.news > outcome.seen
        or (outcome.look_for is Look.DEFERRAL and _came(outcome, now))
    )


def _came(outcome: Outcome, now: Micros) -> bool:
    return outcome.look_at is not None and outcome.look_at <= now
