"""People, and what each may do in a company."""

from dataclasses import dataclass
from enum import StrEnum

from remit.clock import Micros
from remit.ids import AgentId, CompanyId, UserId


@dataclass(frozen=True, slots=True)
class User:
    id: UserId
    name: str
    #: May create companies. Authority inside a company comes from a membership only.
    operator: bool
    created_at: Micros


UserRole = StrEnum("UserRole", "BOARD OBSERVER")


@dataclass(frozen=True, slots=True)
class Membership:
    company_id: CompanyId
    user_id: UserId
    role: UserRole
    #: The agent whose subtree this user has a say in; the whole company when None.
    scope_agent_id: AgentId | None
    created_at: Micros
