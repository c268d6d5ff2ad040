"""What views look like: the types that `views` is checked against, and that descriptions of the
API are made of. Keys are as in `views`; entry points may spell them differently.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, NotRequired, TypedDict

from remit.ids import TokenKind
from remit.model.agent import AgentRole, AgentStatus
from remit.model.approval import ApprovalStatus, ApprovalType
from remit.model.configuration import RevisionSource
from remit.model.file import Access, FileKind
from remit.model.grant import Level, Mode
from remit.model.job import JobStatus
from remit.model.mail import Messaging
from remit.model.outcome import OutcomeStatus
from remit.model.permission import PermissionLevel
from remit.model.principal import ActorKind
from remit.model.question import QuestionStatus
from remit.model.run import RunStatus
from remit.model.schedule import ScheduleStatus
from remit.model.user import UserRole

#: Marks a text that is a time in ISO 8601.
MOMENT: Final = "date-time"
Moment = Annotated[str, MOMENT]
#: Of an enum, which is shown by its value: the enum itself marks which.
Role = Annotated[str, AgentRole]


class CompanyShape(TypedDict):
    id: str
    name: str
    messaging: Annotated[str, Messaging]
    require_board_approval_for_new_agents: bool
    require_approval_for_config_changes: bool
    chat_llm_provider: str | None
    chat_llm_model: str | None
    review_hours: str
    limits: dict[str, Any]
    created_at: Moment


class MemberShape(TypedDict):
    id: str
    name: str
    role: Annotated[str, UserRole]
    scope_agent_id: str | None
    company_id: str
    created_at: Moment


class AgentShape(TypedDict):
    id: str
    company_id: str
    name: str
    role: Role
    title: str
    status: Annotated[str, AgentStatus]
    reports_to: str | None
    boss_user_id: str | None
    capabilities: str
    adapter_type: str
    permissions: dict[str, bool]
    permission_level: Annotated[str, PermissionLevel]
    budget_monthly_cents: int | None
    budget_monthly_tokens: int | None
    seat_user_id: str | None
    state_file_id: str
    log_file_id: str
    created_at: Moment
    updated_at: Moment


class ApprovalShape(TypedDict):
    id: str
    company_id: str
    type: Annotated[str, ApprovalType]
    status: Annotated[str, ApprovalStatus]
    requested_by_agent_id: str | None
    requested_by_user_id: str | None
    requested_by_run_id: str | None
    agent_id: str | None
    routed_to_agent_id: str | None
    payload: Any
    revision: int
    digest: str
    decision_note: str | None
    decided_by_user_id: str | None
    decided_by_agent_id: str | None
    decided_at: Moment | None
    result: Any
    used_at: Moment | None
    expires_at: Moment | None
    created_at: Moment
    updated_at: Moment
    redacted: list[str]


class ApprovalRevisionShape(TypedDict):
    number: int
    payload: Any
    digest: str
    author_agent_id: str | None
    author_user_id: str | None
    created_at: Moment


class CommentShape(TypedDict):
    id: str
    company_id: str
    approval_id: str
    author_agent_id: str | None
    author_user_id: str | None
    reply_to: str | None
    body: str
    created_at: Moment
    updated_at: Moment


class OutcomeShape(TypedDict):
    id: str
    company_id: str
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
    verdict: Any
    created_at: Moment
    updated_at: Moment
    finished_at: Moment | None
    actionable: NotRequired[bool]
    why_not_actionable: NotRequired[str | None]
    waiting: NotRequired[bool]


class TokenShape(TypedDict):
    id: str
    kind: Annotated[str, TokenKind]
    label: str
    agent_id: str | None
    user_id: str | None
    created_at: Moment
    expires_at: Moment | None
    revoked_at: Moment | None


class FileShape(TypedDict):
    """Of a file that may only be known of, what tells about its contents is left out."""

    id: str
    company_id: str
    description: str
    unlisted: bool
    created_at: Moment
    kind: NotRequired[Annotated[str, FileKind]]
    version: NotRequired[int]
    hash: NotRequired[str]
    size: NotRequired[int]
    updated_at: NotRequired[Moment]
    level: NotRequired[Annotated[str, Level]]


class VersionShape(TypedDict):
    number: int
    hash: str
    size: int
    at: Moment
    agent_id: str | None
    user_id: str | None
    run_id: str | None


class AccessShape(TypedDict):
    at: Moment
    access: Annotated[str, Access]
    version: int
    agent_id: str | None
    user_id: str | None
    run_id: str | None


class GrantShape(TypedDict):
    id: str
    holder_id: str
    resource: str
    level: Annotated[str, Level]
    mode: Annotated[str, Mode]
    scope: str | None
    parent_id: str | None
    granted_by: str | None
    created_at: Moment
    expires_at: Moment | None
    used_at: Moment | None
    reason: NotRequired[str]


class DerivedGrantShape(TypedDict):
    """What somebody may by their place in the tree, without a grant."""

    id: None
    holder_id: str
    resource: str
    level: Annotated[str, Level]
    mode: Annotated[str, Mode]
    reason: str
    derived: bool


class MessageShape(TypedDict):
    id: str
    company_id: str
    thread_id: str
    reply_to: str | None
    sender: str
    from_board: bool
    to: str
    subject: str
    file_id: str
    attachments: list[str]
    question_id: str | None
    request: Any
    origin_id: str | None
    mark: str | None
    created_at: Moment


class RunShape(TypedDict):
    id: str
    company_id: str
    agent_id: str
    status: Annotated[str, RunStatus]
    why: str | None
    occasion: str | None
    outcome_ids: list[str]
    worker: str | None
    adapter_type: str | None
    session_id: str | None
    started_at: Moment
    completed_at: Moment | None
    envelope_ids: list[str]
    final_response: str | None
    context_length: int | None
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    cost_usd: float
    cost_estimated: bool
    exit_reason: str | None
    error: str | None
    fault: str | None
    fault_until: Moment | None
    accountable_user_id: str | None
    log_bytes: int


class JobShape(TypedDict):
    id: str
    company_id: str
    agent_id: str
    message_id: str
    status: Annotated[str, JobStatus]
    adapter_type: str
    due_at: Moment
    attempts: int
    worker: str | None
    created_at: Moment
    started_at: Moment | None
    completed_at: Moment | None
    error: str | None
    answer_id: str | None
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    cost_usd: float


class ScheduleShape(TypedDict):
    id: str
    agent_id: str
    cron: str | None
    timezone: str
    to: str
    subject: str
    body: str
    status: Annotated[str, ScheduleStatus]
    next_at: Moment | None
    last_at: Moment | None
    created_at: Moment


class QuestionShape(TypedDict):
    id: str
    agent_id: str
    to: str
    question: str
    options: list[str]
    status: Annotated[str, QuestionStatus]
    answer: str | None
    answered_by: str | None
    created_at: Moment
    ended_at: Moment | None


class HappeningShape(TypedDict):
    """An event as a line of history."""

    at: Moment
    action: str
    by: str
    run_id: str | None
    allowed: bool
    why: Any
    event_id: str


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
    details: Any
    hash: str


class CallerShape(TypedDict):
    kind: Annotated[str, ActorKind]
    id: str
    name: str
    company_id: str | None
    run_id: str | None
    operator: bool


class ConfigurationShape(TypedDict):
    agent_id: str
    company_id: str
    name: str
    role: Role
    title: str
    status: Annotated[str, AgentStatus]
    reports_to: str | None
    revision: int
    capabilities: str
    prompt: str
    adapter_type: str
    adapter_config: dict[str, Any]
    runtime_config: dict[str, Any]
    budget_monthly_cents: int | None
    budget_monthly_tokens: int | None
    metadata: dict[str, Any]
    redacted: list[str]


class ConfigRevisionShape(TypedDict):
    id: str
    agent_id: str
    number: int
    configuration: dict[str, Any]
    changed: list[str]
    difference: list[dict[str, Any]]
    source: Annotated[str, RevisionSource]
    approval_id: str | None
    created_by_agent_id: str | None
    created_by_user_id: str | None
    created_at: Moment
    redacted: list[str]


class RepoShape(TypedDict):
    id: str
    company_id: str
    name: str
    url: str
    ref: str | None
    username: str | None
    secret: str | None
    created_at: Moment
    updated_at: Moment


class BindingShape(TypedDict):
    id: str
    company_id: str
    agent_id: str
    agent_name: str
    adapter_type: str
    adapter_config: dict[str, Any]
    created_at: Moment


class AwaitingShape(TypedDict):
    """Something that awaits a person."""

    kind: str
    id: str
    company_id: str | None
    title: str
    agent_id: str | None
    since: Moment | None
    cause: str


class AdapterShape(TypedDict):
    type: str
    summary: str
    documentation: str | None
    problem: str | None


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
    details: Any
    created_at: Moment
