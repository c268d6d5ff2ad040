"""Agents: durable members of a company, each with one place in its tree."""

import json
from dataclasses import dataclass
from enum import StrEnum

from remit.clock import Micros
from remit.errors import Conflict
from remit.ids import AgentId, CompanyId, FileId, UserId
from remit.model.organisation.agent_spec import AgentRole, AgentSpec
from remit.model.organisation.permission import CAN_CREATE_AGENTS, PermissionLevel

#: Adapter of an agent whose seat a person holds.
HUMAN = "human"

#: Longest chain of bosses; a deeper tree is refused, and readers stop there, too.
DEEPEST_TREE = 32


AgentStatus = StrEnum("AgentStatus", "PENDING_APPROVAL IDLE RUNNING PAUSED ERROR TERMINATED")


#: Transitions of each status; `terminated` is final.
TRANSITIONS: dict[AgentStatus, frozenset[AgentStatus]] = {
    AgentStatus.PENDING_APPROVAL: frozenset({AgentStatus.IDLE, AgentStatus.TERMINATED}),
    AgentStatus.IDLE: frozenset(
        {AgentStatus.RUNNING, AgentStatus.PAUSED, AgentStatus.ERROR, AgentStatus.TERMINATED}
    ),
    AgentStatus.RUNNING: frozenset(
        {AgentStatus.IDLE, AgentStatus.PAUSED, AgentStatus.ERROR, AgentStatus.TERMINATED}
    ),
    AgentStatus.PAUSED: frozenset({AgentStatus.IDLE, AgentStatus.TERMINATED}),
    AgentStatus.ERROR: frozenset({AgentStatus.IDLE, AgentStatus.PAUSED, AgentStatus.TERMINATED}),
    AgentStatus.TERMINATED: frozenset(),
}

#: Statuses in which an agent's credentials are valid.
OPERATIONAL = frozenset(
    {AgentStatus.IDLE, AgentStatus.RUNNING, AgentStatus.PAUSED, AgentStatus.ERROR}
)


@dataclass(frozen=True, slots=True)
class Agent(AgentSpec):
    #: Equal to the id of its mandate.
    id: AgentId
    company_id: CompanyId
    status: AgentStatus
    #: Exactly one of the two is set; a root agent's boss is a user.
    boss_id: AgentId | None
    boss_user_id: UserId | None
    #: The person in the seat, when the adapter is `human`.
    seat_user_id: UserId | None
    permission_level: PermissionLevel
    #: Number of its current configuration revision.
    config_revision: int
    #: Its working memory, and its activity log.
    state_file_id: FileId
    log_file_id: FileId
    created_at: Micros
    updated_at: Micros

    @property
    def can_create_agents(self) -> bool | None:
        """Return its permission to hire; None for the default."""
        if self.permissions == "{}":
            return None
        permission = json.loads(self.permissions).get(CAN_CREATE_AGENTS)
        return permission if isinstance(permission, bool) else None

    @property
    def has_budget(self) -> bool:
        return self.budget_monthly_cents is not None or self.budget_monthly_tokens is not None

    @property
    def is_ceo(self) -> bool:
        """Return whether it leads the company; the role alone does not count, only below a
        person."""
        return self.role is AgentRole.CEO and self.boss_id is None

    def require_operational(self, step: str) -> None:
        """Refuse an agent that awaits approval or is terminated; `step` says what to do instead."""
        if self.status not in OPERATIONAL:
            raise Conflict(f"{self.name} is {self.status.value.replace('_', ' ')}.", step)
