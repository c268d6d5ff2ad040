"""Approvals: what somebody asked a person to allow, exactly as it was asked.

An approval is a row that outlives every process. Its payload is hashed when it is submitted, and
whoever decides names the revision they saw, so that what is approved is what is applied. What does
not match its hash any more is applied by nobody.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from remit.clock import Micros
from remit.ids import AgentId, ApprovalId, CommentId, CompanyId, RunId, UserId
from remit.model.event import canonical

LONGEST_NOTE = 10_000
LONGEST_COMMENT = 20_000
LARGEST_PAYLOAD = 256 * 1024


ApprovalType = StrEnum(
    "ApprovalType",
    "HIRE_AGENT APPROVE_CEO_STRATEGY CONFIG_CHANGE CAPABILITY_USE BUDGET REQUEST_BOARD_APPROVAL",
)


#: Types that are requested as such; others come about by hiring, proposing or using something.
ASKED_DIRECTLY = frozenset(
    {ApprovalType.APPROVE_CEO_STRATEGY, ApprovalType.BUDGET, ApprovalType.REQUEST_BOARD_APPROVAL}
)


ApprovalStatus = StrEnum("ApprovalStatus", "PENDING REVISION_REQUESTED APPROVED REJECTED CANCELLED")


#: The next states of each status. A request that was sent back is resubmitted before approval.
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

#: Still to be decided.
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
    #: The agent it is about; gone once that agent was deleted.
    agent_id: AgentId | None
    #: The agent below which it happens: who has a say over it decides, when no agent asked.
    home_agent_id: AgentId | None
    #: JSON text of the latest revision.
    payload: str
    revision: int
    digest: str
    created_at: Micros
    updated_at: Micros
    #: The first agent above the requester that may decide; the board alone when None.
    routed_to_agent_id: AgentId | None = None
    #: Digest of a parked call, so that asking again finds the same approval.
    call_digest: str | None = None
    #: Bytes that a parked call brought along, kept until it is decided.
    blob_file_id: str | None = None
    blob_sha256: str | None = None
    decision_note: str | None = None
    decided_by_user_id: UserId | None = None
    decided_by_agent_id: AgentId | None = None
    decided_at: Micros | None = None
    #: JSON text of what an approved call answered.
    result: str | None = None
    #: When an approved use was made; it is good for one.
    used_at: Micros | None = None
    #: When the requester was given that answer.
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
    """A request as it was at one point; what a reviewer saw stays to be seen."""

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


def digest_of(payload: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical(dict(payload)).encode()).hexdigest()


def is_as_asked(asked: Approval | Revision) -> bool:
    """Whether it still says what was hashed when it was submitted."""
    try:
        return hmac.compare_digest(digest_of(json.loads(asked.payload)), asked.digest)
    except (ValueError, TypeError):
        return False
