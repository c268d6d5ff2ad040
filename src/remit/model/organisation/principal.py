"""The principal: who is calling, as the token says and nothing else does."""

from dataclasses import dataclass
from enum import StrEnum

from remit.clock import Micros
from remit.ids import AgentId, CompanyId, RunId, TokenId, TokenKind, UserId
from remit.model.organisation.agent import AgentStatus

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
    #: The token of the person who made it, or their session if its token is not known.
    made_with: TokenId | None = None


@dataclass(frozen=True, slots=True)
class Principal:
    kind: ActorKind
    #: The user's or agent's id; empty for the system itself.
    id: str
    name: str
    #: An agent belongs to one company; a user may have a say in several.
    company_id: CompanyId | None = None
    run_id: RunId | None = None
    workspace: str | None = None
    agent_status: AgentStatus | None = None
    operator: bool = False

    @property
    def address(self) -> str:
        """Stable key of the actor, over all its tokens and runs."""
        return f"{self.kind.value}:{self.id}"

    @property
    def agent_id(self) -> AgentId | None:
        return AgentId(self.id) if self.kind is ActorKind.AGENT else None

    @property
    def user_id(self) -> UserId | None:
        return UserId(self.id) if self.kind is ActorKind.USER else None


SYSTEM = Principal(ActorKind.SYSTEM, "", "remit")
