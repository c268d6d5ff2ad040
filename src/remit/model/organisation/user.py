"""People, and their roles in companies."""

from dataclasses import dataclass
from enum import StrEnum

from remit.clock import Micros
from remit.ids import AgentId, CompanyId, UserId


@dataclass(frozen=True, slots=True)
class User:
    id: UserId
    name: str
    #: Whether they may create companies. Authority inside a company comes from a membership only.
    operator: bool
    created_at: Micros


UserRole = StrEnum("UserRole", "BOARD OBSERVER")
#: Credentials that a member makes for others: a sign-in link, a token, a session that was opened
#: with a link, the token of a channel.
Handed = StrEnum("Handed", "LINK TOKEN SESSION CHANNEL")


@dataclass(frozen=True, slots=True)
class Membership:
    company_id: CompanyId
    user_id: UserId
    role: UserRole
    #: Agent whose subtree the membership covers; None for the whole company.
    scope_agent_id: AgentId | None
    created_at: Micros
