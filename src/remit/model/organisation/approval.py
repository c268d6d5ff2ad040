"""Approvals: requests to people, bound to exactly what was asked.

An approval is a row that outlives every process. Its payload is hashed when it is submitted, and a
decision names the revision that its author saw, so that what is approved is what is applied. A
payload that no longer matches its hash is never applied.
"""

import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from remit.clock import Micros
from remit.ids import AgentId, ApprovalId, CommentId, CompanyId, RunId, UserId
from remit.model.text import digest_of

LONGEST_NOTE = 10_000
LONGEST_COMMENT = 20_000
LARGEST_PAYLOAD = 256 * 1024


ApprovalType = StrEnum(
    "ApprovalType",
    "HIRE_AGENT APPROVE_CEO_STRATEGY CONFIG_CHANGE CAPABILITY_USE BUDGET REQUEST_BOARD_APPROVAL",
)


#: Types that are requested directly; others result from hiring, proposing or using a capability.
ASKED_DIRECTLY = frozenset(
    {ApprovalType.APPROVE_CEO_STRATEGY, ApprovalType.BUDGET, ApprovalType.REQUEST_BOARD_APPROVAL}
)


ApprovalStatus = StrEnum("ApprovalStatus", "PENDING REVISION_REQUESTED APPROVED REJECTED CANCELLED")


#: Transitions of each status. A returned request is resubmitted before approval.
TRANSITIONS: Mapping[ApprovalStatus, frozenset[ApprovalStatus]] = {
    ApprovalStatus.PENDING: frozenset(
        {
            ApprovalStatus.REVISION_REQUESTED,
            ApprovalStatus.APPROVED,
            ApprovalStatus.REJECTED,
            ApprovalStatus.CANCELLED,
        }
    ),
    ApprovalStatus.REVISION_REQUESTED: frozenset(
        {ApprovalStatus.PENDING, ApprovalStatus.REJECTED, ApprovalStatus.CANCELLED}
    ),
    ApprovalStatus.APPROVED: frozenset(),
    ApprovalStatus.REJECTED: frozenset(),
    ApprovalStatus.CANCELLED: frozenset(),
}

#: Undecided statuses.
OPEN = frozenset({ApprovalStatus.PENDING, ApprovalStatus.REVISION_REQUESTED})


@dataclass(frozen=True, slots=True)
class Approval:
    id: ApprovalId
    company_id: CompanyId
    type: ApprovalType
    status: ApprovalStatus
    #: Exactly one of the two is set.
    requested_by_agent_id: AgentId | None
    requested_by_user_id: UserId | None
    requested_by_run_id: RunId | None
    #: The agent it is about; None once that agent was deleted.
    agent_id: AgentId | None
    #: The agent below which it takes effect: agents with authority there decide, if no agent asked.
    home_agent_id: AgentId | None
    #: JSON text of the latest revision.
    payload: str
    revision: int
    digest: str
    created_at: Micros
    updated_at: Micros
    #: The first agent above the requester that may decide; the board alone when None.
    routed_to_agent_id: AgentId | None = None
    #: Digest of a parked call, so that a repeated request finds the same approval.
    call_digest: str | None = None
    #: Content of a parked call, stored until the decision.
    blob_file_id: str | None = None
    blob_sha256: str | None = None
    decision_note: str | None = None
    decided_by_user_id: UserId | None = None
    decided_by_agent_id: AgentId | None = None
    decided_at: Micros | None = None
    #: JSON text of an approved call's answer.
    result: str | None = None
    #: When the approved use was made; the approval holds for one.
    used_at: Micros | None = None
    #: When the requester received the answer.
    collected_at: Micros | None = None
    expires_at: Micros | None = None

    @property
    def requester(self) -> str:
        if self.requested_by_agent_id is not None:
            return f"agent:{self.requested_by_agent_id}"
        return f"user:{self.requested_by_user_id}"

    def expired(self, now: Micros) -> bool:
        return self.status in OPEN and self.expires_at is not None and now >= self.expires_at


@dataclass(frozen=True, slots=True)
class Revision:
    """One revision of a request; it stays as its reviewer saw it."""

    approval_id: ApprovalId
    number: int
    payload: str
    digest: str
    author_agent_id: AgentId | None
    author_user_id: UserId | None
    created_at: Micros


@dataclass(frozen=True, slots=True)
class Comment:
    id: CommentId
    company_id: CompanyId
    approval_id: ApprovalId
    author_agent_id: AgentId | None
    author_user_id: UserId | None
    #: The comment that it answers.
    reply_to: CommentId | None
    body: str
    created_at: Micros
    updated_at: Micros


@dataclass(frozen=True, slots=True)
class Look:
    """Somebody who may decide saw all of a revision."""

    approval_id: ApprovalId
    company_id: CompanyId
    #: `agent:<id>` or `user:<id>`.
    reader: str
    revision: int
    at: Micros


def is_as_asked(submission: Approval | Revision) -> bool:
    """Return whether the payload still matches the hash of its submission."""
    try:
        return hmac.compare_digest(digest_of(json.loads(submission.payload)), submission.digest)
    except (ValueError, TypeError):
        return False
