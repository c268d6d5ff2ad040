"""The principal: the caller of an operation, as its token alone determines."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from remit.clock import Micros
from remit.ids import AgentId, CompanyId, EventId, RunId, TokenId, TokenKind, UserId
from remit.model.organisation.agent import Agent, AgentStatus

ActorKind = StrEnum("ActorKind", "USER AGENT SYSTEM")


@dataclass(frozen=True, slots=True)
class Token:
    id: TokenId
    kind: TokenKind
    label: str
    created_at: Micros
    expires_at: Micros | None = None
    revoked_at: Micros | None = None
    company_id: CompanyId | None = None
    user_id: UserId | None = None
    agent_id: AgentId | None = None
    run_id: RunId | None = None
    #: Token of the person who made it, or their session if the token is unknown.
    made_with: TokenId | None = None
    #: The event that holds its digest, holder and expiry; `event verify` compares them.
    event_id: EventId | None = None


@dataclass(frozen=True, slots=True)
class Principal:
    kind: ActorKind
    #: The user's or agent's id; empty for the system itself.
    id: str
    name: str
    #: An agent's company; None for a user, who may be in several.
    company_id: CompanyId | None = None
    run_id: RunId | None = None
    workspace: str | None = None
    agent_status: AgentStatus | None = None
    operator: bool = False

    @classmethod
    def of(cls, agent: Agent, run: RunId | None = None) -> Self:
        """An agent with its present status, in a run if any."""
        company, status = agent.company_id, agent.status
        return cls(ActorKind.AGENT, agent.id, agent.name, company, run, agent_status=status)

    @property
    def address(self) -> str:
        """Return the actor's stable key, the same for all its tokens and runs."""
        return f"{self.kind.value}:{self.id}"

    @property
    def agent_id(self) -> AgentId | None:
        return AgentId(self.id) if self.kind is ActorKind.AGENT else None

    @property
    def user_id(self) -> UserId | None:
        return UserId(self.id) if self.kind is ActorKind.USER else None


SYSTEM = Principal(ActorKind.SYSTEM, "", "remit")
