"""Shapes of companies, people and tokens."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

from remit.ids import TokenKind
from remit.model.messaging.confirmation import MailDecisions
from remit.model.messaging.mail import Messaging
from remit.model.organisation.principal import ActorKind
from remit.model.organisation.user import Handed, UserRole
from remit.services.shape_basics import Moment, NamedShape


class CompanyShape(NamedShape):
    messaging: Annotated[str, Messaging]
    require_board_approval_for_new_agents: bool
    require_approval_for_config_changes: bool
    chat_llm_provider: str | None
    chat_llm_model: str | None
    review_hours: str
    commit_committer: str | None
    commit_co_authors: str | None
    commit_signing: str | None
    mail_decisions: Annotated[str, MailDecisions]
    limits: dict[str, int | None]
    #: Dollars for a million tokens, by model.
    prices: dict[str, dict[str, float]]
    created_at: Moment
    #: The part that the calling person has in it.
    role: NotRequired[Annotated[str, UserRole]]
    scope_agent_id: NotRequired[str | None]


class NewCompanyShape(CompanyShape):
    root_agent_id: str


class ImportedShape(TypedDict):
    """How many of each kind were imported."""

    agents: int
    outcomes: int
    files: int
    grants: int
    messages: int
    questions: int
    schedules: int
    approvals: int
    #: Bindings that wait until their secrets are set.
    bindings: int
    #: Repositories, checks and folders that wait to be applied.
    setup: int


class ImportedCompanyShape(CompanyShape, ImportedShape):
    #: By names of agents: the secrets that have to be set again.
    removed: dict[str, list[str]]
    #: Rights over the machine that were not taken over, each with the command that gives it.
    left_out: list[str]
    #: It is halted until a person accepts it.
    awaits_acceptance: bool


class MemberShape(NamedShape):
    role: Annotated[str, UserRole]
    scope_agent_id: str | None
    company_id: str
    created_at: Moment


class HandedOutShape(TypedDict):
    """Something that opens the company, made by a member for others."""

    kind: Annotated[str, Handed]
    id: str
    #: The person or the agent that it is for.
    name: str
    #: Whether it ends when its maker is removed, because nobody uses it yet.
    ends: bool
    why: str
    next_step: str


class LeaverShape(NamedShape):
    removed: bool
    #: The agents whose seats are vacant now.
    seats: list[str]
    #: The agents that lost a key which the person made.
    keys_of: list[str]
    handed_out: list[HandedOutShape]
    dry_run: bool


class IssuedTokenShape(TypedDict):
    id: str
    kind: Annotated[str, TokenKind]
    label: str
    agent_id: str | None
    user_id: str | None
    created_at: Moment
    expires_at: Moment | None


class TokenShape(IssuedTokenShape):
    revoked_at: Moment | None


class NewTokenShape(IssuedTokenShape):
    """A token, which is shown this once."""

    token: str | None


class FindingShape(TypedDict):
    """Something about the machine of the instance that was looked at."""

    check: str
    #: ok, warn or fail.
    state: str
    found: str
    next_step: str


class BackupShape(TypedDict):
    name: str
    #: None while it is being written.
    bytes: int | None
    created_at: Moment | None


class NewBackupShape(TypedDict):
    name: str
    #: True if the call returned before it was complete.
    writing: bool
    #: The version of Remit that wrote it.
    version: NotRequired[str]
    companies: NotRequired[int]
    events: NotRequired[int]
    contents: NotRequired[int]
    bytes: NotRequired[int]


class RemovedBackupShape(TypedDict):
    name: str
    removed: bool


class InvitationShape(MemberShape):
    """A person who was given a part, and the link that signs them in, which is shown this once."""

    #: Whether they sign in as before, without a link.
    known: bool
    link_id: str | None
    expires_at: Moment | None
    token: str | None


class KeyShape(TokenShape):
    name: str


class NewKeyShape(NewTokenShape):
    name: str


class LoginLinkShape(TypedDict):
    url: str | None
    expires_at: Moment


class CallerShape(TypedDict):
    kind: Annotated[str, ActorKind]
    id: str
    name: str
    company_id: str | None
    run_id: str | None
    operator: bool


class FirstStartShape(TypedDict):
    company: NewCompanyShape
    user: str


class LetInShape(TypedDict):
    """The person whose token was renewed."""

    user: str


class StartedVersionShape(TypedDict):
    """The version of Remit that was started, and the one before, if it is known."""

    was: str | None
    now: str


class NamedBackupShape(TypedDict):
    name: str


class OwnSessionShape(TokenShape):
    #: Whether it is the session of this call.
    current: bool


class EndedSessionShape(TypedDict):
    id: NotRequired[str]
    ended: bool


class EndedSessionsShape(TypedDict):
    #: The number of ended sessions.
    ended: int


class ExportedShape(TypedDict):
    id: str | None
