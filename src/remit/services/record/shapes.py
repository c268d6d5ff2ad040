"""Shapes of the event log."""

from __future__ import annotations

from typing import TypedDict

from remit.services.shape_basics import Moment, OriginShape


class HappeningShape(TypedDict):
    """An event as a line of history."""

    at: Moment
    action: str
    by: str
    run_id: str | None
    allowed: bool
    why: str | None
    event_id: str


class NumberedHappeningShape(HappeningShape):
    seq: int


class EventShape(TypedDict):
    id: str
    seq: int
    at: Moment
    actor: str
    run_id: str | None
    action: str
    resource: str
    allowed: bool
    reason: str
    basis: str
    details: dict[str, object]
    hash: str


class ExplainedEventShape(EventShape):
    who: str


class CausingLetterShape(OriginShape):
    by: str
    at: Moment


class ExplanationShape(TypedDict):
    """From an event back to the person who made it possible."""

    event_id: str
    steps: list[ExplainedEventShape]
    authorised_by: str | None
    wish: CausingLetterShape | None


class FlawShape(TypedDict):
    seq: int
    kind: str
    sentence: str


class VerifiedShape(TypedDict):
    """The result of verifying a record: whether it is intact, and its faults."""

    company_id: str | None
    ok: bool
    events: int
    hash: str
    faults: list[FlawShape]


class ActivityShape(TypedDict):
    """An event under the names that activity has elsewhere."""

    id: str
    seq: int
    company_id: str
    actor_type: str
    actor_id: str
    action: str
    entity_type: str
    entity_id: str
    agent_id: str | None
    run_id: str | None
    allowed: bool
    reason: str
    details: dict[str, object]
    created_at: Moment


class FoundEventsShape(TypedDict):
    events: list[EventShape]
    #: Continues the search; None at its end.
    before: int | None
    #: The newest position in the record.
    last: int
