"""Halts of a company, or of an agent with everybody below it.

A company that was imported is halted from the start, until a person accepts it.
"""

from dataclasses import dataclass

from remit.clock import Micros
from remit.ids import AgentId, CompanyId, HaltId, UserId

LONGEST_NOTE = 1000


@dataclass(frozen=True, slots=True)
class Halt:
    """While it exists, no run that it covers is started. Exactly one of its makers is set."""

    id: HaltId
    company_id: CompanyId
    #: Agent at the top of the halted subtree; None for the whole company.
    agent_id: AgentId | None
    made_by_user_id: UserId | None
    made_by_agent_id: AgentId | None
    note: str
    created_at: Micros
    #: Of a company that came from outside and that nobody has accepted: a JSON list of what of it
    #: was left out. None: somebody stopped it.
    left_out: str | None = None

    @property
    def awaits_acceptance(self) -> bool:
        """Whether only the acceptance of the company ends it."""
        return self.left_out is not None

    @property
    def level(self) -> str:
        return "company" if self.agent_id is None else "subtree"
