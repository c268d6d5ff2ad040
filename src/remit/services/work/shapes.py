"""Shapes of outcomes."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

from remit.model.work.outcome import OutcomeStatus
from remit.model.work.wait import SubmissionStatus, WaitKind
from remit.services.governance.shapes import HireShape
from remit.services.record.shapes import HappeningShape
from remit.services.shape_basics import (
    CycleToldShape,
    Moment,
    NamedShape,
    OriginShape,
    OwnedShape,
    TitledShape,
)


class EvidenceShape(TypedDict):
    """A version of a file that shows something."""

    id: str
    version: int
    hash: str


class VerdictShape(TypedDict):
    """Why an outcome ended, and who decided that."""

    note: str
    evidence: list[EvidenceShape]
    by: str
    run_id: str | None


class OutcomeShape(OwnedShape):
    title: str
    status: Annotated[str, OutcomeStatus]
    owner_id: str
    perpetual: bool
    delegated: bool
    delegator_id: str | None
    urgent: bool
    important: bool
    deferred_until: Moment | None
    version: int
    verdict: VerdictShape | None
    created_at: Moment
    updated_at: Moment
    finished_at: Moment | None
    actionable: NotRequired[bool]
    why_not_actionable: NotRequired[str | None]
    waiting: NotRequired[bool]


class OutcomeWithCycleShape(OutcomeShape, CycleToldShape):
    pass


class CompletedOutcomeShape(OutcomeShape):
    agents_ended: list[NamedShape]


class NotRestoredShape(TypedDict):
    name: str
    why: str


class RestorationShape(TypedDict):
    """Everybody and everything that came back with an outcome."""

    agents_restored: list[NamedShape]
    not_restored: list[NotRestoredShape]
    things_restored: dict[str, int]
    stays_ended: list[str]


class ReopenedOutcomeShape(OutcomeShape, RestorationShape):
    pass


class SubmissionShape(TypedDict):
    id: str
    agent_id: str
    note: str
    evidence: list[EvidenceShape]
    status: Annotated[str, SubmissionStatus]
    verdict_note: str | None
    judged_by: str | None
    created_at: Moment
    ended_at: Moment | None


class JudgedOutcomeShape(OutcomeShape):
    submissions: list[SubmissionShape]


class SubmittedOutcomeShape(JudgedOutcomeShape, CycleToldShape):
    pass


WaitShape = TypedDict(
    "WaitShape",
    {
        "kind": Annotated[str, WaitKind],
        "id": str,
        "agent_id": str,
        "for": str,
        "awaited_agent_id": str | None,
        "since": Moment,
    },
)


class BriefOutcomeShape(TitledShape):
    status: Annotated[str, OutcomeStatus]
    owner_id: str


class OutcomeInFullShape(OutcomeShape):
    submissions: list[SubmissionShape]
    waits: list[WaitShape]
    #: The agents that would end with it.
    would_end: list[NamedShape]
    description: str
    parents: list[BriefOutcomeShape]
    children: list[BriefOutcomeShape]
    blocked_by: list[BriefOutcomeShape]
    history: list[HappeningShape]
    wish: OriginShape | None


class ElsewhereShape(BriefOutcomeShape):
    """A part that is unfolded elsewhere."""

    elsewhere: bool


class HiddenShape(BriefOutcomeShape):
    """A part that the caller may not read."""

    hidden: bool


class MoreShape(TypedDict):
    #: How many parts are not shown.
    more: NotRequired[int]


class TreeShape(OutcomeShape, MoreShape):
    """An outcome and its parts."""

    children: list[TreeShape | ElsewhereShape | HiddenShape]


class WholeTreeShape(TreeShape):
    cut_off: bool


class EdgeShape(TypedDict):
    parent: str
    child: str


class ReasonsShape(TypedDict):
    """Why an outcome is there: what is above it."""

    outcomes: list[BriefOutcomeShape]
    edges: list[EdgeShape]
    chains: list[list[str]]
    more_chains: bool


# Which verbs would be accepted, and the reports that it could be delegated to.
OutcomeChoicesShape = TypedDict(
    "OutcomeChoicesShape",
    {
        "create": bool,
        "change": bool,
        "complete": bool,
        "submit": bool,
        "return": bool,
        "close": bool,
        "reopen": bool,
        "delegate": bool,
        "reclaim": bool,
        "reports": list[NamedShape],
    },
)


class DrawnOutcomeShape(BriefOutcomeShape):
    owner: str


class GraphShape(TypedDict):
    """Graph of outcomes; parts and blockers are pairs of ids."""

    company: str
    parts: list[list[str]]
    blockers: list[list[str]]
    cut_off: bool


class PictureShape(GraphShape):
    nodes: list[DrawnOutcomeShape]
    most: int


class DelegatedShape(HireShape):
    outcome: OutcomeShape
    moved: int


class ReclaimedShape(TypedDict):
    outcome: OutcomeShape
    agents: list[str]
    handover_file_id: str


class OutlinedShape(OutcomeShape):
    depth: int
    #: `more` or `deeper` if parts of it were left out.
    more: str | None


class ForgottenWaitShape(TypedDict):
    """A wait of a terminated agent, stored so that it can be restored."""

    kind: Annotated[str, WaitKind]
    subject: str
    agent: str | None
    user: str | None
    #: Not in events of before there were waits of a desk.
    desk: NotRequired[bool]
    outcomes: list[str]
