"""Shapes of read models for people."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from remit.services.execution.shapes import JobShape
from remit.services.messaging.shapes import QuestionShape, ScheduleShape
from remit.services.shape_basics import Moment


class DashboardShape(TypedDict):
    """A company in numbers; null where the caller does not see all of what would be counted."""

    company_id: str | None
    agents: dict[str, int]
    running: int
    unread: int
    outcomes: dict[str, int] | None
    pending_approvals: int | None


class TriedModelShape(TypedDict):
    ok: bool
    sentence: str
    next_step: str
    details: dict[str, object]


class TestedAdapterShape(TypedDict):
    adapter_type: str
    usable: bool
    sentence: str
    next_step: str
    details: dict[str, object]
    #: What one small request to its model showed.
    tried: TriedModelShape | None


class BaseToolsShape(TypedDict):
    count: int
    tokens: int


class AwaitingShape(TypedDict):
    """Something that awaits a person."""

    kind: str
    id: str
    company_id: str | None
    title: str
    agent_id: str | None
    since: Moment | None
    cause: str
    next: NotRequired[str]
    limit: NotRequired[str]
    allowed: NotRequired[int | None]
    raise_to: NotRequired[int]
    raise_to_shown: NotRequired[str]
    #: How many there are of it that one row tells of.
    agents: NotRequired[int]


class SignShape(TypedDict):
    """A sign that an agent has more to do than it gets on with."""

    kind: str
    id: str
    company_id: str
    title: str
    agent_id: str
    since: None


class LooseQuestionShape(QuestionShape):
    kind: str


class LooseScheduleShape(ScheduleShape):
    kind: str


class LooseJobShape(JobShape):
    kind: str


LooseEndShape = AwaitingShape | SignShape | LooseQuestionShape | LooseScheduleShape | LooseJobShape


class LooseEndsShape(TypedDict):
    loose_ends: list[LooseEndShape]


class AdapterShape(TypedDict):
    type: str
    summary: str
    documentation: str | None
    problem: str | None


class AdapterInFullShape(AdapterShape):
    text: str
    base_tools: BaseToolsShape
