"""Plan of an import: the company's rows, before any is written."""

from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeVar

from remit.errors import BadInput
from remit.ids import (
    AgentId,
    ApprovalId,
    CommentId,
    FileId,
    GrantId,
    MessageId,
    OutcomeId,
    QuestionId,
    RevisionId,
    ScheduleId,
    UserId,
)
from remit.model.messaging.channel import Binding
from remit.model.messaging.mail import Delivery, Message
from remit.model.messaging.question import Question
from remit.model.messaging.schedule import Schedule
from remit.model.organisation.agent import Agent
from remit.model.organisation.approval import Approval, Comment, Revision
from remit.model.organisation.company import Company
from remit.model.organisation.configuration import ConfigRevision
from remit.model.organisation.grant import Grant
from remit.model.work.file import File, Version
from remit.model.work.outcome import Outcome
from remit.services.archive.fields import Fields
from remit.services.archive.tar import Piece
from remit.store.organisation.agents import Place

K = TypeVar("K", bound=str)


@dataclass(frozen=True, slots=True)
class Stored:
    """A file with its versions, and the positions of their bytes."""

    file: File
    versions: tuple[Version, ...]
    pieces: tuple[Piece, ...]


@dataclass
class Plan:
    """A company as it will be once its bytes are stored and its rows are written."""

    company: Company
    #: The user who takes the place of every person.
    importer: UserId
    agents: dict[AgentId, Agent] = field(default_factory=dict)
    outcomes: dict[OutcomeId, Outcome] = field(default_factory=dict)
    parents: dict[OutcomeId, list[OutcomeId]] = field(default_factory=dict)
    blockers: dict[OutcomeId, list[OutcomeId]] = field(default_factory=dict)
    #: By undecided request: the outcomes that rest for it.
    resting: dict[str, list[OutcomeId]] = field(default_factory=dict)
    files: dict[FileId, Stored] = field(default_factory=dict)
    grants: dict[GrantId, Grant] = field(default_factory=dict)
    messages: dict[MessageId, Message] = field(default_factory=dict)
    #: In the order of their messages; numbered when they are written.
    deliveries: list[Delivery] = field(default_factory=list)
    questions: dict[QuestionId, Question] = field(default_factory=dict)
    schedules: dict[ScheduleId, Schedule] = field(default_factory=dict)
    approvals: dict[ApprovalId, Approval] = field(default_factory=dict)
    approval_revisions: list[Revision] = field(default_factory=list)
    comments: dict[CommentId, Comment] = field(default_factory=dict)
    configurations: dict[RevisionId, ConfigRevision] = field(default_factory=dict)
    places: list[Place] = field(default_factory=list)
    #: By agent and kind of channel.
    bindings: dict[str, Binding] = field(default_factory=dict)
    #: How many entries there are to apply.
    setup: int = 0
    #: Settings whose secrets were removed, by agent.
    removed: dict[str, list[str]] = field(default_factory=dict)
    #: Rights over the machine that an import does not take over.
    left_out: list[str] = field(default_factory=list)
    #: Paths of descriptions by id, except outcomes and files, whose paths follow from their ids.
    where: dict[str, str] = field(default_factory=dict)

    @property
    def mail_position(self) -> int:
        """The last position that was given to a message."""
        return max(
            (delivery.position for delivery in self.deliveries if delivery.position), default=0
        )

    def fields(self, path: str, table: Any) -> Fields:
        """The fields of a document of the export; people in it become the importer."""
        return Fields(path, table, self.importer)

    def add(self, known: dict[Any, Any], id_: str, value: object, where: str) -> None:
        """Add a value under its id, which must be unique."""
        if id_ in known:
            raise BadInput(f"{where}: has the id of {self.where[id_]}.")
        known[id_] = value
        self.where[id_] = where


def in_order(needs: Mapping[K, Iterable[K]]) -> list[K]:
    """Return everything in topological order; members of cycles are left out."""
    sorter = TopologicalSorter(needs)
    with suppress(CycleError):  # the others can be sorted all the same
        sorter.prepare()
    order: list[K] = []
    while ready := sorter.get_ready():
        order += sorted(ready)
        sorter.done(*ready)
    return order


def known(wanted: str | None, here: Container[str], where: str, what: str) -> None:
    if wanted is not None and wanted not in here:
        raise BadInput(f"{where}: {what}, {wanted}, is not here.")
