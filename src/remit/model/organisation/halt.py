"""Halts: a company, or an agent with everybody below it, that is stopped."""

from dataclasses import dataclass

from remit.clock import Micros
from remit.ids import AgentId, CompanyId, HaltId, UserId

LONGEST_NOTE = 1000


@dataclass(frozen=True, slots=True)
class Halt:
    """Nothing that it covers is started while it is there. Exactly one party made it."""

    id: HaltId
    company_id: CompanyId
    #: The top of what is stopped; None for the whole company.
    agent_id: AgentId | None
    made_by_user_id: UserId | None
    made_by_agent_id: AgentId | None
    note: str
    created_at: Micros

    @property
    def level(self) -> str:
        return "company" if self.agent_id is None else "subtree"
