"""Shapes of approvals and hires."""

from __future__ import annotations

from typing import Annotated, TypedDict

from remit.model.organisation.approval import ApprovalStatus, ApprovalType
from remit.services.execution.shapes import BossShape, MandateShape
from remit.services.organisation.shapes import AgentShape
from remit.services.people.shapes import CompanyShape
from remit.services.rights.shapes import DerivedGrantShape, GrantShape
from remit.services.shape_basics import DifferenceShape, Moment, OwnedShape, WarnedShape


class UpdatedAgentShape(AgentShape):
    changes: list[DifferenceShape]
    #: None if no approval is needed.
    approval: ApprovalShape | None
    revision: int
    session_ended: bool
    run_told: str | None
    dry_run: bool


class ApprovalShape(OwnedShape):
    type: Annotated[str, ApprovalType]
    status: Annotated[str, ApprovalStatus]
    requested_by_agent_id: str | None
    requested_by_user_id: str | None
    requested_by_run_id: str | None
    agent_id: str | None
    routed_to_agent_id: str | None
    payload: dict[str, object]
    revision: int
    digest: str
    decision_note: str | None
    decided_by_user_id: str | None
    decided_by_agent_id: str | None
    decided_at: Moment | None
    result: object
    used_at: Moment | None
    expires_at: Moment | None
    created_at: Moment
    updated_at: Moment
    redacted: list[str]


class HireShape(WarnedShape):
    agent: AgentShape
    #: None if no approval is needed.
    approval: ApprovalShape | None


class EntryShape(TypedDict):
    """A part of a statement, as plain text in which nothing is invisible."""

    #: The path of a value, such as `adapterConfig.args[0]`; empty for a sentence.
    name: str
    #: `danger`, `note`, `value`, `words`, `difference` or `link`.
    kind: str
    lines: list[str]


class ApprovalRevisionShape(TypedDict):
    number: int
    payload: dict[str, object]
    digest: str
    author_agent_id: str | None
    author_user_id: str | None
    created_at: Moment
    #: Differences to the revision before, as a statement shows them.
    changes: list[EntryShape]


class StoredContentShape(TypedDict):
    """The content that a call which waits would write."""

    file_id: str
    sha256: str


class CommentShape(OwnedShape):
    approval_id: str
    author_agent_id: str | None
    author_user_id: str | None
    reply_to: str | None
    body: str
    created_at: Moment
    updated_at: Moment


class StatementSectionShape(TypedDict):
    title: str
    entries: list[EntryShape]


class StatementShape(TypedDict):
    """Everything that an approval would apply, for whoever decides."""

    revision: int
    #: Whether all of it is here. A part is never approved.
    whole: bool
    #: Whether the reader may decide about it now.
    may_decide: bool
    #: Whether the reader looked at this revision before.
    seen: bool
    sections: list[StatementSectionShape]


class ApprovalInFullShape(ApprovalShape):
    revisions: list[ApprovalRevisionShape]
    comments: list[CommentShape]
    statement: StatementShape
    #: Whether it is not what was submitted, by the record.
    altered: bool


class DeletedAgentShape(TypedDict):
    id: str
    deleted: bool
    approval_id: str


class CreatedHelperShape(TypedDict):
    agent: AgentShape
    prompt: str


class HirePreviewShape(TypedDict):
    """An agent as a hire would make it."""

    agent: AgentShape
    boss: BossShape
    company: CompanyShape
    mandate: MandateShape
    rights: list[GrantShape | DerivedGrantShape]
    can: list[str]
