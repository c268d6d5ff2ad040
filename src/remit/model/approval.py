"""Approvals: what somebody asked a person to allow, exactly as it was asked.

An approval is a row that outlives every process. Its payload is hashed when it is submitted, and
whoever decides names the revision they saw, so that what is approved is what is applied. What does
not match its hash any more is applied by nobody.
"""

from __future__ import annotations

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


class ApprovalType(StrEnum):
    HIRE_AGENT = "hire_agent"
    APPROVE_CEO_STRATEGY = "approve_ceo_strategy"
    CONFIG_CHANGE = "config_change"
    CAPABILITY_USE = "capability_use"
    BUDGET = "budget"
    REQUEST_BOARD_APPROVAL = "request_board_approval"


#: What can be asked for as it is; the others come about by hiring, proposing or using something.
ASKED_DIRECTLY = frozenset(
    {
        ApprovalType.APPROVE_CEO_STRATEGY,
        ApprovalType.BUDGET,
        ApprovalType.REQUEST_BOARD_APPROVAL,
    }
)


class ApprovalStatus(StrEnum):
    PENDING = "pending"
    REVISION_REQUESTED = "revision_requested"
    APPROVED = "approved"
    REJECTED = "rejected"
    CANCELLED = "cancelled"


#: What each status may become. An approval that was sent back is resubmitted before it is approved.
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
    #: The first agent above the requester that may decide; the board alone when None.
    routed_to_agent_id: AgentId | None
    #: JSON text of the latest revision.
    payload: str
    revision: int
    digest: str
    #: What a parked call asked for, so that asking again finds the same approval.
    call_digest: str | None
    #: Bytes that a parked call brought along, kept until it is decided.
    blob_file_id: str | None
    blob_sha256: str | None
    decision_note: str | None
    decided_by_user_id: UserId | None
    decided_by_agent_id: AgentId | None
    decided_at: Micros | None
    #: JSON text of what an approved call answered.
    result: str | None
    #: When an approved use was made; it is good for one.
    used_at: Micros | None
    #: When the requester was given that answer.
    collected_at: Micros | None
    expires_at: Micros | None
    created_at: Micros
    updated_at: Micros

    @property
    def requester(self) -> str:
        if self.requested_by_agent_id is not None:
            return f"agent:{self.requested_by_agent_id}"
        return f"user:{self.requested_by_user_id}"

    def expired(self, now: Micros) -> bool:
        return self.status in OPEN and self.expires_at is not None and now >= self.expires_at


@dataclass(frozen=True, slots=True)
class Revision:
    """What was asked at one point; what a reviewer saw stays to be seen."""

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
